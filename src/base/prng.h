/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A small deterministic source of random numbers (SplitMix64, Steele, Lea and
 * Flood 2014). The seed lives in the struct; there is no global one. Good for
 * jitter, nonces from a random seed, and simulations; not for secrets.
 */
#ifndef BASE_PRNG_H
#define BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
    uint64_t state;
};

void prng_seed(struct prng *prng, uint64_t seed);
uint64_t prng_next(struct prng *prng);

/* Evenly from [0, bound); 0 if bound is 0. */
uint64_t prng_below(struct prng *prng, uint64_t bound);

/* Evenly from [low, high]; low if high is not above it. */
int64_t prng_between(struct prng *prng, int64_t low, int64_t high);

/* True in `per_mille` of 1000 cases. */
bool prng_chance(struct prng *prng, unsigned per_mille);

#endif
