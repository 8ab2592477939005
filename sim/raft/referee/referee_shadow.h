/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the referee remembers: a shadow of each node, and the history of the
 * log that all of them share. Only for the files of the referee.
 */
#ifndef SIM_RAFT_REFEREE_REFEREE_SHADOW_H
#define SIM_RAFT_REFEREE_REFEREE_SHADOW_H

#include "base/assert.h"
#include "sim/common/memory.h"
#include "sim/raft/referee/referee.h"

/* The terms of a log, without the entries: log matching makes the rest of an entry follow from its term. */
struct terms {
    raft_index base; /* what is before is in a snapshot */
    raft_term base_term;
    raft_term *items;
    size_t count;
    size_t capacity;
};

static inline raft_index terms_last(const struct terms *terms) { return terms->base + terms->count; }

/* 0 if the index is beyond the end or before the base. */
static inline raft_term terms_at(const struct terms *terms, raft_index index)
{
    if (index == terms->base)
        return terms->base_term;
    return index > terms->base && index <= terms_last(terms) ? terms->items[index - terms->base - 1] : 0;
}

void terms_restart(struct terms *terms, raft_index base, raft_term base_term);
void terms_compact(struct terms *terms, raft_index base, raft_term base_term);
void terms_truncate(struct terms *terms, raft_index index);
void terms_append(struct terms *terms, raft_term term);
void terms_copy(struct terms *terms, const struct terms *from);

/* A node just before a step, as far as a check compares. */
struct view {
    raft_term term;
    raft_id vote;
    struct raft_promise promise;
    gavel_ns promise_until;
    gavel_ns election_at;
    gavel_ns heard_at;
    gavel_ns wake_at;
    gavel_ns lease_until;
    enum raft_role role;
    enum raft_work work;
    raft_id leader;
    raft_term seen_term;
    raft_index commit;
    raft_index last;
    raft_term last_term;
    uint64_t round;
    uint64_t lead_round;
    uint64_t dropped_votes;
    bool is_writing; /* term, vote or promise are on their way to disk */
    unsigned failures;
    bool is_failed;
    bool has_begun_transfer;
};

/*
 * A promise as the referee understood it, from the replies; `until` is on the
 * clock of the node that made it.
 */
struct promised {
    struct raft_promise promise; /* leader 0: none */
    gavel_ns until;
};

struct durable_vote {
    raft_term term;
    raft_id vote;
};

/* The newest round of a leader that a follower has answered, in one term and lease epoch. */
struct acked {
    uint64_t round;
    gavel_ns promise;
};

struct token {
    raft_term term;
    uint64_t lease_epoch;
};

static inline bool token_is_above(struct token a, struct token b)
{
    return a.term != b.term ? a.term > b.term : a.lease_epoch > b.lease_epoch;
}

/* Terms and promises remembered per node; far more than pass while a message can be under way. */
#define VOTES_KEPT 64
#define PROMISES_KEPT 128
/* Configurations in one log; those before the snapshot are not needed. */
#define CONFIGS_KEPT 256

struct shadow {
    raft_id id;
    bool is_known;           /* has ever run */
    const struct raft *raft; /* NULL while it is down */
    uint64_t incarnation;
    uint64_t dead_incarnation; /* the newest that its guard signed an obituary of */
    struct view before;
    raft_index applied;
    struct raft_config config; /* as of the last step, and its index in the log */
    raft_index config_index;
    raft_index in_log[CONFIGS_KEPT]; /* indexes of the configurations in its log */
    unsigned in_log_count;
    struct terms memory;      /* the log according to the PERSIST actions */
    struct raft_state handed; /* the state according to the PERSIST actions */
    struct promised promised;

    /* the disk */
    struct raft_state disk;
    struct terms disk_log;
    uint64_t disk_seq;
    struct durable_vote votes[VOTES_KEPT];       /* by term, modulo */
    struct raft_promise promises[PROMISES_KEPT]; /* the newest that became durable; a ring */
    unsigned promise_count;

    /* as a leader */
    struct acked acked[RAFT_REFEREE_IDS];
    gavel_ns asked_until;  /* what is_bound_until() asks for */
    struct token acked_of; /* what they count for */
    uint64_t last_round;
    unsigned idle_turns; /* as of the last step */
    bool is_working;     /* from CLAIM until the work has ended */
    struct token claim;  /* the newest */
    gavel_ns claimed_at;
    struct token released; /* the highest that it gave up */
    bool is_frozen;        /* a FORCE certificate went out: nothing above is committed in that term */
    raft_term frozen_term;
    raft_index frozen_commit;
};

/* One entry that was ever in a log at some index; those of an index are chained. */
struct variant {
    raft_term term;
    raft_term previous_term;
    uint64_t hash;
    uint32_t next; /* 0: none; otherwise 1 + the place in the pool */
};

/* What is known about an index. */
struct log_slot {
    uint32_t variants;      /* 0: none */
    raft_term term;         /* once committed */
    raft_term committed_by; /* the term of the leader that committed it */
    bool has_digest;
    uint64_t digest; /* of the table after it */
};

struct leadership {
    raft_term term;
    raft_id id;
    uint64_t incarnation;
};
#define LEADERS_KEPT 1024

struct claimed {
    struct token token;
    raft_id id;
    uint64_t incarnation;
};
#define CLAIMS_KEPT 1024

struct raft_referee {
    /* kept from run to run, for their memory */
    struct shadow shadows[RAFT_REFEREE_IDS];
    struct log_slot *slots; /* by index; the first is not used */
    size_t slot_capacity;
    struct variant *pool;
    size_t pool_capacity;
    uint64_t ignored; /* bit set of invariants */

    /* from here on emptied when a run begins */
    struct raft_referee_options options;
    struct raft_referee_counts counts;
    gavel_ns now;
    size_t slot_count;
    size_t pool_count;
    raft_index commit;        /* the highest that any node committed */
    raft_index checked_index; /* what has_on_disk() asks for */
    raft_term checked_term;
    struct leadership leaders[LEADERS_KEPT]; /* by term, modulo */
    struct claimed claims[CLAIMS_KEPT];      /* a ring */
    struct token highest_claim;
    struct token highest_act; /* that the resource took */

    /* calm runs: from this claim on */
    bool is_claimed;
    gavel_ns calm_from;
    raft_term calm_term;

    /* the liveness phase */
    bool is_healed;
    bool is_in_healed[RAFT_REFEREE_IDS];
    struct raft_settings settings;
    gavel_ns bound; /* from an instant without a leader to one with */
    gavel_ns leader_by;
    gavel_ns peace_by;
    raft_index commit_at_heal;
    raft_id peace_leader; /* 0 before leader_by */
    raft_term peace_term;
    bool prefers_in_vain;    /* a preferred node may be unable to take over, and each attempt costs terms */
    gavel_ns handed_over_at; /* when work last stopped for a transfer; 0: never */
    bool has_shape;          /* a partial partition lasts … */
    uint64_t heard[RAFT_REFEREE_IDS];
    bool is_far[RAFT_REFEREE_IDS];
    gavel_ns constrained_at;               /* … in which no node could be elected at this instant */
    gavel_ns idle_from;                    /* no node works since then; NEVER: one does */
    gavel_ns hand_over;                    /* how long a hand-over may take */
    unsigned hand_overs[RAFT_REFEREE_IDS]; /* for priority, since leader_by */
};

static inline struct shadow *shadow_of(struct raft_referee *referee, raft_id id)
{
    ASSERT(id > 0);
    ASSERT(id < RAFT_REFEREE_IDS);
    return &referee->shadows[id];
}

typedef unsigned long long ull;

/* referee_log.c */
void referee_log_restored(struct raft_referee *referee, struct shadow *shadow,
                          const struct raft_restore *restore);
void referee_log_changed(struct raft_referee *referee, struct shadow *shadow,
                         const struct raft_persist *persist);
void referee_commit_moved(struct raft_referee *referee, struct shadow *shadow);
void referee_log_elected(struct raft_referee *referee, const struct shadow *shadow);

/* referee_disk.c: whether this node voted for that candidate in that term, by its disk. */
bool referee_has_voted(const struct shadow *shadow, raft_term term, raft_id candidate);
void referee_disk_started(struct raft_referee *referee, struct shadow *shadow,
                          const struct raft_restore *restore);

/* referee_vote.c */
void referee_check_votes(struct raft_referee *referee, struct shadow *shadow, const struct raft_event *event,
                         enum gavel_status status, const struct raft_actions *actions);
void referee_check_elected(struct raft_referee *referee, struct shadow *shadow);

/* referee_promise.c: the gate, and what a follower promises. */
bool referee_is_promised(const struct shadow *shadow, gavel_ns now);
bool referee_gate_opens(const struct raft_referee *referee, const struct shadow *shadow, raft_id candidate,
                        uint64_t incarnation, raft_term last_term);
void referee_check_promise(struct raft_referee *referee, struct shadow *shadow,
                           const struct raft_event *event, const struct raft_actions *actions);
void referee_promise_started(struct raft_referee *referee, struct shadow *shadow);

/* referee_lease.c: whether leases must be disjoint in this run; and the checks. */
bool referee_are_leases_judged(const struct raft_referee *referee);
void referee_check_lease(struct raft_referee *referee, struct shadow *shadow, const struct raft_event *event,
                         const struct raft_actions *actions);
void referee_certificate_sent(struct raft_referee *referee, struct shadow *shadow,
                              const struct raft_certificate *certificate);
void referee_check_obituaries(struct raft_referee *referee, const struct shadow *shadow);

/*
 * referee_config.c: the same as raft_config_decides(), but independent, since
 * that one may be wrong. And the checks.
 */
bool referee_decides(const struct raft_config *config, bool (*has)(const void *context, raft_id id),
                     const void *context);
void referee_config_started(struct raft_referee *referee, struct shadow *shadow,
                            const struct raft_restore *restore);
void referee_check_config(struct raft_referee *referee, struct shadow *shadow,
                          const struct raft_persist *persist);

/*
 * referee_reach.c: whether two nodes hear each other; and whether no node can
 * be elected, given who hears whom and the logs.
 */
bool referee_are_linked(const struct raft_referee *referee, raft_id a, raft_id b);
bool referee_is_constrained(const struct raft_referee *referee);

/* referee_heal.c */
void referee_check_calm(struct raft_referee *referee, const struct shadow *shadow);
void referee_check_idle(struct raft_referee *referee, struct shadow *shadow);
void referee_work_stops(struct raft_referee *referee, const struct shadow *shadow, enum raft_stop reason);
void referee_calm_claimed(struct raft_referee *referee, const struct shadow *shadow);

#endif
