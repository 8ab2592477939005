/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The desk: where the leader of the quorum takes what clients ask, and answers
 * it. Pure: the caller hands in frames, the time and what was applied, and
 * lends two hands: propose and reply.
 *
 *     Request ──► check ──► propose ──► (Raft commits, the table applies) ──► desk_applied() ──► Reply
 *        └── renewals and heartbeats that change nothing ──► `seen` of the table ───────────────► Reply
 *     KeepAlive ──► `seen` ──► Kept
 *     Ask ──► the table ──► Answer
 *
 * Everything is answered only while the leader has its lease (is_working), so
 * an answer means that no other leader had begun when the question was sent.
 *
 * A request is answered without the log if all of its operations are renewals
 * and heartbeats that change nothing, or are refused by what the leader alone
 * knows. It leaves no trace in its session: the next one has a higher id, as
 * always, and the table takes ids that skip. Any other goes to the log as a
 * whole, and a refused operation stands in it as Refused.
 *
 * The keeper is the part that decides by time. It proposes
 *
 *     CloseSession EXPIRED   a session was silent for its time to live
 *     Lapse                  a lease mandate ran out, and candidates with sessions wait
 *     Wish                   a better candidate preempts, after the minimum mandate
 *     Wish is_over           a drain took longer than its time-out
 *
 * and never early: what it has not heard itself counts as heard when it began
 * to lead, or when it noticed that it had been stalled. Lengths are stretched
 * by the drift bound, as clients shorten theirs. Once it has proposed an end it
 * answers no keep-alive or renewal for it until the outcome is known.
 */
#ifndef CORE_SESSION_DESK_H
#define CORE_SESSION_DESK_H

#include "core/table/table.h"
#include "wire/client.pb-c.h"

/* Requests whose outcome is not known yet, and the bytes of their commands; more are refused with
 * ERR_STORE_UNAVAILABLE. */
#define DESK_WAITING_MAX 4096
#define DESK_WAITING_BYTES_MAX (64u << 20)
/* Operations that are in the log and not applied; the rest waits its turn. What is committed is applied in
 * one go, and heartbeats must not wait for it: a thousand operations take a few milliseconds. */
#define DESK_FLIGHT_OPS_MAX 2048
/* A hand-over of a session mandate takes at most so long, if whoever wishes it does not say. */
#define DESK_DRAIN_MS 30000

/* Where an answer goes: the caller's business. */
struct desk_ticket {
    uint64_t origin;      /* the node that forwarded it; 0 this one */
    uint64_t tag;         /* of that node */
    uint64_t incarnation; /* of that node */
};

struct desk_hands {
    /* Proposes these commands as entries, in order: OK and the index of the first and the term, or why not
     * (then none of them is in the log). It may find that this node leads no more, and call desk_close();
     * desk_applied() comes only after it has returned. */
    enum gavel_status (*propose)(void *user, const uint8_t *const *commands, const size_t *sizes,
                                 size_t count, uint64_t *ret_first, uint64_t *ret_term);
    /* Borrowed for the call. */
    void (*reply)(void *user, struct desk_ticket ticket, const Gavel__ClientFrame *frame);
    void *user;
};

struct desk_waiting;
TAILQ_HEAD(desk_waitings, desk_waiting);
RB_HEAD(desk_requests, desk_waiting);

struct desk {
    struct table *table; /* borrowed */
    struct desk_hands hands;
    int drift_ppm;
    bool is_open; /* this node leads, with a lease */
    uint64_t term;
    uint64_t generation; /* of the cluster, for the commands; the caller's to set before it opens the desk */
    gavel_ns began_at;   /* to lead, or to move again after a stall */
    gavel_ns ticked_at;
    struct desk_waitings waiting;  /* proposed, in order of index */
    struct desk_waitings draft;    /* to be proposed by the next flush */
    struct desk_requests requests; /* of sessions, both of the above, by session and id */
    size_t waiting_count;          /* both */
    size_t waiting_bytes;
    size_t flight_ops;
    struct {
        bool is_idle;               /* the leader had no lease when it was last looked at */
        gavel_ns sessions_due_at;   /* no session ends before */
        gavel_ns sessions_found_at; /* the same, as far as the present round has come */
        uint64_t session;           /* where it goes on */
        gavel_ns groups_due_at;     /* no group needs attention before */
        gavel_ns groups_found_at;   /* the same, as far as the present round has come */
        uint64_t round;             /* of looking at groups */
        bool is_in_round;           /* not all of them were looked at in it */
        bool has_news;              /* something was applied since it began */
    } keeper;
    struct {
        uint64_t requests;
        uint64_t repeated; /* answered from the session's newest outcome */
        uint64_t refused;
        uint64_t keep_alives;
        uint64_t expired; /* sessions */
        uint64_t lapsed;  /* lease mandates */
        uint64_t stalls;
    } counts;
};

void desk_init(struct desk *desk, struct table *table, const struct desk_hands *hands, int drift_ppm);
void desk_done(struct desk *desk); /* safe on a zeroed struct; answers nobody */

/* The leader has claimed: this term's no-op is applied, and there is a lease. */
void desk_open(struct desk *desk, uint64_t term, gavel_ns now);
/* It leads no more: who waits is told ERR_NOT_LEADER; whoever forwarded it asks the next leader. */
void desk_close(struct desk *desk);

/*
 * A frame Request, KeepAlive or Ask; anything else is answered with a Reply ERR_INVALID. Checked here; it
 * comes from anybody. While the desk is closed the answer is a Reply, Kept or Answer with ERR_NOT_LEADER.
 * Answers may come from within the call. `is_working` says whether the lease holds at `now`.
 */
void desk_take(struct desk *desk, gavel_ns now, bool is_working, int64_t wall_ms, struct desk_ticket ticket,
               const Gavel__ClientFrame *frame);

/* From the node itself: the process of sessions, lease mandates or registrations is dead. Ops CloseSession
 * DEAD, Release is_dead and Leave, anything else is dropped; nobody is answered. Proposed by the next flush.
 */
void desk_mourn(struct desk *desk, gavel_ns now, int64_t wall_ms, const Gavel__Op *const *ops, size_t count);

/* After any number of desk_take(): proposes what they asked for, in one go. */
void desk_flush(struct desk *desk, gavel_ns now);

/*
 * Entry `index` of `term` was applied; results as table_apply_ops() gave them, borrowed. Called for every
 * entry of data, ours or not, right after the table has applied it, and before the next.
 */
void desk_applied(struct desk *desk, gavel_ns now, bool is_working, uint64_t index, uint64_t term,
                  enum gavel_status status, const struct table_result *results, size_t count);

/*
 * Time goes on: at least every 100 ms, and at desk_wake_at(). is_stalled: the caller knows that clients could
 * not be heard for a while. Proposes by itself. A session ends only in a tick that follows closely on another
 * (DESK_FRESH): whatever had arrived while the program did not run is heard in between.
 */
void desk_tick(struct desk *desk, gavel_ns now, bool is_working, bool is_stalled, int64_t wall_ms);
gavel_ns desk_wake_at(const struct desk *desk); /* NEVER if nothing is due */

/* A tick that comes later than this after the one before shows a stall. */
#define DESK_STALL (250 * NS_PER_MS)
#define DESK_FRESH (50 * NS_PER_MS)

/*
 * For look-ups that any node answers from its own table (is_local), and those of the desk: fills in an
 * Answer, which borrows from the table and owns what desk_answer_done() frees. `desk` NULL: remaining times
 * and ages are not known. ERR_INVALID, ERR_NO_MEMORY: the answer has the tag, the status and a sentence,
 * nothing else.
 */
GAVEL_CHECKED enum gavel_status desk_answer(const struct desk *desk, const struct table *table, gavel_ns now,
                                            const Gavel__Ask *ask, Gavel__Answer *ret_answer);
void desk_answer_done(Gavel__Answer *answer);

#endif
