/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What kind of run of the testbed a seed stands for: a cluster as in sim/raft,
 * programs with sessions, the groups they take part in, and what goes wrong
 * between them. Kinds of faults are those of the cluster and those of clients,
 * in one set.
 */
#ifndef SIM_SESSION_PROFILE_H
#define SIM_SESSION_PROFILE_H

#include "core/table/table.h"
#include "sim/raft/profile.h"

#define PROGRAMS_MAX 8
#define GROUPS_MAX 4

/* clang-format off */
#define CLIENT_FAULT_MAP(X)                                                                                     \
    X(FREEZE,      "client-freeze", "a program is stopped, also for several times to live; or only its client goes on") \
    X(KILL,        "client-kill",   "a program dies; it comes back with another session, or not")              \
    X(BREAK,       "break",         "a connection of a program breaks, with all that is under way on it")     \
    X(MUTE,        "mute",          "a connection of a program carries nothing for a while")                   \
    X(SLOW,        "client-slow",   "frames of programs take up to a time to live")                            \
    X(CLIENT_RATE, "client-rate",   "clocks of programs run at different rates, within the bound")             \
    X(LOST,        "forward-loss",   "forwarded requests vanish")                                              \
    X(TWICE,       "forward-twice",  "forwarded requests arrive twice, the second time late, openings also when their session has expired")                \
    X(LATE,        "forward-late",   "forwarded requests take long, and overtake each other")                  \
    X(UNSENT,      "forward-unsent", "requests cannot be forwarded")                                           \
    X(NUMB,        "numb",          "the thread of a node that hears clients does not run for a while")        \
    X(RESIGN,      "resign",        "leaders resign, and stay or go")                                         \
    X(WISH,        "wish",          "somebody wishes that another leads; not every leader obeys")             \
    X(CHANGE,      "change",        "candidates become ineligible and eligible, and change their priority")   \
    X(CLOSE,       "close",         "programs close their sessions, and open others")                         \
    X(SESSIONLESS, "sessionless",   "writes without a session, as of the API")                               \
    X(REMOVAL,     "removal",       "groups that nobody uses are removed, by time or by an operator, and made anew")
/* clang-format on */

#define CLIENT_FAULT_ENUM(name, text, what) CLIENT_FAULT_##name,
enum client_fault { CLIENT_FAULT_MAP(CLIENT_FAULT_ENUM) CLIENT_FAULT_COUNT };
#undef CLIENT_FAULT_ENUM

/* In the same set as those of the cluster, after them; the last ones of the cluster do not happen here. */
#define CLIENT_FAULTS_FROM FAULT_DISTANT
#define TESTBED_FAULTS (CLIENT_FAULTS_FROM + CLIENT_FAULT_COUNT)
#define CLIENT_FAULT_BIT(fault) FAULT_BIT(CLIENT_FAULTS_FROM + (fault))

enum role { ROLE_NONE, ROLE_CAMPAIGN, ROLE_LEASE };

struct group_profile {
    Gavel__Policy policy;
    uint32_t min_mandate_ms;
    bool preempts;
    bool has_notes; /* those without may be removed by time */
};

struct program_profile {
    uint32_t ttl_ms;
    unsigned machine; /* the slot of the node that sees its death; SLOTS_MAX: none */
    enum role roles[GROUPS_MAX];
    uint32_t lease_ms;
    gavel_ns act_every;
};

struct session_profile {
    struct profile cluster;
    uint64_t faults; /* of both kinds */
    bool loses_host; /* the leader of the cluster dies with a program, and nothing else happens */
    bool is_mixed;   /* some nodes lead without marks, as if not all voters knew them */
    bool is_quiet;   /* only short faults of the cluster: then no program is demoted */
    unsigned programs;
    unsigned groups;
    struct group_profile group[GROUPS_MAX];
    struct program_profile program[PROGRAMS_MAX];
    uint32_t ttl_max_ms; /* of all, leases too */
    gavel_ns fault_every;
    gavel_ns act_late;   /* how late a program stops after a wish */
    gavel_ns retention;  /* of groups that nobody uses; 0: they stay */
    uint32_t close_part; /* groups that a session that has ended leaves by one operation; 0: all of them */
    unsigned loss_per_mille;
    unsigned late_per_mille;
    unsigned twice_per_mille;
};

/* 0: drawn as well. */
void session_profile_draw(struct session_profile *profile, uint64_t seed, unsigned nodes, unsigned programs,
                          gavel_ns duration, uint64_t without);

/* Of both kinds. */
const struct named *testbed_fault_row(unsigned fault);

#endif
