/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Numbered things that were begun in order and end in order: writes on their
 * way to a disk, entries on their way to a majority. Two questions are asked
 * of them: how old is the oldest that has not ended, and has everything come
 * to a stop?
 *
 *     age     since the oldest that has not ended was begun
 *     stuck   something is under way, and nothing has ended for `patience`, nor for twice as long as is
 *             usual: what is slow and steady moves, what has stopped does not
 *
 * Nothing is allocated. Of many that are under way only some are remembered,
 * so the age may be too high by a small share of itself, never too low.
 * Time is passed in.
 */
#ifndef BASE_BACKLOG_H
#define BASE_BACKLOG_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACKLOG_MARKS 32

struct backlog {
    struct {
        uint64_t number;
        gavel_ns at;        /* when it was begun */
    } marks[BACKLOG_MARKS]; /* of those under way, oldest first */
    size_t mark_count;
    uint64_t stride;   /* from one mark to the next, in numbers */
    uint64_t newest;   /* that was begun */
    uint64_t ended;    /* the newest that has ended */
    gavel_ns moved_at; /* the newest end, or the beginning after a rest */
    gavel_ns usual;    /* from one end to the next: the longest of late, forgotten little by little */
};

/* Nothing is under way; numbers begin anew, and what is usual is forgotten. */
void backlog_clear(struct backlog *backlog);

/* `number` begins. One that is not above all before it is known already. */
void backlog_add(struct backlog *backlog, uint64_t number, gavel_ns now);

/* All up to `number` have ended. */
void backlog_end(struct backlog *backlog, uint64_t number, gavel_ns now);

static inline bool backlog_is_empty(const struct backlog *backlog) { return backlog->mark_count == 0; }

/* Of the oldest that has not ended; 0 if there is none. */
gavel_ns backlog_age(const struct backlog *backlog, gavel_ns now);

/* When it will be stuck if nothing moves; NEVER if nothing is under way. */
gavel_ns backlog_stuck_at(const struct backlog *backlog, gavel_ns patience);

static inline bool backlog_is_stuck(const struct backlog *backlog, gavel_ns patience, gavel_ns now)
{
    return now >= backlog_stuck_at(backlog, patience);
}

#endif
