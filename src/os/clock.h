/* SPDX-License-Identifier: Apache-2.0 */

/* The only place that reads clocks. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "base/time.h"

#include <stdbool.h>
#include <time.h>

/*
 * CLOCK_BOOTTIME: counts suspend, never steps. Inline, because
 * gavel_is_leader() is this call and a comparison.
 */
static inline gavel_ns clock_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t); /* cannot fail with a valid clock and pointer */
    return (gavel_ns)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* The absolute setting of a CLOCK_BOOTTIME timer for an instant; NEVER disarms it. */
static inline struct itimerspec clock_alarm(gavel_ns at)
{
    struct itimerspec spec = {0};

    if (at != NEVER) {
        at = ns_max(at, 1); /* zero would disarm it, and negative values are not allowed */
        spec.it_value.tv_sec = at / NS_PER_S;
        spec.it_value.tv_nsec = at % NS_PER_S;
    }
    return spec;
}

/* Milliseconds since 1970, for people to read. */
int64_t clock_wall_ms(void);

/*
 * Whether clock_now() is the clock of the whole machine. False in a time
 * namespace that shifts CLOCK_BOOTTIME: instants of such a process, and the
 * start times it reads from /proc, mean nothing to other processes.
 */
bool clock_is_shared(void);

#endif
