/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Operators who order by name, in runs of the kind `orders`: what they want
 * goes to a node as NODE_ORDER, waits there, and is answered; members have
 * records, which the leader makes true. In other runs, and in those before
 * anybody could ask, people give their commands to Raft itself (orders.c,
 * members.c).
 *
 * operator_check.c judges: each order is answered once and in time, an answer is
 * true, nothing is done that nobody has ordered, and in the end the members are
 * what their records say.
 */
#ifndef SIM_RAFT_OPERATOR_H
#define SIM_RAFT_OPERATOR_H

#include "core/node/node.h"

struct cluster;
struct event;
struct host;

/* An order that a node has not answered yet. */
struct host_order {
    bool waits;
    struct node_order order;
    unsigned slot;       /* whom it is about; SLOTS_MAX: nobody */
    raft_term term;      /* of the node, when it was given */
    gavel_ns give_up_at; /* on the clock of the node: it must be answered by then */
    uint64_t number;     /* grows with each order of the run */
};
#define HOST_ORDERS_MAX 12

struct host_operator {
    struct host_order orders[HOST_ORDERS_MAX];
    bool is_stopping;                   /* it was asked to end … */
    gavel_ns stop_at;                   /* … by then, on its own clock */
    bool has_failed;                    /* its work was reported as failed, under the claim that it has */
    uint64_t greeted[RAFT_MEMBERS_MAX]; /* by slot: the incarnation that has greeted it */
};

/* What is known of all nodes, for the checks. */
struct cluster_operators {
    uint64_t number;                   /* of the newest order */
    raft_term led[RAFT_MEMBERS_MAX];   /* by slot: the newest term in which it led */
    uint64_t wished[RAFT_MEMBERS_MAX]; /* by slot: the newest order that wants it as a member */
    bool is_removed[RAFT_MEMBERS_MAX]; /* by slot: told to be no member, and not wanted since */
    gavel_ns busy_at; /* when a leader was last elected, or had something under way that a record waits for */
    bool goes_on;     /* the nodes are ticked in the liveness phase, too: all that can heal has */
};

bool operators_exist(const struct cluster *cluster);

/* The node has just begun: it learns its names, and its ticks begin. */
void operator_introduce(struct cluster *cluster, struct host *host);
/* A TICK or a SAID event. */
void operator_take(struct cluster *cluster, const struct event *event);
/* The node tells the others whether it works. */
void operator_tell_status(struct cluster *cluster, const struct host *host);

/* Whether the node has taken the order on; `slot` is whom it is about. */
bool operator_order(struct cluster *cluster, struct host *host, struct node_order order, unsigned slot);
/* At random: a transfer, a step-down, an end, work that fails; a change of members. */
void operator_transfer(struct cluster *cluster, struct host *host, unsigned slot, bool is_forced);
void operator_end_work(struct cluster *cluster, struct host *host);
void operator_members(struct cluster *cluster, struct host *leader);
/* This node is wanted as a voter, or not at all; whether the leader has taken that on. */
bool operator_want(struct cluster *cluster, struct host *leader, const struct host *host, bool is_wanted);

/* ---- operator_check.c ---- */

/* A step of the node: what it did of its own accord. `before` are the members that were in force. */
void operator_look(struct cluster *cluster, const struct host *host, enum node_event_kind kind,
                   const struct raft_config *before);
/* A NODE_ORDERED action. */
void operator_answered(struct cluster *cluster, struct host *host, const struct node_action *action);
/* After a tick: no order waits longer than it may. */
void operator_check_times(struct cluster *cluster, const struct host *host);
/* An order was taken on. */
void operator_check_taken(struct cluster *cluster, const struct host *host, const struct host_order *given);
/* The node leaves. */
void operator_check_left(struct cluster *cluster, const struct host *host);
/* The run is over. */
void operator_check_records(struct cluster *cluster);

#endif
