/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long a cluster is without a working leader after a fault, in simulated
 * time: default settings, 3 and 5 nodes, messages that take up to 10 ms, load,
 * and one fault per trial at a random instant.
 */
#ifndef SIM_RAFT_MEASURE_FAILOVER_H
#define SIM_RAFT_MEASURE_FAILOVER_H

#include <stdint.h>

/*
 * Runs `trials` trials of each kind of fault and size of cluster. Prints a
 * table; 1 if too few end within a second, or if an invariant breaks, otherwise
 * 0.
 */
int failover_measure(uint64_t trials, uint64_t first_seed, unsigned jobs);

#endif
