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

static void plan(struct cluster *cluster, const struct node *node, unsigned number)
{
    gavel_ns delay = cluster_between(cluster, STREAM_FAULTS + FAULT_LOST, 50 * NS_PER_MS, 250 * NS_PER_MS);

    cluster_push(cluster, cluster->now + delay, EVENT_RETURN, node->slot)->number = number;
}

/* One that has begun again since the copy of its directory was made. */
static struct node *find(struct cluster *cluster)
{
    unsigned first = draw(cluster, cluster->used);

    for (unsigned i = 0; i < cluster->used; i++) {
        struct node *node = &cluster->nodes[(first + i) % cluster->used];

        if (node_is_up(node) && node->copy.state.directory == node->disk.state.directory &&
            node->copy.state.incarnation < node->disk.state.incarnation)
            return node;
    }
    return NULL;
}

void chaos_lose(struct cluster *cluster)
{
    struct node *node;

    if (draw(cluster, 4) == 0) {
        chaos_refound(cluster);
        return;
    }
    node = find(cluster);
    if (node && members_ask(cluster, node, false)) {
        node->keeps_copy = true;
        plan(cluster, node, 0);
    }
}

void revenant_take(struct cluster *cluster, const struct event *event)
{
    struct node *node = &cluster->nodes[event->slot];

    node->keeps_copy = false;
    if (cluster->healed != 0 || !node_is_up(node))
        return;
    if (event->number < TRIES) {
        node->keeps_copy = true;
        plan(cluster, node, members_ask(cluster, node, true) ? TRIES : (unsigned)event->number + 1);
        return;
    }
    if (!members_can_spare(cluster, node) || !ghost_may_come(cluster, node))
        return;
    node_die(cluster, node, true, "is killed");
    node->keeps_copy = true;
    chaos_damage(cluster, node);
}
