/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a store keeps: one record per group (the mandate) and one registration
 * per candidate of a group. Both the candidate and the drivers use them, so
 * they live below both.
 */
#ifndef BASE_RECORD_H
#define BASE_RECORD_H

#include "base/time.h"

#include <gavel/event.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_MAX_BYTES 255 /* of a group or a candidate id; UTF-8, not empty */
#define ADDRESS_MAX_BYTES 63

/*
 * Which process must be dead before another may lead. Only meaningful to
 * processes on the same boot of the same machine and in the same pid
 * namespace; pid 0 names no process.
 */
struct process_id {
    char boot_id[37];
    int32_t pid;
    uint64_t pid_ns;      /* inode of the pid namespace */
    uint64_t start_ticks; /* field 22 of /proc/<pid>/stat */
};

/* A number that two claims never share, however similar their ids. */
struct nonce {
    uint64_t high;
    uint64_t low;
};

static inline bool nonce_equal(struct nonce a, struct nonce b) { return a.high == b.high && a.low == b.low; }

/* The mandate of a group as the store has it. */
struct record {
    uint64_t epoch;   /* only ever grows; kept over a release */
    uint64_t version; /* differs after every write; 0 means that there is no record */
    struct nonce nonce;
    gavel_ms lease_ms; /* of the holder: how long others have to wait */
    /* When the mandate began, and its last renewal: for people to read. They decide nothing but how long the
     * record of work that is done stays. */
    int64_t since_wall_ms;
    int64_t renewed_wall_ms;
    bool held; /* false: released; epoch and holder are those of the last mandate */
    bool done; /* the work is finished for good: nobody may claim this group; never while held */
    /*
     * How the mandate ended, if the record is neither held nor done. NONE: the
     * holder released it. Otherwise it was released on behalf of a lost holder,
     * or by the holder itself after its lease.
     */
    enum gavel_loss loss;
    struct process_id process;
    char holder[NAME_MAX_BYTES + 1];
    char address[ADDRESS_MAX_BYTES + 1]; /* doorbell of the holder, "" if it has none */
    /*
     * Who should claim a released record first ("" nobody in particular). A
     * hint of the former holder, like any policy.
     */
    char successor[NAME_MAX_BYTES + 1];
    /*
     * Somebody asks the holder of wish_epoch to hand over, to wish_successor
     * if not "". Writing a wish does not change the version. It is void as
     * soon as the epoch changes.
     */
    uint64_t wish_epoch;
    bool wish_force; /* even before the minimum mandate */
    char wish_successor[NAME_MAX_BYTES + 1];
};

/* A candidate of a group as the store has it. */
struct registration {
    uint64_t instance;     /* random, one per process that joined */
    uint64_t beats;        /* grows with each heartbeat of that instance */
    gavel_ms age_ms;       /* since the last heartbeat on the store's clock; -1 if it has none */
    int64_t since_wall_ms; /* for people */
    int64_t last_wall_ms;
    int32_t priority;
    bool eligible;
    struct process_id process;
    char id[NAME_MAX_BYTES + 1];
    char address[ADDRESS_MAX_BYTES + 1];
};

/*
 * A name of a group or a candidate: 1 to 255 bytes of valid UTF-8 without
 * control characters. ERR_INVALID, with the reason in *error; `what` goes
 * into the message ("group name", "candidate id").
 */
GAVEL_CHECKED enum gavel_status name_check(const char *what, const char *name, struct gavel_error *error);

#endif
