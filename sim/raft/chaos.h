/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lasting faults, and operators who give random commands. Each kind of fault
 * has its own stream and its own plan. The network injects faults of single
 * messages, the guard those of obituaries.
 */
#ifndef SIM_RAFT_CHAOS_H
#define SIM_RAFT_CHAOS_H

#include "sim/raft/profile.h"

struct cluster;
struct host;
struct event;
struct raft_action;

/* Plans the first fault of each kind, and the liveness phase. */
void chaos_begin(struct cluster *cluster);

/* A FAULT event, or something that was planned: STRIKE, CUT, FREEZE, CAMPAIGN,
 * INSIST. */
void chaos_take(struct cluster *cluster, const struct event *event);

/* The node dies; it comes back after a while, or its disk is found damaged and it is replaced. */
void chaos_crash(struct cluster *cluster, struct host *host, const char *why);

/* The same, for `down_for`; 0: drawn. */
void chaos_crash_for(struct cluster *cluster, struct host *host, const char *why, gavel_ns down_for);

/* Its disk, that of a node that is down, is found damaged; another may speak for it. */
void chaos_damage(struct cluster *cluster, struct host *host);

/* A node, quite often the leader, where it matters most. */
struct host *chaos_pick(struct cluster *cluster, enum fault fault);

/* ambush.c: the node has just done something important; a fault may be waiting for that. */
void chaos_ambush(struct cluster *cluster, struct host *host, const struct raft_action *action);
/* A leader has just put a configuration into its log. */
void chaos_ambush_change(struct cluster *cluster, struct host *leader);
void chaos_coup(struct cluster *cluster);

/* Nothing reaches the node, or comes from it. */
void chaos_cut_off(struct cluster *cluster, const struct host *host, gavel_ns length);

/* The network falls apart now, with this node on the smaller side. */
void chaos_split(struct cluster *cluster, const struct host *host);

/* orders.c: an operator commands a transfer, by force or not; a take-over; a step-down; a campaign. */
void order_transfer(struct cluster *cluster);
void order_insist(struct cluster *cluster, uint64_t times);
void order_force(struct cluster *cluster);
void order_step_down(struct cluster *cluster);
void order_campaign(struct cluster *cluster);
void order_distant(struct cluster *cluster);
void order_stand(struct cluster *cluster, struct host *host);

/* revenant.c: a node is removed, added again, and lost: an older copy of its directory speaks; or a majority
 * is founded again. */
void chaos_lose(struct cluster *cluster);
void revenant_take(struct cluster *cluster, const struct event *event); /* RETURN: what comes next */

/* unbound.c: a founder is lost while nodes that have met it have no entry that binds it. */
void unbound_begin(struct cluster *cluster);
void unbound_take(struct cluster *cluster, const struct event *event); /* UNBOUND: it is lost */

/* refound.c: a majority is emptied and founded again while the rest is down. */
void chaos_refound(struct cluster *cluster);
void refound_take(struct cluster *cluster, const struct event *event); /* MOUNT: a directory is back */
void refound_end(struct cluster *cluster);                             /* all are */

/* heal.c: the liveness phase begins. */
void heal_take(struct cluster *cluster);

#endif
