/* SPDX-License-Identifier: Apache-2.0 */

/* Many seeds of the quorum, shared out to several processes. */
#ifndef SIM_RAFT_SEEDS_H
#define SIM_RAFT_SEEDS_H

#include "sim/raft/run.h"

/* Runs `count` seeds from options->seed on with so many processes; returns how many failed, reporting the
 * first few. POOL_ENDLESS: until it is stopped, with a line of progress. wants_all: it is a failure, too, if
 * one of the things in SIGHT_MAP never happened. */
uint64_t quorum_seeds_run(const struct run_options *options, uint64_t count, unsigned jobs, bool wants_all);

/* Runs seeds for so long and prints how many there are per second and core. */
void quorum_seeds_bench(const struct run_options *options, gavel_ns length);

#endif
