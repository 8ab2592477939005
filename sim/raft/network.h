/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The network between the nodes: each ordered pair has a base delay, and may
 * be cut, for all messages or for some kinds of them. Messages are copied
 * whole, so that one may arrive long after its sender is gone.
 */
#ifndef SIM_RAFT_NETWORK_H
#define SIM_RAFT_NETWORK_H

#include "sim/raft/profile.h"

struct cluster;
struct host;
struct event;

/* A message under way, or one that waits for its disk. */
struct message {
    struct raft_message body; /* its pointers lead into what follows */
    bool is_false;            /* no node and no guard made it */
    struct raft_entry *entries;
    size_t entry_capacity;
    uint8_t *bytes;
    size_t byte_capacity;
    struct message *next;
    struct message *next_of_all;
};

#define ALL_KINDS ((1U << RAFT_MESSAGE_KIND_COUNT) - 1)

struct link {
    gavel_ns base;
    gavel_ns cut_until;
    unsigned cut_kinds; /* bit set of message kinds that do not pass while cut */
    gavel_ns newest;    /* when the last message arrives, for those that keep their order */
};

struct network {
    struct link links[SLOTS_MAX][SLOTS_MAX];
    struct message *free_messages;
    struct message *all_messages;
};

/* Draws the links. */
void net_begin(struct cluster *cluster);

/* Frees everything. */
void net_done(struct network *network);

/* A copy of it, for whoever keeps it. */
struct message *net_copy(struct cluster *cluster, const struct raft_message *body);
void net_recycle(struct cluster *cluster, struct message *message);
void net_recycle_all(struct cluster *cluster);

/* The message leaves the node in this slot, or its guard, now and is handed over. */
void net_send(struct cluster *cluster, struct message *message, unsigned from);

/* Puts a message into an inbox at an instant, past all links. Handed over. */
void net_deliver(struct cluster *cluster, struct message *message, gavel_ns at);

/* An ARRIVE event. */
void net_take(struct cluster *cluster, const struct event *event);

/* Nothing, or only other kinds, passes from one to the other until then. */
void net_cut(struct cluster *cluster, unsigned from, unsigned to, gavel_ns until, unsigned kinds);

/* The link is whole, and as fast as the profile says. */
void net_mend(struct cluster *cluster, unsigned from, unsigned to);

#endif
