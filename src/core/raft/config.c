/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Members, voters, and their majorities.
 *
 * A plain configuration has one half, the voters. A joint one has two, the
 * old voters and the new, and every decision must be made in both (Raft thesis,
 * section 4.3).
 */

#include "core/raft/config.h"

#include "base/planted.h"

#include "base/assert.h"

#include <string.h>

enum half { NEW_HALF, OLD_HALF };

static bool votes_in(const struct raft_member *member, enum half half)
{
    return half == OLD_HALF ? member->was_voter : member->is_voter;
}

/* What makes a configuration one at all, whether or not it could decide anything. NULL if nothing is
 * wrong. */
static const char *check_form(const struct raft_config *config)
{
    if (config->count > RAFT_MEMBERS_MAX)
        return "too many members";
    if (config->founding != 0 && !config->binds)
        return "a founding in a configuration that binds no directory";
    if (config->founding == 0 && config->generation != 0)
        return "the generation of a founding that there is not";
    for (size_t i = 0; i < config->count; i++) {
        const struct raft_member *member = &config->members[i];

        if (member->id == 0)
            return "a member without an id";
        if (i > 0 && member->id == config->members[i - 1].id)
            return "a member twice";
        if (i > 0 && member->id < config->members[i - 1].id)
            return "members out of order";
        if (member->was_voter && !config->is_joint)
            return "an old voter in a configuration that is not joint";
        if (!config->binds && (member->directory != 0 || member->is_refused))
            return "a directory in a configuration that binds none";
    }
    return NULL;
}

static const char *check_half(const struct raft_config *config, enum half half)
{
    size_t voters = 0;
    size_t witnesses = 0;

    for (size_t i = 0; i < config->count; i++) {
        if (!votes_in(&config->members[i], half))
            continue;
        voters++;
        witnesses += config->members[i].is_witness;
    }
    if (voters == 0)
        return half == OLD_HALF ? "no old voter" : "no voter";
    if (voters > RAFT_VOTERS_MAX)
        return "too many voters";
    if (voters == witnesses)
        return "only witnesses vote";
    return NULL;
}

enum gavel_status raft_config_check(const struct raft_config *config, const char **ret_reason)
{
    const char *reason = check_form(config);

    if (!reason)
        reason = check_half(config, NEW_HALF);
    if (!reason && config->is_joint)
        reason = check_half(config, OLD_HALF);
    if (!reason)
        return GAVEL_OK;
    *ret_reason = reason;
    return GAVEL_ERR_INVALID;
}

const struct raft_member *raft_config_find(const struct raft_config *config, raft_id id)
{
    for (size_t i = 0; i < config->count; i++)
        if (config->members[i].id == id)
            return &config->members[i];
    return NULL;
}

bool raft_config_votes(const struct raft_config *config, raft_id id)
{
    const struct raft_member *member = raft_config_find(config, id);

    return member && (member->is_voter || member->was_voter);
}

static bool has_voters_of(const struct raft_config *a, const struct raft_config *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct raft_member *theirs = &b->members[i];
        const struct raft_member *ours = raft_config_find(a, theirs->id);

        if (theirs->is_voter && !(ours && ours->is_voter))
            return false;
        if (theirs->was_voter && !(ours && ours->was_voter))
            return false;
    }
    return true;
}

bool raft_config_same_voters(const struct raft_config *a, const struct raft_config *b)
{
    return a->is_joint == b->is_joint && has_voters_of(a, b) && has_voters_of(b, a);
}

static bool add_member(struct raft_config *config, const struct raft_member *member)
{
    if (config->count == RAFT_MEMBERS_MAX)
        return false;
    config->members[config->count++] = *member;
    return true;
}

enum gavel_status raft_config_join(const struct raft_config *from, const struct raft_config *target,
                                   struct raft_config *ret_joint)
{
    struct raft_config joint = {
        .is_joint = true, .binds = from->binds, .founding = from->founding, .generation = from->generation};
    const char *reason;

    ASSERT(!from->is_joint);
    if (target->is_joint || target->count > RAFT_MEMBERS_MAX)
        return GAVEL_ERR_INVALID;
    for (size_t i = 0; i < target->count; i++) {
        struct raft_member member = target->members[i];
        const struct raft_member *old = raft_config_find(from, member.id);

        member.was_voter = old && old->is_voter;
        member.directory = old ? old->directory : 0;
        member.is_refused = old && old->is_refused;
        /* Leaving the joint configuration could not tell it from a voter that goes. */
        if (member.was_voter && !member.is_voter)
            return GAVEL_ERR_INVALID;
        if (!add_member(&joint, &member))
            return GAVEL_ERR_INVALID;
    }
    for (size_t i = 0; i < from->count; i++) {
        struct raft_member member = from->members[i];

        /* Learners that shall go can go at once: they decide nothing. */
        if (!member.is_voter || raft_config_find(target, member.id))
            continue;
        member.is_voter = false;
        member.was_voter = true;
        if (!add_member(&joint, &member))
            return GAVEL_ERR_INVALID;
    }
    raft_config_sort(&joint);
    if (raft_config_check(&joint, &reason) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    *ret_joint = joint;
    return GAVEL_OK;
}

void raft_config_leave(const struct raft_config *joint, struct raft_config *ret_plain)
{
    struct raft_config plain = {.is_joint = false,
                                .binds = joint->binds,
                                .founding = joint->founding,
                                .generation = joint->generation};

    ASSERT(joint->is_joint);
    for (size_t i = 0; i < joint->count; i++) {
        struct raft_member member = joint->members[i];

        if (member.was_voter && !member.is_voter)
            continue;
        member.was_voter = false;
        plain.members[plain.count++] = member;
    }
    *ret_plain = plain;
}

enum gavel_status raft_config_add_learners(struct raft_config *config, const struct raft_config *target)
{
    struct raft_config more = *config;

    for (size_t i = 0; i < target->count; i++) {
        struct raft_member member = target->members[i];

        if (raft_config_find(config, member.id))
            continue;
        member.is_voter = false;
        member.was_voter = false;
        member.directory = 0;
        member.is_refused = false;
        if (!add_member(&more, &member))
            return GAVEL_ERR_INVALID;
    }
    raft_config_sort(&more);
    *config = more;
    return GAVEL_OK;
}

void raft_config_inherit(struct raft_config *config, const struct raft_config *from)
{
    config->binds = from->binds;
    config->founding = from->founding;
    config->generation = from->generation;
    for (size_t i = 0; i < config->count; i++) {
        const struct raft_member *old = raft_config_find(from, config->members[i].id);

        config->members[i].directory = old ? old->directory : 0;
        config->members[i].is_refused = old && old->is_refused;
    }
}

void raft_config_sort(struct raft_config *config)
{
    ASSERT(config->count <= RAFT_MEMBERS_MAX);
    for (size_t i = 1; i < config->count; i++) {
        struct raft_member member = config->members[i];
        size_t at = i;

        for (; at > 0 && config->members[at - 1].id > member.id; at--)
            config->members[at] = config->members[at - 1];
        config->members[at] = member;
    }
}

static bool half_decides(const struct raft_config *config, enum half half,
                         bool (*has)(const void *context, raft_id id), const void *context)
{
    size_t voters = 0;
    size_t having = 0;

    for (size_t i = 0; i < config->count; i++) {
        if (!votes_in(&config->members[i], half))
            continue;
        voters++;
        having += has(context, config->members[i].id);
    }
    return having > voters / 2;
}

bool raft_config_decides(const struct raft_config *config, bool (*has)(const void *context, raft_id id),
                         const void *context)
{
    bool needs_old = config->is_joint;

    if (PLANTED(JOINT_NEW_ONLY))
        needs_old = false;
    return half_decides(config, NEW_HALF, has, context) &&
           (!needs_old || half_decides(config, OLD_HALF, has, context));
}

static int64_t half_reached(const struct raft_config *config, enum half half,
                            int64_t (*value)(const void *context, raft_id id), const void *context)
{
    int64_t values[RAFT_MEMBERS_MAX]; /* from high to low */
    size_t voters = 0;

    for (size_t i = 0; i < config->count; i++) {
        int64_t reached;
        size_t at = voters;

        if (!votes_in(&config->members[i], half))
            continue;
        reached = value(context, config->members[i].id);
        for (; at > 0 && values[at - 1] < reached; at--)
            values[at] = values[at - 1];
        values[at] = reached;
        voters++;
    }
    return voters == 0 ? 0 : values[voters / 2];
}

int64_t raft_config_reached(const struct raft_config *config,
                            int64_t (*value)(const void *context, raft_id id), const void *context)
{
    int64_t reached = half_reached(config, NEW_HALF, value, context);

    if (PLANTED(JOINT_NEW_ONLY))
        return reached;
    if (config->is_joint) {
        int64_t old = half_reached(config, OLD_HALF, value, context);

        if (old < reached)
            reached = old;
    }
    return reached;
}

/*
 *   joint (1), binds (2), founded (4) (1 byte) · count (1) · if it is founded: founding, little-endian (8) ·
 *   generation (8) · for each member: id (8) · priority (1) · flags (1) · if it binds: directory (8)
 *
 * Without directories it is what 0.6.0 wrote and reads.
 */
enum { HEAD_BYTES = 2, FOUNDING_BYTES = 16, MEMBER_BYTES = 10, DIRECTORY_BYTES = 8 };
enum { HEAD_IS_JOINT = 1, HEAD_BINDS = 2, HEAD_IS_FOUNDED = 4, HEADS = 7 };
enum { FLAG_IS_VOTER = 1, FLAG_WAS_VOTER = 2, FLAG_IS_WITNESS = 4, FLAG_IS_REFUSED = 8, FLAGS = 15 };

_Static_assert(HEAD_BYTES + FOUNDING_BYTES + (MEMBER_BYTES + DIRECTORY_BYTES) * RAFT_MEMBERS_MAX ==
                   RAFT_CONFIG_BYTES_MAX,
               "the header says how long");

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
    for (unsigned byte = 0; byte < 8; byte++)
        *at++ = (uint8_t)(number >> (8 * byte));
    return at;
}

static uint64_t get_number(const uint8_t *at)
{
    uint64_t number = 0;

    for (unsigned byte = 0; byte < 8; byte++)
        number |= (uint64_t)at[byte] << (8 * byte);
    return number;
}

size_t raft_config_encode(const struct raft_config *config, uint8_t bytes[RAFT_CONFIG_BYTES_MAX])
{
    uint8_t *at = bytes + HEAD_BYTES;

    ASSERT(config->count <= RAFT_MEMBERS_MAX);
    bytes[0] = (uint8_t)((config->is_joint ? HEAD_IS_JOINT : 0) | (config->binds ? HEAD_BINDS : 0) |
                         (config->founding != 0 ? HEAD_IS_FOUNDED : 0));
    bytes[1] = config->count;
    if (config->founding != 0) {
        at = put_number(at, config->founding);
        at = put_number(at, config->generation);
    }
    for (size_t i = 0; i < config->count; i++) {
        const struct raft_member *member = &config->members[i];

        at = put_number(at, member->id);
        *at++ = member->priority;
        *at++ = (uint8_t)((member->is_voter ? FLAG_IS_VOTER : 0) | (member->was_voter ? FLAG_WAS_VOTER : 0) |
                          (member->is_witness ? FLAG_IS_WITNESS : 0) |
                          (member->is_refused ? FLAG_IS_REFUSED : 0));
        if (config->binds)
            at = put_number(at, member->directory);
    }
    return (size_t)(at - bytes);
}

enum gavel_status raft_config_decode(const uint8_t *bytes, size_t size, struct raft_config *ret_config)
{
    struct raft_config config = {0};
    size_t head_bytes = HEAD_BYTES;
    size_t member_bytes;

    if (size < HEAD_BYTES || bytes[0] > HEADS || bytes[1] > RAFT_MEMBERS_MAX)
        return GAVEL_ERR_INVALID;
    config.is_joint = bytes[0] & HEAD_IS_JOINT;
    config.binds = bytes[0] & HEAD_BINDS;
    config.count = bytes[1];
    if (bytes[0] & HEAD_IS_FOUNDED)
        head_bytes += FOUNDING_BYTES;
    member_bytes = MEMBER_BYTES + (config.binds ? DIRECTORY_BYTES : 0);
    if (size != head_bytes + config.count * member_bytes)
        return GAVEL_ERR_INVALID;
    if (bytes[0] & HEAD_IS_FOUNDED) {
        config.founding = get_number(bytes + HEAD_BYTES);
        config.generation = get_number(bytes + HEAD_BYTES + 8);
        if (config.founding == 0)
            return GAVEL_ERR_INVALID;
    }
    for (size_t i = 0; i < config.count; i++) {
        const uint8_t *at = bytes + head_bytes + i * member_bytes;
        struct raft_member *member = &config.members[i];

        member->id = get_number(at);
        member->priority = at[8];
        if (at[9] & ~FLAGS)
            return GAVEL_ERR_INVALID;
        member->is_voter = at[9] & FLAG_IS_VOTER;
        member->was_voter = at[9] & FLAG_WAS_VOTER;
        member->is_witness = at[9] & FLAG_IS_WITNESS;
        member->is_refused = at[9] & FLAG_IS_REFUSED;
        member->directory = config.binds ? get_number(at + MEMBER_BYTES) : 0;
    }
    if (check_form(&config))
        return GAVEL_ERR_INVALID;
    *ret_config = config;
    return GAVEL_OK;
}
