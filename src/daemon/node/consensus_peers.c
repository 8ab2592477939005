/* SPDX-License-Identifier: Apache-2.0 */

/* The other nodes: what they send, and what becomes of connections. */
#include "daemon/node/consensus.h"

#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The same peer is told to be refused at most so often. */
#define REFUSAL_PAUSE (10 * NS_PER_S)

static uint64_t hang_ms(gavel_ns since, gavel_ns now) { return (uint64_t)ns_max(ms_from_ns(now - since), 1); }

void consensus_make_status(const struct consensus *c, struct peer_status *ret_status)
{
    const struct raft *raft = &c->node.raft;
    gavel_ns now = clock_now();

    *ret_status = (struct peer_status){
        .node = c->config->id,
        .cluster = raft->state.cluster,
        .generation = raft->state.generation,
        .incarnation = raft->state.incarnation,
        .term = raft->state.term,
        .leader = raft->leader,
        .is_leader = raft->role == RAFT_LEADER,
        .is_working = c->node.claim.is_held && raft_is_working(raft, now),
        .lease_epoch = c->node.claim.lease_epoch,
        .commit = raft->commit,
        .disk_hangs_ms = c->hang.is_disk_hung ? hang_ms(c->hang.hung_at, now) : 0,
        .commit_hangs_ms =
            c->hang.is_commit_hung && raft->role == RAFT_LEADER ? hang_ms(c->hang.uncommitted_at, now) : 0,
        .digest_index = raft->applied,
        .digest = table_digest(c->table),
        .founding = raft->founding,
    };
}

void consensus_send_status(struct consensus *c)
{
    struct peer_status status;

    c->told.is_status_due = false;
    consensus_make_status(c, &status);
    detector_send(&c->detector, &status);
    transport_send_status(c->transport, &status);
}

static void on_message(void *user, const struct raft_message *message)
{
    struct consensus *c = user;

    if (message->kind == RAFT_MSG_VOTE && (message->vote.certificate.kind == RAFT_CERT_RELEASE ||
                                           message->vote.certificate.kind == RAFT_CERT_FORCE))
        c->told.released_term = message->vote.term;
    else if (message->kind == RAFT_MSG_TIMEOUT_NOW)
        c->told.released_term = message->term + 1;
    if (message->kind == RAFT_MSG_SNAPSHOT)
        consensus_receive_snapshot(c, message);
    else
        consensus_feed(c, (struct raft_event){.kind = RAFT_RECEIVE, .message = message});
}

static void on_status(void *user, const struct peer_status *status)
{
    struct consensus *c = user;
    struct peer_status self;
    struct detector_alarm alarm;
    raft_index alarm_index;
    char higher[NODE_ADDRESSES_NAME_BYTES], lower[NODE_ADDRESSES_NAME_BYTES];

    if (c->ending.is_over || status->cluster != c->node.raft.state.cluster ||
        status->generation != c->node.raft.state.generation)
        return;
    if (consensus_is_other_founding(c, status->founding)) {
        consensus_meet_founding(c, status->node, status->founding);
        return; /* what it says of itself is about another cluster */
    }
    if (status->founding != 0)
        consensus_forget_founding(c, status->node);
    consensus_make_status(c, &self);
    alarm = detector_receive(&c->detector, &self, status);
    (void)consensus_step(
        c, (struct node_event){
               .kind = NODE_SAID,
               .said = {.node = status->node, .term = status->term, .is_working = status->is_working}});
    if (c->ending.is_over)
        return;
    if (detector_differs(&c->detector, status, &alarm_index)) {
        c->draft.counters.split_brains++;
        consensus_note(
            c, JOURNAL_SPLIT_BRAIN, status->node,
            "the tables of %s and %s differ after entry %" PRIu64
            ": one of them has lost or changed what was committed; keep both data directories, and see OPERATIONS, tables that differ",
            c->config->node, node_addresses_name(&c->node.members.addresses, status->node, lower),
            alarm_index);
        consensus_publish(c);
    }
    if (alarm.finding == DETECTOR_NOTHING)
        return;
    c->draft.counters.split_brains++;
    consensus_note(
        c, JOURNAL_SPLIT_BRAIN, alarm.lower.node,
        "%s: %s (term %" PRIu64 ") and %s (term %" PRIu64 "); the latter has to step down",
        alarm.finding == DETECTOR_ONE_TERM ? "two nodes lead in one term" : "two nodes work as leader",
        node_addresses_name(&c->node.members.addresses, alarm.higher.node, higher), alarm.higher.term,
        node_addresses_name(&c->node.members.addresses, alarm.lower.node, lower), alarm.lower.term);
    if (alarm.lower.node == c->config->id)
        consensus_feed(c, (struct raft_event){.kind = RAFT_STEP_DOWN});
    else
        consensus_publish(c);
}

/* The cluster was begun anew without us (--force-new-cluster): whatever we lead must end, for good. */
static void on_later_generation(struct consensus *c, const struct peer_hello *hello)
{
    c->draft.counters.split_brains++;
    consensus_note(c, JOURNAL_SPLIT_BRAIN, hello->node,
                   "the cluster goes on as generation %" PRIu64
                   " without this node, which is of generation %" PRIu64,
                   hello->generation, c->node.raft.state.generation);
    logger_line(
        &c->logger, LOG_ERROR,
        "this node belongs to a generation of the cluster that was abandoned; move its data directory away and start it with --join after `gavel member add`",
        LOG_STR("data", c->config->data), LOG_U64("generation", c->node.raft.state.generation),
        LOG_U64("newer", hello->generation), LOG_STR("of", hello->name), LOG_END);
    if (c->node.raft.role == RAFT_LEADER)
        consensus_feed(c, (struct raft_event){.kind = RAFT_STEP_DOWN});
    consensus_end(c, NODE_EXIT_FENCED);
}

static void on_greeted(struct consensus *c, const struct peer_hello *hello)
{
    const struct node_described said = {.id = hello->node,
                                        .name = hello->name,
                                        .address = hello->address,
                                        .api = hello->api,
                                        .table_version = hello->table_version,
                                        .directory = hello->directory,
                                        .incarnation = hello->incarnation};

    if (hello->founding == 0 || hello->founding == c->node.raft.founding)
        consensus_forget_founding(c, hello->node); /* also one that was emptied, and joins */
    (void)consensus_step(c, (struct node_event){.kind = NODE_GREETED, .greeting = &said});
}

/* A refusal is tried again and again, and need not be told each time. */
static bool is_news(struct consensus *c, raft_id peer)
{
    gavel_ns now = clock_now();
    size_t oldest = 0;

    for (size_t i = 0; i < REFUSALS_KEPT; i++) {
        if (c->told.refusals[i].at > 0 && c->told.refusals[i].peer == peer &&
            now - c->told.refusals[i].at < REFUSAL_PAUSE)
            return false;
        if (c->told.refusals[i].at < c->told.refusals[oldest].at)
            oldest = i;
    }
    c->told.refusals[oldest].peer = peer;
    c->told.refusals[oldest].at = now;
    return true;
}

/* Whether the data directory that a node tells of may be that of the member. */
static bool may_have_directory(struct consensus *c, const struct peer_hello *hello, bool is_proven,
                               char text[PEER_TEXT_MAX + 1])
{
    struct raft_claimant claimant = {.id = hello->node,
                                     .directory = hello->directory,
                                     .incarnation = hello->incarnation,
                                     .term = RAFT_NUMBER_MAX,
                                     .bound_at = hello->bound_at,
                                     .began_at = hello->began_at,
                                     .start = hello->process,
                                     .founding = hello->founding,
                                     .is_founded = hello->is_founded,
                                     .is_live = is_proven};
    enum raft_trust trust = hello->generation == c->node.raft.state.generation || hello->generation == 0 ||
                                    c->node.raft.state.generation == 0
                                ? raft_trust(&c->node.raft, &claimant)
                                : RAFT_TRUSTED; /* of another generation: refused for that */

    if (trust == RAFT_TRUSTED && is_proven && hello->generation == c->node.raft.state.generation)
        consensus_feed(c, (struct raft_event){.kind = RAFT_MET, .met = &claimant});
    if (trust == RAFT_TRUSTED || trust == RAFT_OUTLIVED) /* that may be late, or not: the transport knows */
        return true;
    if (is_proven && (trust == RAFT_ROLLED_BACK || trust == RAFT_TWICE))
        consensus_feed(c, (struct raft_event){.kind = RAFT_DISTRUST, .peer = hello->node});
    if (is_proven && trust == RAFT_OTHER_FOUNDING)
        consensus_meet_founding(c, hello->node, hello->founding);
    if (trust == RAFT_OTHER_FOUNDING)
        (void)snprintf(text, PEER_TEXT_MAX + 1, "%s: %s", hello->name, CONSENSUS_FOUNDING_TEXT);
    else if (trust == RAFT_NO_DIRECTORY)
        (void)snprintf(
            text, PEER_TEXT_MAX + 1,
            "%s (%s) cannot tell which data directory it has, and this cluster needs to know; upgrade it, and if it was bootstrapped by that version empty its directory first",
            hello->name, hello->program);
    else
        (void)snprintf(
            text, PEER_TEXT_MAX + 1,
            "%s: %s; put the right directory back, or replace the member: gavel member remove, an empty directory, gavel member add, --join",
            hello->name, raft_trust_text(trust));
    return false;
}

/* An older program reads our log by other rules, and its table would become another one. */
static bool has_old_program(const struct consensus *c, const struct peer_hello *hello,
                            char text[PEER_TEXT_MAX + 1])
{
    if (hello->generation != c->node.raft.state.generation || hello->table_version >= c->node.members.version)
        return false;
    (void)snprintf(text, PEER_TEXT_MAX + 1,
                   "%s (%s) knows version %" PRIu32 " of the table, and this cluster uses %" PRIu32
                   ": install the release of the other nodes; the directory may stay",
                   hello->name, hello->program, hello->table_version, c->node.members.version);
    return true;
}

static enum transport_verdict on_admit(void *user, const struct peer_hello *hello, bool is_proven,
                                       char text[PEER_TEXT_MAX + 1])
{
    struct consensus *c = user;

    if (!may_have_directory(c, hello, is_proven, text))
        return TRANSPORT_REFUSES_DIRECTORY;
    return has_old_program(c, hello, text) ? TRANSPORT_REFUSES : TRANSPORT_ADMITS;
}

static void on_distrust(void *user, raft_id peer)
{
    consensus_feed(user, (struct raft_event){.kind = RAFT_DISTRUST, .peer = peer});
}

/*
 * A peer knows another data directory under our name, or has seen more of ours. If it is right this node must
 * do nothing more: two of them, both emptied, would make another cluster of the name.
 */
static void on_disowned(struct consensus *c, raft_id peer, const char *text, const struct peer_hello *hello)
{
    bool is_ours = hello && hello->cluster == c->node.raft.state.cluster &&
                   hello->generation == c->node.raft.state.generation;
    bool is_right = is_ours && raft_is_disowned(&c->node.raft, hello->founding, hello->config_index);

    if (is_news(c, peer))
        consensus_note(c, JOURNAL_PEER_REFUSED, peer, "%s", text);
    if (is_ours && hello->is_founded)
        consensus_meet_founding(c, hello->node, hello->founding);
    if (!is_right)
        return;
    consensus_note(c, JOURNAL_DIRECTORY_REFUSED, c->config->id, "%s", text);
    logger_line(
        &c->logger, LOG_ERROR,
        "the cluster refuses this data directory: it is not the one that this member had, or an older copy of it. "
        "Put the right one back; if it is lost, replace the member: gavel member remove, an empty directory, gavel member add, --join",
        LOG_STR("data", c->config->data), LOG_STR("node", c->config->node),
        LOG_STR("refused_by", hello->name), LOG_STR("reason", text), LOG_END);
    if (c->node.raft.role == RAFT_LEADER)
        consensus_feed(c, (struct raft_event){.kind = RAFT_STEP_DOWN});
    consensus_end(c, NODE_EXIT_LOST);
}

static void on_news(void *user, enum transport_news news, raft_id peer, const char *text,
                    const struct peer_hello *hello)
{
    struct consensus *c = user;

    if (c->ending.is_over)
        return;
    if (hello && hello->cluster == c->node.raft.state.cluster &&
        hello->generation > c->node.raft.state.generation && c->node.raft.config.count > 0) {
        on_later_generation(c, hello);
        return;
    }
    switch (news) {
    case TRANSPORT_GREETED:
        if (hello)
            on_greeted(c, hello);
        break;
    case TRANSPORT_UP:
        consensus_note(c, JOURNAL_PEER_UP, peer, "%s", text);
        consensus_publish_peers(c);
        consensus_refresh_members(c);
        consensus_send_status(c);
        break;
    case TRANSPORT_LOST:
        consensus_note(c, JOURNAL_PEER_DOWN, peer, "%s", text);
        consensus_feed(c, (struct raft_event){.kind = RAFT_LINK_LOST, .peer = peer});
        consensus_refresh_members(c);
        break;
    case TRANSPORT_DISOWNED:
        on_disowned(c, peer, text, hello);
        if (c->ending.is_over)
            return;
        break;
    case TRANSPORT_REFUSED:
        if (is_news(c, peer))
            consensus_note(c, JOURNAL_PEER_REFUSED, peer ? peer : hello ? hello->node : 0, "%s", text);
        break;
    case TRANSPORT_OPENED:
        consensus_note(c, JOURNAL_BREAKER_OPEN, peer, "%s", text);
        break;
    case TRANSPORT_CLOSED:
        consensus_note(c, JOURNAL_BREAKER_CLOSED, peer, "%s", text);
        break;
    case TRANSPORT_FAILED:
    case TRANSPORT_BAD:
        logger_line(&c->logger, LOG_WARNING,
                    news == TRANSPORT_BAD ? "bytes that are not a frame" : "cannot reach a peer",
                    LOG_STR("text", text), LOG_END);
        break;
    }
    consensus_publish(c);
}

static void on_forwarding(void *user, raft_id peer, enum peer_frame_kind kind,
                          const struct peer_forwarding *forwarding)
{
    if (!consensus_is_of_other_founding(user, peer))
        consensus_forwarding(user, peer, kind, forwarding);
}

const struct transport_events consensus_transport_events = {.message = on_message,
                                                            .status = on_status,
                                                            .forwarding = on_forwarding,
                                                            .admit = on_admit,
                                                            .distrust = on_distrust,
                                                            .news = on_news};
