/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The page of memory that the node process shares with the guard above it: what
 * the guard needs to know when the node is dead and cannot be asked. It is
 * complete at every instant: scalars are atomic, and of the two copies of the list
 * of peers one is always whole.
 */
#ifndef DAEMON_SHARED_NODE_PAGE_H
#define DAEMON_SHARED_NODE_PAGE_H

#include "core/raft/config.h"

#include <gavel/status.h>

#include <stdatomic.h>
#include <sys/socket.h>

struct node_page_peers {
    uint32_t count;
    struct sockaddr_storage addresses[RAFT_MEMBERS_MAX]; /* where obituaries are sent */
};

struct node_page {
    _Atomic uint64_t cluster;
    _Atomic uint64_t generation;
    _Atomic uint64_t node;
    _Atomic uint64_t incarnation; /* of the node process that runs, or ran last; 0: none got that far */
    _Atomic uint64_t directory; /* the data directory that a node of this guard has begun with; 0: none yet */
    _Atomic uint64_t written;   /* the newest transaction in it that is known to be durable */
    _Atomic uint32_t is_up;     /* it has started up: a crash after that is worth a restart */
    _Atomic gavel_ns alive_at;  /* the last tick of its consensus thread; 0: none yet */
    _Atomic uint32_t peers_which; /* the copy that is whole */
    struct node_page_peers peers[2];

    /* For the guard of the leader's commands: the mandate they run under (DESIGN §8). */
    _Atomic uint64_t epoch; /* 0: none; see node_page_epoch() */
    _Atomic gavel_ns stop_at;
    _Atomic gavel_ns deadline;
};

/* Shared with forked children. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status node_page_new(struct node_page **ret_page);
void node_page_free(struct node_page *page);

/* Only the node process writes. */
void node_page_set_peers(struct node_page *page, const struct node_page_peers *peers);
/* Only in the writer, or when the writer is dead. */
void node_page_get_peers(const struct node_page *page, struct node_page_peers *ret_peers);

/* The fencing token {term, lease epoch} as one number that only grows: GAVEL_EPOCH of the children. False if
 * the lease epoch is too large for that; then the node must not claim. */
bool node_page_epoch(raft_term term, uint64_t lease_epoch, uint64_t *ret_epoch);

/* node_page_read_mandate() fits guard_mandates.read; user is a struct node_page. */
void node_page_set_mandate(struct node_page *page, uint64_t epoch, gavel_ns stop_at, gavel_ns deadline);
bool node_page_read_mandate(void *user, uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline);

#endif
