/* SPDX-License-Identifier: Apache-2.0 */

/* The network between the nodes: packets under way, links that are cut, packets that the story holds. */

#include "trace/host.h"

#include <stdlib.h>
#include <string.h>

/* Nobody on the stage knows this but the guards and the nodes. */
#define KEY UINT64_C(0x6761766c2d6b6579)

void packets_add(struct packets *packets, const struct packet *packet)
{
    struct raft_message *message;

    if (packets->count == packets->capacity) {
        packets->capacity = packets->capacity > 0 ? 2 * packets->capacity : 16;
        packets->items = reallocarray(packets->items, packets->capacity, sizeof *packets->items);
    }
    packets->items[packets->count] = *packet;
    message = &packets->items[packets->count++].message;
    if (message->kind == RAFT_MSG_APPEND && message->append.entry_count > 0) {
        struct raft_entry *entries = calloc(message->append.entry_count, sizeof *entries);

        for (uint32_t i = 0; i < message->append.entry_count; i++) {
            entries[i] = message->append.entries[i];
            if (entries[i].size > 0) {
                uint8_t *bytes = malloc(entries[i].size);

                memcpy(bytes, entries[i].data, entries[i].size);
                entries[i].data = bytes;
            }
        }
        message->append.entries = entries;
    }
    if (message->kind == RAFT_MSG_SNAPSHOT && message->snapshot.size > 0) {
        uint8_t *bytes = malloc(message->snapshot.size);

        memcpy(bytes, message->snapshot.data, message->snapshot.size);
        message->snapshot.data = bytes;
    }
    if (message->kind == RAFT_MSG_SNAPSHOT)
        message->snapshot.blob = NULL;
}

void packet_done(struct packet *packet)
{
    struct raft_message *message = &packet->message;

    if (message->kind == RAFT_MSG_APPEND && message->append.entry_count > 0) {
        for (uint32_t i = 0; i < message->append.entry_count; i++)
            free((void *)(uintptr_t)message->append.entries[i].data);
        free((void *)(uintptr_t)message->append.entries);
    }
    if (message->kind == RAFT_MSG_SNAPSHOT && message->snapshot.size > 0)
        free((void *)(uintptr_t)message->snapshot.data);
}

/* Takes it out; what it holds is the caller's now, or packet_done() has freed it. */
void packets_remove(struct packets *packets, size_t which)
{
    packets->count--;
    memmove(packets->items + which, packets->items + which + 1,
            (packets->count - which) * sizeof *packets->items);
}

void packets_free(struct packets *packets)
{
    for (size_t i = 0; i < packets->count; i++)
        packet_done(&packets->items[i]);
    free(packets->items);
    *packets = (struct packets){0};
}

/* About as many bytes as it has on the wire. */
static uint64_t size_of(const struct raft_message *message)
{
    uint64_t size = 100;

    if (message->kind == RAFT_MSG_SNAPSHOT)
        size += message->snapshot.size;
    for (uint32_t i = 0; message->kind == RAFT_MSG_APPEND && i < message->append.entry_count; i++)
        size += 16 + message->append.entries[i].size;
    return size;
}

gavel_ns network_arrives_at(struct cluster *cluster, raft_id from, raft_id to, uint64_t size)
{
    struct link *link = &cluster->links[from][to];
    gavel_ns at = cluster->now;

    if (link->bandwidth > 0) {
        at = ns_max(at, link->busy_until) + (gavel_ns)(size * NS_PER_S / link->bandwidth);
        link->busy_until = at;
    }
    at += link->delay;
    if (link->jitter > 0)
        at += (gavel_ns)prng_below(&cluster->jitter, (uint64_t)link->jitter);
    if (link->jitter > 0 || link->bandwidth > 0)
        at = ns_max(at, link->last_at);
    link->last_at = at;
    return at;
}

void network_send(struct cluster *cluster, raft_id route, const struct raft_message *message)
{
    struct link *link;
    struct packet packet;

    if (message->to == 0 || message->to > NODES_MAX || route > NODES_MAX) {
        fprintf(cluster->loud, "ALARM: a message to nobody\n");
        return;
    }
    link = &cluster->links[route][message->to];
    if (link->cut_kinds & (1u << message->kind))
        return;
    packet = (struct packet){
        .at = network_arrives_at(cluster, route, message->to, size_of(message)),
        .order = ++cluster->order,
        .is_held = (link->held_kinds & (1u << message->kind)) != 0,
        .route = route,
        .message = *message,
    };
    packets_add(&cluster->in_flight, &packet);
}

struct packet *network_next(struct cluster *cluster)
{
    struct packet *next = NULL;

    for (size_t i = 0; i < cluster->in_flight.count; i++) {
        struct packet *packet = &cluster->in_flight.items[i];

        /* What arrives at a node that hangs waits in its socket. */
        if (packet->is_held || cluster->hosts[packet->message.to].is_hung)
            continue;
        if (!next || packet->at < next->at || (packet->at == next->at && packet->order < next->order))
            next = packet;
    }
    return next;
}

void network_deliver(struct cluster *cluster, struct packet *packet)
{
    struct packet own = *packet;
    struct raft_message *message = &own.message;
    struct host *to = &cluster->hosts[message->to];
    unsigned cut_kinds = cluster->links[own.route][message->to].cut_kinds;
    const char *reason = NULL;

    packets_remove(&cluster->in_flight, (size_t)(packet - cluster->in_flight.items));
    /* What the story delivers by hand arrives in any case. */
    if (to->is_alive && (own.is_held || !(cut_kinds & (1u << message->kind)))) {
        if (raft_message_check(message, &reason) != GAVEL_OK)
            alarm_raise(cluster, to, "got a message that no node should send: %s", reason);
        else
            (void)host_feed(cluster, to, /* a refusal is told */
                            (struct raft_event){.kind = RAFT_RECEIVE, .message = message});
    }
    packet_done(&own);
}

static struct packet *first_held(struct cluster *cluster, raft_id from, raft_id to)
{
    struct packet *first = NULL;

    for (size_t i = 0; i < cluster->in_flight.count; i++) {
        struct packet *packet = &cluster->in_flight.items[i];

        if (packet->is_held && packet->route == from && packet->message.to == to &&
            (!first || packet->order < first->order))
            first = packet;
    }
    return first;
}

size_t network_release(struct cluster *cluster, raft_id from, raft_id to, size_t most, enum fate fate)
{
    static const char *const words[] = {
        [ARRIVES] = "arrives", [LOST] = "lost", [REPEATED] = "a copy arrives"};
    size_t done = 0;

    for (; done < most; done++) {
        struct packet *packet = first_held(cluster, from, to);

        if (!packet)
            break;
        fprintf(cluster->out, "            %s: ", words[fate]);
        tell_message(cluster->out, &packet->message);
        fputc('\n', cluster->out);
        if (fate == REPEATED) {
            size_t which = (size_t)(packet - cluster->in_flight.items);
            struct packet copy = *packet;

            copy.order = ++cluster->order;
            packets_add(&cluster->in_flight, &copy);
            packet = &cluster->in_flight.items[which];
        }
        if (fate == LOST) {
            packet_done(packet);
            packets_remove(&cluster->in_flight, (size_t)(packet - cluster->in_flight.items));
        } else {
            network_deliver(cluster, packet);
        }
    }
    return done;
}

size_t network_raise(struct cluster *cluster, raft_id from, raft_id to, raft_term by)
{
    size_t raised = 0;

    for (size_t i = 0; i < cluster->in_flight.count; i++) {
        struct packet *packet = &cluster->in_flight.items[i];
        struct raft_message *m = &packet->message;

        if (!packet->is_held || packet->route != from || m->to != to)
            continue;
        m->term += by;
        if (m->kind == RAFT_MSG_VOTE || m->kind == RAFT_MSG_PRE_VOTE)
            m->vote.term += by;
        else if (m->kind == RAFT_MSG_VOTE_REPLY || m->kind == RAFT_MSG_PRE_VOTE_REPLY)
            m->vote_reply.term += by;
        raised++;
    }
    return raised;
}

/* Not a mac that would keep anybody out; enough to tell a genuine certificate from a forged one here. */
static uint64_t digest(const struct raft_certificate *certificate)
{
    const uint64_t parts[] = {KEY,
                              certificate->kind,
                              certificate->node,
                              certificate->incarnation,
                              certificate->term,
                              certificate->lease_epoch,
                              certificate->target,
                              certificate->commit};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

void certificate_sign(void *context, struct raft_certificate *certificate)
{
    uint64_t mac = digest(certificate);

    (void)context; /* the key is the same for all */
    memset(certificate->mac, 0, sizeof certificate->mac);
    memcpy(certificate->mac, &mac, sizeof mac);
}

bool certificate_verify(void *context, const struct raft_certificate *certificate)
{
    struct raft_certificate genuine = *certificate;

    certificate_sign(context, &genuine);
    return memcmp(genuine.mac, certificate->mac, sizeof genuine.mac) == 0;
}
