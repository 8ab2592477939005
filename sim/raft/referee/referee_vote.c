/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Votes: every vote, refusal, candidacy and growth of a term is judged by what
 * the node knew before the step.
 */

#include "sim/raft/referee/referee_shadow.h"

/* The rules that a vote may be refused by, as they are from outside. */
static bool is_log_current(const struct view *before, const struct raft_vote *vote)
{
    return vote->last_term > before->last_term ||
           (vote->last_term == before->last_term && vote->last_index >= before->last);
}

/* A forced transfer lets its target win with a shorter log, that has all that was committed. */
static bool is_forced(const struct view *before, const struct raft_vote *vote, raft_id candidate)
{
    const struct raft_certificate *c = &vote->certificate;

    return c->kind == RAFT_CERT_FORCE && c->target == candidate && vote->term == c->term + 1 &&
           vote->last_index >= c->commit && before->last_term <= c->term;
}

/* Whether the step gave this node's vote of its present term, and to whom. */
static raft_id vote_given(const struct shadow *shadow)
{
    const struct raft_state *state = &shadow->raft->state;

    if (state->term == shadow->before.term && state->vote == shadow->before.vote)
        return 0;
    return state->vote;
}

static void check_gate(struct raft_referee *referee, struct shadow *shadow, const struct raft_event *event,
                       raft_id candidate, uint64_t incarnation, raft_term last_term, const char *what)
{
    const struct raft_promise *promise = &shadow->promised.promise;

    if (!referee_is_promised(shadow, event->now) ||
        referee_gate_opens(referee, shadow, candidate, incarnation, last_term))
        return;
    raft_referee_violate(
        referee, RAFT_INVARIANT_GATE,
        "node %llu %s node %llu, although its promise to node %llu (incarnation %llu, term %llu, lease epoch %llu) holds for %lld ns yet",
        (ull)shadow->id, what, (ull)candidate, (ull)promise->leader, (ull)promise->incarnation,
        (ull)promise->term, (ull)promise->lease_epoch, (long long)(shadow->promised.until - event->now));
}

static void check_vote_given(struct raft_referee *referee, struct shadow *shadow,
                             const struct raft_event *event, raft_id candidate)
{
    const struct view *before = &shadow->before;
    const struct raft_message *message = event->kind == RAFT_RECEIVE ? event->message : NULL;

    if (shadow->raft->state.term == before->term && before->vote != 0)
        raft_referee_violate(referee, RAFT_INVARIANT_VOTE_ONCE,
                             "node %llu votes for %llu and then for %llu in term %llu", (ull)shadow->id,
                             (ull)before->vote, (ull)candidate, (ull)before->term);
    if (shadow->is_working)
        raft_referee_violate(referee, RAFT_INVARIANT_WORKING,
                             "node %llu votes for node %llu while its own work runs", (ull)shadow->id,
                             (ull)candidate);
    if (candidate == shadow->id) {
        check_gate(referee, shadow, event, candidate, shadow->incarnation, before->last_term, "stands:");
    } else {
        if (!message || message->kind != RAFT_MSG_VOTE || message->from != candidate ||
            message->vote.term != shadow->raft->state.term) {
            raft_referee_violate(referee, RAFT_INVARIANT_GRANT,
                                 "node %llu votes for node %llu without being asked", (ull)shadow->id,
                                 (ull)candidate);
            return;
        }
        if (!is_log_current(before, &message->vote) && !is_forced(before, &message->vote, candidate))
            raft_referee_violate(
                referee, RAFT_INVARIANT_GRANT,
                "node %llu, whose log ends at %llu of term %llu, votes for node %llu with one to %llu of term %llu",
                (ull)shadow->id, (ull)before->last, (ull)before->last_term, (ull)candidate,
                (ull)message->vote.last_index, (ull)message->vote.last_term);
        check_gate(referee, shadow, event, candidate, message->incarnation, message->vote.last_term,
                   "votes for");
    }
    /* A late request of the one who already leads in this term ends nothing. */
    if (shadow->promised.promise.term < shadow->raft->state.term)
        shadow->promised.promise.leader = 0;
}

/* A higher term that is merely heard of is not adopted by who is bound. */
static void check_term_grown(struct raft_referee *referee, struct shadow *shadow,
                             const struct raft_event *event)
{
    const struct raft_message *message = event->kind == RAFT_RECEIVE ? event->message : NULL;
    raft_id candidate = shadow->id;
    uint64_t incarnation = shadow->incarnation;
    raft_term last_term = shadow->before.last_term;

    if (message && (message->kind == RAFT_MSG_APPEND || message->kind == RAFT_MSG_SNAPSHOT))
        return;
    if (shadow->is_working)
        raft_referee_violate(referee, RAFT_INVARIANT_WORKING,
                             "node %llu goes to term %llu while its own work runs", (ull)shadow->id,
                             (ull)shadow->raft->state.term);
    if (message && message->kind == RAFT_MSG_VOTE) {
        candidate = message->from;
        incarnation = message->incarnation;
        last_term = message->vote.last_term;
    }
    check_gate(referee, shadow, event, candidate, incarnation, last_term, "adopts a higher term by");
}

/* A step that only answers a pre-vote leaves the voter as it was, but for what came due anyway. */
static void check_pre_vote(struct raft_referee *referee, const struct shadow *shadow,
                           const struct raft_event *event)
{
    const struct view *before = &shadow->before;
    const struct raft *raft = shadow->raft;
    const char *what = NULL;

    if (before->wake_at <= event->now)
        return;
    if (raft->state.term != before->term)
        what = "its term";
    else if (raft->state.vote != before->vote)
        what = "its vote";
    else if (raft->state.promise.leader != before->promise.leader ||
             raft->promise_until != before->promise_until)
        what = "its promise";
    else if (raft->election_at != before->election_at)
        what = "its election timer";
    else if (raft->heard_at != before->heard_at)
        what = "when it heard of its leader";
    else if (raft->role != before->role || raft->leader != before->leader)
        what = "its role or leader";
    else if (raft->round != before->round || raft->failures != before->failures)
        what = "its own candidacy";
    if (what)
        raft_referee_violate(referee, RAFT_INVARIANT_PRE_VOTE,
                             "a pre-vote of node %llu changes %s at node %llu", (ull)event->message->from,
                             what, (ull)shadow->id);
}

/* Whether the certificate that came along makes the promise void; here it is taken as genuine. */
static bool covers(const struct raft_certificate *c, const struct raft_promise *promise)
{
    if (c->kind == RAFT_CERT_NONE || c->node != promise->leader)
        return false;
    if (c->kind == RAFT_CERT_OBITUARY)
        return c->incarnation >= promise->incarnation;
    return c->incarnation == promise->incarnation && c->term == promise->term &&
           c->lease_epoch >= promise->lease_epoch;
}

static bool is_lease_reason(const struct raft_referee *referee, const struct shadow *shadow,
                            const struct raft_event *event)
{
    const struct raft_message *message = event->message;
    const struct raft_promise *promise = &shadow->promised.promise;

    if (shadow->is_working || shadow->before.work != RAFT_WORK_NONE || shadow->before.role == RAFT_LEADER)
        return true;
    return referee_is_promised(shadow, event->now) &&
           (referee->options.has_forgeries || shadow->before.promise.leader != 0) &&
           message->vote.last_term <= promise->term && !covers(&message->vote.certificate, promise) &&
           !(message->from == promise->leader && message->incarnation >= promise->incarnation);
}

/*
 * VOTED, to a pre-vote: the vote is on its way to disk, and no other could be given now; or a candidate was
 * asked by one that has voted for it.
 */
static bool is_vote_waited_for(const struct raft_referee *referee, const struct shadow *shadow, raft_id from)
{
    const struct view *before = &shadow->before;

    if (before->vote != 0 && before->is_writing && before->role != RAFT_LEADER)
        return true;
    return before->role == RAFT_CANDIDATE && from < RAFT_REFEREE_IDS &&
           referee_has_voted(&referee->shadows[from], before->term, shadow->id);
}

static bool is_refusal_true(const struct raft_referee *referee, const struct shadow *shadow,
                            const struct raft_event *event, const struct raft_vote_reply *reply)
{
    const struct view *before = &shadow->before;
    const struct raft_message *message = event->message;
    bool is_pre_vote = message->kind == RAFT_MSG_PRE_VOTE;

    switch (reply->reason) {
    case RAFT_TERM:
        return message->vote.term < before->term || (is_pre_vote && message->vote.term == before->term);
    case RAFT_LOG: /* or it is empty, though something is committed (src/core/raft/directory.c, rule 4) */
        if (message->vote.last_index == 0 && referee->commit > 0)
            return true;
        return !is_log_current(before, &message->vote) && !is_forced(before, &message->vote, message->from);
    case RAFT_VOTED:
        if (is_pre_vote)
            return is_vote_waited_for(referee, shadow, message->from);
        return message->vote.term == before->term && before->vote != 0 && before->vote != message->from;
    case RAFT_LEASE:
        return is_lease_reason(referee, shadow, event);
    default:
        return true;
    }
}

/* Answers to the request that this step took in. */
static void check_answer(struct raft_referee *referee, struct shadow *shadow, const struct raft_event *event,
                         const struct raft_actions *actions, enum gavel_status status)
{
    const struct raft_message *asked = event->message;
    enum raft_message_kind kind =
        asked->kind == RAFT_MSG_VOTE ? RAFT_MSG_VOTE_REPLY : RAFT_MSG_PRE_VOTE_REPLY;
    const struct raft_vote_reply *reply = NULL;

    for (size_t i = 0; i < actions->count; i++) {
        const struct raft_action *action = &actions->items[i];

        if (action->kind == RAFT_SEND && action->send.message.kind == kind &&
            action->send.message.to == asked->from)
            reply = &action->send.message.vote_reply;
    }
    if (!reply) {
        bool may_hang = asked->kind == RAFT_MSG_PRE_VOTE && shadow->raft->durable_seq < shadow->raft->seq;

        if (status == GAVEL_OK && !may_hang && !shadow->raft->is_failed &&
            shadow->raft->dropped_votes == shadow->before.dropped_votes)
            raft_referee_violate(referee, RAFT_INVARIANT_REASON,
                                 "node %llu gives node %llu no answer to its %s", (ull)shadow->id,
                                 (ull)asked->from, raft_message_name(asked->kind));
        return;
    }
    if (!is_refusal_true(referee, shadow, event, reply))
        raft_referee_violate(referee, RAFT_INVARIANT_REASON,
                             "node %llu refuses the %s of node %llu for %s, which is not so", (ull)shadow->id,
                             raft_message_name(asked->kind), (ull)asked->from,
                             raft_reason_name(reply->reason));
    if (reply->reason != RAFT_GRANTED)
        return;
    check_gate(referee, shadow, event, asked->from, asked->incarnation, asked->vote.last_term,
               "grants a vote to");
    if (shadow->is_working)
        raft_referee_violate(referee, RAFT_INVARIANT_WORKING, "node %llu grants a %s while its own work runs",
                             (ull)shadow->id, raft_message_name(asked->kind));
    if (kind == RAFT_MSG_VOTE_REPLY &&
        (shadow->raft->state.vote != asked->from || shadow->raft->state.term != asked->vote.term) &&
        /* asked again, it says so again, and may stand itself in the same step */
        (shadow->before.vote != asked->from || shadow->before.term != asked->vote.term))
        raft_referee_violate(referee, RAFT_INVARIANT_VOTE_ONCE,
                             "node %llu grants node %llu a vote that it has not given", (ull)shadow->id,
                             (ull)asked->from);
    if (kind == RAFT_MSG_VOTE_REPLY &&
        reply->term != asked->vote.term) /* it would count in another election */
        raft_referee_violate(referee, RAFT_INVARIANT_VOTE_ONCE,
                             "node %llu grants node %llu a vote of term %llu, asked for one of term %llu",
                             (ull)shadow->id, (ull)asked->from, (ull)reply->term, (ull)asked->vote.term);
    if (!is_log_current(&shadow->before, &asked->vote) &&
        !is_forced(&shadow->before, &asked->vote, asked->from))
        raft_referee_violate(referee, RAFT_INVARIANT_GRANT,
                             "node %llu grants a %s to node %llu with an older log", (ull)shadow->id,
                             raft_message_name(asked->kind), (ull)asked->from);
}

void referee_check_votes(struct raft_referee *referee, struct shadow *shadow, const struct raft_event *event,
                         enum gavel_status status, const struct raft_actions *actions)
{
    const struct raft_state *state = &shadow->raft->state;
    bool is_message = event->kind == RAFT_RECEIVE;
    raft_id candidate = vote_given(shadow);

    if (state->term < shadow->before.term)
        raft_referee_violate(referee, RAFT_INVARIANT_REGRESS, "node %llu goes from term %llu back to %llu",
                             (ull)shadow->id, (ull)shadow->before.term, (ull)state->term);
    if (is_message && (event->message->kind == RAFT_MSG_VOTE || event->message->kind == RAFT_MSG_PRE_VOTE))
        check_answer(referee, shadow, event, actions, status);
    if (is_message && event->message->kind == RAFT_MSG_PRE_VOTE)
        check_pre_vote(referee, shadow, event);
    if (state->term > shadow->before.term)
        check_term_grown(referee, shadow, event);
    if (candidate != 0)
        check_vote_given(referee, shadow, event, candidate);
}

struct ballot_box {
    const struct raft_referee *referee;
    raft_term term;
    raft_id candidate;
};

static bool has_voted(const void *context, raft_id id)
{
    const struct ballot_box *box = context;

    return id < RAFT_REFEREE_IDS && referee_has_voted(&box->referee->shadows[id], box->term, box->candidate);
}

/* A node has just become leader. */
void referee_check_elected(struct raft_referee *referee, struct shadow *shadow)
{
    const struct raft *raft = shadow->raft;
    struct leadership *known = &referee->leaders[raft->state.term % LEADERS_KEPT];
    struct ballot_box box = {referee, raft->state.term, shadow->id};

    referee->counts.elections_won++;
    if (known->term == raft->state.term)
        raft_referee_violate(referee, RAFT_INVARIANT_ELECTION,
                             "node %llu leads in term %llu, in which node %llu has led", (ull)shadow->id,
                             (ull)raft->state.term, (ull)known->id);
    *known = (struct leadership){raft->state.term, shadow->id, shadow->incarnation};
    if (!referee_decides(&raft->config, has_voted, &box))
        raft_referee_violate(referee, RAFT_INVARIANT_VOTES,
                             "node %llu leads in term %llu without durable votes of a majority",
                             (ull)shadow->id, (ull)raft->state.term);
    referee_log_elected(referee, shadow);
}
