/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The voter's side of elections: one vote per term, durable before it is sent,
 * and only for a log that is at least as up to date (thesis, section 3.6.1).
 * The gate (promise.c) comes before all of that. A pre-vote asks the same
 * question and changes nothing (thesis, section 9.6).
 */

#include "core/raft/internal.h"

/* The candidate's log is at least as up to date as ours. */
bool raft_log_is_current(const struct raft *r, const struct raft_vote *vote)
{
    raft_term own = raft_log_last_term(&r->log);

    if (PLANTED(LOG_NOT_COMPARED))
        return true;
    if (PLANTED(WITNESS_TRUNCATES) && raft_is_witness(r) && vote->last_index >= r->commit)
        return true;
    if (raft_is_blank(r, vote->last_index))
        return false;
    return vote->last_term > own || (vote->last_term == own && vote->last_index >= raft_log_last(&r->log));
}

/*
 * A forced transfer: the leader of `certificate.term` commits nothing beyond `certificate.commit` any more,
 * and has named one target that has everything up to there. In exactly the next term that target may win with
 * a log that is shorter than ours. Nothing committed is lost: all of it was committed in that term or before,
 * up to that index, and nobody else can commit in the next term. What is lost are entries that nobody was
 * told to be committed.
 */
static bool is_forced(const struct raft *r, const struct raft_message *m)
{
    const struct raft_certificate *c = &m->vote.certificate;

    return c->kind == RAFT_CERT_FORCE && c->target == m->from && m->vote.term == c->term + 1 &&
           m->vote.last_index >= c->commit && raft_log_last_term(&r->log) <= c->term &&
           raft_certificate_is_genuine(r, c);
}

/* Priority decides who hands over to whom, never who may be voted for: this is for the planted bug only. */
static bool is_outranked(const struct raft *r, const struct raft_vote *vote)
{
    const struct raft_member *self = raft_config_find(&r->config, r->state.id);

    return self && vote->priority < self->priority;
}

static void reply(struct raft *r, const struct raft_message *m, enum raft_reason reason, gavel_ns wait)
{
    bool is_pre = m->kind == RAFT_MSG_PRE_VOTE;
    enum raft_after after = is_pre ? RAFT_AFTER_NOTHING : RAFT_AFTER_ALL;

    if (PLANTED(VOTE_NOT_PERSISTED))
        after = RAFT_AFTER_NOTHING;
    raft_send(r, is_pre ? RAFT_MSG_PRE_VOTE_REPLY : RAFT_MSG_VOTE_REPLY, m->from, after)->vote_reply =
        (struct raft_vote_reply){
            .term = m->vote.term,
            .round = m->vote.round,
            .reason = reason,
            .voted_for = reason == RAFT_VOTED ? r->state.vote : 0,
            .wait = reason == RAFT_LEASE ? wait : 0,
        };
}

/* Our vote of this term is on its way to disk: we could not give another one now, and whom we gave it to may
 * win. */
static bool is_voting(const struct raft *r)
{
    if (PLANTED(PRE_VOTE_WHILE_VOTING))
        return false;
    return r->role != RAFT_LEADER && r->state.vote != 0 && raft_is_writing_state(r);
}

/*
 * We stand and wait for votes that are being written, and one that has voted for us wants to stand itself. In
 * a new term those writes would be worthless, and it would wait for its own slow voters until we stand again,
 * for ever.
 */
static bool is_waiting_for_votes(const struct raft *r, raft_id from)
{
    const struct raft_peer *peer = raft_peer_at(r, from);

    return peer && peer->is_granted && raft_waits_for_votes(r);
}

void raft_receive_pre_vote(struct raft *r, const struct raft_message *m)
{
    const struct raft_certificate *c = &m->vote.certificate;
    enum raft_reason reason = RAFT_GRANTED;
    gavel_ns wait = 0;

    if (!raft_peer_takes_vote(r, m->from) || raft_disk_hangs(r, r->now))
        return; /* the vote itself would never leave: whoever counts on it stands in vain */
    if (c->kind != RAFT_CERT_NONE && !raft_certificate_is_genuine(r, c))
        c = NULL;
    if (PLANTED(PRE_VOTE_RESETS_TIMER) && r->role == RAFT_FOLLOWER)
        raft_restart_timer(r);
    if (m->vote.term <= r->state.term)
        reason = RAFT_TERM;
    else if (!raft_gate(r, m->from, m->incarnation, m->vote.last_term, c, &wait))
        reason = RAFT_LEASE;
    else if (is_voting(r) || is_waiting_for_votes(r, m->from))
        reason = RAFT_VOTED;
    else if (r->role == RAFT_LEADER && !r->is_lease_given_up) {
        reason = RAFT_LEASE; /* elected and about to claim: no need for another election */
        wait = r->settings.election_min;
    } else if (!raft_log_is_current(r, &m->vote) && !is_forced(r, m))
        reason = RAFT_LOG;
    reply(r, m, reason, wait);
}

static void write_vote(struct raft *r, raft_id candidate)
{
    r->state.vote = candidate;
    if (PLANTED(VOTE_NOT_PERSISTED))
        return;
    raft_mark_state(r);
}

/*
 * A request that comes late or twice: its election is won, and what we promised the winner since is part of
 * its lease. Only promises of earlier terms end with a vote.
 */
static bool is_promised_to_winner(const struct raft *r)
{
    if (PLANTED(LATE_VOTE_CLEARS))
        return false;
    return r->state.promise.leader != 0 && r->state.promise.term == r->state.term;
}

/* The promise, which the gate has passed, ends with the vote. */
static void grant(struct raft *r, raft_id candidate)
{
    bool is_known = r->state.vote == candidate;

    if (PLANTED(LATE_VOTE_CLEARS))
        is_known = false;
    if (is_known)
        return;                                  /* asked twice, answered twice */
    raft_become_follower(r, RAFT_STOP_REPLACED); /* ends a round of pre-votes of our own */
    ASSERT(candidate != r->state.id);
    ASSERT(r->role != RAFT_LEADER);
    write_vote(r, candidate);
    if (is_promised_to_winner(r))
        return;
    raft_promise_clear(r);
    raft_set_leader(r, 0, 0);
    raft_restart_timer(r);
    r->awaits_winner = true;
    ASSERT(r->state.vote == candidate);
    ASSERT(r->work != RAFT_WORK_RUNNING);
}

static enum raft_reason decide(struct raft *r, const struct raft_message *m, gavel_ns *ret_wait)
{
    bool has_voted = m->vote.term == r->state.term && r->state.vote != 0 && r->state.vote != m->from;

    if (PLANTED(TWO_VOTES))
        has_voted = false;
    if (m->vote.term < r->state.term)
        return RAFT_TERM;
    if (has_voted)
        return RAFT_VOTED;
    if (!raft_gate(r, m->from, m->incarnation, m->vote.last_term, NULL, ret_wait)) {
        raft_meet_term(r, m->vote.term);
        return RAFT_LEASE;
    }
    if (m->vote.term > r->state.term)
        raft_adopt_term(r, m->vote.term);
    if (!raft_log_is_current(r, &m->vote) && !is_forced(r, m))
        return RAFT_LOG;
    if (PLANTED(PRIORITY_VETO) && is_outranked(r, &m->vote))
        return RAFT_LOG;
    return RAFT_GRANTED;
}

void raft_receive_vote(struct raft *r, const struct raft_message *m)
{
    enum raft_reason reason;
    gavel_ns wait = 0;

    if (!raft_peer_takes_vote(r, m->from))
        return;
    if (m->vote.certificate.kind != RAFT_CERT_NONE && !raft_take_certificate(r, &m->vote.certificate))
        raft_refuse(r, m->from, "a vote request with a certificate that is not genuine");
    reason = decide(r, m, &wait);
    if (reason == RAFT_GRANTED)
        grant(r, m->from);
    raft_record_asked(r, m->vote.term, m->from, reason);
    reply(r, m, reason, wait);
}
