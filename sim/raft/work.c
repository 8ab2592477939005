/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a node leads for: between CLAIM and the end of its work it acts on a
 * resource that is fenced by the token of the claim. Before each act it looks
 * at its clock, also after a pause. An act may be under way for a while; the
 * resource refuses what comes too late.
 *
 * Work ends when it is told to, within the stop margin; that of a frozen
 * process is ended by its watchdog at the deadline plus the margin.
 */
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static void plan_act(struct cluster *cluster, struct node *node)
{
    gavel_ns delay = cluster_between(cluster, STREAM_WORK, 0, 2 * cluster->profile.act_every);

    cluster_push(cluster, cluster->now + delay, EVENT_ACT, node->slot)->number = node->work.number;
}

/* When the watchdog must look again; at least a little later. */
static void plan_watchdog(struct cluster *cluster, struct node *node)
{
    gavel_ns margin = node->raft.settings.stop_margin;
    gavel_ns at = cluster->now + 100 * NS_PER_MS;

    if (node->work.deadline != NEVER)
        at = ns_max(clock_real(&node->clock, node->work.deadline + margin), cluster->now + 1);
    cluster_push(cluster, at, EVENT_WATCHDOG, node->slot)->number = node->work.number;
}

void node_work_claim(struct cluster *cluster, struct node *node, raft_term term, uint64_t lease_epoch)
{
    node->work = (struct node_work){
        .number = node->work.number + 1,
        .runs = true,
        .term = term,
        .lease_epoch = lease_epoch,
        .deadline = raft_deadline(&node->raft),
    };
    plan_act(cluster, node);
    plan_watchdog(cluster, node);
    if (cluster->watch.claimed)
        cluster->watch.claimed(cluster->watch.context, cluster, node);
}

void node_work_stop(struct cluster *cluster, struct node *node)
{
    gavel_ns margin = node->raft.settings.stop_margin;
    gavel_ns takes = cluster_between(cluster, STREAM_WORK, 0, margin);
    gavel_ns slow = cluster_length(cluster, STREAM_WORK, NS_PER_MS, NS_PER_S);
    bool is_quick = cluster_chance(cluster, STREAM_WORK, 500);
    gavel_ns at;

    if (cluster->watch.stopped)
        cluster->watch.stopped(cluster->watch.context, cluster, node);
    node->work.is_stopping = true;
    node->work.is_owed = true;
    if (node->work.deadline == NEVER)
        node->work.deadline = node_clock(cluster, node);
    if (is_quick)
        takes /= 16;
    else if (cluster_has(cluster, FAULT_SLOW_STOP))
        takes = slow;
    /* Measured on its own clock, as its margin is. */
    at = ns_max(clock_real(&node->clock, node_clock(cluster, node) + takes), cluster->now);
    cluster_push(cluster, at, EVENT_STOPPED, node->slot)->number = node->work.number;
}

void node_work_end(struct cluster *cluster, struct node *node)
{
    if (!node->work.runs)
        return;
    node->work.runs = false;
    raft_referee_work_ended(cluster->referee, cluster->now, node->id);
}

static void act(struct cluster *cluster, struct node *node)
{
    gavel_ns underway = cluster_length(cluster, STREAM_WORK, NS_PER_US, 300 * NS_PER_MS);
    bool is_slow = cluster_chance(cluster, STREAM_WORK, 200);
    gavel_ns at = cluster->now + (is_slow && cluster->profile.mood != MOOD_CALM ? underway : 0);

    plan_act(cluster, node);
    if (!raft_is_working(&node->raft, node_clock(cluster, node)))
        return;
    cluster_push(cluster, at, EVENT_WRITE, node->slot)->nonce =
        (struct nonce){.high = node->work.term, .low = node->work.lease_epoch};
}

/* Also of a frozen node: the watchdog is another process. */
static void look(struct cluster *cluster, struct node *node)
{
    gavel_ns margin = node->raft.settings.stop_margin;
    gavel_ns now = node_clock(cluster, node);

    if (!node->work.runs)
        return;
    if (node->work.deadline == NEVER || now < node->work.deadline + margin) {
        plan_watchdog(cluster, node);
        return;
    }
    if (!node->work.is_stopping && !node_is_frozen(cluster, node) && cluster->now >= node->stalled_until)
        cluster_violate(cluster, RAFT_INVARIANT_STUCK, "%s was not told to stop its work by its deadline",
                        node->label);
    TRACE(cluster, node, "its watchdog ends its work");
    cluster_see(cluster, SIGHT_WATCHDOGS);
    node_work_end(cluster, node);
    if (node->work.is_owed) /* the node learns of it from its guard */
        cluster_push(cluster, cluster->now, EVENT_STOPPED, node->slot)->number = node->work.number;
}

static void stopped(struct cluster *cluster, struct node *node)
{
    struct raft_event event = {.kind = RAFT_WORK_STOPPED};

    if (!node->work.is_owed)
        return;
    node->work.is_owed = false;
    node_work_end(cluster, node);
    TRACE(cluster, node, "its work has stopped");
    (void)node_step(cluster, node, &event); /* nothing to refuse */
}

void node_work_watch(struct cluster *cluster, const struct event *event)
{
    struct node *node = &cluster->nodes[event->slot];

    if (node_is_up(node) && event->incarnation == node->life && event->number == node->work.number)
        look(cluster, node);
}

void node_work_take(struct cluster *cluster, const struct event *event)
{
    struct node *node = &cluster->nodes[event->slot];

    if (event->number != node->work.number)
        return;
    if (event->kind == EVENT_STOPPED)
        stopped(cluster, node);
    else if (event->kind == EVENT_ACT && node->work.runs)
        act(cluster, node);
}

void node_work_write(struct cluster *cluster, const struct event *event)
{
    const struct node *node = &cluster->nodes[event->slot];
    raft_term term = event->nonce.high;
    uint64_t lease_epoch = event->nonce.low;
    bool is_accepted = term != cluster->resource.term ? term > cluster->resource.term
                                                      : lease_epoch >= cluster->resource.lease_epoch;

    cluster->counts.acts++;
    if (is_accepted) {
        cluster->resource.term = term;
        cluster->resource.lease_epoch = lease_epoch;
    } else {
        cluster_see(cluster, SIGHT_REJECTED);
        TRACE(cluster, node, "its act with token %llu.%llu is rejected", (unsigned long long)term,
              (unsigned long long)lease_epoch);
    }
    raft_referee_acted(cluster->referee, cluster->now, node->id, term, lease_epoch, is_accepted);
}
