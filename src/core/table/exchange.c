/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table takes the place of another, and the other is freed bit by bit. With
 * many groups either would hold up the thread that has the table for too long
 * if it were done piece by piece here, or all at once there.
 */

#include "core/table/step.h"

#include <stdlib.h>

void table_exchange(struct table *table, struct table *fresh)
{
    struct table old = *table;

    *table = *fresh;
    *fresh = old;
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
