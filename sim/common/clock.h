/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A clock of the simulated world: an offset and a rate against real time,
 * which only the referee can see. Instants of two clocks have nothing in
 * common, as on real machines.
 */
#ifndef SIM_COMMON_CLOCK_H
#define SIM_COMMON_CLOCK_H

#include "base/time.h"

/* Products of nanoseconds and billionths need more than 64 bits. */
__extension__ typedef __int128 wide;

struct clock {
    gavel_ns offset;
    int64_t rate_ppb; /* how much faster than real time, in billionths */
};

static inline gavel_ns clock_local(const struct clock *clock, gavel_ns real)
{
    return clock->offset + real + (gavel_ns)((wide)real * clock->rate_ppb / NS_PER_S);
}

/* The first real instant at which the clock shows `local` or more; NEVER stays NEVER. */
static inline gavel_ns clock_real(const struct clock *clock, gavel_ns local)
{
    gavel_ns real;

    if (local == NEVER)
        return NEVER;
    real = (gavel_ns)((wide)(local - clock->offset) * NS_PER_S / (NS_PER_S + clock->rate_ppb));
    while (clock_local(clock, real) >= local)
        real--;
    while (clock_local(clock, real) < local)
        real++;
    return real;
}

#endif
