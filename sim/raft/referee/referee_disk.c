/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The disks: what each node would find if it started now. Terms, votes and
 * promises are followed here; messages are compared with them as they leave,
 * by their contents, whatever `after` the core gave them.
 */

#include "sim/raft/referee/referee_shadow.h"

bool referee_has_voted(const struct shadow *shadow, raft_term term, raft_id candidate)
{
    const struct durable_vote *vote = &shadow->votes[term % VOTES_KEPT];

    return vote->term == term && vote->vote == candidate;
}

/* The disk says how a node voted; it may never say anything else of that term. */
static void note_vote(struct raft_referee *referee, struct shadow *shadow, raft_term term, raft_id candidate)
{
    struct durable_vote *vote = &shadow->votes[term % VOTES_KEPT];

    if (vote->term == term && vote->vote != candidate)
        raft_referee_violate(referee, RAFT_INVARIANT_VOTE_ONCE,
                             "node %llu has voted for %llu and for %llu in term %llu", (ull)shadow->id,
                             (ull)vote->vote, (ull)candidate, (ull)term);
    if (vote->term < term)
        *vote = (struct durable_vote){term, candidate};
}

static bool is_same_promise(const struct raft_promise *a, const struct raft_promise *b)
{
    return a->leader == b->leader && a->incarnation == b->incarnation && a->term == b->term &&
           a->lease_epoch == b->lease_epoch && a->length == b->length;
}

static void note_state(struct raft_referee *referee, struct shadow *shadow, const struct raft_state *state)
{
    const struct raft_state *disk = &shadow->disk;

    if (state->id != disk->id || state->cluster != disk->cluster || state->generation < disk->generation ||
        state->incarnation != shadow->incarnation)
        raft_referee_violate(referee, RAFT_INVARIANT_REGRESS, "node %llu writes the state of another node",
                             (ull)shadow->id);
    if (state->term < disk->term)
        raft_referee_violate(referee, RAFT_INVARIANT_REGRESS,
                             "the disk of node %llu goes from term %llu to %llu", (ull)shadow->id,
                             (ull)disk->term, (ull)state->term);
    if (state->term > RAFT_TERM_JUMP_MAX)
        raft_referee_violate(referee, RAFT_INVARIANT_TERMS,
                             "the disk of node %llu goes from term %llu to %llu", (ull)shadow->id,
                             (ull)disk->term, (ull)state->term);
    if (state->commit < disk->commit)
        raft_referee_violate(referee, RAFT_INVARIANT_REGRESS,
                             "the disk of node %llu goes from commit %llu to %llu", (ull)shadow->id,
                             (ull)disk->commit, (ull)state->commit);
    if (state->term == disk->term && disk->vote != 0 && state->vote != disk->vote)
        raft_referee_violate(referee, RAFT_INVARIANT_VOTE_ONCE,
                             "the disk of node %llu changes its vote in term %llu from %llu to %llu",
                             (ull)shadow->id, (ull)disk->term, (ull)disk->vote, (ull)state->vote);
    if (state->vote != 0)
        note_vote(referee, shadow, state->term, state->vote);
    if (!is_same_promise(&state->promise, &disk->promise) && state->promise.leader != 0)
        shadow->promises[shadow->promise_count++ % PROMISES_KEPT] = state->promise;
    shadow->disk = *state;
}

void raft_referee_synced(struct raft_referee *referee, gavel_ns at, raft_id id,
                         const struct raft_persist *persist, const struct raft_entry *entries,
                         const struct raft_snapshot *snapshot)
{
    struct shadow *shadow = shadow_of(referee, id);
    struct terms *log = &shadow->disk_log;

    referee->now = at;
    referee->counts.checks++;
    if (persist->seq != shadow->disk_seq + 1)
        raft_referee_violate(referee, RAFT_INVARIANT_ORDER,
                             "the disk of node %llu has write %llu after write %llu", (ull)id,
                             (ull)persist->seq, (ull)shadow->disk_seq);
    shadow->disk_seq = persist->seq;
    if (persist->has_snapshot && persist->restarts_log)
        terms_restart(log, snapshot->index, snapshot->term);
    else if (persist->has_snapshot)
        terms_compact(log, snapshot->index, snapshot->term);
    if (persist->truncate != 0)
        terms_truncate(log, persist->truncate);
    for (raft_index i = persist->first; persist->first != 0 && i <= persist->last; i++) {
        if (i != terms_last(log) + 1)
            raft_referee_violate(referee, RAFT_INVARIANT_ORDER,
                                 "the disk of node %llu has entry %llu after %llu", (ull)id, (ull)i,
                                 (ull)terms_last(log));
        terms_append(log, entries[i - persist->first].term);
    }
    if (persist->has_state)
        note_state(referee, shadow, &persist->state);
    if (shadow->disk.commit > terms_last(log))
        raft_referee_violate(referee, RAFT_INVARIANT_DURABLE,
                             "the disk of node %llu says that %llu is committed, and has %llu", (ull)id,
                             (ull)shadow->disk.commit, (ull)terms_last(log));
}

static void check_restored(struct raft_referee *referee, const struct shadow *shadow,
                           const struct raft_restore *restore)
{
    const struct raft_state *disk = &shadow->disk;
    const struct raft_state *state = &restore->state;

    if (state->incarnation <= disk->incarnation)
        raft_referee_violate(referee, RAFT_INVARIANT_REGRESS,
                             "node %llu starts as incarnation %llu after %llu", (ull)shadow->id,
                             (ull)state->incarnation, (ull)disk->incarnation);
    if (state->term != disk->term || state->vote != disk->vote || state->commit != disk->commit ||
        !is_same_promise(&state->promise, &disk->promise) ||
        restore->snapshot.index + restore->entry_count != terms_last(&shadow->disk_log) ||
        restore->snapshot.index != shadow->disk_log.base)
        raft_referee_violate(
            referee, RAFT_INVARIANT_RESTORED,
            "node %llu is given another state than its disk held: term %llu, vote %llu, log %llu to %llu instead of %llu, %llu, %llu to %llu",
            (ull)shadow->id, (ull)state->term, (ull)state->vote, (ull)restore->snapshot.index,
            (ull)(restore->snapshot.index + restore->entry_count), (ull)disk->term, (ull)disk->vote,
            (ull)shadow->disk_log.base, (ull)terms_last(&shadow->disk_log));
}

void referee_disk_started(struct raft_referee *referee, struct shadow *shadow,
                          const struct raft_restore *restore)
{
    const struct raft *raft = shadow->raft;

    if (shadow->is_known)
        check_restored(referee, shadow, restore);
    shadow->disk = restore->state;
    shadow->disk_seq = 0;
    shadow->handed = restore->state;
    referee_log_restored(referee, shadow, restore);
    terms_copy(&shadow->disk_log, &shadow->memory);
    if (raft->state.term != restore->state.term || raft->state.vote != restore->state.vote ||
        raft->state.incarnation != restore->state.incarnation ||
        raft_log_last(&raft->log) != terms_last(&shadow->memory))
        raft_referee_violate(
            referee, RAFT_INVARIANT_RESTORED,
            "node %llu starts with term %llu, vote %llu and log to %llu; restored were %llu, %llu, %llu",
            (ull)shadow->id, (ull)raft->state.term, (ull)raft->state.vote, (ull)raft_log_last(&raft->log),
            (ull)restore->state.term, (ull)restore->state.vote, (ull)terms_last(&shadow->memory));
}

static void check_vote_sent(struct raft_referee *referee, const struct shadow *shadow,
                            const struct raft_message *message)
{
    const struct raft_vote *vote = &message->vote;
    const struct terms *disk = &shadow->disk_log;

    if (shadow->disk.term > vote->term ||
        (shadow->raft && (shadow->raft->role != RAFT_CANDIDATE || shadow->raft->state.term != vote->term)))
        return; /* it has moved on while the message was waiting, and will not count the answer */
    if (!referee_has_voted(shadow, vote->term, shadow->id))
        raft_referee_violate(referee, RAFT_INVARIANT_ORDER,
                             "node %llu asks for votes in term %llu before its own is durable",
                             (ull)shadow->id, (ull)vote->term);
    if (vote->last_index > disk->base && terms_at(disk, vote->last_index) != vote->last_term)
        raft_referee_violate(referee, RAFT_INVARIANT_ORDER,
                             "node %llu asks for votes with a log up to %llu; on its disk it ends at %llu",
                             (ull)shadow->id, (ull)vote->last_index, (ull)terms_last(disk));
}

static void check_append_reply_sent(struct raft_referee *referee, const struct shadow *shadow,
                                    const struct raft_message *message)
{
    const struct raft_append_reply *reply = &message->append_reply;
    bool is_durable = reply->round == 0;

    if (reply->is_success && shadow->disk.term == message->term &&
        reply->match > terms_last(&shadow->disk_log))
        raft_referee_violate(referee, RAFT_INVARIANT_ORDER,
                             "node %llu acknowledges up to %llu; on its disk the log ends at %llu",
                             (ull)shadow->id, (ull)reply->match, (ull)terms_last(&shadow->disk_log));
    for (unsigned i = 0; i < PROMISES_KEPT && !is_durable; i++) {
        const struct raft_promise *promise = &shadow->promises[i];

        is_durable = promise->leader == message->to && promise->term == message->term &&
                     promise->lease_epoch == reply->lease_epoch && promise->length >= reply->promise;
    }
    if (!is_durable)
        raft_referee_violate(
            referee, RAFT_INVARIANT_ORDER,
            "node %llu promises node %llu in term %llu, lease epoch %llu, and its disk does not know",
            (ull)shadow->id, (ull)message->to, (ull)message->term, (ull)reply->lease_epoch);
}

static void check_contents(struct raft_referee *referee, const struct shadow *shadow,
                           const struct raft_message *message)
{
    switch (message->kind) {
    case RAFT_MSG_VOTE:
        check_vote_sent(referee, shadow, message);
        break;
    case RAFT_MSG_VOTE_REPLY:
        if (message->vote_reply.reason == RAFT_GRANTED && shadow->disk.term <= message->vote_reply.term &&
            !referee_has_voted(shadow, message->vote_reply.term, message->to))
            raft_referee_violate(referee, RAFT_INVARIANT_ORDER,
                                 "node %llu grants node %llu its vote of term %llu; its disk does not know",
                                 (ull)shadow->id, (ull)message->to, (ull)message->vote_reply.term);
        break;
    case RAFT_MSG_APPEND_REPLY:
        check_append_reply_sent(referee, shadow, message);
        break;
    case RAFT_MSG_APPEND:
        if (message->append.commit > referee->commit)
            raft_referee_violate(referee, RAFT_INVARIANT_DURABLE,
                                 "node %llu tells of commit %llu; %llu is committed", (ull)shadow->id,
                                 (ull)message->append.commit, (ull)referee->commit);
        break;
    default:
        break;
    }
}

/* "I have heard you, and my disk still writes": no promise, nothing of the log. */
static bool is_empty_reply(const struct raft_message *message)
{
    const struct raft_append_reply *reply = &message->append_reply;

    return message->kind == RAFT_MSG_APPEND_REPLY && !reply->is_success && reply->round == 0 &&
           reply->prev_index == 0 && reply->conflict_index == 0;
}

/* Pre-votes decide nothing, so the terms in them need not last; nor in a wish to take over, nor in an empty
 * answer to a leader of that term. */
static bool depends_on_term(const struct raft_message *message)
{
    return !is_empty_reply(message) && message->kind != RAFT_MSG_PRE_VOTE &&
           message->kind != RAFT_MSG_PRE_VOTE_REPLY && message->kind != RAFT_MSG_TAKE_OVER;
}

void raft_referee_sent(struct raft_referee *referee, gavel_ns at, raft_id id,
                       const struct raft_message *message)
{
    struct shadow *shadow = shadow_of(referee, id);

    referee->now = at;
    referee->counts.checks++;
    if (message->from != id || message->incarnation != shadow->incarnation)
        raft_referee_violate(referee, RAFT_INVARIANT_ORDER, "node %llu sends in the name of another",
                             (ull)id);
    if (message->term > shadow->disk.term && depends_on_term(message))
        raft_referee_violate(
            referee, RAFT_INVARIANT_ORDER, "a %s of node %llu leaves with term %llu; its disk has term %llu",
            raft_message_name(message->kind), (ull)id, (ull)message->term, (ull)shadow->disk.term);
    check_contents(referee, shadow, message);
    if (message->kind == RAFT_MSG_CERTIFICATE || message->kind == RAFT_MSG_TIMEOUT_NOW)
        referee_certificate_sent(referee, shadow, &message->certificate);
    else if (message->kind == RAFT_MSG_VOTE || message->kind == RAFT_MSG_PRE_VOTE)
        referee_certificate_sent(referee, shadow, &message->vote.certificate);
}
