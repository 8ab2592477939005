/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Promises: what a follower has told a leader binds it, on its own clock, and
 * only the four exceptions of the gate let it help another.
 *
 * The referee does not ask the node what it has promised; it reads the replies.
 * Nor does it ask which certificates the node has seen: it knows who is dead
 * and who has released, so a certificate that is false or covers too much is
 * found out here.
 */

#include "sim/raft/referee/referee_shadow.h"

bool referee_is_promised(const struct shadow *shadow, gavel_ns now)
{
    return shadow->promised.promise.leader != 0 && now < shadow->promised.until;
}

/* The second exception, by the facts: the promised leader is dead, or has given this lease up. */
static bool is_void(const struct raft_referee *referee, const struct raft_promise *promise)
{
    const struct shadow *leader = &referee->shadows[promise->leader < RAFT_REFEREE_IDS ? promise->leader : 0];
    struct token promised = {promise->term, promise->lease_epoch};

    return referee->options.has_forgeries || leader->dead_incarnation >= promise->incarnation ||
           !token_is_above(promised, leader->released);
}

bool referee_gate_opens(const struct raft_referee *referee, const struct shadow *shadow, raft_id candidate,
                        uint64_t incarnation, raft_term last_term)
{
    const struct raft_promise *promise = &shadow->promised.promise;

    return is_void(referee, promise) || last_term > promise->term ||
           (candidate == promise->leader && incarnation >= promise->incarnation);
}

/* A reply promises something: the node must hold to it from now on. */
static void note_promise(struct raft_referee *referee, struct shadow *shadow, const struct raft_event *event,
                         const struct raft_message *message)
{
    const struct raft_append_reply *reply = &message->append_reply;
    const struct raft *raft = shadow->raft;
    const struct raft_message *asked = event->message;
    uint64_t round;

    if (event->kind != RAFT_RECEIVE || (asked->kind != RAFT_MSG_APPEND && asked->kind != RAFT_MSG_SNAPSHOT)) {
        raft_referee_violate(referee, RAFT_INVARIANT_PROMISE, "node %llu promises without being asked",
                             (ull)shadow->id);
        return;
    }
    round = asked->kind == RAFT_MSG_APPEND ? asked->append.round : asked->snapshot.round;
    if (reply->round != round || message->to != asked->from)
        raft_referee_violate(referee, RAFT_INVARIANT_PROMISE,
                             "node %llu answers another round than it was asked", (ull)shadow->id);
    shadow->promised.promise = (struct raft_promise){
        .leader = asked->from,
        .incarnation = asked->incarnation,
        .term = message->term,
        .lease_epoch = reply->lease_epoch,
        .length = reply->promise,
    };
    shadow->promised.until = event->now + reply->promise;
    if (raft->state.promise.leader != asked->from || raft->state.promise.incarnation != asked->incarnation ||
        raft->state.promise.term != message->term || raft->state.promise.lease_epoch != reply->lease_epoch)
        raft_referee_violate(
            referee, RAFT_INVARIANT_PROMISE,
            "node %llu promises node %llu in term %llu, lease epoch %llu, and does not remember it",
            (ull)shadow->id, (ull)asked->from, (ull)message->term, (ull)reply->lease_epoch);
}

void referee_check_promise(struct raft_referee *referee, struct shadow *shadow,
                           const struct raft_event *event, const struct raft_actions *actions)
{
    const struct raft *raft = shadow->raft;

    for (size_t i = 0; i < actions->count; i++) {
        const struct raft_action *action = &actions->items[i];

        if (action->kind == RAFT_SEND && action->send.message.kind == RAFT_MSG_APPEND_REPLY &&
            action->send.message.append_reply.round != 0)
            note_promise(referee, shadow, event, &action->send.message);
    }
    if (!referee_is_promised(shadow, event->now) || is_void(referee, &shadow->promised.promise))
        return;
    if (raft->state.promise.leader == 0 || raft->promise_until < shadow->promised.until)
        raft_referee_violate(referee, RAFT_INVARIANT_PROMISE,
                             "node %llu forgets its promise to node %llu %lld ns too early", (ull)shadow->id,
                             (ull)shadow->promised.promise.leader,
                             (long long)(shadow->promised.until -
                                         (raft->state.promise.leader ? raft->promise_until : event->now)));
}

/* After a restart nobody knows how long ago the promise was made: it holds for its whole length. */
void referee_promise_started(struct raft_referee *referee, struct shadow *shadow)
{
    const struct raft *raft = shadow->raft;
    const struct raft_promise *promise = &shadow->disk.promise;

    shadow->promised.promise = *promise;
    shadow->promised.until = raft->now + promise->length;
    if (promise->leader == 0 || (promise->leader == shadow->id && promise->incarnation < shadow->incarnation))
        return;
    if (raft->state.promise.leader != promise->leader || raft->promise_until < shadow->promised.until)
        raft_referee_violate(referee, RAFT_INVARIANT_RESTORED,
                             "node %llu starts again and does not hold its promise to node %llu for %lld ns",
                             (ull)shadow->id, (ull)promise->leader, (long long)promise->length);
}
