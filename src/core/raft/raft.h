/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The Raft core: who leads the cluster, and a log that never loses what it
 * committed. A state machine without I/O, clock or randomness of its own: one
 * event goes in, with the time in it; actions come out.
 *
 *                          times out          majority of pre-votes        majority of votes
 *   [LEARNER] ─► [FOLLOWER] ───────► [PRE_CANDIDATE] ───────► [CANDIDATE] ───────────► [LEADER]
 *       ▲            ▲  │                   │                     ▲  │                    │
 *       └────────────┤  └── transfer, or an obituary of the leader ┘  │                    │
 *                    └──────────────────────┴─────────────────────────┴────────────────────┘
 *                         another leads, a higher term, no majority, the lease has lapsed
 *
 * A witness is a voter that never claims. When it must lead, because only it
 * has the newest entries, it is a caretaker: it brings the others up to date
 * and hands over.
 *
 * Being leader in Raft's sense is not enough to act as one. Work begins with
 * CLAIM: this term's no-op is committed, and a majority has acknowledged a round
 * that was sent after the election, so that its promises make a lease. Work ends
 * with STOP_WORK, which the caller answers with WORK_STOPPED. Until that answer
 * the node neither votes nor stands for election.
 *
 * What is persisted, and when. A PERSIST action is a change of what must be on
 * disk. The caller writes the changes in order of `seq`, each as one transaction,
 * and reports with PERSISTED which are durable. A SEND has `after`: the message
 * must not leave before that change is durable. Nothing else waits for the disk,
 * so a leader with a slow disk still sends its heartbeats.
 *
 * The rules are those of docs/PROTOCOL.md. Comments cite Diego Ongaro's thesis,
 * "Consensus: Bridging Theory and Practice" (2014), where the code follows it
 * and where it differs.
 *
 * Ownership: the struct belongs to the caller. The data of events is copied.
 * Pointers in actions are borrowed from the node and valid until the next step,
 * so a message that has to wait must be copied. Only messages with entries or a
 * snapshot hold pointers, and those never wait.
 */
#ifndef CORE_RAFT_RAFT_H
#define CORE_RAFT_RAFT_H

#include "base/backlog.h"
#include "base/blob.h"
#include "base/prng.h"
#include "core/raft/message.h"

struct raft_settings {
    gavel_ns election_min;     /* shortest wait for a silent leader: 150 ms */
    gavel_ns election_max;     /* longest wait: 300 ms */
    gavel_ns heartbeat;        /* 50 ms */
    gavel_ns promise;          /* how long accepting an append binds the vote: 150 ms */
    gavel_ns stop_margin;      /* the work stops within this: 10 ms */
    int drift_ppm;             /* bound on the difference in rate of any two clocks: 1000 */
    gavel_ns transfer_timeout; /* a transfer that takes longer is aborted: 300 ms */
    bool auto_failover;        /* false: nodes stand only when an operator asks. Default: true */
    gavel_ns catch_up_timeout; /* how long a change of members waits for new voters to catch up: 10 s */
    bool prefers_priority;     /* a leader hands over to a voter of higher priority that has caught up */
    gavel_ns prefers_after;    /* but only after leading for this long: 5 s */
    uint32_t batch_bytes;      /* of entries in one append: 64 KiB */
    uint32_t batch_entries;    /* 256 */
    uint32_t inflight_max;     /* appends with entries under way to one peer: 8 */
    /* What a leader takes on before a majority has stored it; one proposal more is refused: 8192, and 64 MiB.
     * The no-op and changes of members are not counted out: they are what ends such a state. */
    uint32_t uncommitted_entries;
    uint32_t uncommitted_bytes;
    gavel_ns disk_patience; /* a disk that finishes no write for this long counts as hung: 1 s */
    uint32_t vote_burst;    /* vote requests taken from one peer at once: 16 */
    gavel_ns vote_refill;   /* then one more per this interval: 20 ms */

    /* Whether a certificate was really made by the node that it names, or by its guard, in this cluster and
     * generation; the mac must cover both. Must not do I/O. */
    bool (*verify)(void *context, const struct raft_certificate *certificate);
    /* Fills in the mac of our own release. */
    void (*sign)(void *context, struct raft_certificate *certificate);
    void *context;
};

/* How long a leader that a majority answers may go without a lease before it steps down. */
#define RAFT_CLAIM_PATIENCE(settings) (2 * (settings)->election_max)
/* After more such turns than this in a row, without work in between, it waits twice as long each time … */
#define RAFT_IDLE_TURNS 2u
/* … up to this: 4.8 s. */
#define RAFT_CLAIM_PATIENCE_MAX(settings) (8 * RAFT_CLAIM_PATIENCE(settings))

/* The defaults above, without verify and sign. */
void raft_settings_default(struct raft_settings *ret_settings);

/* ERR_BUDGET, or ERR_INVALID, with the sum spelled out. */
GAVEL_CHECKED enum gavel_status raft_settings_check(const struct raft_settings *settings,
                                                    struct gavel_error *error);

/* The follower's side of a lease: while it is active, the follower does not help to elect another. */
struct raft_promise {
    raft_id leader; /* 0: none */
    uint64_t incarnation;
    raft_term term;
    uint64_t lease_epoch;
    gavel_ns length;
};

/* The last known facts about another member's data directory (directory.c, met.c). They outlive a restart, so
 * that an older copy of the directory is not taken for the member. */
struct raft_met {
    raft_id id;
    uint64_t directory;
    uint64_t incarnation;
    uint64_t start;
    raft_index began_at;
    raft_index acked;
    bool is_refused;
};

/* What must survive a crash, besides log and snapshot. */
struct raft_state {
    uint64_t cluster;
    uint64_t generation; /* 0: a joining node that has not heard from a leader yet */
    raft_id id;
    /* Grows with each start; the caller adds one and makes it durable before raft_init(). */
    uint64_t incarnation;
    raft_term term;
    raft_id vote;       /* in this term; 0 none */
    uint64_t directory; /* a random number given to the data directory when it was created; 0 none */
    uint64_t start;     /* a random number of this start, drawn with the incarnation, not stored; 0 none */
    struct raft_promise promise;
    raft_index commit; /* written along with other changes; may lag, never exceeds what is durable */
    uint8_t met_count; /* written if raft_persist.has_met is set; may lag */
    struct raft_met met[RAFT_MEMBERS_MAX];
};

struct raft_snapshot {
    raft_index index;
    raft_term term;
    struct raft_config config; /* as of index */
    raft_index config_index;   /* the index of that configuration in the log */
    const uint8_t *data;
    size_t size;
    struct blob *blob; /* of raft.snapshot: holds the data. Else NULL, or not looked at */
};

/* The state read from disk, or the initial state of a new node. All of it is copied. */
struct raft_restore {
    struct raft_state state;
    /* New cluster: index 0 and the first configuration. Joining node: no member. */
    struct raft_snapshot snapshot;
    const struct raft_entry *entries; /* after the snapshot */
    size_t entry_count;
    uint64_t seed;
};

enum raft_role {
    RAFT_LEARNER, /* not a voter in the newest configuration it has; does not stand for election */
    RAFT_FOLLOWER,
    RAFT_PRE_CANDIDATE,
    RAFT_CANDIDATE,
    RAFT_LEADER,
};
#define RAFT_ROLE_COUNT (RAFT_LEADER + 1)

enum raft_work {
    RAFT_WORK_NONE,
    RAFT_WORK_RUNNING,  /* between CLAIM and STOP_WORK */
    RAFT_WORK_STOPPING, /* until WORK_STOPPED */
};

/* Why work stops. */
#define RAFT_STOP_MAP(X)                                                                                     \
    X(LAPSED, "the lease lapsed")                                                                            \
    X(TERM, "a higher term was met")                                                                         \
    X(REPLACED, "another leads")                                                                             \
    X(TRANSFER, "a transfer")                                                                                \
    X(REMOVED, "removed from the members")                                                                   \
    X(COMMAND, "asked to step down")                                                                         \
    X(DISK, "the disk failed")                                                                               \
    X(HANGS, "the disk does not answer")                                                                     \
    X(IDLE, "it cannot hold a lease")
#define RAFT_STOP_ENUM(name, text) RAFT_STOP_##name,
enum raft_stop { RAFT_STOP_MAP(RAFT_STOP_ENUM) };
#undef RAFT_STOP_ENUM

enum raft_event_kind {
    RAFT_TIMER,        /* raft_wake_at() has come; earlier is harmless */
    RAFT_RECEIVE,      /* a message */
    RAFT_PERSISTED,    /* all PERSIST up to `seq` are durable */
    RAFT_DISK_FAILED,  /* a write failed: the node does nothing more, except to stop the work */
    RAFT_WORK_STOPPED, /* nothing of the work is left */
    /* ERR_NO_LEADER if not the leader, ERR_STATE while handing over or as a caretaker, ERR_STORE_UNAVAILABLE
     * if too much is not committed yet */
    RAFT_PROPOSE,
    RAFT_TRANSFER, /* to `target`, or the best peer if 0; ERR_INVALID, ERR_STATE, ERR_NO_LEADER */
    /* Forced, at a follower: lead as soon as that is safe, with or without help from the leader. */
    RAFT_TAKE_OVER,
    RAFT_CHANGE,    /* of members; ERR_NO_LEADER, ERR_STATE (one is pending, or the no-op is not committed) */
    RAFT_COMPACT,   /* the state machine has a snapshot of what it applied up to `index` */
    RAFT_STEP_DOWN, /* stop the work, release the lease, and let the others elect */
    RAFT_CAMPAIGN,  /* stand for election now (with pre-vote); ERR_STATE if leader or no voter */
    RAFT_LINK_LOST, /* the connection to `peer` closed: a hint */
    RAFT_DISTRUST,  /* `peer` came back with an older state: nothing it says counts any more */
    RAFT_MET,       /* `met` has greeted and proved that it is alive: its directory and its start */
};

struct raft_claimant;

struct raft_event {
    enum raft_event_kind kind;
    gavel_ns now;
    union {
        const struct raft_message *message;
        uint64_t seq;
        struct {
            const struct raft_entry *entries; /* DATA only; terms are filled in by the leader */
            uint32_t count;
        } propose;
        struct {
            raft_id target;
            bool is_forced;   /* do not wait for uncommitted entries; they are lost */
            gavel_ns timeout; /* 0: settings.transfer_timeout */
        } transfer;
        const struct raft_config *change; /* the wanted members; plain, not joint */
        struct {
            raft_index index;
            const uint8_t *data;
            size_t size;
            struct blob *blob; /* holds the data: it is shared, not copied. NULL: it is copied */
        } compact;
        raft_id peer;
        const struct raft_claimant *met;
    };
};

enum raft_action_kind {
    RAFT_PERSIST,
    RAFT_SEND,
    RAFT_APPLY,     /* entries `first` to `last` are committed: give them to the state machine, in order */
    RAFT_RESTORE,   /* the snapshot replaces the state machine */
    RAFT_CLAIM,     /* work may begin, fenced by {term, lease_epoch}, until raft_deadline() */
    RAFT_STOP_WORK, /* stop the work and answer WORK_STOPPED, within settings.stop_margin */
    RAFT_TELL,      /* news for people */
};

/* News for people; the names are stable, for logs, metrics and traces. */
#define RAFT_NEWS_MAP(X)                                                                                     \
    X(ROLE_CHANGED, "role_changed")           /* `text` names it */                                          \
    X(LEADER_CHANGED, "leader_changed")       /* to `node`, 0 if none */                                     \
    X(ELECTION_ENDED, "election_ended")       /* `election` has the details */                               \
    X(TRANSFER_DONE, "transfer_done")         /* to `node` */                                                \
    X(TRANSFER_FAILED, "transfer_failed")     /* `text` says why */                                          \
    X(MEMBERS_CHANGED, "members_changed")     /* the configuration is committed */                           \
    X(CHANGE_FAILED, "change_failed")         /* `text` says why */                                          \
    X(HIGHER_TERM_SEEN, "higher_term_seen")   /* `term`, while promised or leading */                        \
    X(ENTRIES_TRUNCATED, "entries_truncated") /* from `index` on: never committed, now gone */               \
    X(OBITUARY_TAKEN, "obituary_taken")       /* of `node` */                                                \
    X(DIRECTORY_REFUSED, "directory_refused") /* of `node`, which has lost state; `text` says what */        \
    X(NOBODY_NEAR, "nobody_near")             /* led repeatedly but could never hold a lease */              \
    X(MESSAGE_REFUSED, "message_refused")     /* from `node`; `text` says why */                             \
    X(TERM_REFUSED, "term_refused")           /* `term`, of a message from `node`: see term.c */
#define RAFT_NEWS_ENUM(name, text) RAFT_NEWS_##name,
enum raft_news { RAFT_NEWS_MAP(RAFT_NEWS_ENUM) };
#undef RAFT_NEWS_ENUM

enum raft_result { RAFT_RUNNING, RAFT_WON, RAFT_LOST, RAFT_TIMED_OUT, RAFT_OVERTAKEN };

/* One vote, as far as this node knows. */
struct raft_ballot {
    raft_id voter;
    raft_id candidate;       /* whom it voted for; 0 nobody */
    enum raft_reason reason; /* why it refused the candidate of the record */
};

/* One election as this node saw it: its own candidacy with all answers, or the one it was asked to vote
 * in. */
struct raft_election {
    raft_term term;
    raft_id candidate;
    bool is_pre_vote; /* a round of pre-votes that led nowhere */
    enum raft_result result;
    gavel_ns started_at;
    gavel_ns ended_at;
    uint8_t ballot_count;
    struct raft_ballot ballots[RAFT_MEMBERS_MAX];
};
#define RAFT_ELECTIONS_KEPT 32

struct raft_persist {
    uint64_t seq;
    /* term, vote, promise or generation changed, or the founding was committed: write all of state */
    bool has_state;
    bool has_met; /* write state.met, too */
    struct raft_state state;
    bool has_snapshot;   /* replaces the old one; entries up to its index may be deleted */
    bool restarts_log;   /* delete all entries, also later ones: the log begins after the snapshot */
    raft_index truncate; /* unless 0: drop the entries from here on, before appending */
    raft_index first;    /* append first … last, by raft_log_at(); none if 0 */
    raft_index last;
};

struct raft_action {
    enum raft_action_kind kind;
    union {
        struct raft_persist persist;
        struct {
            uint64_t after; /* 0 or the seq that must be durable first */
            struct raft_message message;
        } send;
        struct {
            raft_index first;
            raft_index last;
        } apply;
        struct {
            raft_term term;
            uint64_t lease_epoch;
        } claim;
        struct {
            enum raft_stop reason;
        } stop;
        struct {
            enum raft_news news;
            raft_id node;
            raft_term term;
            raft_index index;
            const char *text; /* static, or NULL */
            const struct raft_election *election;
        } tell;
    };
};

/* More than any step can return; raft_step() asserts it. */
#define RAFT_ACTIONS_MAX 384

struct raft_actions {
    size_t count;
    struct raft_action items[RAFT_ACTIONS_MAX];
};

#define RAFT_INFLIGHT_MAX 16

enum raft_progress { RAFT_PROBE, RAFT_REPLICATE, RAFT_INSTALL };

/* What a leader or a candidate knows of another member, and what is known in every role. */
struct raft_peer {
    raft_id id;
    uint64_t dead_incarnation; /* the newest with an obituary; kept in all roles … */
    raft_term dead_term;       /* … and our term then: a leader of a later term is not dead after all */
    uint32_t vote_tokens;
    gavel_ns vote_tokens_at;

    /* its data directory, known in all roles (directory.c) */
    bool is_voter;        /* in the configuration that is in force, or in its old half */
    uint64_t bound;       /* the one in that configuration; 0: none yet */
    uint64_t directory;   /* the first that spoke for it; 0: none yet */
    uint64_t incarnation; /* the newest that spoke … */
    uint64_t start;       /* … its start … */
    raft_index began_at;  /* … and where its log ended when it began */
    raft_index acked;     /* committed, and acknowledged by it to us: its log never ends before this */
    bool is_refused;      /* it has lost state */
    bool is_recalled;     /* all this is from our disk: it has not spoken since we started */

    /* of a leader */
    enum raft_progress progress;
    raft_index next;
    raft_index match;
    uint8_t inflight_count;                 /* unanswered appends with entries … */
    raft_index inflight[RAFT_INFLIGHT_MAX]; /* … by the last entry of each, oldest first */
    bool is_probing;                        /* a probe is under way; the next heartbeat repeats it */
    gavel_ns heard_at;                      /* when its last promise of this term came */
    gavel_ns writing_at;                    /* when it last said that its promise is on its way to disk */
    gavel_ns installed_at;                  /* when the snapshot was sent */
    uint64_t acked_round; /* the newest round whose promise came back, of this lease epoch */
    gavel_ns acked_promise;
    gavel_ns answered_at; /* when the first promise of this lease epoch came */
    gavel_ns round_trip;  /* recent round trip of rounds; 0 unknown */
    gavel_ns write_takes; /* for how long its disk held back the acknowledgement of entries of late */
    bool was_idle;        /* it answered in our last turn as a leader that could not work */

    /* of a candidate */
    bool has_answered;
    bool is_granted;
    raft_id writes_vote_for; /* of the present term, as it said, with nobody leading since … */
    raft_term writes_vote_term;
    uint64_t writes_vote_round; /* … in this round of pre-votes */
    enum raft_reason reason;
    gavel_ns wait_until;
};

enum raft_transfer_phase {
    RAFT_TRANSFER_NONE,
    RAFT_TRANSFER_CATCH_UP, /* the target is catching up */
    RAFT_TRANSFER_STOPPING, /* the work is being stopped */
    RAFT_TRANSFER_HANDED,   /* TIMEOUT_NOW was sent */
};

struct raft_transfer {
    enum raft_transfer_phase phase;
    raft_id target;
    bool is_forced;
    bool is_target_dead; /* an obituary of it came: do not wait */
    gavel_ns began_at;
    gavel_ns timeout; /* as ordered; 0: by the settings */
    gavel_ns give_up_at;
};

enum raft_change_phase {
    RAFT_CHANGE_NONE,
    RAFT_CHANGE_LEARN, /* new voters are learners until they have caught up */
    RAFT_CHANGE_JOINT,
    RAFT_CHANGE_NEW,
};

struct raft {
    struct raft_settings settings;
    struct prng prng;
    gavel_ns now;
    struct raft_actions *actions; /* only during a step */

    /* durable, or on its way there */
    struct raft_state state;
    struct raft_log log;
    struct raft_snapshot snapshot; /* its blob is held here */
    struct raft_config config;     /* the newest in the log; in force as soon as it is there */
    raft_index config_index;
    bool is_leaving; /* that configuration removes us and is not committed yet */
    raft_index commit;
    raft_index applied;  /* handed out by APPLY */
    raft_index began_at; /* where the log ended when this incarnation began */
    uint64_t founding;   /* the committed founding of our cluster; 0: not known to be committed */
    uint64_t doubted;    /* a founding in our log; one of its members said that it belongs to another */
    bool has_begun;      /* a member that is bound to its directory has spoken: something is committed */
    gavel_ns met_from;   /* since when we know more of the others than is on disk; NEVER: we do not */

    /* the order of writes */
    uint64_t seq;              /* of the newest PERSIST */
    uint64_t durable_seq;      /* the newest known to be durable */
    uint64_t state_seq;        /* the newest that changed the state */
    struct backlog writes;     /* those not durable yet, by seq */
    struct raft_persist dirty; /* what this step has changed */
    bool keeps_commit;         /* the commit index is to be written, too; no message waits for that */
    bool is_failed;            /* the disk failed: the node does nothing more */

    enum raft_role role;
    raft_id leader; /* whom we follow, or ourselves; 0 unknown */
    uint64_t leader_incarnation;
    gavel_ns heard_at;      /* when the last append of that leader came */
    gavel_ns followed_from; /* when the first one of its term came */
    gavel_ns election_at;   /* when to stand for election; NEVER: not at all */
    bool stands_directly;   /* without pre-vote: it is known that nobody leads, and we are first in line */
    bool is_put_off;        /* it was time to stand, but our own state is not durable yet */
    gavel_ns promise_until;
    raft_term seen_term; /* a higher term than ours, seen when it could not be adopted */
    uint8_t successor_count;
    raft_id successors[RAFT_VOTERS_MAX];
    struct raft_certificate certificate;      /* the newest genuine one about the leader we promised */
    struct raft_peer peers[RAFT_MEMBERS_MAX]; /* the members other than ourselves, in order of id */
    size_t peer_count;
    /* Directories that are not those of members now: of members that were removed, or are in another; the
     * newest last. Peers and these are not more than RAFT_MEMBERS_MAX together. */
    struct raft_met former[RAFT_MEMBERS_MAX];
    size_t former_count;
    struct raft_peer strangers; /* the rate limit of all non-members */

    /* candidacy */
    uint64_t round;        /* of pre-votes */
    gavel_ns round_at;     /* when it began */
    bool awaits_winner;    /* we have voted for another, and nobody has led since */
    uint64_t own_vote_seq; /* our own vote counts once this is durable */
    unsigned failures;     /* elections lost in a row, for the back-off */
    unsigned asked_again;  /* times in this term, because nobody answered */
    bool is_pre_voted;     /* stands because a majority said that it would vote for us */
    bool is_eager;         /* TAKE_OVER: stand as soon as the promise allows, without pre-vote */
    gavel_ns eager_until;

    /* leadership */
    raft_index noop_index;
    uint64_t lease_epoch;
    bool is_lease_given_up;     /* a release of this epoch was sent */
    bool is_commit_frozen;      /* a FORCE certificate was sent: nothing more is committed in this term */
    struct backlog uncommitted; /* our entries that are not committed yet, by index */
    size_t uncommitted_bytes;   /* of all that is after the commit index */
    uint64_t lead_round;
    uint64_t round_ahead; /* the most by which the number of a round exceeded the time it began */
    gavel_ns led_from;
    raft_term led_term; /* the last term in which we led */
    gavel_ns heartbeat_at;
    gavel_ns lease_until;
    gavel_ns leased_until; /* the end of the last lease of this term that we really had */
    gavel_ns hopeful_at;   /* when we last seemed able to get a lease */
    unsigned idle_turns;   /* turns as leader in a row without a lease; of a witness: without a worker */
    enum raft_work work;
    enum raft_stop stop_reason;
    bool steps_down; /* once the work has stopped */
    struct raft_transfer transfer;
    raft_id preferred; /* whom we handed over to for its priority, without it having worked since … */
    unsigned preferred_in_vain; /* … this many times in a row */
    gavel_ns prefers_from;      /* do not hand over for priority again before this */
    enum raft_change_phase change;
    struct raft_config change_target;
    gavel_ns change_give_up_at;
    gavel_ns change_far_from; /* since when only the distance of new voters blocks the change; or NEVER */

    struct raft_election elections[RAFT_ELECTIONS_KEPT]; /* a ring */
    uint64_t election_count;
    bool has_election; /* the newest of the ring is our own and still running */

    /* counters for people */
    uint64_t refused_messages;
    uint64_t dropped_votes;
};

/*
 * Starts a node, or restarts it after a crash. After a restart, the promise that it had made holds for its
 * whole length from now. ERR_INVALID or ERR_STORE_DAMAGED, with a reason, for an impossible state;
 * ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status raft_init(struct raft *raft, const struct raft_settings *settings,
                                          const struct raft_restore *restore, gavel_ns now,
                                          struct gavel_error *error);

/* Frees what the node owns. Safe on NULL and on a zeroed struct. */
void raft_done(struct raft *raft);

/*
 * Feeds one event; ret_actions is what the caller must do, in order, subject to `after`. Time never runs
 * backwards. A status other than OK says why a request or a message was refused; actions may be due all the
 * same.
 */
enum gavel_status raft_step(struct raft *raft, const struct raft_event *event,
                            struct raft_actions *ret_actions);

/* When the next TIMER is due; NEVER if nothing is. */
gavel_ns raft_wake_at(const struct raft *raft);

/* Has claimed, and its clock says that it still may act: now < raft_deadline(). */
bool raft_is_working(const struct raft *raft, gavel_ns now);

/*
 * For a working leader: whether a voter is too far away to hold a lease in its place. True only if the round
 * trip was measured and exceeds the limit.
 */
bool raft_is_far(const struct raft *raft, raft_id id, gavel_ns *ret_round_trip, gavel_ns *ret_longest);

/* Has led several times in a row but could not work, because no majority of the voters answers in time. */
bool raft_is_in_vain(const struct raft *raft);

/* The longest round trip with which this node can hold a lease, by its own settings. */
gavel_ns raft_round_trip_limit(const struct raft *raft);

/* How long a majority of the voters took to answer when this node last led; NEVER: unknown. */
gavel_ns raft_majority_round_trip(const struct raft *raft);

/* The newest configuration known to be committed. Returns the index that it has, or had, in the log. */
raft_index raft_committed_config(const struct raft *raft, struct raft_config *ret_config);

/* When the work must begin to stop; it has stopped settings.stop_margin later. 0 without a claim, NEVER for
 * the only voter. */
gavel_ns raft_deadline(const struct raft *raft);

/* Whether the promise binds at this instant. */
bool raft_is_promised(const struct raft *raft, gavel_ns now);

/* The disk has finished no write for settings.disk_patience, although some are waiting (hang.c). */
bool raft_disk_hangs(const struct raft *raft, gavel_ns now);

/* Leads, and has committed nothing for settings.disk_patience, although entries are waiting. */
bool raft_commit_hangs(const struct raft *raft, gavel_ns now);

/* Judges a sender that claims to be member `id`, before anything it says counts. */
#define RAFT_TRUST_MAP(X)                                                                                    \
    X(TRUSTED, "trusted")                                                                                    \
    X(OTHER_DIRECTORY, "it has another data directory than the member had")                                  \
    X(NO_DIRECTORY, "it does not tell which data directory it has")                                          \
    X(ROLLED_BACK, "its data directory is older than what it has acknowledged")                              \
    X(TWICE, "two processes have the data directory, or a copy of it")                                       \
    X(REFUSED, "its data directory was refused before")                                                      \
    X(OUTLIVED, "it is of an incarnation that has ended")                                                    \
    X(OTHER_FOUNDING, "it belongs to another founding of a cluster of this name")
#define RAFT_TRUST_ENUM(name, text) RAFT_##name,
enum raft_trust { RAFT_TRUST_MAP(RAFT_TRUST_ENUM) };
#undef RAFT_TRUST_ENUM
const char *raft_trust_text(enum raft_trust trust);

/* A sender that claims to be member `id`. */
struct raft_claimant {
    raft_id id;
    uint64_t directory;
    uint64_t incarnation;
    raft_term term; /* its own; RAFT_NUMBER_MAX: unknown */
    raft_index bound_at;
    raft_index began_at;
    uint64_t start;
    uint64_t founding;
    bool is_founded;
    bool leads;   /* it says this as a leader … */
    bool asks;    /* … or to become one */
    bool is_live; /* it has answered us since we started: not a late message of a dead process */
};
enum raft_trust raft_trust(const struct raft *raft, const struct raft_claimant *claimant);

/* The founding of the cluster, by the newest configuration in our log; 0: none yet. It is committed
 * if it equals raft->founding. */
uint64_t raft_founding(const struct raft *raft);

/* The index of the configuration in our log that binds us to this directory; 0 if there is none. */
raft_index raft_bound_at(const struct raft *raft);

/* Whether a peer that refuses our directory knows better than we do, given its founding and the index of its
 * newest configuration. */
bool raft_is_disowned(const struct raft *raft, uint64_t founding, raft_index config_index);

/* For the leader of a 0.6.0 cluster that binds nobody yet: whether the member's directory is unknown. */
bool raft_awaits_directory(const struct raft *raft, raft_id id);

/* Whether the newest configuration makes this node a voter, and a witness. */
bool raft_is_voter(const struct raft *raft);
bool raft_is_witness(const struct raft *raft);

/* Leads without working: it is a witness, or about to be removed. */
bool raft_is_caretaker(const struct raft *raft);

/* The elections this node remembers, the newest first: 0 … count - 1. NULL beyond. */
const struct raft_election *raft_election_at(const struct raft *raft, size_t which);

const char *raft_role_name(enum raft_role role);
const char *raft_stop_name(enum raft_stop stop);
const char *raft_news_name(enum raft_news news);
const char *raft_result_name(enum raft_result result);

/* Whether the table of roles has this edge; for the test that compares it with the picture. */
bool raft_may_move(enum raft_role from, enum raft_role to);

#endif
