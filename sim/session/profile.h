/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What kind of run of the hall a seed stands for: a quorum as in sim/raft,
 * programs with sessions, the groups they take part in, and what goes wrong
 * between them. Kinds of faults are those of the quorum and those of clients,
 * in one set.
 */
#ifndef SIM_SESSION_PROFILE_H
#define SIM_SESSION_PROFILE_H

#include "core/table/table.h"
#include "sim/raft/profile.h"

#define PROGRAMS_MAX 8
#define HALL_GROUPS_MAX 4

/* clang-format off */
#define HALL_FAULT_MAP(X)                                                                                     \
    X(FREEZE,      "client-freeze", "a program is stopped, also for several times to live")                  \
    X(KILL,        "client-kill",   "a program dies; it comes back with another session, or not")              \
    X(BREAK,       "break",         "a connection of a program breaks, with all that is under way on it")     \
    X(MUTE,        "mute",          "a connection of a program carries nothing for a while")                   \
    X(SLOW,        "client-slow",   "frames of programs take up to a time to live")                            \
    X(CLIENT_RATE, "client-rate",   "clocks of programs run at different rates, within the bound")             \
    X(LOST,        "errand-loss",   "errands between nodes vanish")                                           \
    X(TWICE,       "errand-twice",  "errands between nodes arrive twice, the second time late")               \
    X(LATE,        "errand-late",   "errands between nodes take long, and overtake each other")               \
    X(UNSENT,      "errand-unsent", "errands cannot be sent")                                                 \
    X(NUMB,        "numb",          "the thread of a node that hears clients does not run for a while")        \
    X(RESIGN,      "resign",        "leaders resign, and stay or go")                                         \
    X(WISH,        "wish",          "somebody wishes that another leads; not every leader obeys")             \
    X(CHANGE,      "change",        "candidates become ineligible and eligible, and change their priority")   \
    X(CLOSE,       "close",         "programs close their sessions, and open others")                         \
    X(VISIT,       "visit",         "writes without a session, as of the API")
/* clang-format on */

#define HALL_FAULT_ENUM(name, text, what) HALL_FAULT_##name,
enum hall_fault { HALL_FAULT_MAP(HALL_FAULT_ENUM) HALL_FAULT_COUNT };
#undef HALL_FAULT_ENUM

/* In the same set as those of the quorum, behind them; the last ones of the quorum do not happen here. */
#define HALL_FAULTS_FROM FAULT_DISTANT
#define HALL_FAULTS_ALL (HALL_FAULTS_FROM + HALL_FAULT_COUNT)
#define HALL_FAULT_BIT(fault) FAULT_BIT(HALL_FAULTS_FROM + (fault))

enum hall_role { ROLE_NONE, ROLE_CAMPAIGN, ROLE_LEASE };

struct hall_group_profile {
    Gavel__Policy policy;
    uint32_t min_mandate_ms;
    bool preempts;
};

struct hall_program_profile {
    uint32_t ttl_ms;
    unsigned machine; /* the slot of the node that sees its death; SLOTS_MAX: none */
    enum hall_role roles[HALL_GROUPS_MAX];
    uint32_t lease_ms;
    gavel_ns act_every;
};

struct hall_profile {
    struct profile quorum;
    uint64_t faults; /* of both kinds */
    bool is_quiet;   /* only short faults of the quorum: then nobody is demoted */
    unsigned programs;
    unsigned groups;
    struct hall_group_profile group[HALL_GROUPS_MAX];
    struct hall_program_profile program[PROGRAMS_MAX];
    uint32_t ttl_max_ms; /* of all, leases too */
    gavel_ns fault_every;
    gavel_ns act_late; /* how late a program stops after a wish */
    unsigned loss_per_mille;
    unsigned late_per_mille;
    unsigned twice_per_mille;
};

/* 0: drawn as well. */
void hall_profile_draw(struct hall_profile *profile, uint64_t seed, unsigned nodes, unsigned programs,
                       gavel_ns duration, uint64_t without);

/* Of both kinds. */
const struct simulator_fault *hall_fault_row(unsigned fault);

#endif
