/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory that the node process shares with the guard above it:
 * what the guard needs to know when the node is dead, and cannot ask any
 * more. Complete at every instant: scalars are atomic, the list of peers has
 * two copies of which one is whole.
 */
#ifndef DAEMON_SHARED_SHARED_MEMORY_H
#define DAEMON_SHARED_SHARED_MEMORY_H

#include "core/raft/config.h"

#include <gavel/status.h>

#include <stdatomic.h>
#include <sys/socket.h>

struct shared_memory_peers {
    uint32_t count;
    struct sockaddr_storage addresses[RAFT_MEMBERS_MAX]; /* where obituaries are sent */
};

struct shared_memory {
    _Atomic uint64_t cluster;
    _Atomic uint64_t generation;
    _Atomic uint64_t node;
    _Atomic uint64_t incarnation; /* of the node process that runs, or ran last; 0: none got that far */
    _Atomic uint64_t directory; /* the data directory that a node of this guard has begun with; 0: none yet */
    _Atomic uint64_t written;   /* the newest transaction in it that is known to be durable */
    _Atomic uint32_t is_up;     /* it has started up: a crash after that is worth a restart */
    _Atomic gavel_ns alive_at;  /* the last tick of its consensus thread; 0: none yet */
    _Atomic uint32_t peers_which; /* the copy that is whole */
    struct shared_memory_peers peers[2];

    /* For the guard of the leader's commands: the mandate they run under (DESIGN §8). */
    _Atomic uint64_t epoch; /* 0: none; see shared_memory_epoch() */
    _Atomic gavel_ns stop_at;
    _Atomic gavel_ns deadline;
};

/* Shared with forked children. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status shared_memory_new(struct shared_memory **ret_memory);
void shared_memory_free(struct shared_memory *memory);

/* Only the node process writes. */
void shared_memory_set_peers(struct shared_memory *memory, const struct shared_memory_peers *peers);
/* Only when the writer is dead, or by the writer. */
void shared_memory_get_peers(const struct shared_memory *memory, struct shared_memory_peers *ret_peers);

/* The fencing token {term, lease epoch} as one number that only grows: GAVEL_EPOCH of the children. False if
 * the lease epoch is too large for that; then the node must not claim. */
bool shared_memory_epoch(raft_term term, uint64_t lease_epoch, uint64_t *ret_epoch);
/* And back. */
void shared_memory_token(uint64_t epoch, raft_term *ret_term, uint64_t *ret_lease_epoch);

/* Fits guard_mandates.read; user is a struct shared_memory. */
void shared_memory_set_mandate(struct shared_memory *memory, uint64_t epoch, gavel_ns stop_at,
                               gavel_ns deadline);
bool shared_memory_read_mandate(void *user, uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline);

#endif
