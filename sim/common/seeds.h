/* SPDX-License-Identifier: Apache-2.0 */

/* Many seeds. */
#ifndef SIM_COMMON_SEEDS_H
#define SIM_COMMON_SEEDS_H

#include "sim/common/simulator.h"

/*
 * Runs `count` seeds from options->seed on in several processes. Names every
 * seed that fails, with what it breaks, in a line of its own as soon as it has
 * failed, and tells the story of the lowest at the end. POOL_ENDLESS: until
 * Ctrl-C, with a line of progress.
 * wants_all_seen: a sight that never occurred is a failure, too. Returns how
 * many failed.
 */
uint64_t seeds_run(const struct simulator *simulator, const struct run_options *options, uint64_t count,
                   unsigned jobs, bool wants_all_seen);

/* Runs seeds for a few seconds and prints how many there are per second and core. */
void seeds_bench(const struct simulator *simulator, const struct run_options *options);

#endif
