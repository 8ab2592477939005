/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The last resort: a kernel timer that kills this process (SIGKILL) a little
 * after the earliest deadline of its mandates. No code of the process has to
 * run for that: the timer also ends a process that is stopped, whose other
 * threads take all of the processor, or that hangs in its own SIGABRT handler.
 * A forked child does not inherit it.
 *
 * Renewals move the instants further away. The timer is always set to the true
 * earliest one, since a kill cannot be undone.
 */
#ifndef LIB_GUARD_KILLER_H
#define LIB_GUARD_KILLER_H

#include "lib/loop/timers.h"

#include <gavel/status.h>

#include <stdbool.h>
#include <time.h>

/* Not locked: the watchdog's mutex guards it. */
struct killer {
    timer_t timer;
    bool has_timer;
    gavel_ns set_to; /* NEVER: it is not set */
    struct timers instants;
};

/* ERR_IO if the kernel gives no timer; killer_close() is harmless then. */
GAVEL_CHECKED enum gavel_status killer_open(struct killer *killer);
void killer_close(struct killer *killer);

/* Makes room for `count` instants, so that killer_set() cannot fail. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status killer_reserve(struct killer *killer, size_t count);

/* The process must not outlive this instant; NEVER cancels that. */
void killer_set(struct killer *killer, struct timer *instant, gavel_ns at);

#endif
