/* SPDX-License-Identifier: Apache-2.0 */

/* What Raft tells, for people: the journal, the log and the counters. */
#include "daemon/node/consensus.h"

#include "os/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void consensus_put(struct consensus *c, struct journal_entry *entry)
{
    entry->wall_ms = clock_wall_ms();
    if (entry->at == 0)
        entry->at = clock_now();
    if (entry->term == 0)
        entry->term = c->node.raft.state.term;
    (void)journal_put(c->shared->journal, entry);
}

static enum log_level level_of(enum journal_event event)
{
    switch (event) {
    case JOURNAL_SPLIT_BRAIN:
    case JOURNAL_FOUNDING_REFUSED:
    case JOURNAL_DIRECTORY_LOST:
        return LOG_ERROR;
    case JOURNAL_DIRECTORY_REFUSED:
    case JOURNAL_DIRECTORY_AWAITED:
    case JOURNAL_DISK_FULL:
    case JOURNAL_DISK_HANGS:
    case JOURNAL_COMMITS_HANG:
    case JOURNAL_NOBODY_NEAR:
    case JOURNAL_PEER_REFUSED:
    case JOURNAL_TRANSFER_FAILED:
    case JOURNAL_MEMBER_CHANGE_FAILED:
    case JOURNAL_CERTIFICATE_EXPIRES:
    case JOURNAL_ENTRIES_TRUNCATED:
        return LOG_WARNING;
    default:
        return LOG_INFO;
    }
}

void consensus_note(struct consensus *c, enum journal_event event, raft_id node, const char *format, ...)
{
    struct journal_entry entry = {.event = event};
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(entry.text, sizeof entry.text, format, arguments);
    va_end(arguments);
    (void)node_addresses_name(&c->node.members.addresses, node, entry.node);
    consensus_put(c, &entry);
    logger_line(&c->logger, level_of(event), journal_event_name(event), LOG_STR("node", entry.node),
                LOG_U64("term", entry.term), LOG_STR("text", entry.text), LOG_I64("at_ns", entry.at),
                LOG_END);
}

static void count_duration(struct view_counters *counters, gavel_ns duration)
{
    static const int bounds_ms[] = VIEW_DURATION_BOUNDS;
    size_t bucket = 0;

    while (bucket < VIEW_DURATION_BUCKETS - 1 && duration > ns_from_ms(bounds_ms[bucket]))
        bucket++;
    counters->duration_buckets[bucket]++;
    counters->duration_sum += duration;
}

/* "n1 … the election". */
static const char *said_of(enum raft_result result)
{
    switch (result) {
    case RAFT_WON:
        return "won";
    case RAFT_LOST:
        return "lost";
    case RAFT_TIMED_OUT:
        return "got no majority in";
    case RAFT_OVERTAKEN:
        return "was overtaken in";
    case RAFT_RUNNING:
        break;
    }
    return "stands in";
}

static void tell_election(struct consensus *c, const struct raft_election *election)
{
    struct journal_election record = {.election = *election};
    int64_t wall_ms = clock_wall_ms();
    gavel_ns now = clock_now();

    record.started_wall_ms = wall_ms - ms_from_ns(now - election->started_at);
    record.ended_wall_ms = wall_ms - ms_from_ns(now - election->ended_at);
    (void)node_addresses_name(&c->node.members.addresses, election->candidate, record.candidate);
    for (size_t i = 0; i < election->ballot_count; i++) {
        (void)node_addresses_name(&c->node.members.addresses, election->ballots[i].voter,
                                  record.names[i].voter);
        (void)node_addresses_name(&c->node.members.addresses, election->ballots[i].candidate,
                                  record.names[i].vote);
    }
    journal_put_election(c->shared->journal, &record);
    if (!election->is_pre_vote) {
        c->draft.counters.elections++;
        c->draft.counters.elections_won += election->result == RAFT_WON;
        c->draft.counters.candidacies += election->candidate == c->config->id;
        count_duration(&c->draft.counters, election->ended_at - election->started_at);
    }
    consensus_note(c, JOURNAL_ELECTION_ENDED, election->candidate,
                   "%s %s %s of term %" PRIu64 " after %.1f ms", record.candidate, said_of(election->result),
                   election->is_pre_vote ? "the pre-votes" : "the election", election->term,
                   (double)(election->ended_at - election->started_at) / (double)NS_PER_MS);
}

static void tell_leader(struct consensus *c, raft_id leader)
{
    struct journal_entry entry = {.event = JOURNAL_LEADER_CHANGED};

    (void)node_addresses_name(&c->node.members.addresses, leader, entry.node);
    (void)node_addresses_name(&c->node.members.addresses, c->told.last_leader, entry.previous);
    consensus_put(c, &entry);
    logger_line(&c->logger, LOG_INFO, "leader_changed", LOG_STR("node", entry.node),
                LOG_STR("previous", entry.previous), LOG_U64("term", entry.term), LOG_I64("at_ns", entry.at),
                LOG_END);
    if (leader == 0)
        return;
    if (c->told.last_leader != 0 && c->told.last_leader != leader) {
        if (c->told.released_term == c->node.raft.state.term)
            c->draft.counters.transfers++;
        else
            c->draft.counters.failovers++;
    }
    c->told.last_leader = leader;
    if (!raft_config_find(&c->node.raft.config, leader))
        consensus_set_peers(c); /* or it would not hear our answers */
}

static void tell_role(struct consensus *c, const char *role)
{
    struct journal_entry entry = {.event = JOURNAL_ROLE_CHANGED};

    (void)snprintf(entry.text, sizeof entry.text, "%s", role ? role : raft_role_name(c->node.raft.role));
    (void)node_addresses_name(&c->node.members.addresses, c->config->id, entry.node);
    consensus_put(c, &entry);
    logger_line(&c->logger, LOG_INFO, "role_changed", LOG_STR("role", entry.text),
                LOG_U64("term", entry.term), LOG_I64("at_ns", entry.at), LOG_END);
}

#define TERM_REFUSED_PAUSE (10 * NS_PER_S)

/* Whoever sends one sends many. */
static void tell_term_refused(struct consensus *c, raft_id node, raft_term term)
{
    char name[NODE_ADDRESSES_NAME_BYTES];
    gavel_ns now = clock_now();

    if (c->told.term_refused_at != 0 && now - c->told.term_refused_at < TERM_REFUSED_PAUSE)
        return;
    c->told.term_refused_at = now;
    logger_line(
        &c->logger, LOG_ERROR,
        "refused a term that elections cannot have reached; the node that sends it is not trustworthy or its data are damaged: stop it, remove the member and let it join with an empty directory",
        LOG_STR("node", node_addresses_name(&c->node.members.addresses, node, name)),
        LOG_U64("refused", term), LOG_U64("term", c->node.raft.state.term), LOG_END);
}

static void tell_truncation(struct consensus *c, raft_index index)
{
    struct journal_entry entry = {.event = JOURNAL_ENTRIES_TRUNCATED, .index = index};

    consensus_put(c, &entry);
    logger_line(&c->logger, LOG_WARNING, "entries_truncated", LOG_U64("index", index), LOG_END);
}

/* What would do, with some room: links are slower at times. */
static gavel_ns promise_for(const struct raft_settings *settings, gavel_ns round_trip)
{
    return round_trip + round_trip / 2 + settings->heartbeat + settings->stop_margin;
}

static void tell_nobody_near(struct consensus *c)
{
    const struct raft_settings *settings = &c->node.raft.settings;
    gavel_ns round_trip = raft_majority_round_trip(&c->node.raft);
    long long promise =
        (long long)ms_from_ns(promise_for(settings, round_trip == NEVER ? settings->promise : round_trip));

    c->told.is_status_due = true;
    consensus_note(
        c, JOURNAL_NOBODY_NEAR, c->config->id,
        "led %u times and could not work: a majority answers within %lld ms, a lease needs %lld ms; on all nodes raise promise and election_min to %lld ms, election_max to %lld ms",
        RAFT_IDLE_TURNS + 1, round_trip == NEVER ? -1 : (long long)ms_from_ns(round_trip),
        (long long)ms_from_ns(raft_round_trip_limit(&c->node.raft)), promise, 2 * promise);
}

void consensus_tell(struct consensus *c, const struct raft_action *action)
{
    raft_id node = action->tell.node;
    const char *text = action->tell.text ? action->tell.text : "";
    char name[NODE_ADDRESSES_NAME_BYTES];

    switch (action->tell.news) {
    case RAFT_NEWS_ROLE_CHANGED:
        tell_role(c, action->tell.text);
        break;
    case RAFT_NEWS_LEADER_CHANGED:
        tell_leader(c, node);
        break;
    case RAFT_NEWS_ELECTION_ENDED:
        tell_election(c, action->tell.election);
        break;
    case RAFT_NEWS_TRANSFER_DONE:
        consensus_note(c, JOURNAL_TRANSFER_DONE, node, "%s", text);
        break;
    case RAFT_NEWS_TRANSFER_FAILED:
        c->draft.counters.transfers_failed++;
        consensus_note(c, JOURNAL_TRANSFER_FAILED, node, "%s", text);
        break;
    case RAFT_NEWS_MEMBERS_CHANGED:
        consensus_note(c, JOURNAL_MEMBERS_CHANGED, 0, "%u members", (unsigned)c->node.raft.config.count);
        consensus_set_peers(c);
        break;
    case RAFT_NEWS_CHANGE_FAILED:
        consensus_note(c, JOURNAL_MEMBER_CHANGE_FAILED, node, "%s", text);
        break;
    case RAFT_NEWS_OBITUARY_TAKEN:
        c->draft.counters.obituaries++;
        if (node == c->told.last_leader)
            consensus_note(c, JOURNAL_LEADER_DOWN, node, "its guard says that it is dead");
        else
            logger_line(&c->logger, LOG_INFO, "an obituary was taken",
                        LOG_STR("node", node_addresses_name(&c->node.members.addresses, node, name)),
                        LOG_END);
        break;
    case RAFT_NEWS_ENTRIES_TRUNCATED:
        tell_truncation(c, action->tell.index);
        break;
    case RAFT_NEWS_HIGHER_TERM_SEEN:
        logger_line(&c->logger, LOG_INFO, "a higher term was seen", LOG_U64("seen", action->tell.term),
                    LOG_U64("term", c->node.raft.state.term), LOG_END);
        break;
    case RAFT_NEWS_DIRECTORY_REFUSED:
        consensus_note(
            c, JOURNAL_DIRECTORY_REFUSED, node,
            "%s; replace the member: gavel member remove, empty its directory, gavel member add, start it with --join",
            text);
        break;
    case RAFT_NEWS_NOBODY_NEAR:
        tell_nobody_near(c);
        break;
    case RAFT_NEWS_MESSAGE_REFUSED:
        logger_line(&c->logger, LOG_DEBUG, "message refused", LOG_STR("reason", text), LOG_END);
        break;
    case RAFT_NEWS_TERM_REFUSED:
        tell_term_refused(c, node, action->tell.term);
        break;
    }
}
