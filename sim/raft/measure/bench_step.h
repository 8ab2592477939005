/* SPDX-License-Identifier: Apache-2.0 */

/* What a heartbeat costs the core: the time of one raft_step() of each of its three kinds. */
#ifndef SIM_RAFT_MEASURE_BENCH_STEP_H
#define SIM_RAFT_MEASURE_BENCH_STEP_H

#include <stdint.h>

/*
 * A measure; the arguments are not used. Prints a table; 1 if there is nothing
 * to measure because no node leads, otherwise 0.
 */
int bench_step(uint64_t trials, uint64_t first_seed, unsigned jobs);

#endif
