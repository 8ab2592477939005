/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changing the members, by joint consensus (thesis, section 4.3), one change
 * at a time:
 *
 *   LEARN ── new voters have caught up ──► JOINT ── committed ──► NEW ── committed ──► done
 *
 * A configuration is in force as soon as it is in the log, committed or not. If
 * its entry is truncated, the previous one is in force again. No
 * change begins before an entry of the leader's term is committed: otherwise
 * two leaders, each with a change unknown to the other, could decide with
 * disjoint majorities (thesis, section 4.1, and the correction of 2015 to
 * the single-server change).
 *
 * The lease is counted by the configuration in force, so in a joint one a
 * majority of both halves has promised. Learners promise too; a new voter
 * becomes one only if it has answered a recent round, so the lease goes on.
 */

#include "core/raft/internal.h"

#include <string.h>

/* The newest configuration in the log at or before an index, or the snapshot's; returns where it stands. */
raft_index raft_find_config(const struct raft *r, raft_index index, struct raft_config *ret_config)
{
    for (raft_index i = index; i > r->log.base; i--) {
        const struct raft_entry *entry = raft_log_at(&r->log, i);

        /* It was checked when it came in; one that cannot be read would change nothing. */
        if (entry->kind == RAFT_ENTRY_CONFIG &&
            raft_config_decode(entry->data, entry->size, ret_config) == GAVEL_OK)
            return i;
    }
    *ret_config = r->snapshot.config;
    return r->snapshot.config_index;
}

raft_index raft_committed_config(const struct raft *raft, struct raft_config *ret_config)
{
    return raft_find_config(raft, raft->commit, ret_config);
}

/*
 * Whether the newest configuration, not committed yet, removes us. Until it is committed we may be the only
 * one who can lead, because others lack it, so we still stand for election (thesis, section 4.2.2). Not if it
 * says that another directory is the member, or that ours has forgotten something.
 */
static bool is_leaving(const struct raft *r)
{
    struct raft_config before;

    if (raft_is_voter(r) || !raft_is_own(r, &r->config) || r->config_index <= r->commit ||
        r->config_index <= r->log.base)
        return false;
    (void)raft_find_config(r, r->config_index - 1, &before);
    return raft_config_votes(&before, r->state.id) && raft_is_own(r, &before);
}

static void use_config(struct raft *r, const struct raft_config *config, raft_index index)
{
    bool goes_back = index < r->config_index;

    ASSERT(config->count <= RAFT_MEMBERS_MAX);
    ASSERT(index <= raft_log_last(&r->log));
    r->config = *config;
    r->config_index = index;
    r->is_leaving = is_leaving(r);
    raft_peers_rebuild(r, goes_back);
    ASSERT(r->peer_count <= r->config.count);
    raft_settle_role(r);
}

void raft_use_config_of_log(struct raft *r)
{
    struct raft_config config;
    raft_index index = raft_find_config(r, raft_log_last(&r->log), &config);

    use_config(r, &config, index);
}

/* The configuration that removes us may have been committed. */
void raft_check_leaving(struct raft *r)
{
    if (!r->is_leaving || r->config_index > r->commit)
        return;
    r->is_leaving = false;
    raft_settle_role(r);
}

enum gavel_status raft_append_config(struct raft *r, const struct raft_config *config)
{
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    struct raft_entry entry = {.term = r->state.term, .kind = RAFT_ENTRY_CONFIG, .data = bytes};
    enum gavel_status status;

    entry.size = (uint32_t)raft_config_encode(config, bytes);
    ASSERT(entry.size <= sizeof bytes);
    status = raft_append_own(r, &entry);
    if (status != GAVEL_OK)
        return status;
    use_config(r, config, raft_log_last(&r->log));
    ASSERT(r->role == RAFT_LEADER); /* who is removed leads on until that is committed */
    ASSERT(r->config_index == raft_log_last(&r->log));
    raft_send_appends(r, false);
    return GAVEL_OK;
}

static bool is_new_voter(const struct raft *r, const struct raft_member *member)
{
    return member->is_voter && !raft_config_votes(&r->config, member->id);
}

/* Bound by a promise that is not about to end. */
static bool is_answering(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    return id == r->state.id || (peer && r->now - peer->heard_at <= r->settings.heartbeat * 2);
}

/* One append away from the end, however fast that moves: thesis, section 4.2.1. */
static bool is_level(const struct raft *r, raft_id id)
{
    const struct raft_peer *peer = raft_peer_at(r, id);

    return id == r->state.id || (peer && peer->progress == RAFT_REPLICATE &&
                                 peer->match + r->settings.batch_entries >= raft_log_last(&r->log));
}

/* A voter is one directory from its first vote on. */
static bool is_bound(const struct raft *r, raft_id id)
{
    const struct raft_member *member = raft_config_find(&r->config, id);

    return !r->config.binds || (member && member->directory != 0);
}

static bool are_level(const struct raft *r)
{
    for (unsigned i = 0; i < r->change_target.count; i++) {
        const struct raft_member *member = &r->change_target.members[i];

        if (is_new_voter(r, member) &&
            (!is_level(r, member->id) || !is_answering(r, member->id) || !is_bound(r, member->id)))
            return false;
    }
    return true;
}

/*
 * A joint configuration whose new half has no living majority could neither be committed nor taken back, and
 * nobody could be elected in it: the operator would have ended a cluster that works.
 */
static bool are_ready(const struct raft *r)
{
    return are_level(r) && raft_config_decides(&r->change_target, is_answering, r);
}

/* And one in which nobody could hold a lease could neither work nor, without work, be changed by most
 * means. */
static bool can_lease(const struct raft *r)
{
    if (PLANTED(FAR_VOTER))
        return true;
    return raft_config_decides(&r->change_target, raft_makes_lease, r);
}

static bool needs_learners(const struct raft *r, const struct raft_config *target)
{
    for (unsigned i = 0; i < target->count; i++)
        if (!raft_config_find(&r->config, target->members[i].id))
            return true;
    return false;
}

static enum gavel_status check_change(const struct raft *r, const struct raft_config *target)
{
    const struct raft_member *self = raft_config_find(target, r->state.id);
    const char *reason;

    if (r->role != RAFT_LEADER)
        return GAVEL_ERR_NO_LEADER;
    if (target->is_joint || raft_config_check(target, &reason) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    if (self && self->is_witness && !raft_is_witness(r))
        return GAVEL_ERR_INVALID; /* a leader cannot become a witness: transfer first */
    if (r->change != RAFT_CHANGE_NONE || r->config.is_joint || r->config_index > r->commit ||
        r->transfer.phase != RAFT_TRANSFER_NONE || r->steps_down || raft_is_caretaker(r))
        return GAVEL_ERR_STATE;
    if (PLANTED(NO_NOOP_GUARD))
        return GAVEL_OK;
    if (r->commit < r->noop_index)
        return GAVEL_ERR_STATE;
    return GAVEL_OK;
}

enum gavel_status raft_change(struct raft *r, const struct raft_config *wanted)
{
    enum gavel_status status = check_change(r, wanted);
    struct raft_config config = r->config;
    struct raft_config bound = *wanted;
    const struct raft_config *target = &bound;
    bool has_same_voters;

    if (status != GAVEL_OK)
        return status;
    ASSERT(r->change == RAFT_CHANGE_NONE);
    ASSERT(!r->config.is_joint);
    raft_config_inherit(&bound, &r->config);
    has_same_voters = raft_config_same_voters(&r->config, target);
    if (PLANTED(NO_NOOP_GUARD))
        has_same_voters = true;
    if (has_same_voters) {
        status = raft_append_config(r, target); /* learners, priorities, witnesses: no majority changes */
        if (status == GAVEL_OK)
            r->change = RAFT_CHANGE_NEW;
        return status;
    }
    status = raft_config_join(&r->config, target, &config); /* in time, and not when half of it is done */
    if (status != GAVEL_OK)
        return status;
    if (needs_learners(r, target)) {
        config = r->config;
        status = raft_config_add_learners(&config, target);
        if (status == GAVEL_OK)
            status = raft_append_config(r, &config);
        if (status != GAVEL_OK)
            return status;
    }
    r->change = RAFT_CHANGE_LEARN;
    r->change_target = *target;
    r->change_give_up_at = r->now + r->settings.catch_up_timeout;
    r->change_far_from = NEVER;
    raft_change_goes_on(r);
    return GAVEL_OK;
}

/* What was learnt stays: a learner is harmless, and the next try has it already. */
static void give_up(struct raft *r)
{
    const char *why = "too few of the new voters answer fast enough for a lease";

    ASSERT(r->change == RAFT_CHANGE_LEARN);
    ASSERT(!r->config.is_joint); /* what is half done is completed, not given up */
    r->change = RAFT_CHANGE_NONE;
    if (!are_level(r))
        why = "a new voter did not catch up in time; it stays a learner";
    else if (!raft_config_decides(&r->change_target, is_answering, r))
        why = "no majority of the new voters answers";
    raft_tell(r, RAFT_NEWS_CHANGE_FAILED, 0)->tell.text = why;
}

gavel_ns raft_change_give_up_at(const struct raft *r)
{
    if (r->change_far_from == NEVER)
        return r->change_give_up_at;
    return ns_min(r->change_give_up_at, r->change_far_from + RAFT_CLAIM_PATIENCE(&r->settings));
}

static void join(struct raft *r)
{
    struct raft_config joint;

    ASSERT(r->change == RAFT_CHANGE_LEARN);
    ASSERT(r->config_index <= r->commit);
    raft_config_inherit(&r->change_target, &r->config); /* new voters were bound meanwhile */
    if (!are_ready(r) || can_lease(r))
        r->change_far_from = NEVER;
    else if (r->change_far_from == NEVER)
        r->change_far_from = r->now;
    if (are_ready(r) && can_lease(r) && raft_config_join(&r->config, &r->change_target, &joint) == GAVEL_OK &&
        raft_append_config(r, &joint) == GAVEL_OK)
        r->change = RAFT_CHANGE_JOINT;
}

/* Also for a change that an earlier leader began: what stands in the log decides, not what we remember. */
void raft_change_goes_on(struct raft *r)
{
    struct raft_config plain;

    if (r->role != RAFT_LEADER)
        return;
    if (r->change == RAFT_CHANGE_LEARN && r->now >= raft_change_give_up_at(r))
        give_up(r);
    if (r->config_index > r->commit || r->commit < r->noop_index)
        return;
    if (r->config.is_joint) {
        raft_config_leave(&r->config, &plain);
        if (raft_append_config(r, &plain) == GAVEL_OK)
            r->change = RAFT_CHANGE_NEW;
        return;
    }
    if (r->change == RAFT_CHANGE_LEARN) {
        if (!r->steps_down)
            join(r);
        return;
    }
    if (r->change == RAFT_CHANGE_NEW) {
        r->change = RAFT_CHANGE_NONE;
        raft_tell(r, RAFT_NEWS_MEMBERS_CHANGED, 0)->tell.index = r->config_index;
    }
    if (!raft_is_voter(r))
        raft_step_down(r, RAFT_STOP_REMOVED); /* thesis, section 4.2.2 */
}

bool raft_may_stand(const struct raft *r)
{
    if (PLANTED(REMOVED_NEVER_STANDS))
        return raft_is_voter(r);
    return raft_is_voter(r) || r->is_leaving;
}

bool raft_is_voter(const struct raft *r)
{
    return raft_config_votes(&r->config, r->state.id) && raft_is_own(r, &r->config);
}

bool raft_is_witness(const struct raft *r)
{
    const struct raft_member *self = raft_config_find(&r->config, r->state.id);

    return self && self->is_witness;
}

/* Also one that the newest configuration removes, and that had to lead so that it gets committed. */
bool raft_is_caretaker(const struct raft *r)
{
    if (r->role != RAFT_LEADER)
        return false;
    return raft_is_witness(r) || (!raft_is_voter(r) && r->work == RAFT_WORK_NONE);
}
