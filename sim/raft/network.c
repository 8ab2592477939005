/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/network.h"

#include "base/assert.h"
#include "sim/common/memory.h"
#include "sim/raft/ghost.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdlib.h>
#include <string.h>

static gavel_ns draw_base(struct cluster *cluster, unsigned from, unsigned to)
{
    const struct profile *p = &cluster->profile;

    return cluster_between(cluster, STREAM_NETWORK, p->link_min, p->link_max) + p->distance[from] +
           p->distance[to];
}

void net_begin(struct cluster *cluster)
{
    for (unsigned from = 0; from < SLOTS_MAX; from++)
        for (unsigned to = 0; to < SLOTS_MAX; to++)
            cluster->network.links[from][to] = (struct link){.base = draw_base(cluster, from, to)};
}

void net_done(struct network *network)
{
    while (network->all_messages) {
        struct message *message = network->all_messages;

        network->all_messages = message->next_of_all;
        free(message->entries);
        free(message->bytes);
        free(message);
    }
    network->free_messages = NULL;
}

void net_recycle(struct cluster *cluster, struct message *message)
{
    message->next = cluster->network.free_messages;
    cluster->network.free_messages = message;
}

void net_recycle_all(struct cluster *cluster)
{
    cluster->network.free_messages = NULL;
    for (struct message *message = cluster->network.all_messages; message; message = message->next_of_all)
        net_recycle(cluster, message);
}

static struct message *new_message(struct cluster *cluster)
{
    struct message *message = cluster->network.free_messages;

    if (message) {
        cluster->network.free_messages = message->next;
        return message;
    }
    message = zeroed(1, sizeof *message);
    message->next_of_all = cluster->network.all_messages;
    cluster->network.all_messages = message;
    return message;
}

static void reserve_bytes(struct message *message, size_t size)
{
    uint8_t *bytes;

    if (size <= message->byte_capacity)
        return;
    bytes = realloc(message->bytes, 2 * size);
    ASSERT(bytes);
    message->bytes = bytes;
    message->byte_capacity = 2 * size;
}

static void reserve_entries(struct message *message, size_t count)
{
    struct raft_entry *entries;

    if (count <= message->entry_capacity)
        return;
    entries = realloc(message->entries, 2 * count * sizeof *entries);
    ASSERT(entries);
    message->entries = entries;
    message->entry_capacity = 2 * count;
}

static void copy_entries(struct message *message)
{
    const struct raft_append *append = &message->body.append;
    size_t size = 0;

    reserve_entries(message, append->entry_count);
    for (uint32_t i = 0; i < append->entry_count; i++)
        size += append->entries[i].size;
    reserve_bytes(message, size);
    size = 0;
    for (uint32_t i = 0; i < append->entry_count; i++) {
        struct raft_entry *entry = &message->entries[i];

        *entry = append->entries[i];
        if (entry->size > 0) {
            memcpy(message->bytes + size, entry->data, entry->size);
            entry->data = message->bytes + size;
            size += entry->size;
        }
    }
    message->body.append.entries = message->entries;
}

struct message *net_copy(struct cluster *cluster, const struct raft_message *body)
{
    struct message *message = new_message(cluster);

    message->body = *body;
    message->is_false = false;
    message->next = NULL;
    if (body->kind == RAFT_MSG_APPEND && body->append.entry_count > 0)
        copy_entries(message);
    if (body->kind == RAFT_MSG_SNAPSHOT && body->snapshot.size > 0) {
        reserve_bytes(message, body->snapshot.size);
        memcpy(message->bytes, body->snapshot.data, body->snapshot.size);
        message->body.snapshot.data = message->bytes;
    }
    if (body->kind == RAFT_MSG_SNAPSHOT)
        message->body.snapshot.blob = NULL;
    return message;
}

void net_deliver(struct cluster *cluster, struct message *message, gavel_ns at)
{
    cluster_push(cluster, at, EVENT_ARRIVE, (unsigned)message->body.to - 1)->message = message;
}

/* What one message costs; all of it is drawn for every message, so that one fault more or less shifts
 * nothing. */
struct luck {
    gavel_ns delay;
    gavel_ns tail;
    gavel_ns again;
    bool is_lost;
    bool is_late;
    bool is_doubled;
    bool is_echoed; /* a stranger sends the same */
    bool is_raised; /* its sender says the same once more, with a term beyond all elections */
};

/* Of those there are few, and much hangs on each: they have worse luck than heartbeats. */
static bool is_rare(enum raft_message_kind kind)
{
    return kind != RAFT_MSG_APPEND && kind != RAFT_MSG_APPEND_REPLY;
}

static struct luck draw_luck(struct cluster *cluster, enum raft_message_kind kind)
{
    const struct profile *p = &cluster->profile;
    unsigned s = STREAM_NETWORK;
    unsigned more = is_rare(kind) ? 150 : 0;
    struct luck luck = {
        .delay = cluster_between(cluster, s, 0, p->jitter),
        .tail = cluster_length(cluster, s, 5 * NS_PER_MS, 3 * NS_PER_S),
        .again = cluster_length(cluster, s, 100 * NS_PER_US, NS_PER_S),
        .is_lost = cluster_chance(cluster, s, p->loss_per_mille),
        .is_late = cluster_chance(cluster, s, p->delay_per_mille + more),
        .is_doubled = cluster_chance(cluster, s, p->duplicate_per_mille + more),
        .is_echoed = cluster_chance(cluster, s, 20),
        .is_raised = cluster_chance(cluster, STREAM_FAULTS + FAULT_TERM_JUMP, 5),
    };

    luck.is_lost &= cluster_has(cluster, FAULT_LOSS);
    luck.is_late &= cluster_has(cluster, FAULT_DELAY);
    luck.is_doubled &= cluster_has(cluster, FAULT_DUPLICATE);
    luck.is_echoed &= cluster_has(cluster, FAULT_STRANGER);
    luck.is_raised &= cluster_has(cluster, FAULT_TERM_JUMP);
    return luck;
}

/* The same message as if it came from another cluster with the same ids, or from this one before it was given
 * a new generation; nothing of it may count. */
static void echo(struct cluster *cluster, const struct raft_message *body, gavel_ns at)
{
    struct message *stranger = net_copy(cluster, body);
    bool is_other = cluster_chance(cluster, STREAM_NETWORK, 500);

    stranger->is_false = true;
    stranger->body.term += body->kind == RAFT_MSG_APPEND || body->kind == RAFT_MSG_APPEND_REPLY;
    if (is_other)
        stranger->body.cluster ^= 1;
    else
        stranger->body.generation--;
    cluster->counts.faults++;
    net_deliver(cluster, stranger, at);
}

/* A member that has gone mad, or whose memory is damaged; nobody may follow it. */
static void raise_term(struct cluster *cluster, const struct raft_message *body, gavel_ns at)
{
    struct message *mad = net_copy(cluster, body);
    raft_term jump =
        RAFT_TERM_JUMP_MAX + 1 +
        (raft_term)cluster_between(cluster, STREAM_FAULTS + FAULT_TERM_JUMP, 0, INT64_C(1) << 60);

    mad->is_false = true;
    mad->body.term += jump;
    if (body->kind == RAFT_MSG_VOTE || body->kind == RAFT_MSG_PRE_VOTE)
        mad->body.vote.term += jump;
    else if (body->kind == RAFT_MSG_VOTE_REPLY || body->kind == RAFT_MSG_PRE_VOTE_REPLY)
        mad->body.vote_reply.term += jump;
    else if (body->kind == RAFT_MSG_TIMEOUT_NOW)
        mad->body.certificate.term += jump;
    cluster->counts.faults++;
    net_deliver(cluster, mad, at);
}

void net_send(struct cluster *cluster, struct message *message, unsigned from)
{
    const struct raft_message *body = &message->body;
    unsigned to = (unsigned)body->to - 1;
    struct link *link;
    struct luck luck;
    gavel_ns at;

    cluster->counts.messages++;
    if (to >= SLOTS_MAX) {
        net_recycle(cluster, message);
        return;
    }
    link = &cluster->network.links[from][to];
    luck = draw_luck(cluster, body->kind);
    if (luck.is_lost || (cluster->now < link->cut_until && link->cut_kinds & 1U << body->kind)) {
        cluster->counts.faults++;
        net_recycle(cluster, message);
        return;
    }
    at = cluster->now + link->base + luck.delay;
    if (luck.is_late) {
        cluster->counts.faults++;
        at += luck.tail;
    } else if (!cluster_has(cluster, FAULT_REORDER) && at <= link->newest) {
        at = link->newest + 1;
    }
    if (!luck.is_late)
        link->newest = at;
    if (luck.is_doubled) {
        cluster->counts.faults++;
        net_deliver(cluster, net_copy(cluster, body), at + luck.again);
    } else if (luck.is_echoed) {
        echo(cluster, body, at + luck.delay);
    } else if (luck.is_raised && cluster->hosts[to].node.raft.config.count > 0) {
        raise_term(cluster, body, at + luck.delay); /* who joins knows no term yet, and takes any */
    }
    net_deliver(cluster, message, at);
}

/* A snapshot is decoded before the node hears of it, as in gaveld; that takes as long as its way here. False
 * if the node refuses the message; the referee looks whether it should. */
static bool take_message(struct cluster *cluster, struct host *host, const struct raft_message *body)
{
    struct node_event event = {.kind = NODE_RAFT, .raft = {.kind = RAFT_RECEIVE, .message = body}};
    bool is_heard;

    if (body->kind == RAFT_MSG_SNAPSHOT &&
        table_snapshot_decode(&host->decoded, body->snapshot.data, body->snapshot.size) == GAVEL_OK)
        event.decoded = &host->decoded;
    is_heard = host_feed(cluster, host, event) == GAVEL_OK;
    table_done(&host->decoded);
    return is_heard;
}

void net_take(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];
    struct message *message = event->message;
    const char *reason = NULL;
    char text[160];

    if (!host_is_up(host)) {
        ghost_receive(cluster, host, &message->body);
        net_recycle(cluster, message);
        return;
    }
    if (host_is_frozen(cluster, host)) {
        if (host->loses_inbox || host->frozen_until == NEVER)
            net_recycle(cluster, message);
        else
            heap_defer(&cluster->heap, event, host->frozen_until);
        return;
    }
    if (cluster->now < host->stalled_until) {
        heap_defer(&cluster->heap, event, host->stalled_until);
        return;
    }
    if (raft_message_check(&message->body, &reason) != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_ASSERT,
                        "a message of %s that raft_message_check() refuses: %s",
                        cluster_label(cluster, message->body.from), reason);
    TRACE_DETAIL(cluster, host, "gets %s from %s", cluster_describe(&message->body, text, sizeof text),
                 cluster_label(cluster, message->body.from));
    if (!ghost_is_hidden(cluster, host, &message->body)) {
        bool is_heard = take_message(cluster, host, &message->body);

        ghost_check(cluster, host, &message->body, is_heard);
        ghost_note(cluster, host);
    }
    net_recycle(cluster, message);
}

void net_cut(struct cluster *cluster, unsigned from, unsigned to, gavel_ns until, unsigned kinds)
{
    struct link *link = &cluster->network.links[from][to];

    if (cluster->now >= link->cut_until)
        link->cut_kinds = 0;
    link->cut_kinds |= kinds;
    link->cut_until = ns_max(link->cut_until, until);
}

void net_mend(struct cluster *cluster, unsigned from, unsigned to)
{
    cluster->network.links[from][to] = (struct link){.base = draw_base(cluster, from, to)};
}
