/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A call to a store: the request and the reply. The candidate writes requests
 * and reads replies; drivers do the opposite. The code between them (libgavel,
 * the simulator) only carries them.
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
 * | GROUPS     | prefix                              | groups, has_more         |
 *
 * Some stores have sessions: one per store object, kept open by its keep-alives, which no candidate sends or
 * sees. Mandates then last as long as the session of their holder, and the store grants them; nobody claims
 * or renews. There the same operations mean:
 *
 * | op         | asks with                           | a good reply has         |
 * |------------|-------------------------------------|--------------------------|
 * | READ       | group                               | found, record, is_ours   |
 * | HEARTBEAT  | registration, campaign: takes part, | found, record, is_ours   |
 * |            | and may be granted the mandate      |                          |
 * | RELEASE    | record: epoch, never 0; successor,  | found, record, is_ours:  |
 * |            | done, loss; leaves: withdraws, and  | maybe granted to another |
 * |            | stays unless done or leaves         | already, or to us again  |
 * |            |                                     | with done: done, and of  |
 * |            |                                     | our epoch                |
 * | LEAVE      | registration: id, instance:         | –                        |
 * |            | withdraws and leaves                |                          |
 * | DIED       | record: epoch and process as seen:  | –                        |
 * |            | that process is dead                |                          |
 *
 * One session takes part in a group once. So the driver answers ERR_ID_IN_USE, and asks nobody, to a
 * HEARTBEAT of a candidate of its store object while another one of it is in the group; that one is in it
 * until its LEAVE, or its RELEASE that leaves, was answered, or its owner has given it up after its work had
 * stopped. A candidate releases what a former one has left behind in its session, by the epoch: it is lower
 * than the revision of the answer to its own first HEARTBEAT.
 *
 * Every reply that shows the record also says in which session, and at which revision of the store. What the
 * store shows may reach the candidate late and out of order; of two records of one group that one is newer
 * which has
 *
 *   the higher version; else the higher epoch (a hand-over in one write shows the group vacant, and then
 *   led, with one version); else is held, or done; else the higher revision (a wish is written, and ends,
 *   without a new version).
 *
 * Candidates are listed as long as their
 * session is open, with an age_ms of 0 or more: they do not beat. ASK, REOPEN, CANDIDATES and GROUPS are the
 * same for all stores.
 */
#ifndef BASE_REQUEST_H
#define BASE_REQUEST_H

#include "base/record.h"

#include <gavel/settings.h>

enum store_op {
    STORE_READ,
    STORE_CLAIM,
    STORE_RENEW,
    STORE_RELEASE,
    STORE_ASK,
    STORE_REOPEN,
    STORE_DIED, /* only where there are sessions */
    STORE_HEARTBEAT,
    STORE_LEAVE,
    STORE_CANDIDATES,
    STORE_GROUPS,
};

/* The clock by which the store judges whether a lease has expired. */
enum store_clock {
    STORE_CLOCK_NONE,   /* it has none; standbys time the lease themselves */
    STORE_CLOCK_STEPS,  /* its own, which may be set or jump at a fail-over */
    STORE_CLOCK_STEADY, /* one that all candidates share and that never steps */
};

/*
 * The session of a store object, as its client knows it at one instant. Another number is another session:
 * numbers never repeat, and the mandates of the former session are over. Within one number the deadline only
 * grows.
 */
struct store_session {
    uint64_t number; /* 0: none is open */
    /* By the caller's clock, it is known to be open until then: counted from the send of the newest
     * keep-alive, or opening, that was answered, less the drift. */
    gavel_ns deadline;
    /*
     * The last deadline that the session before this one had; 0: there was
     * none. It stays while no other is open. By then all work of that session
     * has stopped, and so the caller shows each session that was open to the
     * candidates, in order, with an event of its own if need be.
     */
    gavel_ns former_deadline;
    /* From the send of a keep-alive to the deadline that its answer gives, also while none is open; 0: not
     * known. */
    gavel_ns lasts;
    /* The store sees by itself when a process of our host and namespace of pids dies: nobody need tell it. */
    bool sees_deaths;
};

/* What a candidate of a session says of itself beside its registration. */
struct campaign {
    bool stands; /* it may be granted the mandate; otherwise it is only registered */
    /* It is not granted the mandate of a leader that was lost, unless that had the same id, until it
     * campaigns again without this: it waits for its takeover delay, on its own clock. */
    bool is_patient;
    uint64_t epoch_at_least; /* whatever is granted from now on is higher */
    uint64_t renews_epoch;   /* not 0: it leads with this epoch, and asks to go on with a new one */
    /* Of the group; they count only while nobody else is in it. */
    enum gavel_policy policy;
    gavel_ms min_mandate_ms;
    bool preempts;
};

struct store_request {
    enum store_op op;
    const char *group;   /* borrowed */
    gavel_ns give_up_at; /* must not begin after this instant of the caller's clock */
    /*
     * CLAIM succeeds only if the record still has expected_version (0: there
     * is none), atomically. With must_be_expired, a store that has a clock
     * also requires that the lease has run out. Without it, the caller knows
     * that the holder is gone (released, dead, or itself).
     */
    uint64_t expected_version;
    bool must_be_expired;
    const char *prefix;         /* GROUPS: only those whose names begin with it; NULL: all. Borrowed */
    uint64_t replaces_instance; /* HEARTBEAT: another instance that the caller knows to be silent; 0 none */
    gavel_ms candidate_timeout_ms; /* HEARTBEAT and CANDIDATES: candidates silent for longer do not count */
    /*
     * Of stores with sessions: the number that the caller saw when it decided.
     * A write is refused with ERR_SESSION_GONE if another session is open. 0:
     * it saw none; only HEARTBEAT and what writes nothing may say so, and mean
     * whichever is open.
     */
    uint64_t session;
    struct campaign campaign; /* HEARTBEAT, with sessions */
    /* RELEASE, with sessions: in the same write the candidate leaves the group, so it is not granted the
     * mandate again. If that was answered, there is no LEAVE. */
    bool leaves;
    union {
        /*
         * CLAIM writes holder, address, nonce, lease_ms and process. Its epoch is
         * the highest that the caller knows; the granted one is higher, even if
         * the store was restored to an older state.
         * RENEW and RELEASE apply only if the record is held and has the same
         * holder, nonce and epoch. Epoch 0 stands for "whichever my nonce got",
         * for a claim whose answer was lost. RENEW also writes lease_ms; RELEASE
         * also writes successor, done and loss. A release with done closes the
         * group in the same write. It applies only to the mandate that is held, so
         * at most one is ever recorded as a success, with its epoch beside it. If a
         * release with done got no answer, the nonce of the closed record shows
         * whether it was applied.
         * REOPEN clears done if the record is done and still has
         * expected_version; the epoch continues from where it was.
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

/* Silent instances in one reply; they are only counted. */
#define STORE_SILENT_MAX 16

struct store_reply {
    /*
     * OK             done, durably where the promise depends on it
     * ERR_CONFLICT   CLAIM: the version is another, or the lease still runs;
     *                REOPEN: the version is another, or the group is not done
     * ERR_DONE       CLAIM, and HEARTBEAT with sessions: the group is done, see record
     * ERR_NOT_HOLDER RENEW, RELEASE, ASK: another holds it, or nobody does
     * ERR_ID_IN_USE  HEARTBEAT: another instance has this id and is not known to be gone
     * ERR_SESSION_GONE  with sessions: the one that was meant is not open; nothing was done
     * ERR_STATE      with sessions; DIED: not now, and not later; ASK: not yet, the minimum mandate is not
     *                over, or the successor may not lead; HEARTBEAT: the session is in the group already
     * ERR_DENIED     with sessions; DIED: the store does not believe the caller
     * ERR_NOT_FOUND  with sessions; RELEASE, LEAVE: the session is not in the group; ASK: the successor is
     * not anything else  a failure; it is unknown whether a write was applied
     */
    enum gavel_status status;
    bool found; /* READ: there is a record */
    /* The session of this store object holds the mandate that `record` shows. It is ours only if the holder
     * has our id, too: candidates of one store object share a session. */
    bool is_ours;
    uint64_t session; /* the number of that session; 0: of a store without sessions */
    /*
     * With sessions: how far the store had come, a number that grows with all
     * that it writes, wishes, too. Epochs and versions are revisions. Of a
     * write its own, of a READ that of what was read; `record` may be newer,
     * if an answer was given again, but not older. 0: not known.
     */
    uint64_t revision;
    bool expired;          /* READ: the store's clock says that the lease has run out */
    gavel_ms remaining_ms; /* READ: of the lease on the store's clock; -1 if it has no clock */
    /* ERR_ID_IN_USE: the instance that has the id, and its beats; with sessions its keep-alives, which may be
     * counted anew by another leader of the cluster. */
    uint64_t other_instance;
    uint64_t other_beats;
    struct record record; /* the record as it stands after the call */
    struct registration *registrations;
    size_t registration_count;
    /* CANDIDATES: instances that recently died or fell silent without leaving; they are not listed */
    uint64_t silent[STORE_SILENT_MAX];
    size_t silent_count;
    struct group_row *groups;
    size_t group_count;
    bool has_more;     /* GROUPS: the store has more of them than a listing holds; these are the first */
    char message[256]; /* of a failure: the thing, the reason, the next step; "" otherwise */
    char note[256];    /* READ: a remark about the holder, for people; mostly "" */
};

/* A store with sessions is a cluster of nodes. What is said of one that is silent, by whoever gives up first:
 * which it is, and what is known of the reason. */
#define STORE_SILENT_CLUSTER                                                                                 \
    "%.80s has not answered in time: %.70s; a majority of its nodes must run and reach each other"
#define STORE_SILENT_CLUSTER_CAUSE "it has no leader, or is overloaded"

/* Frees what a reply owns and empties it. Safe on NULL and on an empty reply. */
void store_reply_done(struct store_reply *reply);

/* "read", "claim", … */
const char *store_op_name(enum store_op op);

#endif
