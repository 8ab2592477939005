/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A node is removed from the members and added again, with the directory that it
 * has. Then that is lost, and an older copy, made before all this, is put in its
 * place. Of the others only the leader has heard the node since it is back, but
 * all must still know how far it was (ghost.c judges).
 */
#include "sim/raft/chaos.h"
#include "sim/raft/ghost.h"
#include "sim/raft/members.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

/* So often the leader is asked to add it again; then comes the loss. */
#define TRIES 8

static unsigned draw(struct cluster *cluster, unsigned bound)
{
    return cluster_below(cluster, STREAM_FAULTS + FAULT_LOST, bound);
}

static void plan(struct cluster *cluster, const struct host *host, unsigned number)
{
    gavel_ns delay = cluster_between(cluster, STREAM_FAULTS + FAULT_LOST, 50 * NS_PER_MS, 250 * NS_PER_MS);

    cluster_push(cluster, cluster->now + delay, EVENT_RETURN, host->slot)->number = number;
}

/* One that has begun again since the copy of its directory was made. */
static struct host *find(struct cluster *cluster)
{
    unsigned first = draw(cluster, cluster->used);

    for (unsigned i = 0; i < cluster->used; i++) {
        struct host *host = &cluster->hosts[(first + i) % cluster->used];

        if (host_is_up(host) && host->copy.state.directory == host->disk.state.directory &&
            host->copy.state.incarnation < host->disk.state.incarnation)
            return host;
    }
    return NULL;
}

void chaos_lose(struct cluster *cluster)
{
    struct host *host;

    if (draw(cluster, 4) == 0) {
        chaos_refound(cluster);
        return;
    }
    host = find(cluster);
    if (host && members_ask(cluster, host, false)) {
        host->keeps_copy = true;
        plan(cluster, host, 0);
    }
}

void revenant_take(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];

    host->keeps_copy = false;
    if (cluster->healed != 0 || !host_is_up(host))
        return;
    if (event->number < TRIES) {
        host->keeps_copy = true;
        plan(cluster, host, members_ask(cluster, host, true) ? TRIES : (unsigned)event->number + 1);
        return;
    }
    if (!members_can_spare(cluster, host) || !ghost_may_come(cluster, host))
        return;
    host_die(cluster, host, true, "is killed");
    host->keeps_copy = true;
    chaos_damage(cluster, host);
}
