/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The log of beats: what the commands under test did, and when. Every process
 * of every command appends to one file.
 *
 * A beat is 32 bytes and one write(2) to a file opened with O_APPEND. The
 * kernel appends under the inode's lock, and 32 bytes at a multiple of 32 never
 * cross a page, so a beat is complete or absent, whenever its process is
 * killed. The order in the file is the order in which the beats were done,
 * whatever the clock says; the time in them says when.
 *
 * Each process that may beat has a shared flock(2) on the file, which the
 * kernel removes with its last descriptor. A process that gets an exclusive one
 * knows that none of them is left, however it tried to get away.
 */
#ifndef RUN_BEAT_LOG_H
#define RUN_BEAT_LOG_H

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which process of the command it was. */
enum beat_role {
    BEAT_MAIN,    /* the command itself */
    BEAT_SESSION, /* a grandchild in a session of its own that ignores SIGTERM */
    BEAT_DAEMON,  /* one that forked twice, so that its parent is gone */
};
#define BEAT_ROLE_COUNT (BEAT_DAEMON + 1)

struct beat {
    uint64_t epoch;
    gavel_ns at; /* CLOCK_BOOTTIME, right before the write */
    int32_t pid;
    uint16_t member; /* which `gavel run` it belongs to */
    uint16_t role;
    uint32_t number; /* of this process, from 0 */
    uint32_t check;  /* of all the above */
};

_Static_assert(sizeof(struct beat) == 32, "a beat must divide a page");

/* For processes that beat: opens the file, creating it, and takes the shared lock. -1 with errno. */
int beat_log_open(const char *path);

/* Appends one; fills in `check`. False if it could not be written as a whole. */
bool beat_log_write(int fd, struct beat *beat);

struct beat_reader {
    int fd;
    off_t offset;
};

/* Creates the file if need be. False with errno. */
bool beat_reader_open(struct beat_reader *reader, const char *path);
void beat_reader_close(struct beat_reader *reader);

enum beat_read {
    BEAT_READ,    /* *ret_beat is the next one */
    BEAT_NONE,    /* no more so far */
    BEAT_DAMAGED, /* not a beat; it was skipped */
};

enum beat_read beat_reader_next(struct beat_reader *reader, struct beat *ret_beat);

/* Where the log ends now. */
off_t beat_reader_end(const struct beat_reader *reader);

/* Whether no process is left that could beat. */
bool beat_log_is_abandoned(const struct beat_reader *reader);

#endif
