/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who could hold a lease, and what a leader does that cannot.
 *
 * Getting elected takes answers within an election timeout. Working takes more: a
 * lease lasts promise - drift - margin from the send of a round, and rounds begin
 * once per heartbeat, so answers must be back within
 *
 *     promise * (1 - drift) / (1 + drift) - stop_margin - heartbeat
 *
 * A node that is further away can be elected and renew everybody's promise, but
 * never work. So
 *
 *  1. A leader that a majority answers, but that has no lease for CLAIM_PATIENCE,
 *     steps down with a release, and another has its turn. It does not begin work
 *     with a lease that the next round cannot renew, either. Where nobody is near,
 *     this would go on for ever, with a term for each turn. So after more than
 *     RAFT_IDLE_TURNS in a row a node stays longer each time, up to
 *     RAFT_CLAIM_PATIENCE_MAX. If a voter answers that did not answer in the last
 *     such turn, there is new hope, and the first patience applies again.
 *     A witness never works. It leads to bring a worker level and to hand over to
 *     it. If no worker has answered it for the same patience, it steps down as
 *     well: the workers may hear it, keep their promises to it, and be able to lead
 *     as soon as it leaves. If they are dead, the same back-off applies.
 *  2. Successors, and so the targets of transfers, are ordered by round trip:
 *     those that could hold a lease come first.
 *  3. A voter is added only if a majority of the new voters answers in time.
 */

#include "core/raft/internal.h"

/* A shorter round trip counts for so much; a longer one at once, since one late answer can end a lease. */
#define WEIGHT 4

/* So long at most a new leader waits for a promise that is being written. */
#define WRITING_MAX(settings) (16 * (settings)->election_max)

void raft_note_round_trip(struct raft *r, struct raft_peer *peer, uint64_t round)
{
    gavel_ns sample = ns_max(1, r->now - (gavel_ns)round);

    if ((gavel_ns)round <= peer->writing_at)
        return; /* its disk held this answer back, not its distance */
    if (sample >= peer->round_trip)
        peer->round_trip = sample;
    else if (peer->round_trip > 0)
        peer->round_trip -= (peer->round_trip - sample) / WEIGHT;
}

/* The longest round trip with which a lease is renewed before it lapses. */
gavel_ns raft_round_trip_max(const struct raft *r, gavel_ns promise)
{
    return raft_lease_length(r, promise) - r->settings.heartbeat;
}

gavel_ns raft_round_trip_limit(const struct raft *r) { return raft_round_trip_max(r, r->settings.promise); }

/* False only if it is known to be too far away: of one that has not answered yet nothing is known. */
bool raft_is_near(const struct raft *r, const struct raft_peer *peer)
{
    gavel_ns promise = peer->acked_promise > 0 ? peer->acked_promise : r->settings.promise;

    return peer->round_trip <= raft_round_trip_max(r, promise);
}

/* Without work of our own it may be we who are far from everybody. */
bool raft_is_far(const struct raft *r, raft_id id, gavel_ns *ret_round_trip, gavel_ns *ret_longest)
{
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (r->role != RAFT_LEADER || r->work != RAFT_WORK_RUNNING || !peer || raft_is_near(r, peer))
        return false;
    *ret_round_trip = peer->round_trip;
    *ret_longest =
        raft_round_trip_max(r, peer->acked_promise > 0 ? peer->acked_promise : r->settings.promise);
    return true;
}

/* For majorities of members that are known to be near. */
bool raft_makes_lease(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    return id == r->state.id || (peer && peer->round_trip > 0 && raft_is_near(r, peer));
}

/* Or as long as its disk is busy with its first promise. */
static bool may_make_lease(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);
    bool is_writing = peer && peer->acked_round == 0 && peer->writing_at > 0 &&
                      r->now - peer->writing_at < r->settings.election_max;

    return is_writing || raft_makes_lease(r, id);
}

/* Negated, because the instant by which enough voters had answered is wanted. */
static int64_t answered_at(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (id == r->state.id)
        return 0;
    return peer && peer->acked_round > 0 ? -peer->answered_at : -NEVER;
}

/* An answer from a voter that was silent in the last turn without work: somebody may be near to that one. */
static bool is_new_hope(const struct raft *r)
{
    for (size_t i = 0; i < r->peer_count; i++)
        if (r->peers[i].acked_round > 0 && !r->peers[i].was_idle && raft_peer_votes(r, &r->peers[i]))
            return true;
    return false;
}

static gavel_ns claim_patience(const struct raft *r)
{
    gavel_ns patience = RAFT_CLAIM_PATIENCE(&r->settings);

    if (r->idle_turns <= RAFT_IDLE_TURNS || is_new_hope(r))
        return patience;
    if (PLANTED(IDLE_WITHOUT_BACK_OFF))
        return patience;
    for (unsigned i = RAFT_IDLE_TURNS; i < r->idle_turns && patience < RAFT_CLAIM_PATIENCE_MAX(&r->settings);
         i++)
        patience *= 2;
    return patience;
}

/* It leads without a lease, although it is answered, and steps down for it. */
void raft_note_idle_turn(struct raft *r)
{
    if (is_new_hope(r))
        r->idle_turns = 0;
    r->idle_turns++;
    for (size_t i = 0; i < r->peer_count; i++)
        r->peers[i].was_idle = r->peers[i].acked_round > 0;
    if (r->idle_turns == RAFT_IDLE_TURNS + 1 && !raft_is_witness(r))
        (void)raft_tell(r, RAFT_NEWS_NOBODY_NEAR, r->state.id);
}

/* A leader that cannot work is gone by then; whom we have followed for longer works. */
void raft_note_followed(struct raft *r)
{
    ASSERT(r->leader != 0);
    if (r->now - r->followed_from <= 2 * RAFT_CLAIM_PATIENCE_MAX(&r->settings))
        return;
    r->idle_turns = 0;
    if (r->leader == r->preferred)
        r->preferred_in_vain = 0;
}

/* Negated, because the longest is wanted of those that a majority answers within. */
static int64_t answers_within(const void *context, raft_id id)
{
    const struct raft_peer *peer = raft_peer_at(context, id);

    if (id == ((const struct raft *)context)->state.id)
        return 0;
    return peer && peer->round_trip > 0 ? -peer->round_trip : -NEVER;
}

gavel_ns raft_majority_round_trip(const struct raft *r)
{
    return -raft_config_reached(&r->config, answers_within, r);
}

/* Distance says nothing of a witness: it has waited for an answer of a worker, not for a lease. */
bool raft_is_in_vain(const struct raft *r) { return r->idle_turns > RAFT_IDLE_TURNS && !raft_is_witness(r); }

/* When a worker, one that could lead for work, has answered last since we lead; NEVER if there is none. */
static gavel_ns worker_answered_at(const struct raft *r)
{
    gavel_ns at = NEVER;

    for (size_t i = 0; i < r->peer_count; i++) {
        const struct raft_peer *peer = &r->peers[i];
        gavel_ns answered = ns_max(peer->heard_at, peer->writing_at);

        if (raft_peer_votes(r, peer) && !raft_peer_is_witness(r, peer))
            at = at == NEVER ? answered : ns_max(at, answered);
    }
    return at;
}

bool raft_misses_workers(const struct raft *r)
{
    gavel_ns at = worker_answered_at(r);

    return raft_is_caretaker(r) && at != NEVER && r->now - at >= r->settings.election_min;
}

/* A caretaker is of no use without a worker that answers. While it hands over, that transfer decides. */
static gavel_ns care_by(const struct raft *r)
{
    gavel_ns at = worker_answered_at(r);

    if (at == NEVER || r->transfer.phase > RAFT_TRANSFER_CATCH_UP)
        return NEVER;
    return at + claim_patience(r);
}

/*
 * When a leader that is still without work steps down; NEVER if nothing says that another could do better.
 * The time runs from when a majority has answered in this lease epoch: before that a slow disk may be the
 * cause, and silence is for raft_contact_until(). While entries are missing elsewhere the lease is there, so
 * a leader that has to bring the others level first is left alone. So is one that completes a change of
 * members, which needs no lease and may be what makes one possible again. A caretaker needs no lease either,
 * but a worker that answers.
 */
gavel_ns raft_claim_by(const struct raft *r)
{
    gavel_ns since;

    if (r->role != RAFT_LEADER || r->work != RAFT_WORK_NONE || r->steps_down || r->is_lease_given_up ||
        r->config.is_joint || r->config_index > r->commit)
        return NEVER;
    if (PLANTED(IDLE_LEADER_STAYS))
        return NEVER;
    if (raft_is_caretaker(r))
        return care_by(r);
    if (r->transfer.phase != RAFT_TRANSFER_NONE)
        return NEVER;
    since = -raft_config_reached(&r->config, answered_at, r);
    if (since == NEVER || r->leased_until == NEVER)
        return NEVER;
    since = ns_max(since, ns_max(r->leased_until, r->hopeful_at));
    return since + claim_patience(r);
}

/* A new leader waits for a node that is near and still writes its first promise, though others have
 * answered. */
void raft_hope(struct raft *r)
{
    if (r->work == RAFT_WORK_NONE && r->now < r->led_from + WRITING_MAX(&r->settings) &&
        raft_config_decides(&r->config, may_make_lease, r))
        r->hopeful_at = r->now;
}

/* The lease does not lapse before the next round begins: else its answers come too late to renew it. */
bool raft_is_lasting(const struct raft *r) { return r->lease_until - r->now > r->settings.heartbeat; }
