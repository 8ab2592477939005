/* SPDX-License-Identifier: Apache-2.0 */

/* Many seeds, shared out to several processes. */
#ifndef SIM_CANDIDATE_SEEDS_H
#define SIM_CANDIDATE_SEEDS_H

#include "sim/candidate/run.h"

/* Runs `count` seeds from options->seed on with so many processes; returns how many failed, reporting the
 * first few. */
uint64_t seeds_run(const struct run_options *options, uint64_t count, unsigned jobs);

/* Runs seeds for so long and prints how many there are per second and core. */
void seeds_bench(const struct run_options *options, gavel_ns length);

#endif
