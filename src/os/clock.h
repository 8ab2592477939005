/* SPDX-License-Identifier: Apache-2.0 */

/* The only place that reads clocks. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "base/time.h"

#include <time.h>

/* CLOCK_BOOTTIME: counts suspend, never steps. Inline, because gavel_is_leader() is this call and a comparison. */
static inline gavel_ns clock_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t); /* cannot fail with a valid clock and pointer */
    return (gavel_ns)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Milliseconds since 1970, for people to read. */
int64_t clock_wall_ms(void);

#endif
