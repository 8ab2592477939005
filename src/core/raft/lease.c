/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lease: the leader's side of the promises.
 *
 * A round begins at s on our clock. A voter that accepts its append helps nobody
 * else for `promise` of its own clock, from some instant after s. If its clock
 * runs fast and ours slow, by the drift bound, that is at least
 * promise * (1 - drift) / (1 + drift) on our clock. So the voter is bound until
 *
 *     s + promise * (1 - drift) / (1 + drift)
 *
 * Until the instant that a majority reaches, ourselves included, nobody can be
 * elected; stop_margin earlier, our work begins to stop.
 *
 * This differs from the thesis, section 6.4.1, which counts the election
 * timeout from the acknowledged heartbeat and leaves drift to a constant.
 *
 * Every step checks the lease before anything else: a leader that wakes from a
 * pause stops before it acts.
 */

#include "core/raft/internal.h"

#define PPM 1000000

/* What a promise of another clock is worth at least on ours. */
static gavel_ns shrink(const struct raft *r, gavel_ns promise)
{
    return promise * (PPM - r->settings.drift_ppm) / (PPM + r->settings.drift_ppm);
}

gavel_ns raft_lease_length(const struct raft *r, gavel_ns promise)
{
    return shrink(r, promise) - r->settings.stop_margin;
}

static int64_t bound_until(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);
    gavel_ns worth;

    if (id == r->state.id)
        return NEVER;
    if (!peer || peer->acked_round == 0)
        return 0;
    worth = shrink(r, peer->acked_promise);
    if (PLANTED(LEASE_WITHOUT_DRIFT))
        worth = peer->acked_promise;
    return (int64_t)(peer->acked_round - r->round_ahead) + worth;
}

void raft_update_lease(struct raft *r)
{
    gavel_ns margin = r->settings.stop_margin;
    gavel_ns until;

    if (PLANTED(LEASE_WITHOUT_DRIFT))
        margin = 0;
    if (r->role != RAFT_LEADER)
        return;
    if (r->is_lease_given_up) {
        r->lease_until = 0;
        return;
    }
    until = raft_config_reached(&r->config, bound_until, r);
    if (until != NEVER)
        until = ns_max(0, until - margin);
    ASSERT(until >= 0);
    r->lease_until = until;
    if (raft_is_lasting(r))
        r->leased_until = until;
}

/*
 * The successor that was told to stand is silent until its vote is on its disk. The hand-over waits for that,
 * for a limited time. A leader that steps down before, because a majority is no majority without it, would
 * leave the others to stand in a higher term: they do not know that somebody is about to.
 */
static bool is_about_to_stand(const struct raft *r, raft_id id)
{
    return r->transfer.phase == RAFT_TRANSFER_HANDED && r->transfer.target == id;
}

static int64_t heard_at(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (is_about_to_stand(r, id))
        return r->now;
    return id == r->state.id ? r->now : peer ? ns_max(peer->heard_at, peer->writing_at) : 0;
}

/* A leader without work, which is not held to its lease, gives up when no majority has answered for so
 * long. */
gavel_ns raft_contact_until(const struct raft *r)
{
    return raft_config_reached(&r->config, heard_at, r) + r->settings.election_max;
}

void raft_check_lease(struct raft *r)
{
    if (r->role != RAFT_LEADER)
        return;
    raft_update_lease(r);
    raft_hope(r);
    if (PLANTED(WINDOWED_CHECK_QUORUM) &&
        r->now < r->led_from + (r->now - r->led_from) / r->settings.election_max * r->settings.election_max +
                     r->settings.heartbeat * 2)
        return;
    if (r->work == RAFT_WORK_RUNNING) {
        if (r->now >= r->lease_until)
            raft_become_follower(r, RAFT_STOP_LAPSED);
    } else if (r->now >= raft_contact_until(r)) {
        raft_become_follower(r, RAFT_STOP_LAPSED);
    } else if (r->now >= raft_claim_by(r)) {
        raft_note_idle_turn(r);
        raft_step_down(r, RAFT_STOP_IDLE);
    }
}

/*
 * Work may begin: our vote and a majority's are durable (we lead), an entry of this term is committed, and a
 * round that began after the election has made a lease, one that the next round can renew. Not for a
 * caretaker, not while handing over, and not after a forced transfer, which may not commit any more. Nor
 * before the founding that is in the log is committed: whoever gets an entry of a client is to know, and to
 * write down with it, which founding that belongs to (directory.c).
 */
void raft_try_claim(struct raft *r)
{
    bool may_work = !raft_is_caretaker(r);
    bool knows_all = r->commit >= r->noop_index && raft_founding(r) == r->founding;
    bool is_lasting = raft_is_lasting(r);
    struct raft_action *action;

    if (PLANTED(WITNESS_CLAIMS))
        may_work = true;
    if (PLANTED(CLAIM_WITHOUT_NOOP))
        knows_all = true;
    if (PLANTED(CLAIMS_BRIEFLY))
        is_lasting = true;
    if (r->role != RAFT_LEADER || r->work != RAFT_WORK_NONE || r->transfer.phase != RAFT_TRANSFER_NONE ||
        r->steps_down)
        return;
    if (!may_work || r->is_commit_frozen)
        return;
    if (!knows_all || r->now >= r->lease_until || !is_lasting)
        return;
    ASSERT(r->state.vote == r->state.id);
    ASSERT(r->applied == r->commit);
    ASSERT(!r->is_lease_given_up);
    ASSERT(r->now < r->lease_until);
    ASSERT(r->commit >= r->noop_index || PLANTED(CLAIM_WITHOUT_NOOP));
    ASSERT(!raft_is_witness(r) || PLANTED(WITNESS_CLAIMS));
    r->work = RAFT_WORK_RUNNING;
    r->idle_turns = 0;
    action = raft_act(r, RAFT_CLAIM);
    action->claim.term = r->state.term;
    action->claim.lease_epoch = r->lease_epoch;
}

void raft_stop_work(struct raft *r, enum raft_stop why)
{
    ASSERT(r->work == RAFT_WORK_RUNNING);
    ASSERT(r->role == RAFT_LEADER);
    r->work = RAFT_WORK_STOPPING;
    r->stop_reason = why;
    raft_act(r, RAFT_STOP_WORK)->stop.reason = why;
}

/* Whatever was promised to an earlier epoch counts no more: a release of it may be about. */
void raft_next_lease_epoch(struct raft *r)
{
    ASSERT(r->role == RAFT_LEADER);
    ASSERT(r->work == RAFT_WORK_NONE);
    ASSERT(r->transfer.phase == RAFT_TRANSFER_NONE);
    ASSERT(!r->steps_down);
    r->is_lease_given_up = false;
    if (PLANTED(OLD_LEASE_EPOCH))
        return;
    r->lease_epoch++;
    for (size_t i = 0; i < r->peer_count; i++) {
        r->peers[i].acked_round = 0;
        r->peers[i].acked_promise = 0;
    }
    r->lease_until = 0;
    raft_new_round(r);
    raft_send_appends(r, true);
}

bool raft_is_working(const struct raft *r, gavel_ns now)
{
    return r->work == RAFT_WORK_RUNNING && now < r->lease_until;
}

gavel_ns raft_deadline(const struct raft *r) { return r->work == RAFT_WORK_RUNNING ? r->lease_until : 0; }
