/* SPDX-License-Identifier: Apache-2.0 */

/* The shape of the network in the liveness phase: who hears whom, and who is too far away to count. */
#ifndef SIM_RAFT_SHAPE_H
#define SIM_RAFT_SHAPE_H

#include "sim/raft/world.h"

/*
 * Cuts links among the healed nodes for good: a star, a chain, a ring, one-way
 * links, or random pairs. ret_heard: by slot, the slots that hear it.
 */
void shape_cut(struct cluster *cluster, unsigned ret_heard[SLOTS_MAX]);

/* Those of these slots that are not far away. */
unsigned shape_near(const struct cluster *cluster, unsigned slots);

/* The longest one-way delay and the longest write among these slots. */
gavel_ns shape_delay(const struct cluster *cluster, unsigned slots);
gavel_ns shape_write(const struct cluster *cluster, unsigned slots);

/*
 * A working leader has begun to hand over to a node of its own choice; a leader
 * has put a joint configuration into its log. Neither the target nor a majority
 * of the new voters may answer too late for a lease.
 */
void shape_check_target(struct cluster *cluster, const struct host *leader);
void shape_check_config(struct cluster *cluster, const struct host *leader);

#endif
