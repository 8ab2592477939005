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

static void plan_act(struct quorum *quorum, struct node *node)
{
    gavel_ns delay = quorum_between(quorum, STREAM_WORK, 0, 2 * quorum->profile.act_every);

    quorum_push(quorum, quorum->now + delay, EVENT_ACT, node->slot)->number = node->work.number;
}

/* When the watchdog must look again; at least a little later. */
static void plan_watchdog(struct quorum *quorum, struct node *node)
{
    gavel_ns margin = node->raft.settings.stop_margin;
    gavel_ns at = quorum->now + 100 * NS_PER_MS;

    if (node->work.deadline != NEVER)
        at = ns_max(clock_real(&node->clock, node->work.deadline + margin), quorum->now + 1);
    quorum_push(quorum, at, EVENT_WATCHDOG, node->slot)->number = node->work.number;
}

void node_work_claim(struct quorum *quorum, struct node *node, raft_term term, uint64_t lease_epoch)
{
    node->work = (struct node_work){
        .number = node->work.number + 1,
        .runs = true,
        .term = term,
        .lease_epoch = lease_epoch,
        .deadline = raft_deadline(&node->raft),
    };
    plan_act(quorum, node);
    plan_watchdog(quorum, node);
    if (quorum->watch.claimed)
        quorum->watch.claimed(quorum->watch.context, quorum, node);
}

void node_work_stop(struct quorum *quorum, struct node *node)
{
    gavel_ns margin = node->raft.settings.stop_margin;
    gavel_ns takes = quorum_between(quorum, STREAM_WORK, 0, margin);
    gavel_ns slow = quorum_length(quorum, STREAM_WORK, NS_PER_MS, NS_PER_S);
    bool is_quick = quorum_chance(quorum, STREAM_WORK, 500);
    gavel_ns at;

    if (quorum->watch.stopped)
        quorum->watch.stopped(quorum->watch.context, quorum, node);
    node->work.is_stopping = true;
    node->work.is_owed = true;
    if (node->work.deadline == NEVER)
        node->work.deadline = node_clock(quorum, node);
    if (is_quick)
        takes /= 16;
    else if (quorum_has(quorum, FAULT_SLOW_STOP))
        takes = slow;
    /* Measured on its own clock, as its margin is. */
    at = ns_max(clock_real(&node->clock, node_clock(quorum, node) + takes), quorum->now);
    quorum_push(quorum, at, EVENT_STOPPED, node->slot)->number = node->work.number;
}

void node_work_end(struct quorum *quorum, struct node *node)
{
    if (!node->work.runs)
        return;
    node->work.runs = false;
    raft_referee_work_ended(quorum->referee, quorum->now, node->id);
}

static void act(struct quorum *quorum, struct node *node)
{
    gavel_ns underway = quorum_length(quorum, STREAM_WORK, NS_PER_US, 300 * NS_PER_MS);
    bool is_slow = quorum_chance(quorum, STREAM_WORK, 200);
    gavel_ns at = quorum->now + (is_slow && quorum->profile.mood != MOOD_CALM ? underway : 0);

    plan_act(quorum, node);
    if (!raft_is_working(&node->raft, node_clock(quorum, node)))
        return;
    quorum_push(quorum, at, EVENT_WRITE, node->slot)->nonce =
        (struct nonce){.high = node->work.term, .low = node->work.lease_epoch};
}

/* Also of a frozen node: the watchdog is another process. */
static void look(struct quorum *quorum, struct node *node)
{
    gavel_ns margin = node->raft.settings.stop_margin;
    gavel_ns now = node_clock(quorum, node);

    if (!node->work.runs)
        return;
    if (node->work.deadline == NEVER || now < node->work.deadline + margin) {
        plan_watchdog(quorum, node);
        return;
    }
    if (!node->work.is_stopping && !node_is_frozen(quorum, node) && quorum->now >= node->stalled_until)
        quorum_violate(quorum, RAFT_INVARIANT_STUCK, "%s was not told to stop its work by its deadline",
                       node->label);
    TRACE(quorum, node, "its watchdog ends its work");
    quorum_see(quorum, SIGHT_WATCHDOGS);
    node_work_end(quorum, node);
    if (node->work.is_owed) /* the node learns of it from its guard */
        quorum_push(quorum, quorum->now, EVENT_STOPPED, node->slot)->number = node->work.number;
}

static void stopped(struct quorum *quorum, struct node *node)
{
    struct raft_event event = {.kind = RAFT_WORK_STOPPED};

    if (!node->work.is_owed)
        return;
    node->work.is_owed = false;
    node_work_end(quorum, node);
    TRACE(quorum, node, "its work has stopped");
    (void)node_step(quorum, node, &event); /* nothing to refuse */
}

void node_work_watch(struct quorum *quorum, const struct event *event)
{
    struct node *node = &quorum->nodes[event->slot];

    if (node_is_up(node) && event->incarnation == node->life && event->number == node->work.number)
        look(quorum, node);
}

void node_work_take(struct quorum *quorum, const struct event *event)
{
    struct node *node = &quorum->nodes[event->slot];

    if (event->number != node->work.number)
        return;
    if (event->kind == EVENT_STOPPED)
        stopped(quorum, node);
    else if (event->kind == EVENT_ACT && node->work.runs)
        act(quorum, node);
}

void node_work_write(struct quorum *quorum, const struct event *event)
{
    const struct node *node = &quorum->nodes[event->slot];
    raft_term term = event->nonce.high;
    uint64_t lease_epoch = event->nonce.low;
    bool is_accepted = term != quorum->resource.term ? term > quorum->resource.term
                                                     : lease_epoch >= quorum->resource.lease_epoch;

    quorum->counts.acts++;
    if (is_accepted) {
        quorum->resource.term = term;
        quorum->resource.lease_epoch = lease_epoch;
    } else {
        quorum_see(quorum, SIGHT_REJECTED);
        TRACE(quorum, node, "its act with token %llu.%llu is rejected", (unsigned long long)term,
              (unsigned long long)lease_epoch);
    }
    raft_referee_acted(quorum->referee, quorum->now, node->id, term, lease_epoch, is_accepted);
}
