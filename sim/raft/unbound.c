/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A founder is lost while nodes that have met it have no entry that binds it.
 * At the beginning a minority gets no appends, and perhaps nobody gets those of
 * the minority. So the others found the cluster without it: it hears them ask for
 * votes and answer, and what it binds itself is truncated, if it ever leads. Then
 * one of the others is lost, and another directory speaks for it; the minority is
 * restarted, is a majority together with that one, and reaches nobody else. Its
 * disks must know better (ghost.c judges).
 */
#include "sim/raft/chaos.h"
#include "sim/raft/ghost.h"
#include "sim/raft/members.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#define RARITY 3
#define ENTRIES (1U << RAFT_MSG_APPEND | 1U << RAFT_MSG_SNAPSHOT)

static unsigned draw(struct cluster *cluster, unsigned bound)
{
    return cluster_below(cluster, STREAM_FAULTS + FAULT_LOST, bound);
}

static gavel_ns draw_between(struct cluster *cluster, gavel_ns low, gavel_ns high)
{
    return cluster_between(cluster, STREAM_FAULTS + FAULT_LOST, low, high);
}

static bool is_in(uint64_t slots, unsigned slot) { return slots >> slot & 1; }

void unbound_begin(struct cluster *cluster)
{
    unsigned nodes = cluster->profile.nodes;
    unsigned first = draw(cluster, nodes);
    bool is_wanted = draw(cluster, RARITY) == 0 && nodes >= 3;
    bool is_heard = draw(cluster, 2) == 0;
    gavel_ns length = draw_between(cluster, 300 * NS_PER_MS, 2 * NS_PER_S);
    uint64_t minority = 0;

    if (!is_wanted)
        return;
    for (unsigned i = 0; i < nodes / 2; i++)
        minority |= UINT64_C(1) << (first + i) % nodes;
    for (unsigned i = 0; i < nodes; i++) {
        if (!is_in(minority, i))
            continue;
        TRACE(cluster, &cluster->hosts[i], "gets no entries for %.3f s, and others get %s of it",
              (double)length / (double)NS_PER_S, is_heard ? "those" : "none");
        for (unsigned k = 0; k < SLOTS_MAX; k++) {
            net_cut(cluster, k, i, cluster->now + length, ENTRIES);
            if (!is_heard)
                net_cut(cluster, i, k, cluster->now + length, ENTRIES);
        }
    }
    cluster_push(cluster, cluster->now + length, EVENT_UNBOUND, 0)->number = minority;
}

/* One of the others that the minority has met, and does not bind. */
static struct host *find(struct cluster *cluster, uint64_t minority)
{
    unsigned first = draw(cluster, cluster->profile.nodes);

    for (unsigned i = 0; i < cluster->profile.nodes; i++) {
        struct host *host = &cluster->hosts[(first + i) % cluster->profile.nodes];

        if (!is_in(minority, host->slot) && host_is_up(host) && ghost_is_unbound(cluster, host) &&
            ghost_may_come(cluster, host) && members_can_spare(cluster, host))
            return host;
    }
    return NULL;
}

void unbound_take(struct cluster *cluster, const struct event *event)
{
    uint64_t minority = event->number;
    gavel_ns length = draw_between(cluster, 300 * NS_PER_MS, 2 * NS_PER_S);
    gavel_ns rest = draw_between(cluster, NS_PER_MS, 50 * NS_PER_MS);
    struct host *lost = cluster->healed == 0 ? find(cluster, minority) : NULL;

    if (!lost)
        return;
    cluster_see(cluster, SIGHT_UNBOUND);
    for (unsigned i = 0; i < cluster->used; i++) {
        struct host *host = &cluster->hosts[i];

        if (host == lost)
            continue;
        if (!is_in(minority, i)) {
            chaos_cut_off(cluster, host, length);
        } else if (host_is_up(host)) {
            host_die(cluster, host, true, "is restarted");
            (void)cluster_push(cluster, cluster->now + rest, EVENT_START, i);
        }
    }
    host_die(cluster, lost, true, "is killed");
    chaos_damage(cluster, lost);
}
