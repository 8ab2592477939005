/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The disk thread: takes what Raft wants durable, in order, and writes all
 * that has gathered meanwhile as one transaction (group commit). The consensus
 * thread never waits for it; `fd` becomes readable when something is durable
 * or has failed.
 *
 * A full disk is waited out: the write is tried again until there is room, and
 * nothing overtakes it. Any other failure is final.
 */
#ifndef DAEMON_NODE_WRITER_H
#define DAEMON_NODE_WRITER_H

#include "base/time.h"
#include "daemon/shared/mailbox.h"
#include "disk/disk.h"

#include <stdatomic.h>

enum writer_state {
    WRITER_GOOD,
    WRITER_FULL,   /* there is no room; it tries again */
    WRITER_FAILED, /* for good; `error` says why */
};

struct writer {
    struct disk *disk; /* the thread's alone while it runs */
    struct mailbox messages;
    int fd; /* an eventfd for the consensus thread */
    pthread_t thread;
    bool is_running;
    _Atomic uint64_t durable; /* the newest seq */
    _Atomic uint64_t writes;  /* transactions */
    _Atomic int state;        /* enum writer_state */
    _Atomic uint64_t written; /* the newest transaction on disk (disk_mark) */
    _Atomic bool is_lost;     /* data.mdb is not where it was any more */
    _Atomic bool is_ending;
    _Atomic bool is_settling; /* everything is written; the directory is put in order for an older gavel */
    _Atomic uint64_t staged;  /* the newest of writer_stage() that is done with */
    uint64_t stages;          /* of the consensus thread */
    struct {
        struct blob *blob; /* NULL: none */
        uint64_t number;
        uint32_t next;     /* piece */
        uint64_t unwanted; /* the newest number that nobody will use */
        bool is_whole;
    } stage;                  /* of the disk thread */
    struct gavel_error error; /* whole once state says so */
};

/* Starts the thread; the disk is borrowed until writer_stop(). ERR_IO, ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status writer_start(struct writer *writer, struct disk *disk, bool is_realtime);

/* Copies what has to be written, and returns. ERR_NO_MEMORY: then the node must stop. */
GAVEL_CHECKED enum gavel_status writer_put(struct writer *writer, const struct raft *raft,
                                           const struct raft_persist *persist);

/*
 * Has a snapshot written in pieces, between other writes, beside the one in force. A write that brings these
 * very bytes later is small then. Returns a number: `staged` reaches it when that is done, or was given up
 * for lack of room or for another one; the write that brings them works all the same. 0, which was always
 * reached: no memory.
 */
uint64_t writer_stage(struct writer *writer, struct blob *blob);

/* Nobody but the writes before this will use what has this number: what is left of it is removed from the
 * disk. */
void writer_unstage(struct writer *writer, uint64_t number);

/*
 * Writes what is left, if it can be, settles the disk, and joins the thread. Safe on a zeroed struct. False
 * if the disk does not answer in time: the thread still has the disk, and both must be left alone until the
 * process ends. is_settling says that nothing is lost by that.
 */
GAVEL_CHECKED bool writer_stop(struct writer *writer);

#endif
