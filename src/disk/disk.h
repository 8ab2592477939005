/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The durable state of a node, in a folder of its own: one LMDB environment
 * (data.mdb) beside a lock file. Everything in it (cluster, generation, node,
 * incarnation, term, vote, promise, log, snapshot, configuration) is changed by
 * transactions that are durable when the call returns.
 *
 * Everything written carries a checksum over its key and its value, so that a
 * flipped bit, a page of another file or an entry in the wrong place is found
 * when the folder is opened. A damaged folder is refused: a node that has
 * forgotten something must not vote.
 *
 * Not thread-safe: one thread at a time, which may block for as long as the
 * disk does. A lock keeps a second process out of the folder; it ends with the
 * process, and children do not inherit it.
 *
 * Errors, and what they mean to the caller:
 *   ERR_STORE_FULL     no room (the disk, or the limit); nothing was written; may be retried
 *   ERR_IO             a write or an fsync failed: what is on disk is unknown; the node must stop
 *   ERR_STORE_DENIED   permissions, or a read-only file system
 *   ERR_STORE_DAMAGED  a checksum is wrong, or the contents contradict themselves
 *   ERR_STORE_TOO_NEW  written by a newer gavel
 *   ERR_STATE          another process uses the folder
 *   ERR_INVALID        the folder belongs to another node or cluster, is not one of ours, or is a copy
 * The message names the folder, the reason and the remedy.
 */
#ifndef DISK_H
#define DISK_H

#include "core/raft/raft.h"

#define DISK_NAME_MAX 64

struct disk;

/* Whose folder it is. */
struct disk_identity {
    char cluster_name[DISK_NAME_MAX];
    char node_name[DISK_NAME_MAX];
    uint64_t cluster;
    raft_id node;
};

struct disk_options {
    const char *folder; /* created with mode 0700, also its parents, if missing */
    struct disk_identity identity;
    size_t bytes_max; /* limit for the data; 0: 1 GiB */
    /* data.mdb may be a copy: an operator has said that the original is no longer used. */
    bool accepts_copy;
};

/* One change, self-contained so that it can wait in a queue: raft_persist with what its indexes stand for. */
struct disk_write {
    struct raft_persist persist;
    struct raft_entry *entries;    /* persist.first … persist.last */
    struct raft_snapshot snapshot; /* if persist.has_snapshot */
};

/*
 * Opens and locks the folder, and checks whose it is and every checksum in it.
 * *ret_is_new: nothing has been written yet; the caller then calls disk_found()
 * or closes it.
 */
GAVEL_CHECKED enum gavel_status disk_open(const struct disk_options *options, struct disk **ret_disk,
                                          bool *ret_is_new, struct gavel_error *error);

/* The first write into a new folder: whose it is, and its initial state and configuration. */
GAVEL_CHECKED enum gavel_status disk_found(struct disk *disk, const struct raft_state *state,
                                           const struct raft_snapshot *snapshot, struct gavel_error *error);

/*
 * Adds one to the incarnation, durably, and returns everything as raft_init()
 * wants it. The caller frees ret_restore's pointers with disk_restore_done().
 */
GAVEL_CHECKED enum gavel_status disk_begin(struct disk *disk, struct raft_restore *ret_restore,
                                           struct gavel_error *error);
void disk_restore_done(struct raft_restore *restore);

/* Several changes as one durable transaction: all of them, or none and an error. */
GAVEL_CHECKED enum gavel_status disk_write(struct disk *disk, const struct disk_write *writes, size_t count,
                                           struct gavel_error *error);

/*
 * For a cluster that is lost for good: turns the state into a new cluster, one
 * generation later, whose only member is this node. Drops promise and vote,
 * keeps the log, and continues in a term that the lost nodes cannot have
 * reached, so that fencing tokens still grow. Terms that ran out of numbers are
 * lowered first (repair.c), so that the result can be loaded. Only in a folder
 * that is open and not yet begun.
 */
#define DISK_FORCED_TERMS (UINT64_C(1) << 20)
GAVEL_CHECKED enum gavel_status disk_force_new_cluster(struct disk *disk, uint64_t *ret_generation,
                                                       struct gavel_error *error);

/* Which directory it is, and its newest transaction, which only grows; 0 for a new one. */
struct disk_mark {
    uint64_t directory;
    uint64_t txn;
};
void disk_mark_read(const struct disk *disk, struct disk_mark *ret_mark);

/* Whether data.mdb is still in the directory, under its name. False if it was deleted or replaced. */
bool disk_is_there(const struct disk *disk);

/* For people: how much there is. */
struct disk_usage {
    uint64_t bytes_used;
    uint64_t bytes_max;
    uint64_t entries;
};
void disk_usage_read(struct disk *disk, struct disk_usage *ret_usage);

/* Safe on NULL. */
void disk_close(struct disk *disk);

#endif
