/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `gavel`: a gaveld cluster as a store.
 *
 *     caller ── run(), wait() ──► parcels ──► ┌────────┐ ── asks, watches, submits ──► link
 *                                             │ thread │
 *     caller ◄── replies, push, news ◄─────── └────────┘ ◄── answers, results, changes ── link
 *
 * The thread owns the sockets; callers put parcels in its queue and wait. Reads
 * need no session, so they cost the cluster's log nothing. Writes have one,
 * which makes each of them count once, however often it must be sent.
 *
 * Whose session it is, is decided by whether store_open_session() was called:
 *
 *  - If not, it is opened with the first write. Mandates do not depend on it:
 *    they are leases, which the caller claims and renews.
 *  - If so, the caller's candidates take part in its name (member.h), the
 *    cluster grants mandates to it, and what happens to it and to their groups
 *    is news (news.h).
 *
 * A batch takes as few steps as keep its order: first all writes, then all
 * reads. A request that follows one of the other kind on the same group waits
 * for the next step (plan.c).
 *
 * Ownership of a parcel: until it is answered, it belongs to the thread. A
 * caller that no longer waits detaches its visit (`visit` is NULL) and may
 * forget the parcel. The lock of `push` guards everything except what is marked
 * "thread".
 */
#ifndef STORE_CLUSTER_CLUSTER_H
#define STORE_CLUSTER_CLUSTER_H

#include "client/cluster.h"
#include "store/cluster/member.h"
#include "store/cluster/news.h"
#include "store/push.h"

struct gavel_store;

/* A batch, or a step of it, that a caller waits for. It is on the caller's stack. */
struct gavel_visit {
    const struct store_request *requests;
    struct store_reply *replies;
    bool lists_dead;                   /* CANDIDATES also shows those whose process is known to be dead */
    LIST_HEAD(, gavel_parcel) parcels; /* not yet answered */
};

enum gavel_parcel_kind {
    GAVEL_PARCEL_ASK,        /* one question, with its pages */
    GAVEL_PARCEL_SUBMIT,     /* writes that are what they are with and without a session of the caller's */
    GAVEL_PARCEL_CAMPAIGNS,  /* HEARTBEATs in the caller's session */
    GAVEL_PARCEL_WITHDRAWAL, /* one RELEASE or LEAVE in it */
};

/* What goes to the cluster together. */
struct gavel_parcel {
    TAILQ_ENTRY(gavel_parcel) in_store; /* in `queue` until the thread takes it, then in `sent` */
    LIST_ENTRY(gavel_parcel) in_visit;
    LIST_ENTRY(gavel_parcel) in_withdrawal; /* while `withdrawal` is not NULL */
    struct gavel_visit *visit;              /* NULL: nobody waits any longer */
    struct gavel_store *store;
    struct gavel_withdrawal *withdrawal; /* whose answer is waited for */
    struct gavel_said *said;             /* CAMPAIGNS, once sent: what each of them is about */
    enum gavel_parcel_kind kind;
    bool is_queued;
    bool is_without_renewal; /* CAMPAIGNS: the cluster does not know how to go on under a new epoch */
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

/* What a caller wants of the thread, and waits for, besides parcels; on the caller's stack. */
struct gavel_opening {
    struct cluster_link_session_options options;
    struct store_session_key *key; /* NULL: none */
    gavel_ns lasts;                /* from the send of a keep-alive, by a clock as bad as the caller says */
    bool is_done;
    enum gavel_status status;
    struct gavel_error error;
};

/* The end of the session of a dead process: dead.c. */
struct gavel_dead;
TAILQ_HEAD(gavel_dead_list, gavel_dead);

struct gavel_store {
    struct push push; /* its lock guards all fields below that do not say otherwise */

    /* fixed once opened */
    char where[128];
    struct cluster_link_target target;
    struct process_id self;
    struct table_process process; /* the same for the cluster */
    pthread_t thread;
    int wake_fd;

    /* thread */
    struct event_base *base;
    struct event *wake;
    struct cluster_link *link;
    uint64_t session_watch; /* its number; 0: none */

    struct gavel_parcels queue;
    struct gavel_parcels sent;
    struct gavel_watched_list dirty;
    bool is_up;
    bool is_refused; /* by all nodes */
    bool is_closing;
    char trouble[200];

    /* the session */
    bool is_session_begun;         /* by the first write, or … */
    bool has_session;              /* … by store_open_session() */
    gavel_ns session_lasts;        /* that one, at most */
    struct gavel_opening *opening; /* to be done by the thread; NULL: nothing */
    struct gavel_news news;
    struct gavel_members members;
    bool has_doubt; /* of some of them */
    struct gavel_dead_list dead;
};

/* The session that is open, as answers and changes name it. */
struct gavel_own {
    uint64_t number; /* 0: none */
    uint64_t id;
};

/* ---- thread.c ---- */

GAVEL_CHECKED enum gavel_status gavel_thread_start(struct gavel_store *gavel, struct gavel_error *error);
void gavel_thread_stop(struct gavel_store *gavel); /* ends the session in order, if that is quick */
void gavel_thread_wake(struct gavel_store *gavel);

/* ---- run.c ---- */

void gavel_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count);

/* ---- plan.c ---- */

/* What is done with a request, besides what stands in its reply. */
struct gavel_plan {
    uint64_t hash; /* of its group */
    size_t step;
    size_t before;    /* the one before it in its bucket, plus 1; 0: none */
    bool is_answered; /* it need not be asked */
};

/* Returns the number of steps. Those that cannot be carried out are answered. */
size_t gavel_plan(const struct store_request *requests, struct store_reply *replies, struct gavel_plan *plans,
                  size_t count, bool has_session);

/* ---- parcel.c; the lock is held ---- */

/* Room for so many requests; NULL without memory. */
struct gavel_parcel *gavel_parcel_new(size_t most);
void gavel_parcel_enqueue(struct gavel_store *gavel, struct gavel_visit *visit, struct gavel_parcel *parcel);
/* The thread sends it. */
void gavel_parcel_send(struct gavel_parcel *parcel);
/* It is answered, or never will be. */
void gavel_parcel_done(struct gavel_parcel *parcel);
/* Answers all requests in it that somebody waits for. */
void gavel_parcel_fail(struct gavel_parcel *parcel, uint32_t status, const char *message);
/* All nodes refuse us: fails what waits, since a time-out would not say why. */
void gavel_refuse_waiting(struct gavel_store *gavel);

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
        Gavel__Campaign campaign;
        Gavel__Withdraw withdraw;
        Gavel__Died died;
        Gavel__CloseSession close;
    };
};

/* The generated structs want strings that may be written to; nobody does. */
static inline char *gavel_lend(const char *text) { return (char *)(uintptr_t)text; }
/* NULL: not told. */
Gavel__Process *gavel_draft_process(const struct process_id *process, Gavel__Process *ret_process);
void gavel_draft_op(const struct store_request *request, struct gavel_draft *ret_draft);
void gavel_draft_ask(const struct store_request *request, const char *after, Gavel__Ask *ret_ask);
/* Fills in what the reply shows of the mandate. Passes on only those processes that `self` can see. */
void gavel_take_group(const Gavel__Group *group, const struct process_id *self, struct store_reply *reply);
void gavel_take_result(const struct store_request *request, const Gavel__OpResult *result,
                       const struct process_id *self, struct store_reply *reply);
/* READ, CANDIDATES, and one page of GROUPS. Candidates known to be dead are left out, unless lists_dead. */
void gavel_take_answer(const struct store_request *request, const Gavel__Answer *answer,
                       const struct process_id *self, bool lists_dead, struct store_reply *reply);
/* A status that is not OK and its sentence, which may be "". */
void gavel_take_failure(uint32_t status, const char *message, struct store_reply *reply);
/* How a mandate was lost that ended so; NONE: it was not. */
enum gavel_loss gavel_loss_of(Gavel__Ending ending);

/* ---- words_session.c: the same in the caller's session ---- */

void gavel_draft_campaign(const struct store_request *request, bool renews, struct gavel_draft *ret_draft);
void gavel_draft_died(const struct store_request *request, struct gavel_draft *ret_draft);
void gavel_take_session_result(const struct store_request *request, const Gavel__OpResult *result,
                               const struct process_id *self, const struct gavel_own *own,
                               struct store_reply *reply);
/* In which session the reply was given, and whether that one holds what it shows. */
void gavel_show_session(const Gavel__Group *group, uint64_t revision, const struct gavel_own *own,
                        struct store_reply *reply);

/* What a change shows. */
enum gavel_shown {
    GAVEL_SHOWN_NOTHING, /* no candidate would act on it */
    GAVEL_SHOWN_HINT,    /* it does not say all that a record has */
    GAVEL_SHOWN_RECORD,
};

/*
 * The group as it stands after a change, as far as the change tells; *ret_news
 * is filled in but for its session. change->session is 0 unless it is ours.
 */
enum gavel_shown gavel_take_change(const Gavel__Change *change, struct store_news *ret_news);

/* ---- watch.c ---- */

extern const struct push_hooks gavel_push_hooks;
/* Notes, after a request was carried out, whether the group is ours. The lock is held. */
void gavel_note_own(struct gavel_store *gavel, const struct store_request *request,
                    const struct store_reply *reply);
/* The thread begins and ends watches; the lock is held. */
void gavel_watch_tend(struct gavel_store *gavel);
/* Watches the groups of the session that is open; 0: of none. In the thread. */
void gavel_watch_session(struct gavel_store *gavel, uint64_t number);
/* The first group by name behind `after` that is watched; NULL: none. */
const char *gavel_watched_after(struct gavel_store *gavel, const char *after);

/* ---- session.c ---- */

GAVEL_CHECKED enum gavel_status gavel_open_session(struct store *store,
                                                   const struct store_session_options *options,
                                                   struct gavel_error *error);
bool gavel_news(struct store *store, struct store_news *ret_news);
/* Without a session of the caller's, as push_changed(). */
bool gavel_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1]);
/* The thread does what the caller has asked for; the lock is held. */
void gavel_session_tend(struct gavel_store *gavel);
/* The thread begins a session for writes, if there is none. The lock is held. */
void gavel_session_begin(struct gavel_store *gavel);
struct gavel_own gavel_own(const struct gavel_store *gavel);
/* What the link tells of it, in the thread, without the lock. */
void gavel_session_deadline(void *user, uint64_t number, gavel_ns deadline);
void gavel_session_lost(void *user, uint64_t number);
void gavel_session_welcomed(void *user, const Gavel__ClientWelcome *welcome);

/* ---- campaign.c, withdraw.c: what is said in the caller's session. The lock is held. ---- */

/* Whoever may not take part is answered, and leaves the parcel. */
void gavel_campaigns_check(struct gavel_parcel *parcel);
/* What came of one of them; result NULL: `status` came of all. */
void gavel_campaign_done(struct gavel_parcel *parcel, size_t which, enum gavel_status status,
                         const Gavel__OpResult *result);
/* No session is open any more. */
void gavel_members_lost(struct gavel_store *gavel);
/* The session is open: whoever is in doubt, and has not said again that it takes part, is withdrawn. */
void gavel_withdraw_doubtful(struct gavel_store *gavel);
void gavel_withdrawal_send(struct gavel_parcel *parcel);
/* For a candidate that nobody answers for any more. */
void gavel_withdraw_member(struct gavel_member *member);
/* What is said from now on comes after them. */
void gavel_withdrawals_overtake(struct gavel_member *member);
void gavel_withdrawals_free(struct gavel_member *member);

/* ---- dead.c ---- */

GAVEL_CHECKED enum gavel_status gavel_close_dead(struct store *store, const struct store_session_key *key,
                                                 gavel_ns give_up_at, struct gavel_error *error);
/* The thread begins and ends what is asked for; the lock is held. */
void gavel_dead_tend(struct gavel_store *gavel);
/* After the thread has ended. */
void gavel_dead_free_all(struct gavel_store *gavel);

#endif
