/* SPDX-License-Identifier: Apache-2.0 */

/* What the profiles of all simulators have: how much goes wrong, and which kinds of faults do. */
#ifndef SIM_COMMON_PROFILE_H
#define SIM_COMMON_PROFILE_H

#include "base/prng.h"
#include "base/time.h"

#include <stdint.h>

enum mood { MOOD_CALM, MOOD_MILD, MOOD_WILD, MOOD_STORM };

static inline const char *mood_name(enum mood mood)
{
    static const char *const names[] = {
        [MOOD_CALM] = "calm", [MOOD_MILD] = "mild", [MOOD_WILD] = "wild", [MOOD_STORM] = "stormy"};

    return names[mood];
}

/* Kinds of faults are a bit set. */
#define FAULT_BIT(fault) (UINT64_C(1) << (fault))

/* A fault or an invariant: a name for the command line and the report, and a sentence. */
struct named {
    const char *name;
    const char *what;
};

/* How long a fault lasts: short more often than long. */
static inline gavel_ns fault_length(struct prng *prng, gavel_ns low, gavel_ns high)
{
    uint64_t drawn = prng_next(prng);
    unsigned doublings = 0;
    gavel_ns length;

    while (low << (doublings + 1) <= high)
        doublings++;
    length = low << (drawn & 0xffff) % (doublings + 1);
    length += (gavel_ns)((drawn >> 16) % (uint64_t)length);
    return ns_min(length, high);
}

#endif
