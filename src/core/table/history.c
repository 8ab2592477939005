/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ring of packed changes, the oldest at `first`. It is no part of the state:
 * when memory is short it forgets everything rather than fail.
 */

#include "core/table/history.h"

#include "base/assert.h"
#include "core/table/step.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

struct table_history {
    struct table_change *changes;
    size_t capacity; /* a power of two */
    size_t first;
    size_t count;
    size_t bytes;
    struct table_cursor floor; /* the newest change that is forgotten */
};

static struct table_change *at(const struct table_history *history, size_t i)
{
    return &history->changes[(history->first + i) & (history->capacity - 1)];
}

static bool is_after(struct table_cursor a, struct table_cursor b)
{
    return a.revision != b.revision ? a.revision > b.revision : a.part > b.part;
}

static void forget_oldest(struct table_history *history)
{
    struct table_change *change = at(history, 0);

    ASSERT(history->count > 0);
    ASSERT(is_after(change->at, history->floor));
    ASSERT(history->bytes >= change->size);
    history->floor = change->at;
    history->bytes -= change->size;
    free(change->bytes);
    history->first = (history->first + 1) & (history->capacity - 1);
    history->count--;
}

size_t history_forget_some(struct table_history *history, size_t count)
{
    size_t forgotten = 0;

    for (; forgotten < count && history->count > 0; forgotten++)
        forget_oldest(history);
    return forgotten;
}

void history_forget(struct table_history *history, uint64_t floor)
{
    (void)history_forget_some(history, SIZE_MAX); /* all of them */
    ASSERT(history->bytes == 0);
    /* Before the first revision there is nothing that could be forgotten. */
    history->floor = (struct table_cursor){.revision = floor, .part = floor > 0 ? UINT32_MAX : 0};
}

void history_free(struct table_history *history)
{
    if (!history)
        return;
    history_forget(history, 0);
    free(history->changes);
    free(history);
}

static bool grow(struct table_history *history)
{
    size_t capacity = history->capacity > 0 ? history->capacity * 2 : FIRST_CAPACITY;
    struct table_change *changes;

    if (history->count < history->capacity)
        return true;
    changes = calloc(capacity, sizeof *changes);
    if (!changes)
        return false;
    for (size_t i = 0; i < history->count; i++)
        changes[i] = *at(history, i);
    free(history->changes);
    history->changes = changes;
    history->capacity = capacity;
    history->first = 0;
    ASSERT(history->count < history->capacity);
    ASSERT((history->capacity & (history->capacity - 1)) == 0);
    return true;
}

void history_push(struct table_history *history, const Gavel__Change *change)
{
    size_t size = gavel__change__get_packed_size(change);
    size_t name_size = strlen(change->group) + 1;
    struct table_change next = {
        .at = {.revision = change->revision, .part = change->part},
        .size = size,
        .kind = change->kind,
        .session = change->session,
    };

    while (history->count > 0 &&
           (history->count >= TABLE_HISTORY_CHANGES_MAX || history->bytes + size > TABLE_HISTORY_BYTES_MAX))
        forget_oldest(history);
    next.bytes = malloc(size + name_size);
    if (!next.bytes || !grow(history)) {
        free(next.bytes);
        history_forget(history, change->revision);
        history->floor = next.at;
        return;
    }
    gavel__change__pack(change, next.bytes);
    memcpy(next.bytes + size, change->group, name_size);
    next.group = (const char *)next.bytes + size;
    if (history->count > 0)
        ASSERT(is_after(next.at, at(history, history->count - 1)->at));
    ASSERT(history->count < history->capacity);
    history->count++;
    history->bytes += size;
    *at(history, history->count - 1) = next;
}

enum gavel_status table_keep_history(struct table *table)
{
    if (table->history)
        return GAVEL_OK;
    table->history = calloc(1, sizeof *table->history);
    if (!table->history)
        return GAVEL_ERR_NO_MEMORY;
    history_forget(table->history, table->revision);
    return GAVEL_OK;
}

enum gavel_status table_history_after(const struct table *table, struct table_cursor cursor,
                                      const struct table_change **ret_change)
{
    const struct table_history *history = table->history;
    size_t low = 0;
    size_t high;

    if (!history)
        return GAVEL_ERR_FORGOTTEN;
    if (is_after(history->floor, cursor))
        return GAVEL_ERR_FORGOTTEN;
    high = history->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (is_after(at(history, middle)->at, cursor))
            high = middle;
        else
            low = middle + 1;
    }
    *ret_change = low < history->count ? at(history, low) : NULL;
    return GAVEL_OK;
}

uint64_t table_history_floor(const struct table *table)
{
    return table->history ? table->history->floor.revision : table->revision;
}
