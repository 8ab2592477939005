/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The candidate: who should lead, when to claim, when to stop.
 *
 * A state machine without I/O, clock or randomness of its own. One event goes
 * in, with the time in it; actions come out, to be carried out in order.
 *
 *            start jitter          observation          another leads
 *   [IDLE] ───────────► [OBSERVING] ───────► [STANDBY] ◄──────────────┐
 *                                              │  vacant / expired     │ lost, resigned, term over
 *                                    takeover delay + rank stagger     │
 *                                              ▼                       │
 *                                          [CLAIMING] ── won ──► [PREPARING] ──► [LEADING] ──► [STOPPING]
 *
 * Work that is done for good (FINISH) ends in STOPPING too, with a release
 * that closes the group; see finish.c. Candidates that then see it go to [ENDED].
 *
 * A candidate that leaves goes to [ENDED] from IDLE, OBSERVING or STANDBY. A
 * mandate that is no longer wanted when it is won, or that ends while
 * preparing, goes straight to STOPPING to be released. So does a claim whose
 * outcome is unknown when the candidate leaves.
 *
 * On a store with sessions nobody claims: the store grants the mandate to a
 * session, and the candidate goes from STANDBY straight to PREPARING when it is
 * shown so; see session.c.
 *
 *   [STANDBY] ── granted to our session ──► [PREPARING]
 *
 * The rules that safety rests on (docs/PROTOCOL.md):
 *
 *  - A deadline counts from the instant the successful claim or renewal was
 *    SENT. By then the work has stopped.
 *  - A standby claims an unreleased record only after it has itself seen that
 *    version unchanged for the holder's whole lease, counted from when it
 *    first RECEIVED it; or the holder's death is proven; or the store has a
 *    trustworthy clock and says that the lease has expired. The claim is a
 *    compare-and-set on that version.
 *  - A write without a clear answer is settled by its nonce, never retried blindly.
 *  - The mandate is released only after the work has stopped.
 *  - A mandate of a session ends with it. Its deadline is that of the session,
 *    which counts from the SEND of a keep-alive; it is never carried over to
 *    another session, and an epoch that was ours once is never taken up again.
 *
 * Ownership: the struct belongs to the caller. Strings in the configuration
 * are copied, except the name of the store. Pointers in actions are borrowed
 * from the candidate, or from the actions, and valid until the next step.
 */
#ifndef CORE_CANDIDATE_CANDIDATE_H
#define CORE_CANDIDATE_CANDIDATE_H

#include "base/outcome.h"
#include "base/prng.h"
#include "base/record.h"
#include "base/request.h"
#include "core/candidate/breaker.h"
#include "core/candidate/contention.h"
#include "core/candidate/fence.h"
#include "core/candidate/observation.h"
#include "core/candidate/peers.h"

#include <gavel/event.h>
#include <gavel/settings.h>

enum candidate_state {
    CANDIDATE_IDLE,
    CANDIDATE_OBSERVING,
    CANDIDATE_STANDBY,
    CANDIDATE_CLAIMING,
    CANDIDATE_PREPARING,
    CANDIDATE_LEADING,
    CANDIDATE_STOPPING,
    CANDIDATE_ENDED,
};
#define CANDIDATE_STATE_COUNT (CANDIDATE_ENDED + 1)

struct candidate_config {
    const char *group;
    const char *id;
    const char *address; /* doorbell, "" or NULL for none */
    const char *store;   /* its URL, for messages; borrowed for good; "" or NULL: "the store" */
    int32_t priority;
    bool eligible;
    struct gavel_settings settings; /* must have passed gavel_settings_check() */
    enum store_clock clock;
    struct process_id process;
    /*
     * The work is done by processes of a guard and may outlive our process.
     * Records then name no process, so that nobody takes our death for the end
     * of the work. The registration still names it.
     */
    bool is_guarded;
    bool has_sessions; /* of the store, see store_capabilities */
    uint64_t seed;     /* random; also makes instance and nonces, so no two candidates may share it */
    int64_t wall_ms;
};

enum candidate_event_kind {
    CANDIDATE_START,
    CANDIDATE_TICK,         /* candidate_wake_at() has come; earlier is harmless */
    CANDIDATE_REPLY,        /* the answer to a call */
    CANDIDATE_DOORBELL,     /* a hint to look now */
    CANDIDATE_TOLD,         /* the store, which has sessions, shows the record without being asked */
    CANDIDATE_HOLDER_DIED,  /* the process of the watched holder is proven dead */
    CANDIDATE_WORK_STOPPED, /* after WORK_STOP: nothing of the work is left */
    CANDIDATE_RESIGN,       /* hand over, if leader */
    CANDIDATE_FINISH,       /* the work is done: close the group for good and end */
    CANDIDATE_OUTCOME,      /* what came of the work: the next release leaves it in the record */
    CANDIDATE_ENSURE,       /* see candidate_event.ensure */
    CANDIDATE_SET_ELIGIBLE,
    CANDIDATE_GO_ON, /* what waits may be said: see candidate_event.waits */
    CANDIDATE_STOP,  /* release, leave, end */
};

struct candidate_event {
    enum candidate_event_kind kind;
    gavel_ns now;
    /*
     * Of the store object at this instant, with every event; zeroes if the
     * store has no sessions. The candidate is not woken for keep-alives: it
     * learns of a later deadline with whatever event comes next.
     */
    struct store_session session;
    /*
     * If it shows another session: what there is to say and to ask in that one
     * waits for GO_ON. Thousands may be told at once that their mandates are over,
     * and the last of them must not wait for its turn until its time is over.
     */
    bool waits;
    union {
        struct {
            uint64_t call; /* of the action that asked */
            const struct store_reply *reply;
        } reply;
        /*
         * As it was in this very session; a push of a former one is not passed
         * on. It may be late, repeated, or older than what was read: see
         * base/request.h. It need not name the process of the holder.
         */
        struct {
            const struct record *record;
            bool is_found;
            bool is_ours;      /* the session holds the mandate */
            uint64_t revision; /* as in struct store_reply: that of the change */
        } told;
        struct {
            struct nonce nonce; /* of the WATCH action */
        } holder_died;
        struct {
            uint64_t epoch;      /* of the leader that the caller wants replaced; 0: it saw none */
            bool force;          /* replace a leader that is alive, even before the minimum mandate */
            const char *desired; /* candidate that should lead, "" for any */
        } ensure;
        struct {
            const char *successor; /* "" for any */
        } resign;
        struct {
            enum gavel_loss loss; /* unless NONE, the mandate is lost: its work was killed */
        } stop;
        struct outcome outcome; /* without attempts: these we count */
        bool eligible;
    };
};

enum candidate_action_kind {
    CANDIDATE_CALL, /* send a request to the store; answer with REPLY, or not at all */
    CANDIDATE_EMIT, /* tell subscribers */
    /*
     * From now on is_leader() is true until mandate.stop_at; 0: false. A mandate
     * of a session is told when it begins, with a new epoch, and when it ends;
     * in between the caller moves stop_at and deadline along with the deadline
     * of the session.
     */
    CANDIDATE_MANDATE,
    CANDIDATE_WORK_START, /* on_elected */
    CANDIDATE_WORK_STOP,  /* on_demoted; must end in WORK_STOPPED before work_stop.deadline */
    CANDIDATE_RING,       /* doorbell to every address of candidate_peers() */
    CANDIDATE_RING_ONE,   /* doorbell to one address */
    CANDIDATE_WATCH,      /* report HOLDER_DIED when this process is proven dead; replaces an earlier watch */
    CANDIDATE_UNWATCH,
};

struct candidate_action {
    enum candidate_action_kind kind;
    union {
        struct {
            uint64_t id;
            struct store_request request;
        } call;
        struct gavel_event event;
        struct {
            uint64_t epoch;
            gavel_ns stop_at;      /* is_leader() turns false */
            gavel_ns deadline;     /* the work has stopped */
            gavel_ns term_ends_at; /* the deadline never moves beyond this; NEVER: no limit */
        } mandate;
        struct {
            uint64_t epoch;
        } work_start;
        struct {
            uint64_t epoch;
            enum gavel_reason reason;
            gavel_ns deadline;
        } work_stop;
        const char *address; /* RING_ONE */
        struct {
            struct nonce nonce;
            struct process_id process;
        } watch;
    };
};

/* More than any step can return; candidate_step() asserts it. */
#define CANDIDATE_ACTIONS_MAX 24

struct candidate_actions {
    size_t count;
    struct candidate_action items[CANDIDATE_ACTIONS_MAX];
    char previous_leader[NAME_MAX_BYTES + 1]; /* an item may point to it … */
    char address[ADDRESS_MAX_BYTES + 1];      /* … and to this */
};

/* One call of each kind may be under way at a time. */
enum candidate_slot {
    SLOT_MANDATE, /* READ, CLAIM, RENEW, RELEASE, ASK, DIED */
    SLOT_BEAT,    /* HEARTBEAT, LEAVE */
    SLOT_LIST,    /* CANDIDATES */
    SLOT_COUNT,
};

struct candidate_call {
    bool is_pending;
    enum store_op op;
    uint64_t id;
    uint64_t session; /* that it was sent in */
    bool is_trial;    /* the breaker waits for what comes of it */
    gavel_ns sent_at;
    gavel_ns give_up_at;
};

struct candidate {
    /* who we are */
    char group[NAME_MAX_BYTES + 1];
    char id[NAME_MAX_BYTES + 1];
    char address[ADDRESS_MAX_BYTES + 1];
    struct gavel_settings settings;
    enum store_clock clock;
    struct process_id process;
    bool is_guarded;
    int32_t priority;
    bool is_eligible;
    uint64_t instance;
    int64_t since_wall_ms;
    struct prng prng;

    /* where we are */
    enum candidate_state state;
    gavel_ns entered_at;  /* this state */
    gavel_ns standing_at; /* when the observation ended; from then on it may claim */
    enum gavel_phase phase;
    gavel_ns phase_at;
    bool is_stopping;              /* STOP was asked for */
    bool is_leaving;               /* LEAVE was sent */
    bool is_finishing;             /* FINISH was asked for, so the release closes the group */
    bool has_outcome;              /* OUTCOME was told … */
    struct outcome outcome;        /* … and this is it */
    uint32_t attempts;             /* before ours, as the record that we claimed said */
    enum gavel_status stop_status; /* why we end */
    char *stop_message;            /* the same in words; NULL: trouble tells */
    char *trouble;                 /* the store's words on its last failure; NULL: there was none */
    const char *store;             /* what it is called in ours */

    /* what we know of the group */
    struct observation seen;
    char last_leader[NAME_MAX_BYTES + 1]; /* as last reported by leader_changed; "" none yet */
    uint64_t last_epoch;
    bool has_followed;   /* somebody, maybe we, has led since we joined: the record has changed */
    bool is_leader_down; /* and this was reported */
    bool is_watching;
    bool has_news;   /* of a session: a hint came, and no look was answered since */
    bool is_hurried; /* a hint or a death asked for the next look: send nothing else with it */
    struct nonce watched;
    struct peers peers;
    struct fence fence;

    /* the session of the store object, if the store has them: session.c */
    bool has_sessions;
    struct store_session session; /* as of this step */
    uint64_t seen_session;        /* the one in which `seen` was seen … */
    uint64_t seen_revision;       /* … how far the store had come then, as far as is known … */
    bool is_ours;                 /* … and whether that one holds the mandate */
    bool waits;                   /* nothing is said or asked in this session before GO_ON */
    uint64_t joined_session;      /* the one in which a heartbeat of ours was answered; 0: none … */
    uint64_t joined_revision;     /* … and how far the store had come by the first of them; 0: not known */
    uint64_t joined_above;    /* what is granted to us there is above this epoch: the fence as it was told */
    uint64_t mandate_session; /* the one that our mandate is of; 0: none */
    uint64_t had_epoch;       /* the highest that was ours */

    /* what we say when we campaign: stand.c */
    bool is_standing;
    bool is_patient;
    bool is_told_short; /* and trouble says that no session lasts long enough for us */
    bool gives_up; /* in STOPPING: it had no time to lead; it leaves the group, and comes back in a while */
    bool is_release_leaving; /* the newest release says so … */
    bool has_left;           /* … and was answered, and it has not come back */
    gavel_ns stood_at;       /* when our turn came at a cold start */
    uint64_t renewed_epoch;  /* the one that we have last asked to go on from with a new one; 0: none */
    struct campaign said;    /* in the newest heartbeat … */
    uint64_t said_session;   /* … which was answered in this session; 0: it was not */

    /* the mandate: ours in PREPARING, LEADING and STOPPING */
    struct nonce nonce;       /* of our newest claim */
    bool is_claim_open;       /* it is unknown whether that was applied */
    uint64_t epoch;           /* of our mandate */
    uint64_t version;         /* of our record as last written */
    gavel_ns mandate_at;      /* when the claim of this epoch was sent */
    gavel_ns listed_at;       /* when candidates were first listed after that; NEVER: not yet */
    gavel_ns renewed_at;      /* send time of the last claim or renewal that succeeded */
    gavel_ns stop_at;         /* the work must begin to stop */
    gavel_ns deadline;        /* the work has stopped */
    gavel_ns led_from;        /* when the work started; kept while we renew as new epochs */
    bool is_work_running;     /* between WORK_START and WORK_STOPPED */
    bool has_overrun;         /* past the deadline, and this was reported */
    bool is_renewal_failing;  /* the last attempt failed */
    enum gavel_reason reason; /* of STOPPING */
    enum gavel_loss loss;     /* what its release says: NONE, unless the work was killed */
    char *successor;

    /* the wish in the record that we hand over; void if of another epoch */
    uint64_t wish_epoch;
    bool wish_force;
    bool is_wish_recorded; /* it ends when the record has it no more; else it was told to us directly */
    gavel_ns wish_at;      /* since when we know of it */
    char *wish_successor;  /* NULL: "", as with the other two */

    /* our own wish, to be written when the slot is free */
    bool has_ask;
    bool ask_force;
    uint64_t ask_epoch; /* of the leader that is asked */
    gavel_ns ask_at;    /* not before */
    char *ask_successor;

    /* calls */
    uint64_t next_call;
    struct candidate_call calls[SLOT_COUNT];
    struct breaker breaker;
    struct contention contention;

    /* timers; NEVER if not set */
    gavel_ns look_at;         /* next read (standby) or renewal (leader); start (idle) */
    gavel_ns beat_at;         /* next heartbeat */
    gavel_ns list_at;         /* next listing of candidates */
    gavel_ns claim_at;        /* when to consider a claim; of a session: whether to stand, and how */
    gavel_ns hold_back_until; /* after a resignation or a lost claim */
    gavel_ns election_at;     /* when the vacancy was noticed */
    gavel_ns doorbell_at;     /* the last one obeyed */
    gavel_ns nudged_at;       /* the last time a hint made an open breaker try */
    gavel_ns settle_at;       /* when to see to a release whose outcome is unknown */
    gavel_ns settle_until;    /* give up at this instant; 0: the release was not sent yet */
    gavel_ns orphan_at;       /* when to release a mandate that is ours but that nobody serves */
    uint64_t orphan_call;     /* the call that did so last */
    gavel_ns death_at;        /* when to tell the store, which has sessions, that the holder is dead */
    gavel_ns leave_at;        /* when to leave again, since nobody answered */

    /* registration */
    bool is_registered;
    bool has_listed; /* candidates were listed since the observation ended */
    bool has_rung;   /* told the leader that we are here */
    uint64_t beats;
    uint64_t rival_instance; /* somebody with our id; 0 none */
    uint64_t rival_beats;
    int rival_growths; /* how often its beats grew since we met it */
    gavel_ns rival_since;

    struct candidate_actions *actions; /* only during a step */
    gavel_ns now;
};

/* Whether candidates of a store can have this policy: ERR_STORE_UNSUPPORTED. */
GAVEL_CHECKED enum gavel_status candidate_check_policy(enum gavel_policy policy, bool has_sessions,
                                                       struct gavel_error *error);

/* Copies the configuration. ERR_INVALID for a name that name_check() refuses, or the error of
 * gavel_settings_check() or candidate_check_policy(). */
GAVEL_CHECKED enum gavel_status candidate_init(struct candidate *candidate,
                                               const struct candidate_config *config,
                                               struct gavel_error *error);

/* Frees what the candidate owns. Safe on NULL and on a zeroed struct. */
void candidate_done(struct candidate *candidate);

/* Feeds one event; ret_actions is what the caller must do, in order. Time never runs backwards. */
void candidate_step(struct candidate *candidate, const struct candidate_event *event,
                    struct candidate_actions *ret_actions);

/*
 * When the next TICK is due; NEVER if nothing is. The end of a session is not
 * counted: many candidates share one, and the caller has one timer for all of
 * them. It feeds a TICK candidate_stop_lead() before the deadline.
 */
gavel_ns candidate_wake_at(const struct candidate *candidate);

/* How long before the deadline of its session a leader must begin to stop. */
gavel_ns candidate_stop_lead(const struct candidate *candidate);

/* Leads, and its clock says that it still may, as far as the last step knew. */
bool candidate_is_leader(const struct candidate *candidate, gavel_ns now);

enum candidate_answer {
    CANDIDATE_NOT_LEADER,
    CANDIDATE_LEADER,
    CANDIDATE_UNKNOWN_UNTIL, /* renewals fail; the mandate still holds until then */
};

/* The three answers; *ret_until is when a leader's mandate ends unless renewed, else untouched. */
enum candidate_answer candidate_answer(const struct candidate *candidate, gavel_ns now, gavel_ns *ret_until);

/*
 * The same as things stand when this is the session of the store object: with
 * each keep-alive a mandate lasts longer, and no step tells the candidate. For
 * a candidate of a store without sessions they differ in nothing.
 */
bool candidate_is_leader_in(const struct candidate *candidate, const struct store_session *session,
                            gavel_ns now);
enum candidate_answer candidate_answer_in(const struct candidate *candidate,
                                          const struct store_session *session, gavel_ns now,
                                          gavel_ns *ret_until);

/* Until when that mandate lasts, in PREPARING or LEADING; *ret_stop_at is never after *ret_deadline. 0 and 0:
 * it is over, since another session is open, or none. */
void candidate_times_in(const struct candidate *candidate, const struct store_session *session,
                        gavel_ns *ret_stop_at, gavel_ns *ret_deadline);

/* The epoch of the leader as last seen, ourselves included; 0 if there is none. */
uint64_t candidate_leader_epoch(const struct candidate *candidate);

const char *candidate_state_name(enum candidate_state state);

/* Whether the state table has this edge; for the test that compares it with the diagram. */
bool candidate_may_move(enum candidate_state from, enum candidate_state to);

#endif
