/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Liveness during a partial partition. What is asked then:
 *
 *   somebody can work   a voter, no witness, that hears and is heard by so many voters that together they are
 * a majority, and among whom a majority, with itself, has a log that is not newer than its own constrained
 * there is no such node: all who are connected well enough lack entries that too many of their voters have.
 * Raft gives those no vote, and must not; whoever has the entries cannot reach a majority. Nothing is asked
 * as long as that lasts.
 *
 * From when it was last constrained, or from the beginning of the partition, somebody works within the bound.
 */

#include "sim/raft/referee/referee_shadow.h"

struct reached {
    const struct raft_referee *referee;
    const struct shadow *candidate;
};

static bool is_log_newer(const struct raft *a, const struct raft *b)
{
    raft_term ta = raft_log_last_term(&a->log);
    raft_term tb = raft_log_last_term(&b->log);

    return ta > tb || (ta == tb && raft_log_last(&a->log) > raft_log_last(&b->log));
}

bool referee_are_linked(const struct raft_referee *referee, raft_id a, raft_id b)
{
    if (a == b || !referee->has_shape)
        return true;
    return referee->heard[a] >> b & 1 && referee->heard[b] >> a & 1;
}

static bool would_vote(const void *context, raft_id id)
{
    const struct reached *reached = context;
    const struct raft_referee *referee = reached->referee;
    const struct shadow *voter = &referee->shadows[id];

    if (id >= RAFT_REFEREE_IDS || !referee->is_in_healed[id] || referee->is_far[id] || !voter->raft)
        return false;
    return voter == reached->candidate || (referee_are_linked(referee, id, reached->candidate->id) &&
                                           !is_log_newer(voter->raft, reached->candidate->raft));
}

static bool can_work(const struct raft_referee *referee, const struct shadow *shadow)
{
    struct reached reached = {referee, shadow};
    const struct raft_member *self;

    if (!referee->is_in_healed[shadow->id] || referee->is_far[shadow->id] || !shadow->raft)
        return false;
    self = raft_config_find(&shadow->raft->config, shadow->id);
    return self && self->is_voter && !self->is_witness &&
           referee_decides(&shadow->raft->config, would_vote, &reached);
}

static bool is_healed(const void *context, raft_id id)
{
    const struct raft_referee *referee = context;

    return id < RAFT_REFEREE_IDS && referee->is_in_healed[id];
}

/* A change of members, of the newest log that is healed, needs one that is not: it began after the healing,
 * to take on a node that had answered before. */
static bool needs_others(const struct raft_referee *referee)
{
    const struct raft *newest = NULL;

    for (raft_id id = 1; id < RAFT_REFEREE_IDS; id++) {
        const struct raft *raft = referee->shadows[id].raft;

        if (referee->is_in_healed[id] && raft && (!newest || is_log_newer(raft, newest)))
            newest = raft;
    }
    return newest && !referee_decides(&newest->config, is_healed, referee);
}

bool referee_is_constrained(const struct raft_referee *referee)
{
    if (!referee->has_shape)
        return needs_others(referee);
    for (raft_id id = 1; id < RAFT_REFEREE_IDS; id++)
        if (can_work(referee, &referee->shadows[id]))
            return false;
    return true;
}
