/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The configuration of the cluster: who its members are, who votes, and the
 * sets of votes that decide.
 *
 * While a change of voters is under way the configuration is joint (Raft
 * thesis, section 4.3): every decision needs a majority of the old voters AND
 * a majority of the new ones, so that no two disjoint sets can decide.
 */
#ifndef CORE_RAFT_CONFIG_H
#define CORE_RAFT_CONFIG_H

#include "base/time.h"

#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t raft_id;    /* of a node; 0 is nobody */
typedef uint64_t raft_term;  /* 0 before the first election */
typedef uint64_t raft_index; /* of an entry in the log; the first is 1 */

/* Voters old and new, learners, all together. */
#define RAFT_MEMBERS_MAX 16
/* Of one set of voters. */
#define RAFT_VOTERS_MAX 9

struct raft_member {
    raft_id id;
    uint8_t priority; /* the higher, the sooner it stands for election; shapes timers, never votes */
    bool is_voter;    /* in the configuration that is now, or of a joint one the new half */
    bool was_voter;   /* in the old half of a joint configuration; otherwise false */
    bool is_witness;  /* votes and keeps the log, but never leads for work */
    bool is_refused;  /* its directory has forgotten something: nothing it says counts until it is replaced */
    /* The random number of the data directory that this member is, for good (directory.c); 0: not known
     * yet */
    uint64_t directory;
};

/* Members are in ascending order of id, each once. A member that is no voter at all is a learner. */
struct raft_config {
    bool is_joint;
    bool binds; /* members have directories: all nodes are of 0.7.0 or later */
    /* A random number that the first leader which binds members gives the cluster, and that every later
     * configuration repeats (directory.c); 0: not given yet */
    uint64_t founding;
    uint64_t generation; /* in which it was given: that of an earlier one says nothing; 0 without founding */
    uint8_t count;
    struct raft_member members[RAFT_MEMBERS_MAX];
};

/* ERR_INVALID and a reason for a configuration that cannot be: order, doubles, no voter, only witnesses, too
 * many. */
GAVEL_CHECKED enum gavel_status raft_config_check(const struct raft_config *config, const char **ret_reason);

/* NULL if it is not a member. */
const struct raft_member *raft_config_find(const struct raft_config *config, raft_id id);

/* Votes in either half. */
bool raft_config_votes(const struct raft_config *config, raft_id id);

/* The same voters, old and new, whatever else differs. */
bool raft_config_same_voters(const struct raft_config *a, const struct raft_config *b);

/* From a plain configuration to a plain target: the joint one between them. Voters that only the old one has
 * stay in it until the new one is in force; its learners go at once. ERR_INVALID if both together are too
 * many, if the joint one fails raft_config_check(), and for a voter that shall be a learner: remove it first.
 */
GAVEL_CHECKED enum gavel_status raft_config_join(const struct raft_config *from,
                                                 const struct raft_config *target,
                                                 struct raft_config *ret_joint);

/* The new half of a joint configuration, plain; members that are in neither half stay as learners, old voters
 * go. */
void raft_config_leave(const struct raft_config *joint, struct raft_config *ret_plain);

/* Adds in their place, as learners, the members of target that are not in config. ERR_INVALID if too many. */
GAVEL_CHECKED enum gavel_status raft_config_add_learners(struct raft_config *config,
                                                         const struct raft_config *target);

/* The founding of `from` is that of config, and whatever directories `from` knows of its members are those of
 * the same members in config. */
void raft_config_inherit(struct raft_config *config, const struct raft_config *from);

/* Puts members into order; for configurations that people write. */
void raft_config_sort(struct raft_config *config);

/*
 * Whether the members for which has(context, id) holds can decide; in a joint configuration in both halves.
 * Never with no voter at all.
 */
bool raft_config_decides(const struct raft_config *config, bool (*has)(const void *context, raft_id id),
                         const void *context);

/*
 * The greatest value that a deciding set of voters has reached, by value(context, id); in a joint
 * configuration the lesser of the two halves. For match indexes, send times and leases. 0 with no voter at
 * all.
 */
int64_t raft_config_reached(const struct raft_config *config,
                            int64_t (*value)(const void *context, raft_id id), const void *context);

/* As bytes, for log entries and snapshots; returns the length. */
#define RAFT_CONFIG_BYTES_MAX (18 + RAFT_MEMBERS_MAX * 18)
size_t raft_config_encode(const struct raft_config *config, uint8_t bytes[RAFT_CONFIG_BYTES_MAX]);

/* ERR_INVALID for bytes that raft_config_encode() cannot have made; *ret_config untouched then. Looks at the
 * form only: whether it can decide anything is for raft_config_check(). */
GAVEL_CHECKED enum gavel_status raft_config_decode(const uint8_t *bytes, size_t size,
                                                   struct raft_config *ret_config);

#endif
