/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which candidate is due next: a binary heap by instant. A thousand groups
 * beat twice a second; looking at each of them at every wake-up would cost
 * more than the beats.
 */
#ifndef LIB_LOOP_TIMERS_H
#define LIB_LOOP_TIMERS_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>

/* Part of the object that is timed. */
struct timer {
    gavel_ns at;  /* NEVER: not due */
    size_t index; /* in the heap; TIMER_OUT if it is not in one */
};

#define TIMER_OUT SIZE_MAX

struct timers {
    struct timer **heap;
    size_t count;
    size_t capacity;
};

void timers_done(struct timers *timers);

/* Makes room for `count` timers in total; ERR_NO_MEMORY changes nothing. */
GAVEL_CHECKED enum gavel_status timers_reserve(struct timers *timers, size_t count);

/* Sets when a timer is due; NEVER takes it out. There must be room. */
void timers_set(struct timers *timers, struct timer *timer, gavel_ns at);

/* Calls visit() for each timer that is due at `now`, in no order; it must not set any of them. */
void timers_visit_due(const struct timers *timers, gavel_ns now,
                      void (*visit)(struct timer *timer, void *argument), void *argument);

/* The earliest, or NULL. */
struct timer *timers_first(const struct timers *timers);

#endif
