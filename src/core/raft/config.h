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
    uint8_t priority; /* the higher, the sooner it stands for election; affects timers, never votes */
    bool is_voter;    /* in the current configuration, or in the new half of a joint one */
    bool was_voter;   /* in the old half of a joint configuration; otherwise false */
    bool is_witness;  /* votes and keeps the log, but never leads for work */
    bool is_refused;  /* its directory has lost state: nothing it says counts until it is replaced */
    /* The random number of the data directory that this member is bound to (directory.c); 0: unknown yet */
    uint64_t directory;
};

/* Members are in ascending order of id, each once. A member that is no voter at all is a learner. */
struct raft_config {
    bool is_joint;
    bool binds; /* members are bound to directories: all nodes are of 0.7.0 or later */
    /* A random number that the first leader to bind members gives the cluster; every later configuration
     * repeats it (directory.c). 0: not given yet */
    uint64_t founding;
    uint64_t generation; /* in which it was given; one of an earlier generation does not count; 0 without */
    uint8_t count;
    struct raft_member members[RAFT_MEMBERS_MAX];
};

/* ERR_INVALID, with a reason, for an impossible configuration: wrong order, duplicates, no voter, only
 * witnesses, too many members. */
GAVEL_CHECKED enum gavel_status raft_config_check(const struct raft_config *config, const char **ret_reason);

/* NULL if it is not a member. */
const struct raft_member *raft_config_find(const struct raft_config *config, raft_id id);

/* Votes in either half. */
bool raft_config_votes(const struct raft_config *config, raft_id id);

/* The same voters, old and new, whatever else differs. */
bool raft_config_same_voters(const struct raft_config *a, const struct raft_config *b);

/* The joint configuration between a plain one and a plain target. Voters that only the old one has stay until
 * the new one is in force; learners that only the old one has go at once. ERR_INVALID if both together have
 * too many members, if the joint one fails raft_config_check(), and for a voter that is to become a learner:
 * remove it first. */
GAVEL_CHECKED enum gavel_status raft_config_join(const struct raft_config *from,
                                                 const struct raft_config *target,
                                                 struct raft_config *ret_joint);

/* The new half of a joint configuration, as a plain one. Members in neither half stay as learners; old voters
 * go. */
void raft_config_leave(const struct raft_config *joint, struct raft_config *ret_plain);

/* Adds the members of target that config lacks, as learners and in order. ERR_INVALID if too many. */
GAVEL_CHECKED enum gavel_status raft_config_add_learners(struct raft_config *config,
                                                         const struct raft_config *target);

/* Gives config the founding of `from`, and each member its directory and its refusal from there. */
void raft_config_inherit(struct raft_config *config, const struct raft_config *from);

/* Sorts the members; for configurations that people write. */
void raft_config_sort(struct raft_config *config);

/*
 * Whether the members for which has(context, id) holds can decide, in a joint configuration in both halves.
 * Always false without voters.
 */
bool raft_config_decides(const struct raft_config *config, bool (*has)(const void *context, raft_id id),
                         const void *context);

/*
 * The greatest value, by value(context, id), that a deciding set of voters has reached; in a joint
 * configuration the lesser of the two halves. For match indexes, send times and leases. 0 without voters.
 */
int64_t raft_config_reached(const struct raft_config *config,
                            int64_t (*value)(const void *context, raft_id id), const void *context);

/* As bytes, for log entries and snapshots; returns the length. */
#define RAFT_CONFIG_BYTES_MAX (18 + RAFT_MEMBERS_MAX * 18)
size_t raft_config_encode(const struct raft_config *config, uint8_t bytes[RAFT_CONFIG_BYTES_MAX]);

/* ERR_INVALID for bytes that raft_config_encode() cannot have made; *ret_config is then untouched. Checks
 * the form only; whether the configuration can decide anything is for raft_config_check(). */
GAVEL_CHECKED enum gavel_status raft_config_decode(const uint8_t *bytes, size_t size,
                                                   struct raft_config *ret_config);

#endif
