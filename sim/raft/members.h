/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes of members, and what they allow: a majority of every configuration
 * that can still matter must always be able to come back, or the liveness phase
 * could demand nothing.
 */
#ifndef SIM_RAFT_MEMBERS_H
#define SIM_RAFT_MEMBERS_H

#include "core/raft/config.h"

#include <stdbool.h>
#include <stddef.h>

struct cluster;
struct host;

/* A change at random: add, remove, replace, promote, demote. */
void order_members(struct cluster *cluster);

/* A REPLACE event: asks the leader to replace damaged nodes by new ones, until it is done. */
void members_replace(struct cluster *cluster);

/* Asks the leader to remove this node, or to add it again as a voter; whether it has agreed. */
bool members_ask(struct cluster *cluster, const struct host *host, bool is_wanted);

/* A node that is no member: a new one, or one that was removed; NULL if all ids are used up. */
struct host *members_outsider(struct cluster *cluster, const struct raft_config *config);
void members_bring_up(struct cluster *cluster, struct host *host);
/* Whether these can be members: then they count among those that may win, for a while. */
bool members_may_become(struct cluster *cluster, const struct raft_config *target);

/* Whether the cluster would survive the loss of this node for good, whatever configuration wins. */
bool members_can_spare(struct cluster *cluster, const struct host *host);

/* Whether the slots of this set decide every configuration that can still matter, and one of them can
 * work. */
bool members_decide(struct cluster *cluster, unsigned slots);

/*
 * Whether one of the set can win an election with the votes of the others. A
 * majority is not always enough: a learner that got the newest entries from a
 * leader that is gone refuses its vote, although the others already count it as
 * a voter, and does not stand for election itself.
 */
bool members_can_elect(const struct cluster *cluster, unsigned slots);

/* The slots that could come back: not damaged. */
unsigned members_sound(const struct cluster *cluster);

#endif
