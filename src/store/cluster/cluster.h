/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `gavel`: a gaveld cluster as a store.
 *
 *     caller ── run(), wait() ──► parcels ──► ┌────────┐ ── asks, watches ──► reads    (no session)
 *                                             │ thread │
 *     caller ◄── replies, push ◄───────────── └────────┘ ── submits ───────► writes   (a session)
 *
 * The thread owns the sockets; callers put parcels in its queue and wait. Reads
 * need no session, so they cost the cluster's log nothing; the session is
 * opened with the first write. It makes each write count once, however often it
 * must be sent. Mandates do not depend on the session: they are leases.
 *
 * A batch takes as few steps as keep its order: first all writes, in one
 * submit, then all reads. A request that follows one of the other kind on the
 * same group waits for the next step (run.c).
 *
 * Ownership of a parcel: until it is answered, it belongs to the thread. A
 * caller that no longer waits detaches its visit (`visit` is NULL) and may
 * forget the parcel. The lock of `push` guards everything except what is marked
 * "thread".
 */
#ifndef STORE_CLUSTER_CLUSTER_H
#define STORE_CLUSTER_CLUSTER_H

#include "client/cluster.h"
#include "store/push.h"

struct gavel_store;

/* A batch, or a step of it, that a caller waits for. It is on the caller's stack. */
struct gavel_visit {
    const struct store_request *requests;
    struct store_reply *replies;
    bool lists_dead;                   /* CANDIDATES also shows those whose process is known to be dead */
    LIST_HEAD(, gavel_parcel) parcels; /* not yet answered */
};

/* One submit, or one question (with its pages). */
struct gavel_parcel {
    TAILQ_ENTRY(gavel_parcel) in_store; /* in `queue` until the thread takes it, then in `sent` */
    LIST_ENTRY(gavel_parcel) in_visit;
    struct gavel_visit *visit; /* NULL: nobody waits any longer */
    struct gavel_store *store;
    bool is_queued;
    bool is_write;
    gavel_ns give_up_at;
    char after[NAME_MAX_BYTES + 1]; /* GROUPS: the last name of the page before */
    size_t count;
    size_t indexes[]; /* of the requests in it */
};
TAILQ_HEAD(gavel_parcels, gavel_parcel);

/* A watched group at the cluster. */
struct gavel_watched {
    struct push_watched push;
    TAILQ_ENTRY(gavel_watched) in_dirty;
    bool is_dirty;      /* the thread must check whether to watch it */
    uint64_t watch;     /* thread: its number at the cluster; 0: none */
    uint64_t own_epoch; /* of a mandate that this store object has claimed; 0: none */
};
TAILQ_HEAD(gavel_watched_list, gavel_watched);

struct gavel_store {
    struct push push; /* its lock guards all fields below that do not say otherwise */

    /* fixed once opened */
    char where[128];
    struct cluster_link_target target;
    struct process_id self;
    pthread_t thread;
    int wake_fd;

    /* thread */
    struct event_base *base;
    struct event *wake;
    struct cluster_link *reads;
    struct cluster_link *writes; /* NULL until the first write */

    struct gavel_parcels queue;
    struct gavel_parcels sent;
    struct gavel_watched_list dirty;
    bool is_up;
    bool is_refused; /* by all nodes, when it wanted to read */
    bool is_closing;
    char reads_trouble[200];
    char writes_trouble[200];
};

/* ---- thread.c ---- */

GAVEL_CHECKED enum gavel_status gavel_thread_start(struct gavel_store *gavel, struct gavel_error *error);
void gavel_thread_stop(struct gavel_store *gavel); /* ends the session in order, if that is quick */
void gavel_thread_wake(struct gavel_store *gavel);

/* ---- run.c ---- */

void gavel_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count);
/* The thread sends a parcel; the lock is held. */
void gavel_parcel_send(struct gavel_parcel *parcel);
/* The parcel is answered, or never will be; the lock is held. */
void gavel_parcel_done(struct gavel_parcel *parcel);
/* All nodes refuse us: fails what waits, since a time-out would not say why. The lock is held. */
void gavel_refuse_waiting(struct gavel_store *gavel, bool is_write);

/* ---- words.c: requests as operations and questions, answers as replies ---- */

/* An operation with all its parts; borrows from the request. */
struct gavel_draft {
    Gavel__Op op;
    Gavel__Process process;
    union {
        Gavel__Claim claim;
        Gavel__Renew renew;
        Gavel__Release release;
        Gavel__Wish wish;
        Gavel__Reopen reopen;
        Gavel__Register registration;
        Gavel__Leave leave;
    };
};

void gavel_draft_op(const struct store_request *request, struct gavel_draft *ret_draft);
void gavel_draft_ask(const struct store_request *request, const char *after, Gavel__Ask *ret_ask);
/* Passes on only those processes that `self` can see. */
void gavel_take_result(const struct store_request *request, const Gavel__OpResult *result,
                       const struct process_id *self, struct store_reply *reply);
/* READ, CANDIDATES, and one page of GROUPS. Candidates known to be dead are left out, unless lists_dead. */
void gavel_take_answer(const struct store_request *request, const Gavel__Answer *answer,
                       const struct process_id *self, bool lists_dead, struct store_reply *reply);
/* A status that is not OK and its sentence, which may be "". */
void gavel_take_failure(uint32_t status, const char *message, struct store_reply *reply);

/* ---- watch.c ---- */

extern const struct push_hooks gavel_push_hooks;
/* Notes, after a request was carried out, whether the group is ours. The lock is held. */
void gavel_note_own(struct gavel_store *gavel, const struct store_request *request,
                    const struct store_reply *reply);
/* The thread begins and ends watches; the lock is held. */
void gavel_watch_tend(struct gavel_store *gavel);

#endif
