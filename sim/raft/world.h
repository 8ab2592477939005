/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The simulated world of a cluster: real time, a heap of future events, the
 * nodes with their disks and clocks, the network between them, and the fenced
 * resource that leaders work on. All randomness comes from streams that one
 * seed starts, so that a run can be repeated to the byte.
 */
#ifndef SIM_RAFT_WORLD_H
#define SIM_RAFT_WORLD_H

#include "sim/common/heap.h"
#include "sim/raft/host.h"
#include "sim/raft/network.h"
#include "sim/raft/profile.h"
#include "sim/raft/referee/referee.h"

#include <setjmp.h>

enum event_kind {
    EVENT_START,    /* a node begins */
    EVENT_TIMER,    /* of a node; number is the generation of the timer */
    EVENT_ARRIVE,   /* a message is at its node */
    EVENT_SYNC,     /* a disk has finished what it wrote; number is which batch */
    EVENT_TOLD,     /* its node is told; number is the seq */
    EVENT_FAILED,   /* or told that the disk failed */
    EVENT_BUILT,    /* a snapshot was built beside the node */
    EVENT_EXIT,     /* a node whose disk failed ends */
    EVENT_STOPPED,  /* work has stopped; number is which work */
    EVENT_WATCHDOG, /* checks whether work runs past its deadline; number is which work */
    EVENT_ACT,      /* work does something to the resource; number is which work */
    EVENT_WRITE,    /* which reaches the resource; nonce is the token */
    EVENT_RESUME,   /* a frozen node runs again; number is which freeze */
    EVENT_HINT,     /* a node is told that a connection closed; number is the peer */
    EVENT_OBITUARY, /* the guard of a dead node speaks; number is the incarnation */
    EVENT_STRIKE,   /* a crash that was planned; number is for how long, 0: drawn */
    EVENT_CUT,      /* a cut that was planned; number is for how long */
    EVENT_FREEZE,   /* a pause that was planned; number is for how long */
    EVENT_CAMPAIGN, /* somebody is told to stand for election, as was planned */
    EVENT_INSIST,   /* a transfer is asked for again; number is how many more times */
    EVENT_PROPOSE,  /* a client wants something */
    EVENT_FAULT,    /* something goes wrong; number is its kind */
    EVENT_REPLACE,  /* people replace damaged nodes */
    EVENT_HEAL,     /* the liveness phase begins */
    EVENT_DISTANT,  /* in which an operator wants a node to lead that is too far away */
    EVENT_PROBE,    /* the referee looks for a leader */
    EVENT_TICK,     /* of a node */
    EVENT_SAID,     /* a node hears whether another works; nonce is what was said */
    EVENT_GHOST,    /* the timer of a ghost; number is which */
    EVENT_MOUNT,    /* the directory of a node that was founded again is back */
    EVENT_RETURN,   /* a node that was removed is added again; number is how often that was tried */
    EVENT_UNBOUND,  /* a founder is lost that not all have bound; number is the set of slots that have not */
    EVENT_SERVICE,  /* of the service on the nodes; nonce is its own business */
};

/* Independent streams, so that one fault switched off does not shift all the others. */
enum stream {
    STREAM_PROFILE,
    STREAM_NETWORK,
    STREAM_DISK,
    STREAM_NODE,
    STREAM_CRASH,
    STREAM_GUARD,
    STREAM_WORK,
    STREAM_CLIENT,
    STREAM_MEMBERS,
    STREAM_HEAL,
    STREAM_FAULTS,                              /* and one for each kind of fault */
    STREAM_BUILD = STREAM_FAULTS + FAULT_COUNT, /* how long snapshots take */
    STREAM_COUNT
};

#define OBITUARIES_KEPT 32

/* A change of members that a leader accepted. */
struct cluster_target {
    gavel_ns at;
    struct raft_config config;
};
#define TARGETS_KEPT 4

struct trace;
struct cluster;

/*
 * Callbacks for a service that runs on the nodes: what it learns as it happens,
 * or does itself. Each may be NULL.
 */
struct cluster_watch {
    void (*claimed)(void *context, struct cluster *cluster, struct host *host);
    /* It must stop its work. */
    void (*stopped)(void *context, struct cluster *cluster, struct host *host);
    /* Its process has started, with the table of its disk; and is dead, while the core and the table are
     * still there. */
    void (*started)(void *context, struct cluster *cluster, struct host *host);
    void (*ended)(void *context, struct cluster *cluster, struct host *host);
    /* It has taken a step, and nothing of that is carried out yet. */
    void (*looked)(void *context, struct cluster *cluster, struct host *host);
    /* Its table has applied an entry of data: NODE_APPLIED. */
    void (*applied)(void *context, struct cluster *cluster, struct host *host,
                    const struct node_action *action);
    /* NODE_FORWARD, false if it cannot be sent; and NODE_ANSWER. */
    bool (*forward)(void *context, struct cluster *cluster, struct host *host,
                    const struct node_forwarded *forwarded);
    void (*answer)(void *context, struct cluster *cluster, struct host *host,
                   const struct forwarder_answer *answer);
    /* An event with all that came of it is over, and the node lives. */
    void (*stepped)(void *context, struct cluster *cluster, struct host *host);
    /* A SERVICE event. */
    void (*service)(void *context, struct cluster *cluster, const struct event *event);
    /* The liveness phase begins; the service ends the run then. */
    void (*healed)(void *context, struct cluster *cluster);
    /* An event is over with all its consequences; the place to end the run. */
    void (*after)(void *context, struct cluster *cluster);
    void *context;
};

/*
 * What a run can show. A simulator that never sees one of these proves nothing about it, so runs of many
 * seeds count them.
 */
/* clang-format off */
#define SIGHT_MAP(X)                                                                                          \
    X(LEADERS,      "leaders")                                                                                \
    X(LEAVERS,      "candidates not in their own configuration")                                              \
    X(CARETAKERS,   "caretakers")                                                                             \
    X(LAPSES,       "lapsed leases")                                                                          \
    X(HIGHER_TERMS, "higher terms met")                                                                       \
    X(TRANSFERS,    "transfers")                                                                              \
    X(ABORTS,       "transfers aborted")                                                                      \
    X(FORCED,       "forced hand-overs")                                                                      \
    X(CHANGES,      "members changed")                                                                        \
    X(CHANGE_FAILS, "changes failed")                                                                         \
    X(ROLLBACKS,    "configurations rolled back")                                                             \
    X(TRUNCATIONS,  "truncations")                                                                            \
    X(SNAPSHOTS,    "snapshots installed")                                                                    \
    X(JAMS,         "proposals refused while too much was uncommitted")                                        \
    X(BUILDS,       "snapshots built")                                                                         \
    X(OUTRUN,       "snapshots that came too late")                                                            \
    X(OBITUARIES,   "obituaries taken")                                                                       \
    X(REFUSALS,     "messages refused")                                                                       \
    X(RESTARTS,     "restarts")                                                                               \
    X(SURVIVALS,    "unsynced writes that survived")                                                          \
    X(HUNG_LEADERS, "leaders with a hung disk that handed over")                                              \
    X(DISK_FAILS,   "disks failed")                                                                           \
    X(GHOSTS,       "lost directories that spoke")                                                            \
    X(UNBOUND,      "founders lost before all had bound them")                                                \
    X(OLD_GHOSTS,   "older copies of directories that spoke")                                                 \
    X(STRANGE_GHOSTS, "other directories that spoke")                                                         \
    X(REFOUNDINGS,  "majorities founded again")                                                               \
    X(FORGETFUL,    "directories refused for what they had forgotten")                                        \
    X(REPLACED,     "damaged nodes replaced")                                                                 \
    X(WATCHDOGS,    "works ended by the watchdog")                                                            \
    X(ORDERS,       "orders done")                                                                            \
    X(ORDERS_LOST,  "orders refused or not done")                                                             \
    X(RECONCILED,   "members changed by their records, or by order")                                          \
    X(RAISED,       "newer versions of the table taken into use")                                             \
    X(TOO_OLD,      "nodes that ended because their program was too old")                                     \
    X(REJECTED,     "acts rejected")
/* clang-format on */

#define SIGHT_ENUM(name, text) SIGHT_##name,
enum sight { SIGHT_MAP(SIGHT_ENUM) SIGHT_COUNT };
#undef SIGHT_ENUM
const char *cluster_sight_name(unsigned sight);

struct cluster;
/* What an action of this node shows, if anything. */
void cluster_see_action(struct cluster *cluster, const struct host *host, const struct raft_action *action);

/* What was found, for reports. */
struct cluster_counts {
    uint64_t faults; /* injected: lasting ones, and messages that did not arrive as they should */
    uint64_t messages;
    uint64_t proposals;
    uint64_t acknowledged;
    uint64_t acts;
    uint64_t seen[SIGHT_COUNT];
};

struct cluster {
    gavel_ns now; /* real time; the run begins at 0 */
    struct heap heap;
    struct profile profile;
    struct prng streams[STREAM_COUNT];
    struct host hosts[SLOTS_MAX];
    unsigned used; /* slots that are, or were, in use */
    struct network network;
    struct raft_certificate obituaries[OBITUARIES_KEPT]; /* that guards signed; a ring */
    unsigned obituary_count;
    uint64_t key; /* of all macs */
    struct {
        raft_term term;
        uint64_t lease_epoch;
    } resource;                                  /* the highest token that the resource has seen */
    struct cluster_target targets[TARGETS_KEPT]; /* a ring */
    unsigned target_count;
    struct cluster_operators operators;
    unsigned replaced; /* bit set of damaged slots for which a new node was found */
    gavel_ns quiet_at; /* the end; clients are quiet before this; NEVER in the safety phase */
    gavel_ns rest;     /* for how long, so that all requests can be completed */
    unsigned healed;   /* bit set of slots; 0 in the safety phase */
    struct raft_referee *referee;
    enum raft_invariant broken;
    char what[256];
    bool is_over;
    uint64_t events;
    uint64_t hash;
    struct cluster_counts counts;
    struct node_actions actions;
    uint64_t *unsent; /* requests that the node that takes a step could not send */
    size_t unsent_count;
    size_t unsent_capacity;
    struct cluster_watch watch;
    struct trace *trace; /* NULL: no story is wanted */
    jmp_buf escape;      /* where a violation ends the run */
};

/* Memory for many runs, one after the other. Both are safe on NULL. */
struct cluster *cluster_new(void);
void cluster_free(struct cluster *cluster);

/* Empties the world for a run of this profile, and plans the start of its nodes and clients; no faults. */
void cluster_begin(struct cluster *cluster, const struct profile *profile, uint64_t seed);

/*
 * Takes one event after the other until real time would pass `until`, the run
 * is over or no event is left. False if it is over. A violation is recorded in
 * cluster->broken and cluster->what.
 */
bool cluster_advance(struct cluster *cluster, gavel_ns until);

/* For people to read, and the same at all nodes. */
static inline int64_t cluster_wall_ms(const struct cluster *cluster)
{
    return 1700000000000 + cluster->now / NS_PER_MS;
}

/* Something happens at `at`; fill in what it is about. */
struct event *cluster_push(struct cluster *cluster, gavel_ns at, enum event_kind kind, unsigned slot);

/* Ends the run: jumps to cluster->escape. */
_Noreturn void cluster_violate(struct cluster *cluster, enum raft_invariant invariant, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));

/* The node that leads with the highest term, as it believes; NULL if there is none. */
struct host *cluster_leader(struct cluster *cluster);

/* Usually that one; sometimes any node that believes it leads, drawn from this stream. */
struct host *cluster_some_leader(struct cluster *cluster, unsigned stream);

/* The node that works now, by its own clock; NULL if there is none. */
struct host *cluster_worker(struct cluster *cluster);

static inline gavel_ns cluster_between(struct cluster *cluster, unsigned stream, gavel_ns low, gavel_ns high)
{
    return prng_between(&cluster->streams[stream], low, high);
}

static inline unsigned cluster_below(struct cluster *cluster, unsigned stream, unsigned bound)
{
    return (unsigned)prng_below(&cluster->streams[stream], bound);
}

static inline bool cluster_chance(struct cluster *cluster, unsigned stream, unsigned per_mille)
{
    return prng_chance(&cluster->streams[stream], per_mille);
}

/* In the liveness phase nothing new goes wrong. */
static inline bool cluster_has(const struct cluster *cluster, enum fault fault)
{
    return cluster->healed == 0 && cluster->profile.faults & FAULT_BIT(fault);
}

static inline void cluster_see(struct cluster *cluster, enum sight sight) { cluster->counts.seen[sight]++; }

/* Short much more often than long: evenly by its logarithm. */
static inline gavel_ns cluster_length(struct cluster *cluster, unsigned stream, gavel_ns low, gavel_ns high)
{
    return fault_length(&cluster->streams[stream], low, high);
}

#endif
