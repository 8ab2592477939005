/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What kind of run of the cluster a seed stands for: how many nodes with which
 * settings, on which network and disks, and which faults happen how often.
 * Everything is drawn before the run begins, and each kind of fault has a
 * stream of random numbers of its own, so that one of them can be switched off
 * (--without, --minimize) and the others stay what they were.
 */
#ifndef SIM_RAFT_PROFILE_H
#define SIM_RAFT_PROFILE_H

#include "base/prng.h"
#include "core/raft/raft.h"
#include "sim/common/profile.h"

#define NODES_MAX 9
/* Nodes that join later, or replace a damaged one, have ids of their own: id = slot + 1. */
#define SLOTS_MAX 16

/* clang-format off */
#define FAULT_MAP(X)                                                                                          \
    X(LOSS,        "loss",        "messages vanish")                                                          \
    X(DUPLICATE,   "duplicate",   "messages arrive twice, the second time late")                              \
    X(REORDER,     "reorder",     "messages of one link overtake each other")                                 \
    X(DELAY,       "delay",       "some messages take up to seconds, past restarts and healing")              \
    X(FAR,         "far",         "links are slow: up to 10 ms and more each way")                            \
    X(PARTITION,   "partition",   "the nodes fall apart into two halves")                                     \
    X(ONE_WAY,     "one-way",     "a node is heard but does not hear, or the other way round")                \
    X(PARTIAL,     "partial",     "some pairs of nodes cannot talk; in the end a star, a chain, a ring for good") \
    X(BRIDGE,      "bridge",      "two halves that only one node connects")                                   \
    X(DEAF,        "deaf",        "messages of one kind do not pass a link")                                  \
    X(RATE,        "rate",        "clocks run at different rates, within the bound")                          \
    X(BEYOND,      "beyond",      "clock rates break the bound; then leases may overlap, and nothing else may break") \
    X(PAUSE,       "pause",       "a node is frozen for a while; its inbox piles up")                         \
    X(SUSPEND,     "suspend",     "machines sleep, disks too, and what is sent to them is lost")              \
    X(STALL,       "stall",       "an event loop is late")                                                    \
    X(SLOW_STOP,   "slow-stop",   "work takes longer to stop than it may, until the watchdog ends it")        \
    X(CRASH,       "crash",       "a node dies and comes back, or not")                                       \
    X(BOUNDARY,    "boundary",    "a node dies between two actions of one step")                              \
    X(AMBUSH,      "ambush",      "trouble strikes at the worst moment: a vote given, a claim made, a hand-over begun") \
    X(COUP,        "coup",        "the leader is cut off, the others restart at once, and somebody is told to stand") \
    X(BLACKOUT,    "blackout",    "many nodes die at once")                                                   \
    X(SURVIVE,     "survive",     "of unsynced writes a prefix survives a crash; otherwise none does")        \
    X(SLOW_DISK,   "slow-disk",   "syncing takes up to seconds")                                              \
    X(BAD_DISK,    "bad-disk",    "a write fails, or the disk is full: the node stops")                       \
    X(HUNG_DISK,   "hung-disk",   "a disk answers nothing for seconds, or never again: no error either")      \
    X(FLIP,        "flip",        "a record on disk is damaged: the node is replaced by a new one")           \
    X(OBIT_LOST,   "obit-lost",   "obituaries vanish, or the guard dies too")                                 \
    X(OBIT_LATE,   "obit-late",   "obituaries arrive after the restart")                                      \
    X(OBIT_REPLAY, "obit-replay", "old obituaries arrive again")                                              \
    X(OBIT_FALSE,  "obit-false",  "obituaries of the living with a wrong mac")                                \
    X(FORGED,      "forged",      "obituaries of the living with a good mac; then leases may overlap")        \
    X(HINT,        "hint",        "closed connections are told, true or not")                                 \
    X(TRANSFER,    "transfer",    "leadership is transferred, with targets dying and links cut meanwhile")    \
    X(FORCE,       "force",       "forced transfers and take-overs")                                          \
    X(STEP_DOWN,   "step-down",   "leaders are told to step down")                                            \
    X(CAMPAIGN,    "campaign",    "nodes are told to stand for election")                                     \
    X(MEMBERS,     "members",     "nodes are added, removed, replaced, promoted")                             \
    X(WITNESS,     "witness",     "one of the voters is a witness")                                           \
    X(PRIORITY,    "priority",    "nodes have priorities; leaders may hand over to a preferred one")          \
    X(COMPACT,     "compact",     "snapshots are taken early and often")                                      \
    X(FLOOD,       "flood",       "bursts of proposals, some of them large")                                  \
    X(STAGGER,     "stagger",     "nodes do not all start together")                                          \
    X(SETTINGS,    "settings",    "settings other than the defaults")                                         \
    X(MIXED,       "mixed",       "nodes differ in their settings, but for the drift bound")                  \
    X(STRANGER,    "stranger",    "messages of another cluster, or of another generation of this one")        \
    X(TERM_JUMP,   "term-jump",   "a member says a term that no number of elections can have led to")         \
    X(LOST,        "lost",        "disks are lost, and an empty, another or an older data directory speaks for the damaged node; majorities are founded again") \
    X(DISTANT,     "distant",     "some nodes are far from all others: round trips of 50 to 500 ms")          \
    X(DISKS,       "disks",       "writes take 50 to 1000 ms, on some nodes or on all of them")                \
    X(ORDERS,      "orders",      "operators order by name: orders wait and time out, and members have records")
/* clang-format on */

#define FAULT_ENUM(name, text, what) FAULT_##name,
enum fault { FAULT_MAP(FAULT_ENUM) FAULT_COUNT };
#undef FAULT_ENUM

_Static_assert(FAULT_COUNT <= 64, "each fault has a bit of a set");

struct profile {
    enum mood mood;
    uint64_t faults; /* bit set of the kinds that happen */
    unsigned nodes;  /* that the cluster starts with */
    bool is_bound;   /* its members have data directories, whether some are lost or not */
    struct raft_settings settings[SLOTS_MAX];
    struct raft_settings worst; /* the longest of each time */
    gavel_ns shortest;          /* promise */
    gavel_ns room;              /* for the answers to a round: the least that any node has as leader */
    struct raft_config first;   /* the members of the beginning */
    gavel_ns heal_at;           /* the liveness phase begins */
    gavel_ns end_at;            /* at the earliest */
    gavel_ns fault_every;       /* mean time between two faults of one kind */
    gavel_ns longest;           /* that a fault may last; NEVER: as long as it is drawn */
    unsigned loss_per_mille;
    unsigned delay_per_mille;
    unsigned duplicate_per_mille;
    unsigned survive_per_mille;
    gavel_ns link_min; /* base delay of a link */
    gavel_ns link_max;
    gavel_ns jitter; /* of one message */
    gavel_ns timer_late;
    gavel_ns write_min;
    gavel_ns write_max;
    gavel_ns distance[SLOTS_MAX]; /* of a node from all others, one way, on top of the link's own delay */
    gavel_ns disk[SLOTS_MAX];     /* how much longer its writes take */
    gavel_ns propose_every;
    gavel_ns act_every;
    unsigned compact_after; /* entries; 0 never */
};

/* nodes 0: drawn as well. `without` is a bit set of faults that do not happen although they were drawn. */
void cluster_profile_draw(struct profile *profile, struct prng *prng, unsigned nodes, gavel_ns duration,
                          uint64_t without);

/* Sets `room` by the settings; call it again after they have changed. */
void cluster_profile_find_room(struct profile *profile);

/* Default settings, a quiet network with delays from `low` to `high`, no faults: for measurements. */
void cluster_profile_plain(struct profile *profile, unsigned nodes, gavel_ns low, gavel_ns high);

const struct named *cluster_fault_row(unsigned fault);

#endif
