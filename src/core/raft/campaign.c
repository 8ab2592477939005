/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The candidate's side of elections: asking, counting, and trying again.
 *
 * A round of pre-votes comes first, unless it is known that nobody leads and we
 * are the successor (a transfer, or an obituary of our leader). A voter that
 * refuses because of a promise says how long it lasts, so that we ask again as
 * soon as enough voters are free, and not a whole timeout later.
 */

#include "core/raft/internal.h"

/* Times that a candidate asks again in one term: with the default timeouts for two seconds, and for longer
 * when that was not enough. */
#define ASK_AGAIN_MAX 8u
#define ASK_LONGER_MAX 3 /* doublings */

static bool is_asked(const struct raft *r, const struct raft_peer *peer)
{
    if (PLANTED(COUNTS_LEARNER))
        return true;
    return raft_peer_votes(r, peer);
}

/* Asks every voter, old and new, for what our role needs. */
void raft_ask_votes(struct raft *r)
{
    bool is_pre = r->role == RAFT_PRE_CANDIDATE;
    const struct raft_member *self = raft_config_find(&r->config, r->state.id);

    ASSERT(is_pre || r->role == RAFT_CANDIDATE);
    if (!is_pre)
        ASSERT(r->state.vote == r->state.id);
    for (size_t i = 0; i < r->peer_count; i++) {
        if (!is_asked(r, &r->peers[i]))
            continue;
        raft_send(r, is_pre ? RAFT_MSG_PRE_VOTE : RAFT_MSG_VOTE, r->peers[i].id,
                  is_pre ? RAFT_AFTER_NOTHING : RAFT_AFTER_ALL)
            ->vote = (struct raft_vote){
            .term = is_pre ? r->state.term + 1 : r->state.term,
            .round = is_pre ? r->round : 0,
            .last_index = raft_log_last(&r->log),
            .last_term = raft_log_last_term(&r->log),
            .priority = self ? self->priority : 0,
            .certificate = r->certificate,
        };
    }
}

/* ERR_STATE if we may not at all, ERR_VOTE_DENIED if a promise forbids it for now. */
enum gavel_status raft_stand(struct raft *r, bool is_direct)
{
    gavel_ns wait;

    if (r->role == RAFT_LEADER || !raft_may_stand(r) || r->state.term + 1 >= RAFT_NUMBER_MAX)
        return GAVEL_ERR_STATE;
    if (raft_disk_hangs(r, r->now) || raft_is_blank(r, raft_log_last(&r->log)))
        return GAVEL_ERR_STATE; /* our own vote would never be durable; or we have lost, or never had, all */
    if (raft_put_off_standing(r, is_direct))
        return GAVEL_ERR_VOTE_DENIED;
    if (!raft_gate_self(r, &wait)) {
        r->election_at = r->now + ns_max(wait, NS_PER_MS) + raft_rank(r) * NS_PER_MS;
        return GAVEL_ERR_VOTE_DENIED;
    }
    if (r->role == RAFT_CANDIDATE)
        raft_become_follower(r, RAFT_STOP_COMMAND);
    if (is_direct)
        raft_become_candidate(r);
    else
        raft_become_pre_candidate(r);
    r->stands_directly = false;
    raft_ask_votes(r);
    raft_count_votes(r);
    ASSERT(r->role != RAFT_LEADER); /* our own vote is not durable before this step has ended */
    return GAVEL_OK;
}

static bool has_vote(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (id == r->state.id)
        return r->role == RAFT_PRE_CANDIDATE || r->durable_seq >= r->own_vote_seq;
    return peer && peer->is_granted;
}

static bool may_have_vote(const void *context, raft_id id)
{
    const struct raft_peer *peer = raft_peer_at(context, id);

    return !peer || !peer->has_answered || peer->is_granted;
}

static bool has_majority(const struct raft *r)
{
    if (PLANTED(COUNTS_LEARNER)) {
        unsigned votes = has_vote(r, r->state.id);
        unsigned voters = 0;

        for (size_t i = 0; i < r->peer_count; i++)
            votes += r->peers[i].is_granted;
        for (unsigned i = 0; i < r->config.count; i++)
            voters += r->config.members[i].is_voter;
        return votes > voters / 2;
    }
    return raft_config_decides(&r->config, has_vote, r);
}

/* Soon, but not at once: a rival that lost in the same way must not meet us again. */
static gavel_ns soon(struct raft *r)
{
    gavel_ns step = raft_rank_step(r);

    return step / 2 + prng_between(&r->prng, 0, step << (r->failures < 4 ? r->failures : 4));
}

/* Somebody has voted for another: with a voter that is dead, neither may ever have a majority, and none will
 * know. */
static bool has_rival(const struct raft *r)
{
    for (size_t i = 0; i < r->peer_count; i++)
        if (r->peers[i].has_answered && r->peers[i].reason == RAFT_VOTED)
            return true;
    return false;
}

static void lose(struct raft *r)
{
    ASSERT(r->role == RAFT_CANDIDATE);
    raft_record_end(r, RAFT_LOST);
    r->failures++;
    raft_become_follower(r, RAFT_STOP_COMMAND);
    ASSERT(r->role != RAFT_CANDIDATE);
    /* Soon, but not at once: a rival that lost in the same way must not meet us again. */
    r->election_at =
        r->now + prng_between(&r->prng, NS_PER_MS, raft_rank_step(r) << (r->failures < 4 ? r->failures : 4));
}

/* For pre-votes: negated, because the instant by which enough voters are free is wanted. */
static int64_t free_from(const void *context, raft_id id)
{
    const struct raft_peer *peer = raft_peer_at(context, id);

    if (!peer || peer->is_granted)
        return 0;
    return -peer->wait_until;
}

/* Asks again just when enough promises will have ended. */
static void ask_in_time(struct raft *r)
{
    gavel_ns at = -raft_config_reached(&r->config, free_from, r);

    ASSERT(r->role == RAFT_PRE_CANDIDATE);
    if (at == NEVER || at <= 0)
        return;
    at = ns_max(at, r->now + NS_PER_MS) + raft_rank(r) * NS_PER_MS + prng_between(&r->prng, 0, NS_PER_MS);
    r->election_at = ns_min(r->election_at, at);
}

struct rival {
    const struct raft *r;
    raft_id id;
};

/* It said in this round of pre-votes, or in the one before, that its vote is on its way to disk. */
static bool votes_for_rival(const void *context, raft_id id)
{
    const struct rival *rival = context;
    const struct raft *r = rival->r;
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (id == r->state.id)
        return r->state.vote == rival->id;
    return peer && peer->writes_vote_for == rival->id && peer->writes_vote_term == r->state.term &&
           peer->writes_vote_round + 1 >= r->round;
}

/* Somebody leads: whoever the votes were for has won, or has lost. Without that, our next campaign, which may
 * be a month later, would wait for a winner that has led and died. */
void raft_forget_rivals(struct raft *r)
{
    for (size_t i = 0; i < r->peer_count; i++)
        r->peers[i].writes_vote_for = 0;
}

/*
 * A majority is writing its votes of the present term for another candidate: it is about to win. In a new
 * term all of these writes would be worthless, and might be so again and again.
 */
static bool is_rival_winning(const struct raft *r)
{
    for (size_t i = 0; i < r->peer_count; i++) {
        struct rival rival = {r, r->peers[i].id};

        if (raft_config_decides(&r->config, votes_for_rival, &rival))
            return true;
    }
    return false;
}

/* We have voted for another in this term, and some that have not answered yet may say that they have, too. */
static bool may_hear_of_rival(const struct raft *r)
{
    if (!r->awaits_winner || r->state.vote == 0 || r->now >= r->round_at + r->settings.heartbeat)
        return false;
    for (size_t i = 0; i < r->peer_count; i++)
        if (raft_peer_votes(r, &r->peers[i]) && !r->peers[i].has_answered)
            return true;
    return false;
}

static void count_pre_votes(struct raft *r)
{
    ASSERT(r->role == RAFT_PRE_CANDIDATE);
    if (is_rival_winning(r))
        return; /* asks again after a timeout */
    if (!has_majority(r)) {
        ask_in_time(r);
    } else if (may_hear_of_rival(r)) {
        r->election_at = ns_min(r->election_at, r->round_at + r->settings.heartbeat);
    } else {
        raft_become_candidate(r);
        r->is_pre_voted = true;
        raft_ask_votes(r);
    }
}

void raft_count_votes(struct raft *r)
{
    if (raft_is_blank(r, raft_log_last(&r->log)))
        return; /* heard since we stood */
    if (r->role == RAFT_PRE_CANDIDATE) {
        count_pre_votes(r);
    } else if (r->role == RAFT_CANDIDATE) {
        if (has_majority(r) && r->durable_seq >= r->own_vote_seq)
            raft_become_leader(r); /* else with our own vote, though the others are a majority without it */
        else if (!raft_config_decides(&r->config, may_have_vote, r))
            lose(r);
        else if (has_rival(r))
            r->election_at = ns_min(r->election_at, r->now + soon(r));
    }
}

/* Notes the answer of one voter; false if there is nothing to count. */
static bool note_answer(struct raft *r, const struct raft_message *m)
{
    struct raft_peer *peer = raft_peer_find(r, m->from);
    const struct raft_vote_reply *answer = &m->vote_reply;

    ASSERT(r->role == RAFT_PRE_CANDIDATE || r->role == RAFT_CANDIDATE);
    if (!peer || (peer->has_answered && peer->is_granted))
        return false; /* a stranger, or told before */
    peer->has_answered = true;
    peer->is_granted = answer->reason == RAFT_GRANTED;
    peer->reason = answer->reason;
    peer->wait_until = answer->reason == RAFT_LEASE ? r->now + answer->wait : NEVER;
    if (r->role == RAFT_PRE_CANDIDATE && answer->reason == RAFT_VOTED && m->term == r->state.term) {
        peer->writes_vote_for = answer->voted_for;
        peer->writes_vote_term = m->term;
        peer->writes_vote_round = r->round;
    }
    raft_record_ballot(r, m->from, peer->is_granted ? r->state.id : answer->voted_for, answer->reason);
    return true;
}

void raft_receive_pre_vote_reply(struct raft *r, const struct raft_message *m)
{
    bool is_ours = r->role == RAFT_PRE_CANDIDATE && m->vote_reply.round == r->round &&
                   m->vote_reply.term == r->state.term + 1;

    if (PLANTED(PRE_VOTE_AS_VOTE) && r->role == RAFT_CANDIDATE && m->vote_reply.term == r->state.term)
        is_ours = true;
    if (is_ours && note_answer(r, m))
        raft_count_votes(r);
    if (m->term > r->state.term && m->vote_reply.reason != RAFT_GRANTED) {
        raft_meet_term(r, m->term);
        if (r->role == RAFT_FOLLOWER && is_ours) /* we were behind: ask again with the right term */
            r->election_at =
                ns_min(r->election_at, r->now + prng_between(&r->prng, NS_PER_MS, raft_rank_step(r)));
    }
}

void raft_receive_vote_reply(struct raft *r, const struct raft_message *m)
{
    if (m->term > r->state.term) {
        raft_meet_term(r, m->term);
        return;
    }
    if (r->role != RAFT_CANDIDATE || m->vote_reply.term != r->state.term)
        return;
    if (note_answer(r, m))
        raft_count_votes(r);
}

/* Not by one whose log is newer: that one refuses us in a new term, too, and the others may still be enough,
 * or we would have lost. */
static bool is_refused(const struct raft *r)
{
    for (size_t i = 0; i < r->peer_count; i++)
        if (r->peers[i].has_answered && !r->peers[i].is_granted && r->peers[i].reason != RAFT_LOG)
            return true;
    return false;
}

/*
 * A majority said that it would vote for us, and nobody has refused since: the votes are probably on their
 * way. Not for ever, because voters may have died meanwhile. Who stands directly, after a hand-over, has no
 * such word, and may reach nobody.
 */
bool raft_waits_for_votes(const struct raft *r)
{
    return r->role == RAFT_CANDIDATE && r->is_pre_voted && !is_refused(r) && r->asked_again < ASK_AGAIN_MAX;
}

/*
 * Granted its pre-votes, and nobody that could still vote for it has said no: its requests were lost, or
 * voters with slow disks are still writing. A new term would only be one more write for them.
 */
static bool ask_again(struct raft *r)
{
    unsigned longer = r->failures < ASK_LONGER_MAX ? r->failures : ASK_LONGER_MAX;

    if (r->role != RAFT_CANDIDATE || is_refused(r) || r->asked_again >= ASK_AGAIN_MAX << longer)
        return false;
    if (PLANTED(NEW_TERM_EACH_TIME))
        return false;
    r->asked_again++;
    raft_retry_timer(r);
    raft_ask_votes(r);
    return true;
}

/* The timer has run out: thesis, section 3.4; a candidate without a majority begins again with pre-votes. */
void raft_election_due(struct raft *r)
{
    bool is_direct = r->stands_directly || r->is_eager;

    ASSERT(r->role != RAFT_LEADER);
    if (raft_put_off_standing(r, is_direct) || ask_again(r))
        return;
    if (r->role == RAFT_PRE_CANDIDATE && has_majority(r)) {
        raft_count_votes(r); /* waited for the others long enough */
        if (r->role == RAFT_CANDIDATE)
            return;
    }
    if (r->role == RAFT_CANDIDATE) {
        raft_record_end(r, RAFT_TIMED_OUT);
        r->failures++;
    }                       /* rounds of pre-votes go on in one record until something comes of them */
    r->election_at = NEVER; /* set again by whatever comes next */
    if (raft_stand(r, is_direct) == GAVEL_ERR_STATE && r->role != RAFT_LEARNER)
        raft_restart_timer(r);
}
