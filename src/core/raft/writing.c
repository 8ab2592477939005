/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the core knows of disks, its own and those of others: how long writes take,
 * and whether term, vote or promise are still on their way. An election is three
 * writes in a row (the candidate's vote, a voter's, a follower's promise with the
 * no-op). If one write took longer than an election timeout, no election would ever
 * end, since each new term is one more write in the queue. Therefore:
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
 *  6. A leader that hands over waits as long as the disks of its successor and of a
 *     majority need, not only as long as its own would.
 */

#include "core/raft/internal.h"

/* How long a write takes: as of late, or as long as one has taken already. */
gavel_ns raft_write_takes(const struct raft *r)
{
    return ns_max(r->writes.usual, backlog_age(&r->writes, r->now));
}

/* One part in so many of what was usual is forgotten with each acknowledgement. */
#define FORGET 8
/* One halt of its machine must not make a hand-over wait for ever. */
#define HELD_MAX (2 * NS_PER_S)

/*
 * An append of this round has brought entries to the peer's disk. Everything beyond a round trip and a
 * heartbeat (the round may have begun that long before the append) is the disk's, and maybe the network's. A
 * lost append does not count: what it brought is acknowledged in the round that repeats it.
 */
void raft_note_write(struct raft *r, struct raft_peer *peer, uint64_t round)
{
    gavel_ns held = r->now - (gavel_ns)round - r->settings.heartbeat - peer->round_trip;

    ASSERT(r->role == RAFT_LEADER);
    peer->write_takes =
        ns_max(ns_min(ns_max(held, 0), HELD_MAX), peer->write_takes - peer->write_takes / FORGET);
}

/* Negated, because the longest is wanted of those that a majority has. */
static int64_t writes_within(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (id == r->state.id)
        return -raft_write_takes(r);
    return peer && peer->match >= r->noop_index ? -peer->write_takes : -HELD_MAX;
}

/* Of the writes that make the successor a leader, how long one takes: it needs its own disk, and those of a
 * majority, which may or may not include ours. */
gavel_ns raft_successor_write_takes(const struct raft *r, raft_id successor)
{
    const struct raft_peer *peer = raft_peer_at(r, successor);
    gavel_ns takes = raft_write_takes(r);

    ASSERT(r->role == RAFT_LEADER);
    if (r->commit >= r->noop_index) /* else nothing is known of a majority */
        takes = ns_max(takes, -raft_config_reached(&r->config, writes_within, r));
    return peer ? ns_max(takes, peer->write_takes) : takes;
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
