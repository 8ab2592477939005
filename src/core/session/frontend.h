/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frontend takes what clients ask the leader of the cluster, and answers it.
 * Pure: the caller hands in frames, the time and what was applied, and
 * takes out commands for the log and answers. The frontend calls nobody.
 *
 *     Request ──► check ──► batch ──► (Raft commits, the table applies) ──► frontend_applied() ──► Reply
 *        └── renewals and heartbeats that change nothing ──► heard.h ───────────────────────────► Reply
 *     KeepAlive ──► heard.h ──► Kept
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
 * The expiry is the part that decides by time. It proposes
 *
 *     CloseSession EXPIRED   a session was silent for its time to live
 *     Lapse                  a lease mandate ran out, and candidates with sessions wait
 *     Wish                   a better candidate preempts, after the minimum mandate
 *     Wish is_over           a drain took longer than its time-out
 *     RemoveGroup            nobody has led or joined a group without notes for the retention time
 *
 * and never early: what it has not heard itself counts as heard when it began
 * to lead, or when it noticed that it had been stalled; of sessions it may know
 * better, by what the leader before has told it (silence.h). Lengths are stretched
 * by the drift bound, as clients shorten theirs. Once it has proposed an end it
 * answers no keep-alive or renewal for it until the outcome is known.
 */
#ifndef CORE_SESSION_FRONTEND_H
#define CORE_SESSION_FRONTEND_H

#include "base/record.h"
#include "core/session/applied.h"
#include "core/session/heard.h"
#include "core/session/marks.h"
#include "core/table/table.h"
#include "wire/client.pb-c.h"

/* Requests whose outcome is not known yet, and the bytes of their commands; more are refused with
 * ERR_STORE_UNAVAILABLE. */
#define FRONTEND_WAITING_MAX 4096
#define FRONTEND_WAITING_BYTES_MAX (64u << 20)
/* Operations that are in the log and not applied; the rest waits its turn. What is committed is applied in
 * one go, and heartbeats must not wait for it: a thousand operations take a few milliseconds. */
#define FRONTEND_FLIGHT_OPS_MAX 2048
/* The time limit of a hand-over of a session mandate that names none. */
#define FRONTEND_DRAIN_MS 30000

/* Where an answer goes: the caller's business. */
struct frontend_ticket {
    uint64_t origin;      /* the node that forwarded it; 0 this one */
    uint64_t tag;         /* of that node */
    uint64_t incarnation; /* of that node */
};

/* An answer: a Reply, a Kept or an Answer, packed once. */
struct frontend_reply {
    STAILQ_ENTRY(frontend_reply) next;
    struct frontend_ticket ticket;
    uint8_t *bytes; /* of the frame, with its length before it */
    size_t size;
    uint64_t after; /* the mark that must be held by a majority before; 0: none */
    bool is_kept;   /* a Kept; else a Reply … */
    uint64_t tag;   /* … to this question */
};
STAILQ_HEAD(frontend_replies, frontend_reply);

/* Commands that are proposed at a time. */
#define FRONTEND_BATCH_MAX 256
struct frontend_batch {
    const uint8_t *commands[FRONTEND_BATCH_MAX];
    size_t sizes[FRONTEND_BATCH_MAX];
    size_t count;
};

struct frontend_waiting;
TAILQ_HEAD(frontend_waitings, frontend_waiting);
RB_HEAD(frontend_requests, frontend_waiting);

struct frontend {
    struct table *table; /* borrowed */
    int drift_ppm;
    bool is_open; /* this node leads, with a lease */
    uint64_t term;
    /* Of the cluster, for the commands; the caller's to set before it opens the frontend. */
    uint64_t generation;
    /* The rules that all members are known to know (TABLE_VERSION); 0: those of 0.6.0. Commands are meant by
     * them, and what they do not allow is refused or left out. The caller's to set before it hands a frame
     * in, or lets time go on. */
    uint32_t table_version;
    /* Groups that nobody has used for so long are removed, by rules that can; 0: never. The caller's to set,
     * too. */
    gavel_ns retention;
    /* Groups that a session that has ended leaves by one operation; 0: as many as it may. */
    uint32_t close_part;
    gavel_ns began_at; /* to lead, or to move again after a stall */
    gavel_ns ticked_at;
    gavel_ns stalled_at; /* when it last moved again after a stall, in this leadership; 0: never */
    /* What voters know of silence, and shall know; borrowed, the caller's to open and close. NULL: nothing,
     * and every session has a whole time to live from when this node began to lead. */
    struct marks *marks;
    uint64_t after;         /* the newest mark that will have what was heard in this event; 0: nothing was */
    struct heard heard;     /* what this node has heard while it led */
    uint64_t revision;      /* of the table, after the newest entry */
    struct applied applied; /* when which revision was applied, also while others led */
    struct frontend_waitings waiting; /* proposed, in order of index */
    struct frontend_waitings draft;   /* to be proposed */
    struct frontend_waitings
        batch; /* being proposed: between frontend_next_batch() and frontend_proposed() */
    struct frontend_replies replies; /* that nobody has taken yet, the oldest first */
    struct frontend_replies held;    /* that wait for their mark */
    size_t held_count;
    struct frontend_requests requests; /* of sessions, of all three, by session and id */
    size_t waiting_count;              /* all three */
    size_t waiting_bytes;
    size_t flight_ops;
    size_t cleanings; /* commands of all three that remove groups which nobody uses */
    uint64_t drafted; /* commands, ever */
    struct {
        bool is_idle;                   /* the leader had no lease when it was last looked at */
        gavel_ns endings_due_at;        /* when to see to those that are ending */
        gavel_ns sessions_due_at;       /* no session ends before */
        gavel_ns sessions_found_at;     /* the same, as far as the present round has come */
        uint64_t session;               /* where it goes on */
        gavel_ns groups_due_at;         /* no group needs attention before */
        gavel_ns groups_found_at;       /* the same, as far as the present round has come */
        bool is_in_round;               /* not all of them were looked at in it */
        char group[NAME_MAX_BYTES + 1]; /* where it goes on */
        bool has_news;                  /* something was applied since it began */
        gavel_ns idle_due_at;           /* groups that nobody uses are looked for */
        char idle[NAME_MAX_BYTES + 1];  /* where that goes on */
        bool has_gone;      /* a group was removed, and what was heard of its candidates is left */
        bool is_forgetting; /* that is being looked for … */
        size_t bucket;      /* … and goes on here */
    } expiry;
    struct {
        gavel_ns due_at;                /* when to look whether leaders are spread evenly */
        gavel_ns found_at;              /* the earliest that the present round has found something to do at */
        char group[NAME_MAX_BYTES + 1]; /* where it goes on; "" it begins */
        uint64_t changes;               /* of the table, as they were when it began */
        char asked[NAME_MAX_BYTES + 1]; /* the group of the newest wish; "" none is under way */
    } balance;
    struct {
        uint64_t requests;
        uint64_t repeated; /* answered from the session's newest outcome */
        uint64_t refused;
        uint64_t keep_alives;
        uint64_t expired; /* sessions */
        uint64_t lapsed;  /* lease mandates */
        uint64_t removed; /* groups */
        uint64_t stalls;
        uint64_t lost; /* answers that there was no memory for */
    } counts;
};

void frontend_init(struct frontend *frontend, struct table *table, int drift_ppm);
void frontend_done(struct frontend *frontend); /* safe on a zeroed struct; answers nobody */

/* A majority of the voters holds the marks up to this number: what waited for them is answered. */
void frontend_release(struct frontend *frontend, bool is_working, uint64_t number);

/* The oldest answer, handed over; NULL: none is left. What there was no memory for is lost: it is asked
 * again. */
struct frontend_reply *frontend_take_reply(struct frontend *frontend);
void frontend_reply_free(struct frontend_reply *reply); /* safe on NULL */

/* The leader has claimed: this term's no-op is applied, and there is a lease. */
void frontend_open(struct frontend *frontend, uint64_t term, gavel_ns now);
/* It no longer leads: requests that wait are answered with ERR_NOT_LEADER, and their forwarders ask the next
 * leader. */
void frontend_close(struct frontend *frontend);

/*
 * A frame Request, KeepAlive or Ask; anything else is answered with a Reply ERR_INVALID. Checked here; it
 * comes from anybody. While the frontend is closed the answer is a Reply, Kept or Answer with ERR_NOT_LEADER.
 * `is_working` says whether the lease holds at `now`. May take the frame: sets it to NULL. `packed` is the
 * frame as bytes, borrowed: operations go to the log as they stand there; bytes NULL: they are packed again.
 */
void frontend_take(struct frontend *frontend, gavel_ns now, bool is_working, int64_t wall_ms,
                   struct frontend_ticket ticket, Gavel__ClientFrame **frame, struct table_packed packed);

/* From the node itself: the process of sessions, lease mandates or registrations is dead. Ops CloseSession
 * DEAD, Release is_dead and Leave, anything else is dropped; nobody is answered. They are in the next batch.
 */
void frontend_report_deaths(struct frontend *frontend, gavel_ns now, int64_t wall_ms,
                            const Gavel__Op *const *ops, size_t count);

/*
 * What is to be proposed next, as entries in this order; false: nothing, or there is no room in the log.
 * Borrowed until frontend_proposed(), which must follow and says what came of it: OK, the index of the first
 * and the term; or why not, and none of them is in the log.
 */
bool frontend_has_batch(const struct frontend *frontend);
bool frontend_next_batch(struct frontend *frontend, struct frontend_batch *ret_batch);
void frontend_proposed(struct frontend *frontend, enum gavel_status status, uint64_t first, uint64_t term);

/* The command of that entry, of so many bytes, as it was decoded, if it is ours: its bytes need not be
 * decoded again. NULL: it is another's, or there is more in it than the rules that it is meant by know.
 * Borrowed until frontend_applied(). */
const Gavel__Command *frontend_command(const struct frontend *frontend, uint64_t index, uint64_t term,
                                       size_t size);

/*
 * Entry `index` of `term` was applied; results as table_apply_ops() gave them, borrowed. Called for every
 * entry of data, ours or not, right after the table has applied it, and before the next.
 */
void frontend_applied(struct frontend *frontend, gavel_ns now, bool is_working, uint64_t index, uint64_t term,
                      enum gavel_status status, const struct table_result *results, size_t count);

/*
 * Time goes on: at least every 100 ms, and at frontend_wake_at(). is_stalled: the caller knows that clients
 * could not be heard for a while. A session ends only in a tick that follows closely on
 * another (FRONTEND_FRESH): whatever had arrived while the program did not run is heard in between.
 */
void frontend_tick(struct frontend *frontend, gavel_ns now, bool is_working, bool is_stalled,
                   int64_t wall_ms);
gavel_ns frontend_wake_at(const struct frontend *frontend); /* NEVER if nothing is due */
/* What is known of silence has changed: sessions are looked at. */
void frontend_look(struct frontend *frontend, gavel_ns now);

/* A tick that comes later than this after the one before shows a stall. */
#define FRONTEND_STALL (250 * NS_PER_MS)
#define FRONTEND_FRESH (50 * NS_PER_MS)

/*
 * For look-ups that any node answers from its own table (is_local), and those of the frontend: fills in an
 * Answer, which borrows from the table and owns what frontend_answer_done() frees. `frontend` NULL: remaining
 * times and ages are not known. ERR_INVALID, ERR_NO_MEMORY: the answer has the tag, the status and a
 * sentence, nothing else.
 */
GAVEL_CHECKED enum gavel_status frontend_answer(const struct frontend *frontend, const struct table *table,
                                                gavel_ns now, const Gavel__Ask *ask,
                                                Gavel__Answer *ret_answer);
void frontend_answer_done(Gavel__Answer *answer);

#endif
