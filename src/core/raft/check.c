/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Refuses messages that no gavel node would send, before anything else looks at
 * them. Later code may then add one to any number, follow any pointer and trust any
 * configuration.
 *
 * Each check returns what is wrong, or NULL.
 */

#include "core/raft/message.h"

#include "base/time.h"

#include <stddef.h>

/* Longer promises are a mistake of units; raft_settings_check() allows none either. */
#define LONGEST (INT64_C(3600) * NS_PER_S)

#define SNAPSHOT_BYTES_MAX (UINT64_C(1) << 30)

static bool is_number(uint64_t number) { return number < RAFT_NUMBER_MAX; }

static bool is_duration(gavel_ns duration) { return duration >= 0 && duration <= LONGEST; }

static const char *check_certificate(const struct raft_certificate *certificate)
{
    if ((unsigned)certificate->kind > RAFT_CERT_FORCE)
        return "a certificate of an unknown kind";
    if (certificate->kind == RAFT_CERT_NONE)
        return NULL;
    if (certificate->node == 0)
        return "a certificate about nobody";
    if (!is_number(certificate->incarnation))
        return "a certificate's incarnation is out of range";
    if (certificate->kind == RAFT_CERT_OBITUARY)
        return NULL;
    if (certificate->term == 0 || !is_number(certificate->term))
        return "a certificate's term is out of range";
    if (!is_number(certificate->lease_epoch))
        return "a certificate's lease epoch is out of range";
    if (certificate->kind == RAFT_CERT_RELEASE)
        return NULL;
    if (certificate->target == 0 || certificate->target == certificate->node)
        return "a forced transfer to nobody";
    if (!is_number(certificate->commit))
        return "a certificate's commit index is out of range";
    return NULL;
}

static const char *check_entry(const struct raft_entry *entry)
{
    struct raft_config config;
    const char *reason;

    if ((unsigned)entry->kind >= RAFT_ENTRY_KIND_COUNT)
        return "an entry of an unknown kind";
    if (entry->size > RAFT_ENTRY_BYTES_MAX)
        return "an entry is too long";
    if (entry->size > 0 && !entry->data)
        return "an entry without its bytes";
    if (entry->kind == RAFT_ENTRY_NOOP && entry->size > 0)
        return "a no-op with bytes";
    if (entry->kind != RAFT_ENTRY_CONFIG)
        return NULL;
    if (raft_config_decode(entry->data, entry->size, &config) != GAVEL_OK)
        return "a configuration cannot be read";
    if (raft_config_check(&config, &reason) != GAVEL_OK)
        return reason;
    return NULL;
}

static const char *check_entries(const struct raft_append *append, raft_term term)
{
    raft_term least = append->prev_term > 0 ? append->prev_term : 1;

    if (append->entry_count > RAFT_APPEND_ENTRIES_MAX)
        return "too many entries";
    if (append->entry_count > 0 && !append->entries)
        return "entries are missing";
    for (uint32_t i = 0; i < append->entry_count; i++) {
        const char *reason;

        if (append->entries[i].term < least)
            return "the terms of the entries fall";
        if (append->entries[i].term > term)
            return "an entry is of a later term than its leader";
        reason = check_entry(&append->entries[i]);
        if (reason)
            return reason;
        least = append->entries[i].term;
    }
    return NULL;
}

static const char *check_successors(const struct raft_append *append)
{
    if (append->successor_count > RAFT_VOTERS_MAX)
        return "too many successors";
    for (size_t i = 0; i < append->successor_count; i++) {
        if (append->successors[i] == 0)
            return "nobody as a successor";
        for (size_t j = 0; j < i; j++)
            if (append->successors[j] == append->successors[i])
                return "a successor twice";
    }
    return NULL;
}

static const char *check_append(const struct raft_message *message)
{
    const struct raft_append *append = &message->append;
    const char *reason;

    if (message->term == 0)
        return "a leader without a term";
    if (!is_number(append->prev_index) || !is_number(append->commit))
        return "an index is out of range";
    if (append->prev_term > message->term)
        return "the entry before is of a later term than the leader";
    if ((append->prev_index == 0) != (append->prev_term == 0))
        return "index and term of the entry before do not belong together";
    if (!is_number(append->lease_epoch) || !is_number(append->round))
        return "the lease epoch or the round is out of range";
    reason = check_entries(append, message->term);
    return reason ? reason : check_successors(append);
}

static const char *check_append_reply(const struct raft_message *message)
{
    const struct raft_append_reply *reply = &message->append_reply;

    if (!is_number(reply->match) || !is_number(reply->prev_index) || !is_number(reply->conflict_index))
        return "an index is out of range";
    if (!is_number(reply->conflict_term) || !is_number(reply->seen_term))
        return "a term is out of range";
    if (!is_number(reply->lease_epoch) || !is_number(reply->round))
        return "the lease epoch or the round is out of range";
    if (!is_duration(reply->promise))
        return "the promise is out of range";
    return NULL;
}

static const char *check_vote(const struct raft_message *message)
{
    const struct raft_vote *vote = &message->vote;

    if (!is_number(vote->term) || vote->term == 0)
        return "the term to lead in is out of range";
    if (message->kind == RAFT_MSG_VOTE && vote->term != message->term)
        return "a vote for another term than the candidate's";
    if (message->kind == RAFT_MSG_PRE_VOTE && vote->term <= message->term)
        return "a pre-vote for a term that has begun";
    if (!is_number(vote->round))
        return "the round is out of range";
    if (!is_number(vote->last_index))
        return "an index is out of range";
    if ((vote->last_index == 0) != (vote->last_term == 0))
        return "index and term of the last entry do not belong together";
    if (vote->last_term >= vote->term)
        return "the last entry is not older than the term to lead in";
    return check_certificate(&vote->certificate);
}

static const char *check_vote_reply(const struct raft_message *message)
{
    const struct raft_vote_reply *reply = &message->vote_reply;

    if (!is_number(reply->term) || reply->term == 0)
        return "the term of the vote is out of range";
    if (!is_number(reply->round))
        return "the round is out of range";
    if ((unsigned)reply->reason >= RAFT_REASON_COUNT)
        return "an unknown reason";
    if (message->kind == RAFT_MSG_VOTE_REPLY && reply->reason == RAFT_GRANTED && reply->term != message->term)
        return "a vote granted in another term than the voter's";
    if (reply->reason == RAFT_VOTED && reply->voted_for == 0)
        return "a vote for nobody";
    if (!is_duration(reply->wait))
        return "the wait is out of range";
    return NULL;
}

static const char *check_snapshot(const struct raft_message *message)
{
    const struct raft_install *snapshot = &message->snapshot;
    const char *reason;

    if (message->term == 0)
        return "a leader without a term";
    if (!is_number(snapshot->index) || snapshot->index == 0)
        return "the index of the snapshot is out of range";
    if (snapshot->index_term == 0 || snapshot->index_term > message->term)
        return "the term of the snapshot is out of range";
    if (snapshot->config_index > snapshot->index)
        return "the configuration is newer than the snapshot";
    if (!is_number(snapshot->lease_epoch) || !is_number(snapshot->round))
        return "the lease epoch or the round is out of range";
    if (snapshot->size > SNAPSHOT_BYTES_MAX)
        return "the snapshot is too long";
    if (snapshot->size > 0 && !snapshot->data)
        return "a snapshot without its bytes";
    if (raft_config_check(&snapshot->config, &reason) != GAVEL_OK)
        return reason;
    return NULL;
}

/* A leader that hands over vouches for itself, and for the one that it tells. */
static const char *check_timeout_now(const struct raft_message *message)
{
    const struct raft_certificate *certificate = &message->certificate;

    if (certificate->kind != RAFT_CERT_RELEASE && certificate->kind != RAFT_CERT_FORCE)
        return "a transfer without a release";
    if (certificate->node != message->from || certificate->term != message->term)
        return "a transfer with the release of another";
    if (certificate->kind == RAFT_CERT_FORCE && certificate->target != message->to)
        return "a forced transfer to another";
    return check_certificate(certificate);
}

static const char *check_certificate_message(const struct raft_message *message)
{
    if (message->certificate.kind == RAFT_CERT_NONE)
        return "a certificate is missing";
    return check_certificate(&message->certificate);
}

static const char *check_take_over(const struct raft_message *message)
{
    (void)message; /* the head says it all */
    return NULL;
}

static const char *(*const checks[RAFT_MESSAGE_KIND_COUNT])(const struct raft_message *message) = {
    [RAFT_MSG_APPEND] = check_append,
    [RAFT_MSG_APPEND_REPLY] = check_append_reply,
    [RAFT_MSG_PRE_VOTE] = check_vote,
    [RAFT_MSG_PRE_VOTE_REPLY] = check_vote_reply,
    [RAFT_MSG_VOTE] = check_vote,
    [RAFT_MSG_VOTE_REPLY] = check_vote_reply,
    [RAFT_MSG_SNAPSHOT] = check_snapshot,
    [RAFT_MSG_TIMEOUT_NOW] = check_timeout_now,
    [RAFT_MSG_CERTIFICATE] = check_certificate_message,
    [RAFT_MSG_TAKE_OVER] = check_take_over,
};

/* What all kinds have in common. */
static const char *check_head(const struct raft_message *message)
{
    if ((unsigned)message->kind >= RAFT_MESSAGE_KIND_COUNT)
        return "a message of an unknown kind";
    if (message->to == 0)
        return "a message to nobody";
    /* A guard is no node, and what it says is proven by the certificate alone. */
    if (message->from == 0 && message->kind != RAFT_MSG_CERTIFICATE)
        return "a message from nobody";
    if (message->from == message->to)
        return "a message to its sender";
    if (!is_number(message->term) || !is_number(message->incarnation) || !is_number(message->generation) ||
        !is_number(message->bound_at) || !is_number(message->began_at))
        return "a number is out of range";
    if (message->is_founded && message->founding == 0)
        return "a founding without its number";
    return NULL;
}

enum gavel_status raft_message_check(const struct raft_message *message, const char **ret_reason)
{
    const char *reason = check_head(message);

    if (!reason)
        reason = checks[message->kind](message);
    if (!reason)
        return GAVEL_OK;
    *ret_reason = reason;
    return GAVEL_ERR_INVALID;
}

const char *raft_message_name(enum raft_message_kind kind)
{
#define RAFT_MESSAGE_NAME(name, text) [RAFT_MSG_##name] = text,
    static const char *const names[] = {RAFT_MESSAGE_MAP(RAFT_MESSAGE_NAME)};
#undef RAFT_MESSAGE_NAME

    return (unsigned)kind < RAFT_MESSAGE_KIND_COUNT ? names[kind] : "unknown";
}

const char *raft_reason_name(enum raft_reason reason)
{
#define RAFT_REASON_NAME(name, text) [RAFT_##name] = text,
    static const char *const names[] = {RAFT_REASON_MAP(RAFT_REASON_NAME)};
#undef RAFT_REASON_NAME

    return (unsigned)reason < RAFT_REASON_COUNT ? names[reason] : "unknown";
}
