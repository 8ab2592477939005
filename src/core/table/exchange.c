/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table takes the place of another, and the other is freed bit by bit. With
 * many groups either would hold up the thread that has the table for too long
 * if it were done piece by piece here, or all at once there.
 */

#include "base/assert.h"
#include "core/table/step.h"

#include <stdlib.h>

void table_exchange(struct table *table, struct table *fresh)
{
    struct table_attention ours = TAILQ_HEAD_INITIALIZER(ours);
    struct table_attention theirs = TAILQ_HEAD_INITIALIZER(theirs);
    struct table old;

    ASSERT(!fresh->met.items);
    /* A list has a pointer to its own head, which moves. */
    TAILQ_CONCAT(&ours, &table->attention, in_attention);
    TAILQ_CONCAT(&theirs, &fresh->attention, in_attention);
    old = *table;
    *table = *fresh;
    *fresh = old;
    TAILQ_INIT(&table->attention);
    TAILQ_INIT(&fresh->attention);
    TAILQ_CONCAT(&table->attention, &theirs, in_attention);
    TAILQ_CONCAT(&fresh->attention, &ours, in_attention);
    table->now = old.now;
    table->met = old.met;
    fresh->met = (struct table_met){0};
    if (old.history && !table->history) { /* nobody made one: ours begins anew */
        table->history = old.history;
        fresh->history = NULL;
        history_forget(table->history, table->revision);
    }
}

bool table_free_some(struct table *table, size_t count)
{
    if (table->history)
        count -= history_forget_some(table->history, count);
    count -= notes_free_some(table, count);
    count -= groups_free_some(table, count);
    count -= sessions_free_some(table, count);
    if (count == 0)
        return false;
    table_done(table);
    return true;
}
