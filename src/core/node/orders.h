/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What operators order. An order is taken on, waits for what it is about, and
 * is answered exactly once: when that has come, when it cannot come any more, or
 * when its time is up. What is wrong with it from the start is answered at once.
 */
#ifndef CORE_NODE_ORDERS_H
#define CORE_NODE_ORDERS_H

#include "core/raft/raft.h"
#include "wire/peer.h"

#include <sys/queue.h>

enum node_order_kind {
    NODE_TRANSFER,       /* to `name` ("" the best); answered when another leads, or it has failed */
    NODE_STEP_DOWN,      /* answered when the work has stopped */
    NODE_MEMBER_ADD,     /* `name`, address, api, priority, is_witness, is_learner */
    NODE_MEMBER_REMOVE,  /* like all orders about members, answered when the new members are committed */
    NODE_MEMBER_PROMOTE, /* a learner becomes a voter */
    NODE_MEMBER_DEMOTE,  /* a voter becomes a learner */
};

struct node_order {
    uint64_t id; /* comes back with the answer */
    enum node_order_kind kind;
    char name[PEER_NAME_MAX + 1];
    bool is_forced;
    gavel_ns timeout; /* 0: the configured one */
    char address[PEER_ADDRESS_MAX + 1];
    char api[PEER_ADDRESS_MAX + 1];
    uint8_t priority;
    bool is_witness;
    bool is_learner; /* ADD: stays a learner; otherwise it becomes a voter when it has caught up */
};

#define NODE_ORDERS_MAX 64
#define NODE_ORDER_TEXT_BYTES 256

/* An order that waits, or that was answered in this step. */
struct node_pending {
    STAILQ_ENTRY(node_pending) next;
    struct node_order order;
    raft_id target; /* whom the order names; 0 nobody */
    gavel_ns give_up_at;
    raft_term term;   /* when it began */
    bool has_begun;   /* TRANSFER by force, at its target; REMOVE: the change is under way */
    raft_index index; /* of the entry that has to be applied first; 0 none */
    bool is_already;  /* PROMOTE, DEMOTE: it was one before */
    gavel_ns ask_at;  /* TRANSFER by force, at its target: when to ask the leader again */
    raft_id elected;  /* TRANSFER: this one was, and is about to work */
    uint64_t tried;   /* REMOVE: the event in which the change was last tried */
    char text[NODE_ORDER_TEXT_BYTES];
};
STAILQ_HEAD(node_pendings, node_pending);

/* What a member last said of itself. */
struct node_said {
    raft_id node;
    raft_term term;
    bool is_working;
};

struct node_orders {
    struct node_pendings waiting;
    size_t count;
    bool must_look;  /* something has happened that one of them may wait for */
    uint64_t events; /* but NEXT */
    struct node_said said[RAFT_MEMBERS_MAX];
    size_t said_count;
};

#endif
