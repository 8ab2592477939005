/* SPDX-License-Identifier: Apache-2.0 */

/* What the profiles of all simulators have: how much goes wrong, and which kinds of faults do. */
#ifndef SIM_COMMON_PROFILE_H
#define SIM_COMMON_PROFILE_H

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

struct simulator_fault {
    const char *name; /* for --without */
    const char *what;
};

#endif
