/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee of the cluster: sees real time, all nodes and all disks at once,
 * and ends the run as soon as a promise of gavel or a rule of Raft is broken.
 *
 * It knows the simulated world only by the facts it is told, each when it
 * happens. From them it keeps a shadow of every node: what its disk holds, the
 * votes that became durable, which claim is open; and one history of everything
 * ever committed. Each check looks only at what a fact changes, so that a run
 * of seconds costs milliseconds.
 *
 *   the world tells            what the referee does
 *   started, ended             compares what was restored with the disk as it was
 *   before, after a step       compares the node before and after, and looks at its actions
 *   synced                     follows the disk: terms, votes, promises, logs
 *   sent                       compares the message with the disk of its sender
 *   signed, acted, applied, …  see below
 *   healed, probe, over        wants one working leader, and peace
 *
 * Nodes are named by their id, 1 … RAFT_REFEREE_IDS - 1; a replaced node has a
 * new one. `at` is real time and never runs backwards.
 */
#ifndef SIM_RAFT_REFEREE_REFEREE_H
#define SIM_RAFT_REFEREE_REFEREE_H

#include "core/raft/raft.h"
#include "sim/common/profile.h"

/* clang-format off */
#define RAFT_INVARIANT_MAP(X)                                                                                 \
    X(ELECTION,   "election-safety",   "at most one leader per term (PROTOCOL S3; Raft figure 3)")               \
    X(VOTE_ONCE,  "vote-once",         "a node votes once per term, also across crashes (Raft figure 2)")      \
    X(VOTES,      "votes-of-voters",   "who leads has the durable votes of a majority of voters (Raft 5.2)")   \
    X(GRANT,      "vote-up-to-date",   "a vote goes only to a log at least as up to date (Raft 5.4.1)")        \
    X(MATCHING,   "log-matching",      "same index and term: same entry and same log before it (figure 3)")    \
    X(COMPLETE,   "leader-complete",   "who leads has every entry committed before its term (figure 3)")       \
    X(OWN_TERM,   "commit-own-term",   "a leader counts copies only of entries of its own term (figure 8)")    \
    X(BOUNDED,    "uncommitted-bound", "what a leader has taken on without committing it is bounded (PROTOCOL)")  \
    X(MACHINE,    "machine-safety",    "no two nodes apply different entries at one index (figure 3)")         \
    X(VOUCHED,    "commit-vouched",    "a follower commits only what an append vouches for (Raft figure 2)")    \
    X(DURABLE,    "committed-durable", "what is committed is on the disks of a majority (PROTOCOL S3)")          \
    X(TRUNCATED,  "committed-kept",    "no node drops an entry committed in its term or before (S3)")               \
    X(REGRESS,    "no-regress",        "term, commit and incarnation never go back on disk (PROTOCOL)")        \
    X(TERMS,      "terms-plausible",   "a term counts elections: none is further than these can have led (PROTOCOL)") \
    X(RESTORED,   "restored",          "after a restart a node knows, and keeps to, what its disk held")       \
    X(LEASES,     "leases-disjoint",   "[claim, work stopped] of two leaders never overlap (PROTOCOL S4)")       \
    X(LEASE,      "lease-from-sends",  "a lease is reckoned from send times of acknowledged rounds (PROTOCOL)") \
    X(PROMISE,    "promise-kept",      "a promise binds at least as long as its leader was told (PROTOCOL)")   \
    X(TOKENS,     "fencing",           "a token belongs to one claim, and they only grow (PROTOCOL S1, S2)")     \
    X(CLAIM,      "claim-ready",       "a claim needs the no-op committed, a lease, and no witness (PROTOCOL)") \
    X(ORDER,      "durable-first",     "nothing leaves before the state it depends on is durable (PROTOCOL)")  \
    X(OBITUARY,   "obituary-true",     "an obituary means no later step, and covers nothing newer (PROTOCOL)") \
    X(RELEASE,    "release-stopped",   "a release leaves only after its work has stopped, for good (PROTOCOL)") \
    X(CONFIG,     "one-change",        "one uncommitted configuration, after the no-op (thesis 4.3)")          \
    X(QUORUMS,    "quorums-intersect", "quorums of consecutive configurations intersect (thesis 4.3)")         \
    X(IN_FORCE,   "config-in-force",   "the newest configuration in the log is in force, no other (thesis 4.1)") \
    X(PRE_VOTE,   "pre-vote-inert",    "a pre-vote changes nothing at the voter (PROTOCOL)")                   \
    X(GATE,       "gate",              "a promise holds against all but the four exceptions (PROTOCOL)")       \
    X(WORKING,    "working-abstains",  "who works, or still stops, neither votes nor stands (PROTOCOL)")       \
    X(REASON,     "refusal-true",      "a vote is refused only for a reason that is true (PROTOCOL)")          \
    X(CALM,       "no-flapping",       "without faults a leader is never replaced (PROTOCOL L2)")                \
    X(LEADER,     "leader-in-bound",   "a healed majority has a working leader within the bound (PROTOCOL L1)")  \
    X(CONVERGE,   "converged",         "healed nodes end with the same log, and proposals commit (PROTOCOL L1)") \
    X(PEACE,      "terms-settle",      "once healed, terms stop growing (PROTOCOL L1)")                          \
    X(REACH,      "lease-possible",    "no change of members, and no choice of a successor, makes a lease impossible (PROTOCOL)") \
    X(BACK_OFF,   "idle-back-off",     "where nobody can hold a lease, leaders stay longer each time (PROTOCOL)")   \
    X(STUCK,      "stuck",             "a node always knows when to be woken, and waking it helps")            \
    X(SERVICE,    "service",           "what runs on the nodes keeps its own promises (sim/session)")          \
    X(HEARD,      "honest-heard",      "no directory that has kept everything is refused (PROTOCOL L1)")        \
    X(DISOWNED,   "disowned",          "a directory that has forgotten, or is another, is refused and told so, and does not stand (PROTOCOL)") \
    X(FOUNDING,   "other-founding",    "a majority that was emptied and founded again is another cluster: neither takes anything of the other (PROTOCOL)") \
    X(ASKED,      "round-asks-all",    "a heartbeat asks every member for its promise, whatever else it is sent (PROTOCOL L2)") \
    X(ANSWERED,   "order-answered",    "an order is answered exactly once, and when its time is up at the latest (PROTOCOL)") \
    X(TRUE,       "order-true",        "an order that is told as done is done (PROTOCOL)")                     \
    X(OBEYED,     "order-obeyed",      "a node gives up its leading by order, for failed work or before it ends, and not otherwise") \
    X(WISHED,     "members-wished",    "members change only as an order or a record says (PROTOCOL)")           \
    X(REMOVED,    "removed-stays-out", "a member that was removed is not added again by itself (PROTOCOL)")     \
    X(RECORDS,    "records-hold",      "once healed, members are what their records say (PROTOCOL)")            \
    X(VERSION,    "version-known",     "a cluster uses rules of the table that all members have known, and no node goes on by others than it knows (PROTOCOL)") \
    X(USED,       "version-used",      "once healed, rules of the table that all members know are used (PROTOCOL)") \
    X(ASSERT,     "assert",            "no assertion fails")
/* clang-format on */

#define RAFT_INVARIANT_ENUM(name, text, what) RAFT_INVARIANT_##name,
enum raft_invariant { RAFT_INVARIANT_NONE, RAFT_INVARIANT_MAP(RAFT_INVARIANT_ENUM) RAFT_INVARIANT_COUNT };
#undef RAFT_INVARIANT_ENUM

/* "election-safety", … and the sentence. */
extern const struct named raft_invariants[];

#define RAFT_REFEREE_IDS 64

/* What kind of run it is. */
struct raft_referee_options {
    bool is_within_bound; /* clock rates differ by less than the bound, all the time */
    bool has_forgeries;   /* obituaries of living nodes with a valid mac: leases are not compared then */
    /*
     * No fault, and no leader is asked to go (no transfer, step-down,
     * take-over, campaign, removal; prefers_priority off): then no leader is
     * ever replaced.
     */
    bool is_calm;
    /* Ends the run; must not return. `what` is borrowed. */
    void (*violate)(void *context, enum raft_invariant invariant, const char *what);
    void *context;
};

/* What was found, for reports. */
struct raft_referee_counts {
    uint64_t elections_won; /* a node became leader */
    uint64_t claims;
    uint64_t committed; /* entries */
    uint64_t checks;    /* facts looked at */
};

struct raft_referee;

/* One per thread, used for many runs; NULL: no memory. _free accepts NULL. */
struct raft_referee *raft_referee_new(void);
void raft_referee_free(struct raft_referee *referee);

/* A run begins. Everything of the run before is forgotten, its memory is used again. */
void raft_referee_begin(struct raft_referee *referee, const struct raft_referee_options *options);

/*
 * Invariants that are not judged from now on, in all runs: a bit set by RAFT_INVARIANT_BIT. For the test that
 * the promises themselves catch what the finer rules would catch first.
 */
#define RAFT_INVARIANT_BIT(invariant) (UINT64_C(1) << (invariant))
void raft_referee_ignore(struct raft_referee *referee, uint64_t ignored);

/* What gavel promises and what clients see, without the rules that ensure it. */
extern const uint64_t raft_invariants_promised;

/* Ends the run, unless this invariant is ignored. */
void raft_referee_violate(struct raft_referee *referee, enum raft_invariant invariant, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));

const struct raft_referee_counts *raft_referee_counts(const struct raft_referee *referee);

/* A node is up, after raft_init() returned OK. `raft` is read until raft_referee_ended(). */
void raft_referee_started(struct raft_referee *referee, gavel_ns at, const struct raft *raft,
                          const struct raft_restore *restore);

/* The process is gone (crash, kill, disk failed), and its work with it. */
void raft_referee_ended(struct raft_referee *referee, gavel_ns at, raft_id id);

/* Around each raft_step(). */
void raft_referee_before(struct raft_referee *referee, gavel_ns at, raft_id id);
void raft_referee_after(struct raft_referee *referee, gavel_ns at, raft_id id, const struct raft_event *event,
                        enum gavel_status status, const struct raft_actions *actions);

/*
 * A transaction is durable: synced, or found there after a crash although that
 * was never reported. In the order of seq. `entries` are those it appended
 * (first … last), `snapshot` what it brought; both borrowed. Call it before
 * PERSISTED is fed and before messages that waited for it leave.
 */
void raft_referee_synced(struct raft_referee *referee, gavel_ns at, raft_id id,
                         const struct raft_persist *persist, const struct raft_entry *entries,
                         const struct raft_snapshot *snapshot);

/* A message leaves its node (also one that is then lost). Not for messages of guards. */
void raft_referee_sent(struct raft_referee *referee, gavel_ns at, raft_id id,
                       const struct raft_message *message);

/* A guard signed an obituary; not called for forgeries. */
void raft_referee_signed(struct raft_referee *referee, gavel_ns at, raft_id id, uint64_t incarnation);

/*
 * The work of a node has really ended, by itself or by the watchdog; it began with the CLAIM among the
 * actions of a step. Call it before WORK_STOPPED is fed. Harmless if there is none.
 */
void raft_referee_work_ended(struct raft_referee *referee, gavel_ns at, raft_id id);

/* The model resource was written to with this token, and accepted it or not. `id` is the writer. */
void raft_referee_acted(struct raft_referee *referee, gavel_ns at, raft_id id, raft_term term,
                        uint64_t lease_epoch, bool is_accepted);

/*
 * The state machine of a node has applied an entry; called for each entry of an
 * APPLY in turn. `digest` is that of its table afterwards.
 */
void raft_referee_applied(struct raft_referee *referee, gavel_ns at, raft_id id, raft_index index,
                          const struct raft_entry *entry, uint64_t digest);

/* The state machine of a node was replaced by a snapshot, or restored from one at the start. */
void raft_referee_restored(struct raft_referee *referee, gavel_ns at, raft_id id, raft_index index,
                           uint64_t digest);

/* A client was told that its proposal, now applied at `index`, is done. */
void raft_referee_acknowledged(struct raft_referee *referee, gavel_ns at, raft_index index);

/*
 * The liveness phase begins: these nodes, a majority of the voters of every
 * configuration that can still matter, run (or start within `start_within`),
 * their links take at most `delay` one way and lose nothing, their disks write
 * within `write`. Nothing else reaches them, except messages that are under
 * way.
 */
struct raft_referee_healed {
    const raft_id *ids;
    size_t count;
    gavel_ns start_within;
    gavel_ns delay;
    gavel_ns write;
    const struct raft_settings *settings; /* the longest of each time */
    /* time for the answers to a round, before its lease lapses: the least that any node has as leader */
    gavel_ns room;
    /* NULL, or for each of them the bit set of ids that hear it: a permanent partial partition */
    const uint64_t *heard;
    uint64_t far;       /* bit set of the ids that are too far away to count on … */
    gavel_ns far_delay; /* … one way */
};
void raft_referee_healed(struct raft_referee *referee, gavel_ns at, const struct raft_referee_healed *healed);

/*
 * By when, in real time, one of them must be working (later if a leader removes
 * itself meanwhile); and how long the phase must last for raft_referee_over()
 * to expect peace. Run at least until the latter. NEVER before
 * raft_referee_healed().
 */
gavel_ns raft_referee_leader_by(const struct raft_referee *referee);
gavel_ns raft_referee_peace_by(const struct raft_referee *referee);

/* Call it about every millisecond of the liveness phase; harmless before. */
void raft_referee_probe(struct raft_referee *referee, gavel_ns at);

/* The run ends without a violation so far: the last checks. No proposal should be made in the last
 * 100 ms or so before. */
void raft_referee_over(struct raft_referee *referee, gavel_ns at);

#endif
