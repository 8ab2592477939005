/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes of members: one at a time, none before this term's no-op is
 * committed, and no two configurations that follow each other could decide
 * apart. The last is tried out: all sets of members are gone through, and no
 * set that decides in one may leave a rest that decides in the other.
 */

#include "sim/raft/referee/referee_shadow.h"

#include <string.h>

/* The voters of a configuration as bits of a set; both halves. */
struct halves {
    uint32_t now;
    uint32_t was;
    bool is_joint;
};

static uint32_t bit_of(raft_id *ids, unsigned *count, raft_id id)
{
    unsigned i = 0;

    while (i < *count && ids[i] != id)
        i++;
    if (i == *count)
        ids[(*count)++] = id;
    return UINT32_C(1) << i;
}

static struct halves halves_of(const struct raft_config *config, raft_id *ids, unsigned *count)
{
    struct halves halves = {.is_joint = config->is_joint};

    for (unsigned i = 0; i < config->count; i++) {
        const struct raft_member *member = &config->members[i];
        uint32_t bit = member->is_voter || member->was_voter ? bit_of(ids, count, member->id) : 0;

        halves.now |= member->is_voter ? bit : 0;
        halves.was |= member->was_voter ? bit : 0;
    }
    return halves;
}

static bool is_majority(uint32_t set, uint32_t of)
{
    return 2 * __builtin_popcount(set & of) > __builtin_popcount(of);
}

static bool decides(const struct halves *halves, uint32_t set)
{
    return is_majority(set, halves->now) && (!halves->is_joint || is_majority(set, halves->was));
}

static bool do_intersect(const struct raft_config *a, const struct raft_config *b)
{
    raft_id ids[2 * RAFT_MEMBERS_MAX];
    unsigned count = 0;
    struct halves of_a = halves_of(a, ids, &count);
    struct halves of_b = halves_of(b, ids, &count);
    uint32_t all = (uint32_t)((UINT64_C(1) << count) - 1);

    if (of_a.now == of_b.now && of_a.was == of_b.was)
        return true;
    for (uint32_t set = 0; set < all; set++)
        if (decides(&of_a, set) && decides(&of_b, all & ~set))
            return false;
    return true;
}

bool referee_decides(const struct raft_config *config, bool (*has)(const void *context, raft_id id),
                     const void *context)
{
    unsigned voters[2] = {0, 0};
    unsigned votes[2] = {0, 0};

    for (unsigned i = 0; i < config->count; i++) {
        const struct raft_member *member = &config->members[i];
        bool has_it = has(context, member->id);

        voters[0] += member->is_voter;
        voters[1] += member->was_voter;
        votes[0] += member->is_voter && has_it;
        votes[1] += member->was_voter && has_it;
    }
    return 2 * votes[0] > voters[0] && (!config->is_joint || 2 * votes[1] > voters[1]);
}

/* An entry of the log is a configuration, or a change of the log takes some away. */
static void follow_log(struct shadow *shadow, const struct raft_persist *persist)
{
    const struct raft_log *log = &shadow->raft->log;
    raft_index cut = persist->truncate;

    if (persist->has_snapshot && persist->restarts_log)
        cut = 1;
    while (cut != 0 && shadow->in_log_count > 0 && shadow->in_log[shadow->in_log_count - 1] >= cut)
        shadow->in_log_count--;
    for (raft_index i = persist->first; persist->first != 0 && i <= persist->last; i++) {
        const struct raft_entry *entry = raft_log_at(log, i);

        if (!entry || entry->kind != RAFT_ENTRY_CONFIG)
            continue;
        if (shadow->in_log_count == CONFIGS_KEPT) {
            memmove(shadow->in_log, shadow->in_log + 1, (CONFIGS_KEPT - 1) * sizeof *shadow->in_log);
            shadow->in_log_count--;
        }
        shadow->in_log[shadow->in_log_count++] = i;
    }
}

/* Thesis, section 4.1: the newest in the log is in force, committed or not, and nothing else. */
static void check_in_force(struct raft_referee *referee, const struct shadow *shadow)
{
    const struct raft *raft = shadow->raft;
    raft_index index =
        shadow->in_log_count > 0 ? shadow->in_log[shadow->in_log_count - 1] : raft->snapshot.config_index;

    if (raft->config_index != index)
        raft_referee_violate(referee, RAFT_INVARIANT_IN_FORCE,
                             "node %llu goes by the configuration at %llu; the newest in its log is at %llu",
                             (ull)shadow->id, (ull)raft->config_index, (ull)index);
}

void referee_config_started(struct raft_referee *referee, struct shadow *shadow,
                            const struct raft_restore *restore)
{
    shadow->in_log_count = 0;
    for (size_t i = 0; i < restore->entry_count; i++)
        if (restore->entries[i].kind == RAFT_ENTRY_CONFIG && shadow->in_log_count < CONFIGS_KEPT)
            shadow->in_log[shadow->in_log_count++] = restore->snapshot.index + 1 + i;
    shadow->config = shadow->raft->config;
    shadow->config_index = shadow->raft->config_index;
    check_in_force(referee, shadow);
}

static void check_change(struct raft_referee *referee, const struct shadow *shadow,
                         const struct raft_config *old, raft_index old_index,
                         const struct raft_config *config, raft_index index)
{
    const struct raft *raft = shadow->raft;
    const char *reason = "";

    if (raft_config_check(config, &reason) != GAVEL_OK)
        raft_referee_violate(referee, RAFT_INVARIANT_CONFIG,
                             "node %llu appends at %llu a configuration that cannot be: %s", (ull)shadow->id,
                             (ull)index, reason);
    if (old_index > raft->commit)
        raft_referee_violate(referee, RAFT_INVARIANT_CONFIG,
                             "node %llu appends a configuration at %llu while that at %llu is not committed",
                             (ull)shadow->id, (ull)index, (ull)old_index);
    if (raft_log_term(&raft->log, raft->commit) != raft->state.term)
        raft_referee_violate(referee, RAFT_INVARIANT_CONFIG,
                             "node %llu changes the members before its no-op of term %llu is committed",
                             (ull)shadow->id, (ull)raft->state.term);
    if (!do_intersect(old, config))
        raft_referee_violate(
            referee, RAFT_INVARIANT_QUORUMS,
            "the configuration that node %llu appends at %llu can decide apart from the one before",
            (ull)shadow->id, (ull)index);
}

void referee_check_config(struct raft_referee *referee, struct shadow *shadow,
                          const struct raft_persist *persist)
{
    const struct raft *raft = shadow->raft;
    const struct raft_config *old = &shadow->config;
    raft_index old_index = shadow->config_index;
    struct raft_config configs[2];
    unsigned which = 0;

    follow_log(shadow, persist);
    check_in_force(referee, shadow);
    if (persist->first == 0 || raft->role != RAFT_LEADER)
        return;
    for (raft_index i = persist->first; i <= persist->last; i++) {
        const struct raft_entry *entry = raft_log_at(&raft->log, i);
        struct raft_config *config = &configs[which];

        if (!entry || entry->kind != RAFT_ENTRY_CONFIG || entry->term != raft->state.term)
            continue;
        if (raft_config_decode(entry->data, entry->size, config) != GAVEL_OK) {
            raft_referee_violate(referee, RAFT_INVARIANT_CONFIG, "the configuration at %llu cannot be read",
                                 (ull)i);
            continue;
        }
        check_change(referee, shadow, old, old_index, config, i);
        old = config;
        old_index = i;
        which = 1 - which;
    }
}
