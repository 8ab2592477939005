/* SPDX-License-Identifier: Apache-2.0 */

#include "core/session/applied.h"

#include "base/assert.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

/*
 * Leaves out marks whose revisions can be told with the next one's instant. What is left is bounded: going
 * back in time each second mark is older than the one after it by a part of its age.
 */
static void thin_out(struct applied *applied, gavel_ns now)
{
    size_t kept = 1;

    for (size_t i = 1; i < applied->count; i++) {
        const struct applied_mark *mark = &applied->marks[i];
        bool is_close = kept > 1 && mark->at - applied->marks[kept - 2].at <= (now - mark->at) / APPLIED_PART;

        if (is_close)
            kept--;
        applied->marks[kept++] = *mark;
    }
    applied->count = kept;
}

/* False: there is no room for one more. */
static bool make_room(struct applied *applied, gavel_ns now)
{
    size_t capacity = applied->capacity > 0 ? 2 * applied->capacity : FIRST_CAPACITY;
    struct applied_mark *grown = NULL;

    if (applied->count > 0)
        thin_out(applied, now);
    if (2 * applied->count >= applied->capacity && capacity <= APPLIED_MAX)
        grown = realloc(applied->marks, capacity * sizeof *grown);
    if (grown) {
        applied->marks = grown;
        applied->capacity = capacity;
    }
    return applied->count < applied->capacity;
}

void applied_mark(struct applied *applied, uint64_t revision, gavel_ns now)
{
    struct applied_mark *last;

    ASSERT(applied->marks || applied->capacity == 0);
    ASSERT(applied->count <= applied->capacity);
    last = applied->count > 0 ? &applied->marks[applied->count - 1] : NULL;
    if (last && revision < last->revision) { /* the table is another */
        applied->count = 0;
        last = NULL;
    }
    if (last && revision == last->revision)
        return;
    if (last)
        ASSERT(now >= last->at);
    if (last && now == last->at) {
        last->revision = revision;
        return;
    }
    if (applied->count == applied->capacity && !make_room(applied, now)) {
        if (applied->count > 0) /* without memory the newest are told together */
            applied->marks[applied->count - 1] = (struct applied_mark){revision, now};
        return;
    }
    ASSERT(applied->count < applied->capacity);
    applied->marks[applied->count++] = (struct applied_mark){revision, now};
}

gavel_ns applied_at(const struct applied *applied, uint64_t revision)
{
    size_t low = 0;
    size_t high = applied->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (applied->marks[middle].revision < revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low < applied->count ? applied->marks[low].at : NEVER;
}

void applied_done(struct applied *applied)
{
    free(applied->marks);
    *applied = (struct applied){0};
}
