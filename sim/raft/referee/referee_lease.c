/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases, claims and certificates: the leader's side.
 *
 * That the work of two leaders never overlaps is judged in real time, at the
 * claim. That seldom shows why, so the lease itself is reckoned once more, from
 * the answers that were delivered to the leader:
 *
 *     round_i + promise_i * (1 - drift) / (1 + drift) - stop_margin
 *
 * over the voters, as a majority has reached it.
 */

#include "sim/raft/referee/referee_shadow.h"

#include <string.h>

/* Products of nanoseconds and millionths need more than 64 bits. */
__extension__ typedef __int128 wide;

static struct token token_now(const struct raft *raft)
{
    return (struct token){raft->state.term, raft->lease_epoch};
}

/* An answer has reached a leader. Counted by what was current when it came. */
static void note_answer(struct shadow *shadow, const struct raft_event *event)
{
    const struct raft_message *message = event->message;
    const struct raft_append_reply *reply = &message->append_reply;
    struct acked *acked = &shadow->acked[message->from < RAFT_REFEREE_IDS ? message->from : 0];

    if (message->term != shadow->acked_of.term || reply->lease_epoch != shadow->acked_of.lease_epoch ||
        reply->round == 0 || reply->round <= acked->round)
        return;
    acked->round = reply->round;
    acked->promise = reply->promise;
}

static gavel_ns lease_by(const struct shadow *shadow, raft_id id)
{
    const struct acked *acked = &shadow->acked[id < RAFT_REFEREE_IDS ? id : 0];
    const struct raft_settings *settings = &shadow->raft->settings;

    if (id == shadow->id)
        return NEVER;
    if (acked->round == 0)
        return 0;
    return (int64_t)acked->round - settings->stop_margin +
           (int64_t)((wide)acked->promise * (1000000 - settings->drift_ppm) /
                     (1000000 + settings->drift_ppm));
}

static bool is_bound_until(const void *context, raft_id id)
{
    const struct shadow *shadow = context;

    return lease_by(shadow, id) >= shadow->asked_until;
}

static void check_lease_length(struct raft_referee *referee, struct shadow *shadow)
{
    const struct raft *raft = shadow->raft;

    if (raft->role != RAFT_LEADER || raft->lease_until <= shadow->before.lease_until)
        return;
    shadow->asked_until = raft->lease_until;
    if (!referee_decides(&raft->config, is_bound_until, shadow))
        raft_referee_violate(
            referee, RAFT_INVARIANT_LEASE,
            "node %llu takes its lease to last until %lld of its clock; the rounds that were answered do not bind a majority for so long",
            (ull)shadow->id, (long long)raft->lease_until);
}

static void note_claim(struct raft_referee *referee, const struct shadow *shadow, struct token token)
{
    struct claimed *claim = &referee->claims[referee->counts.claims % CLAIMS_KEPT];

    for (size_t i = 0; i < CLAIMS_KEPT && i < referee->counts.claims; i++)
        if (!token_is_above(referee->claims[i].token, token) &&
            !token_is_above(token, referee->claims[i].token))
            raft_referee_violate(referee, RAFT_INVARIANT_TOKENS,
                                 "node %llu claims with token {%llu, %llu}, which node %llu has had",
                                 (ull)shadow->id, (ull)token.term, (ull)token.lease_epoch,
                                 (ull)referee->claims[i].id);
    *claim = (struct claimed){token, shadow->id, shadow->incarnation};
    referee->counts.claims++;
}

bool referee_are_leases_judged(const struct raft_referee *referee)
{
    return referee->options.is_within_bound && !referee->options.has_forgeries;
}

static void check_alone(struct raft_referee *referee, const struct shadow *shadow, struct token token)
{
    if (!referee_are_leases_judged(referee))
        return;
    for (raft_id id = 1; id < RAFT_REFEREE_IDS; id++) {
        const struct shadow *other = &referee->shadows[id];

        if (other != shadow && other->is_working)
            raft_referee_violate(
                referee, RAFT_INVARIANT_LEASES,
                "node %llu claims with {%llu, %llu} while the work of node %llu, {%llu, %llu}, runs",
                (ull)shadow->id, (ull)token.term, (ull)token.lease_epoch, (ull)id, (ull)other->claim.term,
                (ull)other->claim.lease_epoch);
    }
    if (!token_is_above(token, referee->highest_claim))
        raft_referee_violate(referee, RAFT_INVARIANT_TOKENS,
                             "node %llu claims with {%llu, %llu} after somebody has with {%llu, %llu}",
                             (ull)shadow->id, (ull)token.term, (ull)token.lease_epoch,
                             (ull)referee->highest_claim.term, (ull)referee->highest_claim.lease_epoch);
}

static void check_claim(struct raft_referee *referee, struct shadow *shadow, const struct raft_action *action,
                        const struct raft_event *event)
{
    const struct raft *raft = shadow->raft;
    struct token token = {action->claim.term, action->claim.lease_epoch};
    const char *why = NULL;

    if (raft->role != RAFT_LEADER || token.term != raft->state.term || token.lease_epoch != raft->lease_epoch)
        why = "it does not lead so";
    else if (raft_is_witness(raft))
        why = "it is a witness";
    else if (raft_log_term(&raft->log, raft->commit) != raft->state.term)
        why = "nothing of its term is committed";
    else if (raft->lease_until <= event->now)
        why = "it has no lease";
    else if (raft->lease_until - event->now <= raft->settings.heartbeat)
        why = "its lease ends before the next round could renew it";
    else if (shadow->is_working)
        why = "its work runs already";
    if (why)
        raft_referee_violate(referee, RAFT_INVARIANT_CLAIM, "node %llu claims with {%llu, %llu}, but %s",
                             (ull)shadow->id, (ull)token.term, (ull)token.lease_epoch, why);
    if (!token_is_above(token, shadow->released))
        raft_referee_violate(referee, RAFT_INVARIANT_RELEASE,
                             "node %llu claims with {%llu, %llu}, which it has released", (ull)shadow->id,
                             (ull)token.term, (ull)token.lease_epoch);
    check_alone(referee, shadow, token);
    note_claim(referee, shadow, token);
    if (token_is_above(token, referee->highest_claim))
        referee->highest_claim = token;
    shadow->is_working = true;
    shadow->claim = token;
    shadow->claimed_at = referee->now;
    referee_calm_claimed(referee, shadow);
}

static void check_round(struct raft_referee *referee, struct shadow *shadow, const struct raft_event *event,
                        const struct raft_message *message)
{
    uint64_t round = message->kind == RAFT_MSG_APPEND ? message->append.round : message->snapshot.round;

    /* Rounds grow strictly, also within an instant; that may be some nanoseconds. */
    if (round > (uint64_t)event->now + NS_PER_US)
        raft_referee_violate(referee, RAFT_INVARIANT_LEASE,
                             "node %llu sends a round that begins %lld ns after its own clock",
                             (ull)shadow->id, (long long)(round - (uint64_t)event->now));
}

void referee_check_lease(struct raft_referee *referee, struct shadow *shadow, const struct raft_event *event,
                         const struct raft_actions *actions)
{
    const struct raft *raft = shadow->raft;
    struct token now = token_now(raft);

    if (event->kind == RAFT_RECEIVE && event->message->kind == RAFT_MSG_APPEND_REPLY)
        note_answer(shadow, event);
    if (raft->role == RAFT_LEADER &&
        (now.term != shadow->acked_of.term || now.lease_epoch != shadow->acked_of.lease_epoch)) {
        memset(shadow->acked, 0, sizeof shadow->acked);
        shadow->acked_of = now;
        shadow->before.lease_until = 0;
    }
    check_lease_length(referee, shadow);
    for (size_t i = 0; i < actions->count; i++) {
        const struct raft_action *action = &actions->items[i];

        if (action->kind == RAFT_CLAIM)
            check_claim(referee, shadow, action, event);
        else if (action->kind == RAFT_STOP_WORK)
            referee_work_stops(referee, shadow, action->stop.reason);
        else if (action->kind == RAFT_SEND && (action->send.message.kind == RAFT_MSG_APPEND ||
                                               action->send.message.kind == RAFT_MSG_SNAPSHOT))
            check_round(referee, shadow, event, &action->send.message);
    }
    if (raft->work == RAFT_WORK_RUNNING && raft->lease_until <= event->now)
        raft_referee_violate(referee, RAFT_INVARIANT_LEASE,
                             "node %llu goes on working %lld ns after its lease has lapsed", (ull)shadow->id,
                             (long long)(event->now - raft->lease_until));
}

void raft_referee_work_ended(struct raft_referee *referee, gavel_ns at, raft_id id)
{
    referee->now = at;
    shadow_of(referee, id)->is_working = false;
}

void raft_referee_acted(struct raft_referee *referee, gavel_ns at, raft_id id, raft_term term,
                        uint64_t lease_epoch, bool is_accepted)
{
    struct token token = {term, lease_epoch};
    const struct shadow *shadow = shadow_of(referee, id);

    referee->now = at;
    if (token_is_above(token, shadow->claim))
        raft_referee_violate(referee, RAFT_INVARIANT_TOKENS,
                             "node %llu acts with token {%llu, %llu}, which it never claimed", (ull)id,
                             (ull)term, (ull)lease_epoch);
    if (!is_accepted)
        return;
    if (token_is_above(referee->highest_act, token))
        raft_referee_violate(referee, RAFT_INVARIANT_TOKENS,
                             "the resource takes token {%llu, %llu} of node %llu after {%llu, %llu}",
                             (ull)term, (ull)lease_epoch, (ull)id, (ull)referee->highest_act.term,
                             (ull)referee->highest_act.lease_epoch);
    referee->highest_act = token;
}

void raft_referee_signed(struct raft_referee *referee, gavel_ns at, raft_id id, uint64_t incarnation)
{
    struct shadow *shadow = shadow_of(referee, id);

    referee->now = at;
    if (shadow->raft && shadow->incarnation <= incarnation)
        raft_referee_violate(referee, RAFT_INVARIANT_OBITUARY,
                             "an obituary of node %llu, incarnation %llu, is signed while it runs", (ull)id,
                             (ull)incarnation);
    if (incarnation > shadow->dead_incarnation)
        shadow->dead_incarnation = incarnation;
}

/* Nobody may believe of a node that it is dead before its guard has said so. */
void referee_check_obituaries(struct raft_referee *referee, const struct shadow *shadow)
{
    const struct raft *raft = shadow->raft;

    if (referee->options.has_forgeries)
        return;
    for (size_t i = 0; i < raft->peer_count; i++) {
        const struct raft_peer *peer = &raft->peers[i];

        if (peer->dead_incarnation > referee->shadows[peer->id % RAFT_REFEREE_IDS].dead_incarnation)
            raft_referee_violate(
                referee, RAFT_INVARIANT_OBITUARY,
                "node %llu takes incarnation %llu of node %llu for dead; no guard has said so",
                (ull)shadow->id, (ull)peer->dead_incarnation, (ull)peer->id);
    }
}

/*
 * The certificate of a forced transfer lets its target win with everything up to `commit`. So nothing beyond
 * may be committed, or become so, in that term or an earlier one; an entry of that very term at `commit`
 * shows the latter.
 */
static void note_force(struct raft_referee *referee, struct shadow *of,
                       const struct raft_certificate *certificate)
{
    of->is_frozen = true;
    of->frozen_term = certificate->term;
    of->frozen_commit = certificate->commit;
    for (raft_index i = referee->commit; i > certificate->commit; i--)
        if (referee->slots[i].committed_by <= certificate->term)
            raft_referee_violate(referee, RAFT_INVARIANT_COMPLETE,
                                 "node %llu certifies that nothing beyond %llu is committed, and %llu is",
                                 (ull)of->id, (ull)certificate->commit, (ull)i);
    if (of->raft && of->raft->state.term == certificate->term &&
        raft_log_term(&of->raft->log, certificate->commit) != certificate->term)
        raft_referee_violate(
            referee, RAFT_INVARIANT_COMPLETE,
            "node %llu certifies an end at %llu before an entry of its term %llu is committed", (ull)of->id,
            (ull)certificate->commit, (ull)certificate->term);
}

/* A release leaves a node: its own only after its work, another's only if that one was released. */
void referee_certificate_sent(struct raft_referee *referee, struct shadow *shadow,
                              const struct raft_certificate *certificate)
{
    struct token token = {certificate->term, certificate->lease_epoch};
    struct shadow *of;

    if (certificate->kind == RAFT_CERT_NONE)
        return;
    of = shadow_of(referee, certificate->node);
    if (certificate->kind == RAFT_CERT_OBITUARY) {
        if (certificate->incarnation > of->dead_incarnation && !referee->options.has_forgeries)
            raft_referee_violate(
                referee, RAFT_INVARIANT_OBITUARY,
                "node %llu passes on an obituary of node %llu, incarnation %llu, that no guard signed",
                (ull)shadow->id, (ull)of->id, (ull)certificate->incarnation);
        return;
    }
    if (of != shadow) {
        if (token_is_above(token, of->released))
            raft_referee_violate(
                referee, RAFT_INVARIANT_RELEASE,
                "node %llu passes on a release of node %llu for {%llu, %llu}, which it never gave",
                (ull)shadow->id, (ull)of->id, (ull)token.term, (ull)token.lease_epoch);
        return;
    }
    if (of->is_working && !token_is_above(of->claim, token))
        raft_referee_violate(referee, RAFT_INVARIANT_RELEASE,
                             "node %llu releases {%llu, %llu} while its work, {%llu, %llu}, runs",
                             (ull)of->id, (ull)token.term, (ull)token.lease_epoch, (ull)of->claim.term,
                             (ull)of->claim.lease_epoch);
    if (token_is_above(token, of->released))
        of->released = token;
    if (certificate->kind == RAFT_CERT_FORCE)
        note_force(referee, of, certificate);
}
