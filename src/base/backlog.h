/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Numbered things that begin and end in order, such as writes to a disk or
 * entries on their way to a majority. It answers two questions: how old is the
 * oldest that has not ended, and has everything stopped?
 *
 *     age     the time since the oldest that has not ended began
 *     stuck   something is under way, and nothing has ended for `patience`, nor for twice the usual
 *             interval: slow but steady progress is not stuck
 *
 * Nothing is allocated. When many are under way, only some are remembered, so
 * the age may be too high by a small fraction, never too low. Time is passed in.
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
        gavel_ns at;        /* when it began */
    } marks[BACKLOG_MARKS]; /* of those under way, oldest first */
    size_t mark_count;
    uint64_t stride;   /* the numbers from one mark to the next */
    uint64_t newest;   /* the highest number that has begun */
    uint64_t ended;    /* the highest number that has ended */
    gavel_ns moved_at; /* when the last one ended, or the first one began */
    gavel_ns usual;    /* the longest recent time between two ends; decays with each end */
};

/* Empties the backlog, restarts the numbers and forgets the usual interval. */
void backlog_clear(struct backlog *backlog);

/* `number` begins. Ignored unless it is above all earlier ones. */
void backlog_add(struct backlog *backlog, uint64_t number, gavel_ns now);

/* All up to `number` have ended. */
void backlog_end(struct backlog *backlog, uint64_t number, gavel_ns now);

static inline bool backlog_is_empty(const struct backlog *backlog) { return backlog->mark_count == 0; }

/* The age of the oldest that has not ended; 0 if there is none. */
gavel_ns backlog_age(const struct backlog *backlog, gavel_ns now);

/* When it will be stuck if nothing moves; NEVER if nothing is under way. */
gavel_ns backlog_stuck_at(const struct backlog *backlog, gavel_ns patience);

static inline bool backlog_is_stuck(const struct backlog *backlog, gavel_ns patience, gavel_ns now)
{
    return now >= backlog_stuck_at(backlog, patience);
}

#endif
