/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the core knows of its disk: how long writes take, and whether term, vote or
 * promise are still on their way. An election is three writes in a row (the
 * candidate's vote, a voter's, a follower's promise with the no-op). If one write
 * took longer than an election timeout, no election would ever end, since each new
 * term is one more write in the queue. Therefore:
 *
 *  1. Nobody stands, and no candidate gives up, while its own state is on its way
 *     to disk; its timer restarts when that is durable.
 *  2. A candidate that nobody has refused, except for a newer log, asks again in the
 *     same term.
 *  3. A voter whose vote is on its way refuses pre-votes: it could not vote now.
 *  4. A candidate that waits for votes refuses the pre-vote of one that has voted for it,
 *     and nobody stands while a majority says that it is writing its votes for another.
 *  5. A follower whose promise is on its way says that it has heard its leader.
 *     That is no promise, but it is not silence.
 */

#include "core/raft/internal.h"

/* How long a write takes: as of late, or as long as one has taken already. */
gavel_ns raft_write_takes(const struct raft *r)
{
    return ns_max(r->writes.usual, backlog_age(&r->writes, r->now));
}

bool raft_is_writing_state(const struct raft *r) { return r->state_seq > r->durable_seq; }

/* Stands later: when the state is durable, see raft_state_is_durable(). Asked again now and then. */
bool raft_put_off_standing(struct raft *r, bool is_direct)
{
    if (!raft_is_writing_state(r))
        return false;
    if (PLANTED(STANDS_WHILE_WRITING))
        return false;
    ASSERT(r->role != RAFT_LEADER);
    r->stands_directly = r->stands_directly || is_direct;
    r->is_put_off = true;
    r->election_at = r->now + r->settings.election_min;
    return true;
}

/* The requests of a candidate leave only now. A voter gives its candidate the time to win and to say so. */
void raft_state_is_durable(struct raft *r)
{
    bool was_put_off = r->is_put_off;

    ASSERT(!raft_is_writing_state(r));
    r->is_put_off = false;
    if (r->role == RAFT_LEADER || r->role == RAFT_LEARNER)
        return;
    if (r->role == RAFT_CANDIDATE)
        r->election_at = ns_max(r->election_at, r->now + r->settings.election_min);
    else if (was_put_off && r->stands_directly)
        r->election_at = r->now;
    else if (was_put_off)
        raft_restart_timer(r);
}
