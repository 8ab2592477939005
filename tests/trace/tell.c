/* SPDX-License-Identifier: Apache-2.0 */

/* How the story is told: one line for each thing that matters; heartbeats are silent. */

#include "trace/host.h"

#include <stdarg.h>
#include <string.h>

#define U(number) ((unsigned long long)(number))

char name_of(raft_id id) { return id >= 1 && id <= NODES_MAX ? (char)('a' + id - 1) : '-'; }

double seconds(gavel_ns real) { return (double)real / (double)NS_PER_S; }

static double milliseconds(gavel_ns ns) { return (double)ns / (double)NS_PER_MS; }

void tell(const struct cluster *cluster, const struct host *host, const char *format, ...)
{
    va_list arguments;

    fprintf(cluster->out, "%10.4f  %c  ", seconds(cluster->now), name_of(host->id));
    va_start(arguments, format);
    vfprintf(cluster->out, format, arguments);
    va_end(arguments);
    fputc('\n', cluster->out);
}

void alarm_raise(const struct cluster *cluster, const struct host *host, const char *format, ...)
{
    va_list arguments;

    fprintf(cluster->loud, "ALARM: %.4f %c ", seconds(cluster->now), name_of(host->id));
    va_start(arguments, format);
    vfprintf(cluster->loud, format, arguments);
    va_end(arguments);
    fputc('\n', cluster->loud);
}

void tell_certificate(FILE *out, const struct raft_certificate *certificate)
{
    switch (certificate->kind) {
    case RAFT_CERT_NONE:
        break;
    case RAFT_CERT_OBITUARY:
        fprintf(out, ", obituary of %c (incarnation %llu)", name_of(certificate->node),
                U(certificate->incarnation));
        break;
    case RAFT_CERT_RELEASE:
        fprintf(out, ", released by %c (token %llu/%llu)", name_of(certificate->node), U(certificate->term),
                U(certificate->lease_epoch));
        break;
    case RAFT_CERT_FORCE:
        fprintf(out, ", released by %c (token %llu/%llu) for %c with a log from %llu on",
                name_of(certificate->node), U(certificate->term), U(certificate->lease_epoch),
                name_of(certificate->target), U(certificate->commit));
        break;
    }
}

static void tell_answer(FILE *out, const struct raft_message *message, bool is_pre_vote)
{
    const struct raft_vote_reply *reply = &message->vote_reply;

    if (reply->reason == RAFT_GRANTED) {
        fprintf(out, "%s %c in term %llu", is_pre_vote ? "would vote for" : "VOTES for", name_of(message->to),
                U(reply->term));
        return;
    }
    fprintf(out, "%s %c in term %llu: %s", is_pre_vote ? "would not vote for" : "does not vote for",
            name_of(message->to), U(reply->term), raft_reason_name(reply->reason));
    if (reply->reason == RAFT_TERM)
        fprintf(out, ", it is %llu here", U(message->term));
    if (reply->reason == RAFT_VOTED)
        fprintf(out, ", for %c", name_of(reply->voted_for));
    if (reply->reason == RAFT_LEASE)
        fprintf(out, ", for another %.1f ms", milliseconds(reply->wait));
}

/* Entries as index:term, those of one term together. */
static void tell_range(FILE *out, raft_index first, raft_index last, raft_term term)
{
    if (last > first)
        fprintf(out, " %llu-%llu:%llu", U(first), U(last), U(term));
    else
        fprintf(out, " %llu:%llu", U(first), U(term));
}

static void tell_append(FILE *out, const struct raft_message *message)
{
    const struct raft_append *append = &message->append;

    fprintf(out, "sends %c the append of term %llu after %llu:%llu,", name_of(message->to), U(message->term),
            U(append->prev_index), U(append->prev_term));
    for (uint32_t i = 0; i < append->entry_count; i++) {
        uint32_t last = i;

        while (last + 1 < append->entry_count && append->entries[last + 1].term == append->entries[i].term)
            last++;
        tell_range(out, append->prev_index + 1 + i, append->prev_index + 1 + last, append->entries[i].term);
        i = last;
    }
    fprintf(out, "%s commit %llu", append->entry_count > 0 ? "," : " nothing,", U(append->commit));
}

static void tell_append_reply(FILE *out, const struct raft_message *message)
{
    const struct raft_append_reply *reply = &message->append_reply;

    if (reply->is_success)
        fprintf(out, "tells %c: the same up to %llu", name_of(message->to), U(reply->match));
    else if (reply->conflict_index == 0)
        fprintf(out, "refuses the append of %c: the term is %llu", name_of(message->to), U(message->term));
    else if (reply->conflict_term == 0)
        fprintf(out, "refuses the append of %c after %llu: its log ends before %llu", name_of(message->to),
                U(reply->prev_index), U(reply->conflict_index));
    else
        fprintf(out, "refuses the append of %c after %llu: there it has term %llu, from %llu on",
                name_of(message->to), U(reply->prev_index), U(reply->conflict_term),
                U(reply->conflict_index));
    if (reply->seen_term > 0)
        fprintf(out, "; saw term %llu", U(reply->seen_term));
}

/* What the sender does with it, to whom it goes for those that always go to one. */
static void tell_what(FILE *out, const struct raft_message *message, const char *to)
{
    switch (message->kind) {
    case RAFT_MSG_APPEND:
        tell_append(out, message);
        break;
    case RAFT_MSG_APPEND_REPLY:
        tell_append_reply(out, message);
        break;
    case RAFT_MSG_PRE_VOTE:
        fprintf(out, "asks %s: would you vote for me in term %llu, log ends at %llu:%llu", to,
                U(message->vote.term), U(message->vote.last_index), U(message->vote.last_term));
        tell_certificate(out, &message->vote.certificate);
        break;
    case RAFT_MSG_VOTE:
        fprintf(out, "asks %s: VOTE for me in term %llu, log ends at %llu:%llu", to, U(message->vote.term),
                U(message->vote.last_index), U(message->vote.last_term));
        tell_certificate(out, &message->vote.certificate);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        tell_answer(out, message, message->kind == RAFT_MSG_PRE_VOTE_REPLY);
        break;
    case RAFT_MSG_SNAPSHOT:
        fprintf(out, "sends %s its snapshot up to %llu:%llu", to, U(message->snapshot.index),
                U(message->snapshot.index_term));
        break;
    case RAFT_MSG_TIMEOUT_NOW:
        fprintf(out, "tells %s: stand for election now", to);
        tell_certificate(out, &message->certificate);
        break;
    case RAFT_MSG_CERTIFICATE:
        fprintf(out, "tells %s", to);
        tell_certificate(out, &message->certificate);
        break;
    case RAFT_MSG_TAKE_OVER:
        fprintf(out, "asks %s to hand over at once", to);
        break;
    }
}

void tell_message(FILE *out, const struct raft_message *message)
{
    const char to[] = {name_of(message->to), '\0'};

    fprintf(out, "%c ", name_of(message->from));
    tell_what(out, message, to);
}

/* An empty answer to a leader of the same term: it was heard, and its follower still writes. */
static bool is_writing(const struct cluster *cluster, const struct raft_message *message)
{
    return message->kind == RAFT_MSG_APPEND_REPLY && !message->append_reply.is_success &&
           message->append_reply.conflict_index == 0 && message->to <= NODES_MAX &&
           cluster->hosts[message->to].node.raft.state.term == message->term;
}

static bool is_silent(const struct cluster *cluster, const struct raft_message *message)
{
    if (is_writing(cluster, message))
        return true;
    if (cluster->watched_kinds & (1u << message->kind))
        return message->kind == RAFT_MSG_APPEND && message->append.entry_count == 0 &&
               !cluster->watches_heartbeats;
    return message->kind == RAFT_MSG_APPEND ||
           (message->kind == RAFT_MSG_APPEND_REPLY && message->append_reply.is_success);
}

void tell_sends(const struct cluster *cluster, const struct host *host, const struct packets *packets)
{
    unsigned told = 0;

    for (size_t i = 0; i < packets->count; i++) {
        const struct raft_message *message = &packets->items[i].message;
        bool is_of_many = message->kind == RAFT_MSG_VOTE || message->kind == RAFT_MSG_PRE_VOTE ||
                          message->kind == RAFT_MSG_CERTIFICATE;
        char to[2 * RAFT_MEMBERS_MAX + 1] = "";

        if (is_silent(cluster, message) || (told & (1u << message->kind)))
            continue;
        /* The same question to several is one line. */
        for (size_t j = i; j < packets->count && (j == i || is_of_many); j++) {
            const struct raft_message *other = &packets->items[j].message;

            if (other->kind == message->kind)
                snprintf(to + strlen(to), sizeof to - strlen(to), "%s%c", to[0] ? " " : "",
                         name_of(other->to));
        }
        if (is_of_many)
            told |= 1u << message->kind;
        fprintf(cluster->out, "%10.4f  %c  ", seconds(cluster->now), name_of(host->id));
        tell_what(cluster->out, message, to);
        fputc('\n', cluster->out);
    }
}

void tell_config(FILE *out, const struct raft_config *config)
{
    if (config->count == 0)
        fprintf(out, " nobody");
    if (config->is_joint) {
        for (size_t i = 0; i < config->count; i++)
            if (config->members[i].was_voter)
                fprintf(out, " %c", name_of(config->members[i].id));
        fprintf(out, " and jointly");
    }
    for (size_t i = 0; i < config->count; i++) {
        const struct raft_member *member = &config->members[i];

        if (!member->is_voter && member->was_voter)
            continue;
        fprintf(out, " %c", name_of(member->id));
        if (member->priority > 0)
            fprintf(out, "(priority %d)", member->priority);
        if (!member->is_voter)
            fprintf(out, "(learner)");
        else if (member->is_witness)
            fprintf(out, "(witness)");
        if (member->is_refused)
            fprintf(out, "(refused)");
    }
}

void tell_members(const struct cluster *cluster, const struct host *host, const char *what)
{
    fprintf(cluster->out, "%10.4f  %c  %s", seconds(cluster->now), name_of(host->id), what);
    tell_config(cluster->out, &host->node.raft.config);
    fputc('\n', cluster->out);
}

void tell_election(FILE *out, const struct raft_election *election)
{
    fprintf(out, "%s of term %llu, candidate %c: %s", election->is_pre_vote ? "pre-votes" : "election",
            U(election->term), name_of(election->candidate), raft_result_name(election->result));
    if (election->result != RAFT_RUNNING)
        fprintf(out, " after %.1f ms", milliseconds(election->ended_at - election->started_at));
    for (size_t i = 0; i < election->ballot_count; i++) {
        const struct raft_ballot *ballot = &election->ballots[i];

        fprintf(out, "%s %c", i > 0 ? "," : ";", name_of(ballot->voter));
        if (ballot->candidate)
            fprintf(out, " for %c", name_of(ballot->candidate));
        if (ballot->reason != RAFT_GRANTED)
            fprintf(out, " %s", raft_reason_name(ballot->reason));
    }
}

void tell_news(const struct cluster *cluster, const struct host *host, const struct raft_action *action)
{
    const char *text = action->tell.text ? action->tell.text : "";
    char who = name_of(action->tell.node);

    switch (action->tell.news) {
    case RAFT_NEWS_ROLE_CHANGED:
    case RAFT_NEWS_LEADER_CHANGED:
        return; /* told once a step, by node_feed() */
    case RAFT_NEWS_TRANSFER_DONE:
        tell(cluster, host, "transfer to %c done", who);
        return;
    case RAFT_NEWS_TRANSFER_FAILED:
        tell(cluster, host, "transfer failed: %s", text);
        return;
    case RAFT_NEWS_CHANGE_FAILED:
        tell(cluster, host, "change of members failed: %s", text);
        return;
    case RAFT_NEWS_HIGHER_TERM_SEEN:
        tell(cluster, host, "has seen term %llu", U(action->tell.term));
        return;
    case RAFT_NEWS_ENTRIES_TRUNCATED:
        tell(cluster, host, "TRUNCATES its log from %llu on", U(action->tell.index));
        return;
    case RAFT_NEWS_OBITUARY_TAKEN:
        tell(cluster, host, "takes the obituary of %c", who);
        return;
    case RAFT_NEWS_DIRECTORY_REFUSED:
        tell(cluster, host, "REFUSES the directory of %c: %s", who, text);
        return;
    case RAFT_NEWS_NOBODY_NEAR:
        tell(cluster, host, "could not work again: no majority answers in time for a lease");
        return;
    case RAFT_NEWS_MESSAGE_REFUSED:
        tell(cluster, host, "refuses a message from %c: %s", who, text);
        return;
    case RAFT_NEWS_TERM_REFUSED:
        tell(cluster, host, "refuses a message from %c: no elections can have led to term %llu", who,
             U(action->tell.term));
        return;
    case RAFT_NEWS_ELECTION_ENDED:
        if (action->tell.node != host->id)
            return; /* what a voter saw of it is in its record */
        break;
    case RAFT_NEWS_MEMBERS_CHANGED:
        tell_members(cluster, host, "the change is committed, members are");
        return;
    }
    fprintf(cluster->out, "%10.4f  %c  ", seconds(cluster->now), name_of(host->id));
    tell_election(cluster->out, action->tell.election);
    fputc('\n', cluster->out);
}

static void tell_log(FILE *out, const struct raft_log *log)
{
    raft_index last = raft_log_last(log);

    fprintf(out, "log");
    if (log->base > 0)
        fprintf(out, " (snapshot %llu:%llu)", U(log->base), U(log->base_term));
    if (last == log->base)
        fprintf(out, " empty");
    for (raft_index i = log->base + 1; i <= last; i++) {
        raft_term term = raft_log_term(log, i);
        raft_index end = i;

        while (end < last && raft_log_term(log, end + 1) == term)
            end++;
        tell_range(out, i, end, term);
        i = end;
    }
}

void tell_node(const struct cluster *cluster, const struct host *host)
{
    const struct raft *raft = &host->node.raft;
    FILE *out = cluster->out;

    fprintf(out, "            %c  ", name_of(host->id));
    if (!host->is_alive) {
        fprintf(out, "is down\n");
        return;
    }
    fprintf(out, "%s%s%s", raft_is_witness(raft) ? "witness, " : "", raft_role_name(raft->role),
            host->is_hung ? " (hangs)" : "");
    fprintf(out, ", term %llu, vote %c, leader %c; ", U(raft->state.term), name_of(raft->state.vote),
            name_of(raft->leader));
    tell_log(out, &raft->log);
    fprintf(out, ", commit %llu", U(raft->commit));
    if (raft->is_failed)
        fprintf(out, "; its disk has failed");
    if (host->is_working) {
        gavel_ns deadline = raft_deadline(raft);

        fprintf(out, "; works (%llu/%llu)", U(host->work_term), U(host->work_epoch));
        if (deadline > 0 && deadline < NEVER)
            fprintf(out, " until %.4f", seconds(host_real(cluster, host, deadline)));
    }
    if (raft_is_promised(raft, host_clock(cluster, host)))
        fprintf(out, "; promised to %c (%llu/%llu) until %.4f", name_of(raft->state.promise.leader),
                U(raft->state.promise.term), U(raft->state.promise.lease_epoch),
                seconds(host_real(cluster, host, raft->promise_until)));
    if (raft->failures > 0)
        fprintf(out, "; has lost %u election%s in a row", raft->failures, raft->failures > 1 ? "s" : "");
    if (raft->seen_term > raft->state.term)
        fprintf(out, "; has seen term %llu", U(raft->seen_term));
    fprintf(out, "; members");
    tell_config(out, &raft->config);
    fputc('\n', out);
}
