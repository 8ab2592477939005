/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When to stand for election. Timeouts are random (thesis, section 3.4), but
 * not evenly: the leader ships an ordered list of successors, and nodes further
 * down wait longer. So elections seldom collide, and preferred nodes come first.
 * A dead preferred node only causes a delay; votes are never refused because of
 * priority. Failed elections widen the range.
 */

#include "core/raft/internal.h"

#define BACK_OFF_MAX 2 /* doublings */

/* Without a leader's list: by the configuration, witnesses last, then by priority, then by id. */
static bool stands_before(const struct raft_member *a, const struct raft_member *b)
{
    if (a->is_witness != b->is_witness)
        return !a->is_witness;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->id < b->id;
}

static unsigned rank_by_config(const struct raft *r)
{
    const struct raft_member *self = raft_config_find(&r->config, r->state.id);
    unsigned rank = 0;

    if (!self)
        return r->config.count;
    for (unsigned i = 0; i < r->config.count; i++) {
        const struct raft_member *other = &r->config.members[i];

        if (other != self && (other->is_voter || other->was_voter) && stands_before(other, self))
            rank++;
    }
    return rank;
}

unsigned raft_rank(const struct raft *r)
{
    if (r->successor_count == 0)
        return rank_by_config(r);
    for (unsigned i = 0; i < r->successor_count; i++)
        if (r->successors[i] == r->state.id)
            return i;
    return r->successor_count;
}

static unsigned voter_count(const struct raft *r)
{
    unsigned count = 0;

    for (unsigned i = 0; i < r->config.count; i++)
        count += r->config.members[i].is_voter || r->config.members[i].was_voter;
    return count;
}

gavel_ns raft_rank_step(const struct raft *r)
{
    unsigned voters = voter_count(r);

    return (r->settings.election_max - r->settings.election_min) / (voters > 0 ? voters : 1);
}

static unsigned back_off(const struct raft *r)
{
    return r->failures < BACK_OFF_MAX ? r->failures : BACK_OFF_MAX;
}

void raft_restart_timer(struct raft *r)
{
    gavel_ns step = raft_rank_step(r);
    gavel_ns spread = ns_min(raft_rank(r) * step, r->settings.election_max - r->settings.election_min - step);

    if (!raft_may_stand(r)) {
        r->election_at = NEVER;
        return;
    }
    ASSERT(spread >= 0);
    r->stands_directly = false;
    spread += prng_between(&r->prng, 0, step);
    r->election_at = r->now + r->settings.election_min + (spread << back_off(r));
    if (r->is_eager && raft_is_promised(r, r->now))
        r->election_at = ns_min(r->election_at, r->promise_until);
    ASSERT(r->election_at >= r->now);
}

/* For the next try of a candidate: a whole random timeout, so that two that collided do not do so again. */
void raft_retry_timer(struct raft *r)
{
    gavel_ns width = r->settings.election_max - r->settings.election_min;

    ASSERT(r->role == RAFT_PRE_CANDIDATE || r->role == RAFT_CANDIDATE);
    r->election_at = r->now + r->settings.election_min + (prng_between(&r->prng, 0, width) << back_off(r));
}
