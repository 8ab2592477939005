/* SPDX-License-Identifier: Apache-2.0 */

/* What nodes forward to each other for their clients, and the clients' own timers. */

#include "trace/client.h"

#include <stdlib.h>
#include <string.h>

struct clients *clients_of(struct cluster *cluster)
{
    if (!cluster->clients)
        cluster->clients = calloc(1, sizeof *cluster->clients);
    if (!cluster->clients)
        abort();
    return cluster->clients;
}

void clients_free(struct cluster *cluster)
{
    for (size_t i = 0; cluster->clients && i < cluster->clients->parcel_count; i++)
        free((void *)(uintptr_t)cluster->clients->parcels[i].forwarded.bytes);
    if (cluster->clients)
        free(cluster->clients->parcels);
    free(cluster->clients);
}

/* A connection carries it, so it is lost only where nothing gets through. */
static bool is_cut(const struct cluster *cluster, raft_id from, raft_id to)
{
    return cluster->links[from][to].cut_kinds == ALL_KINDS;
}

void clients_forward(struct cluster *cluster, raft_id from, const struct node_forwarded *forwarded)
{
    struct clients *clients = clients_of(cluster);
    uint8_t *bytes;

    if (!host_find(cluster, forwarded->peer) || is_cut(cluster, from, forwarded->peer))
        return;
    bytes = malloc(forwarded->size + 1);
    clients->parcels = reallocarray(clients->parcels, clients->parcel_count + 1, sizeof *clients->parcels);
    if (!bytes || !clients->parcels)
        abort();
    memcpy(bytes, forwarded->bytes, forwarded->size);
    clients->parcels[clients->parcel_count] =
        (struct parcel){.at = network_arrives_at(cluster, from, forwarded->peer, forwarded->size),
                        .order = ++cluster->order,
                        .from = from,
                        .to = forwarded->peer,
                        .forwarded = *forwarded};
    clients->parcels[clients->parcel_count++].forwarded.bytes = bytes;
}

/* The parcel that arrives next, at a node that does not hang; the count if there is none. */
static size_t next_parcel(const struct cluster *cluster)
{
    const struct clients *clients = cluster->clients;
    size_t next = clients->parcel_count;

    for (size_t i = 0; i < clients->parcel_count; i++) {
        const struct parcel *parcel = &clients->parcels[i];

        if (cluster->hosts[parcel->to].is_hung)
            continue;
        if (next == clients->parcel_count || parcel->at < clients->parcels[next].at ||
            (parcel->at == clients->parcels[next].at && parcel->order < clients->parcels[next].order))
            next = i;
    }
    return next;
}

gavel_ns clients_due_at(const struct cluster *cluster)
{
    const struct clients *clients = cluster->clients;
    gavel_ns at = NEVER;
    size_t next;

    if (!clients)
        return NEVER;
    next = next_parcel(cluster);
    if (next < clients->parcel_count)
        at = clients->parcels[next].at;
    for (size_t i = 0; i < PROGRAMS_MAX; i++)
        if (clients->programs[i].alive_every > 0)
            at = ns_min(at, clients->programs[i].alive_at);
    return at;
}

static void deliver(struct cluster *cluster, size_t which)
{
    struct clients *clients = cluster->clients;
    struct parcel parcel = clients->parcels[which];
    struct host *to = &cluster->hosts[parcel.to];

    clients->parcel_count--;
    memmove(clients->parcels + which, clients->parcels + which + 1,
            (clients->parcel_count - which) * sizeof *clients->parcels);
    parcel.forwarded.peer = parcel.from;
    if (to->is_alive && !is_cut(cluster, parcel.from, parcel.to))
        (void)host_step(cluster, to,
                        (struct node_event){.kind = NODE_FORWARDED, .forwarded = parcel.forwarded});
    free((void *)(uintptr_t)parcel.forwarded.bytes);
}

void clients_do_due(struct cluster *cluster)
{
    struct clients *clients = cluster->clients;
    size_t next = next_parcel(cluster);

    if (next < clients->parcel_count && clients->parcels[next].at <= cluster->now) {
        deliver(cluster, next);
        return;
    }
    for (size_t i = 0; i < PROGRAMS_MAX; i++) {
        struct program *program = &clients->programs[i];

        if (program->alive_every == 0 || program->alive_at > cluster->now)
            continue;
        program->alive_at = cluster->now + program->alive_every;
        program_stay_alive(cluster, program);
    }
}
