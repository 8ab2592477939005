/* SPDX-License-Identifier: Apache-2.0 */

#include "base/backlog.h"

#include "base/assert.h"

#include <string.h>

/* Of what was usual one part in so many is forgotten with each end. */
#define FORGET 8
/* A single halt of an hour must not make everything below two hours usual. */
#define USUAL_MAX (2 * NS_PER_S)

void backlog_clear(struct backlog *backlog) { memset(backlog, 0, sizeof *backlog); }

/*
 * Makes room by forgetting every other mark, and from now on leaves twice as many without one. Whoever has no
 * mark goes by the one before it, so the age never becomes too low.
 */
static void thin_out(struct backlog *backlog)
{
    size_t kept = 0;

    for (size_t i = 0; i < backlog->mark_count; i += 2)
        backlog->marks[kept++] = backlog->marks[i];
    backlog->mark_count = kept;
    backlog->stride *= 2;
}

void backlog_add(struct backlog *backlog, uint64_t number, gavel_ns now)
{
    if (number <= backlog->newest)
        return;
    backlog->newest = number;
    if (backlog->mark_count == 0) {
        backlog->moved_at = now;
        backlog->stride = 1;
    } else if (number - backlog->marks[backlog->mark_count - 1].number < backlog->stride) {
        return;
    }
    if (backlog->mark_count == BACKLOG_MARKS)
        thin_out(backlog);
    ASSERT(backlog->mark_count < BACKLOG_MARKS);
    backlog->marks[backlog->mark_count].number = number;
    backlog->marks[backlog->mark_count++].at = now;
}

void backlog_end(struct backlog *backlog, uint64_t number, gavel_ns now)
{
    size_t gone = 0;
    gavel_ns took = ns_min(now - backlog->moved_at, USUAL_MAX);

    if (backlog->mark_count == 0 || number <= backlog->ended)
        return;
    backlog->ended = number;
    if (number >= backlog->newest)
        gone = backlog->mark_count;
    else /* the last mark at or below the oldest that is left stands for it */
        while (gone + 1 < backlog->mark_count && backlog->marks[gone + 1].number <= number + 1)
            gone++;
    backlog->mark_count -= gone;
    memmove(backlog->marks, backlog->marks + gone, backlog->mark_count * sizeof *backlog->marks);
    backlog->usual = ns_max(took, backlog->usual - backlog->usual / FORGET);
    backlog->moved_at = now;
}

gavel_ns backlog_age(const struct backlog *backlog, gavel_ns now)
{
    return backlog->mark_count > 0 ? ns_max(now - backlog->marks[0].at, 0) : 0;
}

gavel_ns backlog_stuck_at(const struct backlog *backlog, gavel_ns patience)
{
    if (backlog->mark_count == 0)
        return NEVER;
    return backlog->moved_at + ns_max(patience, 2 * backlog->usual);
}
