/* SPDX-License-Identifier: Apache-2.0 */

#include "base/prng.h"

/* Not in ISO C, but in every compiler we build with; the word keeps -Wpedantic quiet about it. */
__extension__ typedef unsigned __int128 u128;

void prng_seed(struct prng *prng, uint64_t seed) { prng->state = seed; }

uint64_t prng_next(struct prng *prng)
{
    uint64_t z = prng->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t prng_below(struct prng *prng, uint64_t bound)
{
    /* The high half of a 128-bit product; its bias is below bound / 2^64, nothing for our uses. */
    return (uint64_t)(((u128)prng_next(prng) * bound) >> 64);
}

int64_t prng_between(struct prng *prng, int64_t low, int64_t high)
{
    if (high <= low)
        return low;
    return low + (int64_t)prng_below(prng, (uint64_t)high - (uint64_t)low + 1);
}

bool prng_chance(struct prng *prng, unsigned per_mille) { return prng_below(prng, 1000) < per_mille; }
