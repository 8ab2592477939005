/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A majority is emptied and founded again while the rest is down. All nodes
 * are killed; ghosts with empty directories speak for a majority of the first
 * members and found another cluster of the same name; the others come back
 * into that, and at last, their directories found again, those of the majority
 * do, too. Neither cluster may take anything of the other (ghost.c judges).
 */
#include "sim/raft/chaos.h"
#include "sim/raft/ghost.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static unsigned draw(struct cluster *cluster, unsigned bound)
{
    return cluster_below(cluster, STREAM_FAULTS + FAULT_LOST, bound);
}

static gavel_ns draw_length(struct cluster *cluster, gavel_ns low, gavel_ns high)
{
    return ns_min(cluster_length(cluster, STREAM_FAULTS + FAULT_LOST, low, high), cluster->profile.longest);
}

/* Every disk that is left knows the founding, and which directories the members have: before that nobody
 * could tell. An empty one is nobody's yet. */
static bool all_know(const struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->used; i++) {
        const struct host *host = &cluster->hosts[i];
        struct raft_config config;
        raft_index index;

        if (host->state == HOST_UNUSED)
            continue;
        disk_config(&host->disk, &config, &index);
        if (host->state != HOST_DOWN || host->ghost || config.founding == 0 || !ghost_may_come(cluster, host))
            return false;
    }
    return true;
}

void chaos_refound(struct cluster *cluster)
{
    unsigned count = cluster->profile.nodes;
    unsigned first = draw(cluster, count);
    gavel_ns rest = draw_length(cluster, 20 * NS_PER_MS, 2 * NS_PER_S);
    gavel_ns back = draw_length(cluster, 500 * NS_PER_MS, 6 * NS_PER_S);

    if (count < 3)
        return;
    for (unsigned i = 0; i < cluster->used; i++) {
        struct host *host = &cluster->hosts[i];

        host_die(cluster, host, true, "is killed with all others");
        if (host->state == HOST_DOWN)
            (void)cluster_push(cluster, cluster->now + rest, EVENT_START, i);
    }
    if (!all_know(cluster))
        return;
    for (unsigned i = 0; i < count / 2 + 1; i++) {
        struct host *host = &cluster->hosts[(first + i) % count];

        ghost_found(cluster, host);
        (void)cluster_push(cluster, cluster->now + back, EVENT_MOUNT, host->slot);
    }
    cluster_see(cluster, SIGHT_REFOUNDINGS);
}

void refound_take(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];

    if (!host->ghost || host->state != HOST_DOWN || event->incarnation != host->life)
        return;
    TRACE(cluster, host, "its directory is found again");
    ghost_end(host);
    if (!host->stays_down)
        host_start(cluster, host);
}

void refound_end(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->used; i++)
        if (cluster->hosts[i].state == HOST_DOWN)
            ghost_end(&cluster->hosts[i]);
}
