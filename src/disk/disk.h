/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a node must not forget, in a directory of its own: one LMDB environment
 * (data.mdb) beside a lock file. Everything of DESIGN §9 (cluster, generation,
 * node, incarnation, term, vote, promise, log, snapshot, configuration) is
 * changed by transactions that are durable when the call returns.
 *
 * Everything written carries a checksum over its key and its value, so that a
 * bit that flipped, a page of another file and an entry in the wrong place are
 * all found when the directory is opened. A damaged directory is refused: a node that
 * has forgotten something must not vote.
 *
 * Not thread-safe: one thread at a time, which may block for as long as the
 * disk does. The directory is locked against a second process, by a lock that
 * ends with the process and is not passed on to children.
 *
 * Errors, and what they mean to the caller:
 *   ERR_STORE_FULL     no room (the disk, or the limit); nothing was written; may be retried
 *   ERR_IO             a write or an fsync failed: what is on disk is unknown; the node must stop
 *   ERR_STORE_DENIED   permissions, or a read-only file system
 *   ERR_STORE_DAMAGED  a checksum is wrong, or the contents contradict themselves
 *   ERR_STORE_TOO_NEW  written by a newer gavel
 *   ERR_STATE          another process has the directory
 *   ERR_INVALID        the directory belongs to another node or cluster, is not one of ours, or is a copy
 * The message names the directory, the reason and the way out.
 */
#ifndef DISK_H
#define DISK_H

#include "core/raft/raft.h"

#define DISK_NAME_MAX 64

struct disk;

/* Whose directory it is. */
struct disk_identity {
    char cluster_name[DISK_NAME_MAX];
    char node_name[DISK_NAME_MAX];
    uint64_t cluster;
    raft_id node;
};

struct disk_options {
    const char *data_dir; /* is made, with its parents' permissions kept (0700), if it does not exist */
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
    bool is_staged;                /* its bytes were the last that disk_stage() has written, all of them */
};

/*
 * Opens the directory, locks it, and checks whose it is and every checksum in it. *ret_is_new says that
 * nothing has been written yet: the caller then calls disk_found() or closes it.
 */
GAVEL_CHECKED enum gavel_status disk_open(const struct disk_options *options, struct disk **ret_disk,
                                          bool *ret_is_new, struct gavel_error *error);

/* The first write into a new directory: whose it is, and the state and configuration that it begins with. */
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
 * Writes `count` pieces of DISK_PIECE_BYTES, from number `first` on, of a snapshot of that many bytes beside
 * the one in force, as one durable transaction of its own. Number 0 begins a new one; the others follow in
 * order. It counts for nothing until a disk_write() says is_staged, and one that brings another snapshot ends
 * it. ERR_STORE_FULL: not even this is left over for it.
 */
#define DISK_PIECE_BYTES 4072u
GAVEL_CHECKED enum gavel_status disk_stage(struct disk *disk, const uint8_t *data, size_t size,
                                           uint32_t first, uint32_t count, struct gavel_error *error);

/* Gives up what disk_stage() has written; what follows removes its pieces bit by bit. */
void disk_unstage(struct disk *disk);

/*
 * Removes some of what was left behind (pieces of a snapshot that is no longer in force or was given up, and
 * entries that one stands for), as one durable transaction. disk_write() and disk_stage() do that, too, but
 * without room there is none of them. May use what is kept back for snapshots.
 */
bool disk_has_leftovers(const struct disk *disk);
GAVEL_CHECKED enum gavel_status disk_remove_leftovers(struct disk *disk, struct gavel_error *error);

/*
 * Cluster lost for good: the state as it stands becomes a cluster of its own, one generation later, whose
 * only member is this node. Drops promise and vote, keeps the log, and goes on in a term that the lost nodes
 * cannot have reached, so that fencing tokens still grow. Terms that ran out of numbers are lowered first
 * (repair.c): what it writes loads. Only in a directory that is open and not yet begun.
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

/*
 * Leaves the directory as an older gavel knows it, if it can; nothing depends on it. It writes, and takes as
 * long as the disk does: a snapshot may have to move.
 */
void disk_settle(struct disk *disk);

/* Writes nothing. Safe on NULL. */
void disk_close(struct disk *disk);

#endif
