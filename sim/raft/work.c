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

static void plan_act(struct cluster *cluster, struct host *host)
{
    gavel_ns delay = cluster_between(cluster, STREAM_WORK, 0, 2 * cluster->profile.act_every);

    cluster_push(cluster, cluster->now + delay, EVENT_ACT, host->slot)->number = host->work.number;
}

/* When the watchdog must look again; at least a little later. */
static void plan_watchdog(struct cluster *cluster, struct host *host)
{
    gavel_ns margin = host->node.raft.settings.stop_margin;
    gavel_ns at = cluster->now + 100 * NS_PER_MS;

    if (host->work.deadline != NEVER)
        at = ns_max(clock_real(&host->clock, host->work.deadline + margin), cluster->now + 1);
    cluster_push(cluster, at, EVENT_WATCHDOG, host->slot)->number = host->work.number;
}

void host_work_claim(struct cluster *cluster, struct host *host, raft_term term, uint64_t lease_epoch)
{
    host->work = (struct host_work){
        .number = host->work.number + 1,
        .runs = true,
        .term = term,
        .lease_epoch = lease_epoch,
        .deadline = raft_deadline(&host->node.raft),
    };
    host->operator.has_failed = false;
    plan_act(cluster, host);
    plan_watchdog(cluster, host);
    operator_tell_status(cluster, host);
    if (cluster->watch.claimed)
        cluster->watch.claimed(cluster->watch.context, cluster, host);
}

void host_work_stop(struct cluster *cluster, struct host *host)
{
    gavel_ns margin = host->node.raft.settings.stop_margin;
    gavel_ns takes = cluster_between(cluster, STREAM_WORK, 0, margin);
    gavel_ns slow = cluster_length(cluster, STREAM_WORK, NS_PER_MS, NS_PER_S);
    bool is_quick = cluster_chance(cluster, STREAM_WORK, 500);
    gavel_ns at;

    if (cluster->watch.stopped)
        cluster->watch.stopped(cluster->watch.context, cluster, host);
    host->work.is_stopping = true;
    host->work.is_owed = true;
    if (host->work.deadline == NEVER)
        host->work.deadline = host_clock(cluster, host);
    if (is_quick)
        takes /= 16;
    else if (cluster_has(cluster, FAULT_SLOW_STOP))
        takes = slow;
    /* Measured on its own clock, as its margin is. */
    at = ns_max(clock_real(&host->clock, host_clock(cluster, host) + takes), cluster->now);
    cluster_push(cluster, at, EVENT_STOPPED, host->slot)->number = host->work.number;
}

void host_work_end(struct cluster *cluster, struct host *host)
{
    if (!host->work.runs)
        return;
    host->work.runs = false;
    raft_referee_work_ended(cluster->referee, cluster->now, host->id);
}

static void act(struct cluster *cluster, struct host *host)
{
    gavel_ns underway = cluster_length(cluster, STREAM_WORK, NS_PER_US, 300 * NS_PER_MS);
    bool is_slow = cluster_chance(cluster, STREAM_WORK, 200);
    gavel_ns at = cluster->now + (is_slow && cluster->profile.mood != MOOD_CALM ? underway : 0);

    plan_act(cluster, host);
    if (!raft_is_working(&host->node.raft, host_clock(cluster, host)))
        return;
    cluster_push(cluster, at, EVENT_WRITE, host->slot)->nonce =
        (struct nonce){.high = host->work.term, .low = host->work.lease_epoch};
}

/* Also of a frozen node: the watchdog is another process. */
static void look(struct cluster *cluster, struct host *host)
{
    gavel_ns margin = host->node.raft.settings.stop_margin;
    gavel_ns now = host_clock(cluster, host);

    if (!host->work.runs)
        return;
    if (host->work.deadline == NEVER || now < host->work.deadline + margin) {
        plan_watchdog(cluster, host);
        return;
    }
    if (!host->work.is_stopping && !host_is_frozen(cluster, host) && cluster->now >= host->stalled_until)
        cluster_violate(cluster, RAFT_INVARIANT_STUCK, "%s was not told to stop its work by its deadline",
                        host->label);
    TRACE(cluster, host, "its watchdog ends its work");
    cluster_see(cluster, SIGHT_WATCHDOGS);
    host_work_end(cluster, host);
    if (host->work.is_owed) /* the node learns of it from its guard */
        cluster_push(cluster, cluster->now, EVENT_STOPPED, host->slot)->number = host->work.number;
}

static void stopped(struct cluster *cluster, struct host *host)
{
    struct raft_event event = {.kind = RAFT_WORK_STOPPED};

    if (!host->work.is_owed)
        return;
    host->work.is_owed = false;
    host_work_end(cluster, host);
    TRACE(cluster, host, "its work has stopped");
    (void)host_step(cluster, host, &event); /* nothing to refuse */
}

void host_work_watch(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];

    if (host_is_up(host) && event->incarnation == host->life && event->number == host->work.number)
        look(cluster, host);
}

void host_work_take(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];

    if (event->number != host->work.number)
        return;
    if (event->kind == EVENT_STOPPED)
        stopped(cluster, host);
    else if (event->kind == EVENT_ACT && host->work.runs)
        act(cluster, host);
}

void host_work_write(struct cluster *cluster, const struct event *event)
{
    const struct host *host = &cluster->hosts[event->slot];
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
        TRACE(cluster, host, "its act with token %llu.%llu is rejected", (unsigned long long)term,
              (unsigned long long)lease_epoch);
    }
    raft_referee_acted(cluster->referee, cluster->now, host->id, term, lease_epoch, is_accepted);
}
