/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A call to a store: what is asked, and what comes back. The candidate writes
 * requests and reads replies; drivers do the opposite; whoever stands between
 * them (libgavel, the simulator) only carries them.
 *
 * | op         | asks with                           | a good reply has         |
 * |------------|-------------------------------------|--------------------------|
 * | READ       | group; record: the caller's nonce   | found, record, expired   |
 * | CLAIM      | expected_version, record            | record with its epoch    |
 * | RENEW      | record: holder, nonce, epoch, …     | record                   |
 * | RELEASE    | record: holder, nonce, epoch, …     | record                   |
 * | REOPEN     | expected_version                    | record                   |
 * | ASK        | record: wish_*                      | record                   |
 * | HEARTBEAT  | registration                        | –                        |
 * | LEAVE      | registration: id, instance          | –                        |
 * | CANDIDATES | candidate_timeout_ms; registration: | registrations            |
 * |            | instance of the caller              |                          |
 * | GROUPS     | –                                   | groups                   |
 */
#ifndef BASE_REQUEST_H
#define BASE_REQUEST_H

#include "base/record.h"

enum store_op {
    STORE_READ,
    STORE_CLAIM,
    STORE_RENEW,
    STORE_RELEASE,
    STORE_ASK,
    STORE_REOPEN,
    STORE_HEARTBEAT,
    STORE_LEAVE,
    STORE_CANDIDATES,
    STORE_GROUPS,
};

/* What kind of clock tells the store that a lease has expired. */
enum store_clock {
    STORE_CLOCK_NONE,   /* it has none; standbys time the lease themselves */
    STORE_CLOCK_STEPS,  /* its own, which may be set or jump at a fail-over */
    STORE_CLOCK_STEADY, /* one that all candidates share and that never steps */
};

struct store_request {
    enum store_op op;
    const char *group;   /* borrowed */
    gavel_ns give_up_at; /* must not be begun after this instant of the caller's clock */
    /*
     * CLAIM succeeds only if the record still has expected_version (0: there
     * is none), atomically. With must_be_expired a store that has a clock
     * also insists that the lease has run out; without, the caller knows that
     * the holder is gone (released, dead, or itself).
     */
    uint64_t expected_version;
    bool must_be_expired;
    uint64_t replaces_instance; /* HEARTBEAT: another instance that the caller knows to be silent; 0 none */
    gavel_ms candidate_timeout_ms; /* HEARTBEAT and CANDIDATES: who is silent for longer does not count */
    union {
        /*
         * CLAIM writes holder, address, nonce, lease_ms, process. Its epoch is
         * the highest that the caller knows of: the one granted is higher, also
         * if the store was put back to an older state.
         * RENEW and RELEASE apply only if holder, nonce and epoch are those
         * of the record and it is held; epoch 0 stands for "whichever my
         * nonce got", for a claim whose answer was lost. RENEW also writes
         * lease_ms; RELEASE also writes successor, done and loss. A done release
         * closes the group in the same write: it was the holder's to give up,
         * so at most one of all mandates is ever recorded as a success, and
         * its epoch stands beside. Whether a done release without an answer
         * was applied shows by the nonce of the record that is done.
         * REOPEN takes done back if the record is done and still has
         * expected_version; the epoch goes on from where it was.
         * ASK writes wish_* if the record is held with epoch wish_epoch.
         */
        struct record record;
        struct registration registration; /* HEARTBEAT, LEAVE */
    };
};

/* A group in the listing of a store. */
struct group_row {
    char group[NAME_MAX_BYTES + 1];
    struct record record;
    bool expired;
    gavel_ms remaining_ms;
};

/* So many of those that fell silent are told of at a time; they only count. */
#define STORE_SILENT_MAX 16

struct store_reply {
    /*
     * OK             done, durably where the promise depends on it
     * ERR_CONFLICT   CLAIM: the version is another, or the lease still runs;
     *                REOPEN: the version is another, or the group is not done
     * ERR_DONE       CLAIM: the group is done, see record
     * ERR_NOT_HOLDER RENEW, RELEASE, ASK: somebody else holds it, or nobody
     * ERR_ID_IN_USE  HEARTBEAT: another instance has this id and is not known to be gone
     * anything else  a failure; whether a write was applied is not known
     */
    enum gavel_status status;
    bool found;              /* READ: there is a record */
    bool expired;            /* READ: the store's clock says that the lease has run out */
    gavel_ms remaining_ms;   /* READ: of the lease on the store's clock; -1 if it has no clock */
    uint64_t other_instance; /* ERR_ID_IN_USE: who has the id, and its beats */
    uint64_t other_beats;
    struct record record; /* the record as it stands after the call */
    struct registration *registrations;
    size_t registration_count;
    /* CANDIDATES: instances that died or fell silent of late and had not left; they are not listed */
    uint64_t silent[STORE_SILENT_MAX];
    size_t silent_count;
    struct group_row *groups;
    size_t group_count;
    char message[256]; /* of a failure: the thing, the reason, the next step; "" otherwise */
    char note[256];    /* READ: what people should know of whoever holds it; mostly "" */
};

/* Frees what a reply owns and empties it. Safe on NULL and on an empty reply. */
void store_reply_done(struct store_reply *reply);

/* "read", "claim", … */
const char *store_op_name(enum store_op op);

#endif
