/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The disk of a node: what is durable on it, and a queue of transactions on
 * their way. A crash loses the queue, or leaves any prefix of it. The
 * transaction being written may be torn, which its checksum reveals, so it
 * counts as not written.
 */
#ifndef SIM_RAFT_DISK_H
#define SIM_RAFT_DISK_H

#include "core/raft/raft.h"

struct cluster;
struct host;

/* One transaction; owns what it holds. */
struct disk_write {
    struct raft_persist persist;
    struct raft_snapshot snapshot; /* if persist.has_snapshot */
    uint8_t *snapshot_bytes;
    struct raft_entry *entries; /* first … last; the bytes of each are its own */
    size_t entry_capacity;
};

struct disk {
    /* durable */
    struct raft_state state;
    struct raft_snapshot snapshot;
    uint8_t *snapshot_bytes;
    struct raft_entry *entries; /* after the snapshot; the bytes of each are its own */
    size_t entry_count;
    size_t entry_capacity;

    /* on the way there, oldest first */
    struct disk_write *queue;
    size_t queue_count;
    size_t queue_capacity;
    size_t batch_count;  /* of the oldest are being written */
    uint64_t batch;      /* counts batches */
    bool fails;          /* the batch under way will fail */
    gavel_ns slow_until; /* syncing takes long until then */
    gavel_ns frozen_until;
    gavel_ns hung_until; /* it answers nothing until then, however often its node starts; NEVER: for good */
    uint64_t synced;     /* the newest seq on it of this life */
};

/* Empties it; memory is kept. */
void disk_clear(struct disk *disk);
void disk_done(struct disk *disk);

/* The node wants this to be durable. */
void disk_write(struct cluster *cluster, struct host *host, const struct raft_persist *persist);

/* A SYNC event: the batch is durable, or it failed. */
void disk_sync(struct cluster *cluster, struct host *host, uint64_t batch);

/* It answers nothing before `until`; NEVER: not before disk_heal(). */
void disk_hang(struct cluster *cluster, struct host *host, gavel_ns until);

/* From now on it writes as the profile says. */
void disk_heal(struct cluster *cluster, struct host *host);

/* The node is gone: draws how much of the queue survives. */
void disk_crash(struct cluster *cluster, struct host *host);

/* Copies what is durable now; `to` is emptied first, and has nothing on its way. */
void disk_copy(struct disk *to, const struct disk *from);

/* The newest configuration on the disk; its index if wanted. */
void disk_config(const struct disk *disk, struct raft_config *ret_config, raft_index *ret_index);

#endif
