/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steps of a node: an event goes into node_step(), as in gaveld, and what comes
 * out is carried out in order. A node may die after any of its actions.
 */
#include "base/assert.h"
#include "core/node/node.h"
#include "sim/raft/chaos.h"
#include "sim/raft/program.h"
#include "sim/raft/shape.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdlib.h>

/* A node that is woken so often at one instant does not get anywhere. */
#define WAKES_MAX 1000

static void send(struct cluster *cluster, struct host *host, const struct raft_message *body)
{
    struct message *message = net_copy(cluster, body);
    const char *reason = NULL;

    if (raft_message_check(&message->body, &reason) != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_ASSERT,
                        "%s sends a message that raft_message_check() refuses: %s", host->label, reason);
    raft_referee_sent(cluster->referee, cluster->now, host->id, &message->body);
    net_send(cluster, message, host->slot);
}

/* Burns the fuse of a node that is to die between two of its actions. True: it is dead. */
static bool burn(struct cluster *cluster, struct host *host)
{
    if (host->fuse == 0 || --host->fuse > 0)
        return false;
    chaos_crash(cluster, host, "dies between two actions");
    return true;
}

static void forward(struct cluster *cluster, struct host *host, const struct node_forwarded *forwarded)
{
    if (forwarded->is_silence && !cluster->watch.forward)
        return; /* nobody has a session here */
    if (cluster->watch.forward(cluster->watch.context, cluster, host, forwarded) || forwarded->is_answer ||
        forwarded->is_silence)
        return;
    if (cluster->unsent_count == cluster->unsent_capacity) {
        cluster->unsent_capacity = cluster->unsent_capacity > 0 ? 2 * cluster->unsent_capacity : 64;
        cluster->unsent = realloc(cluster->unsent, cluster->unsent_capacity * sizeof *cluster->unsent);
        ASSERT(cluster->unsent);
    }
    cluster->unsent[cluster->unsent_count++] = forwarded->number;
}

static void carry_out(struct cluster *cluster, struct host *host, const struct node_action *action)
{
    switch (action->kind) {
    case NODE_PERSIST:
        disk_write(cluster, host, action->persist);
        break;
    case NODE_SEND:
        send(cluster, host, action->message);
        break;
    case NODE_FORWARD:
        forward(cluster, host, &action->forward);
        break;
    case NODE_ANSWER:
        cluster->watch.answer(cluster->watch.context, cluster, host, action->answer);
        break;
    case NODE_APPLIED:
        if (operators_exist(cluster))
            program_check_applied(cluster, host, action->applied.entry);
        machine_applied(cluster, host, action);
        break;
    case NODE_RESTORED:
        machine_restored(cluster, host);
        break;
    case NODE_WORK_START:
        host_work_claim(cluster, host, action->work.term, action->work.lease_epoch);
        break;
    case NODE_WORK_STOP:
        host_work_stop(cluster, host);
        break;
    case NODE_FAIL:
        if (operators_exist(cluster) && action->failure == GAVEL_ERR_STORE_UNSUPPORTED) {
            program_fail(cluster, host);
            break;
        }
        cluster_violate(cluster, RAFT_INVARIANT_MACHINE, "%s cannot apply an entry, or read a snapshot",
                        host->label);
    case NODE_ORDERED:
        operator_answered(cluster, host, action);
        break;
    case NODE_WATCH: /* the simulator of clients knows their processes */
    case NODE_ADDRESSES:
    case NODE_TELL:
        break;
    }
}

static bool asks(const struct raft_actions *actions, raft_id peer, uint64_t round)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct raft_action *action = &actions->items[i];

        if (action->kind == RAFT_SEND && action->send.message.kind == RAFT_MSG_APPEND &&
            action->send.message.to == peer && action->send.message.append.round == round)
            return true;
    }
    return false;
}

/* A round asks for promises. Whatever else a member is sent may wait for its disk, a promise need not. */
static void check_round(struct cluster *cluster, const struct host *host, uint64_t before)
{
    const struct raft *raft = &host->node.raft;

    if (raft->role != RAFT_LEADER || raft->lead_round == before)
        return;
    for (size_t i = 0; i < raft->peer_count; i++)
        if (!asks(&cluster->actions.raft, raft->peers[i].id, raft->lead_round))
            cluster_violate(cluster, RAFT_INVARIANT_ASKED, "%s begins a round and does not ask node %llu",
                            host->label, (unsigned long long)raft->peers[i].id);
}

/* A proposal that was taken leaves no more uncommitted than the settings say, unless it was the only one. */
static void check_uncommitted(struct cluster *cluster, const struct host *host)
{
    const struct raft *raft = &host->node.raft;
    const struct raft_settings *settings = &raft->settings;
    uint64_t entries = raft_log_last(&raft->log) - raft->commit;
    uint64_t bytes = 0;

    if (cluster->actions.status == GAVEL_ERR_STORE_UNAVAILABLE)
        cluster_see(cluster, SIGHT_JAMS);
    if (cluster->actions.status != GAVEL_OK || entries <= cluster->actions.event.propose.count)
        return;
    for (raft_index i = raft->commit + 1; i <= raft_log_last(&raft->log); i++)
        bytes += raft_log_at(&raft->log, i)->size;
    if (entries > settings->uncommitted_entries || bytes > settings->uncommitted_bytes)
        cluster_violate(cluster, RAFT_INVARIANT_BOUNDED, "%s has taken on %llu entries of %llu bytes",
                        host->label, (unsigned long long)entries, (unsigned long long)bytes);
}

/* What a step of Raft has done, before anything of it is carried out. */
static void look(struct cluster *cluster, struct host *host, raft_index config_index, bool worked)
{
    const struct node_actions *actions = &cluster->actions;
    const struct raft *raft = &host->node.raft;

    if (cluster->trace)
        for (size_t i = 0; i < actions->raft.count; i++)
            cluster_trace_action(cluster, host, &actions->raft.items[i]);
    raft_referee_after(cluster->referee, cluster->now, host->id, &actions->event, actions->status,
                       &actions->raft);
    if (actions->event.kind == RAFT_PROPOSE)
        check_uncommitted(cluster, host);
    cluster->hash =
        hash_add(cluster->hash, raft->state.term * 64 + (uint64_t)raft->role * 8 + actions->raft.count);
    cluster->hash = hash_add(cluster->hash, raft->commit);
    if (raft->config_index < config_index && raft->snapshot.index < config_index)
        cluster_see(cluster, SIGHT_ROLLBACKS);
    if (raft->config_index > config_index && raft->role == RAFT_LEADER)
        chaos_ambush_change(cluster, host);
    if (raft->config_index > config_index && raft->role == RAFT_LEADER)
        shape_check_config(cluster, host);
    if (worked && actions->event.kind == RAFT_TRANSFER && actions->event.transfer.target == 0 &&
        actions->status == GAVEL_OK)
        shape_check_target(cluster, host);
    for (size_t i = 0; i < actions->raft.count; i++) {
        cluster_see_action(cluster, host, &actions->raft.items[i]);
        chaos_ambush(cluster, host, &actions->raft.items[i]);
    }
}

/* One step of the node. False: it has died over it. */
static bool step(struct cluster *cluster, struct host *host, struct node_event *event)
{
    struct node_actions *actions = &cluster->actions;
    raft_index config_index = host->node.raft.config_index;
    uint64_t round = host->node.raft.lead_round;
    bool worked = host->node.raft.work == RAFT_WORK_RUNNING;
    struct raft_config before;
    uint64_t life = host->life;

    event->now = host_clock(cluster, host);
    event->wall_ms = cluster_wall_ms(cluster);
    raft_referee_before(cluster->referee, cluster->now, host->id);
    if (operators_exist(cluster))
        before = host->node.raft.config;
    node_step(&host->node, event, actions);
    if (actions->has_stepped) {
        check_round(cluster, host, round);
        look(cluster, host, config_index, worked);
        if (operators_exist(cluster))
            operator_look(cluster, host, event->kind, &before);
    }
    if (cluster->watch.looked)
        cluster->watch.looked(cluster->watch.context, cluster, host);
    cluster->hash = hash_add(cluster->hash, (uint64_t)event->kind * 4096 + actions->count);
    for (size_t i = 0; i < actions->count; i++) {
        carry_out(cluster, host, &actions->items[i]);
        if (burn(cluster, host) || host->life != life)
            return false;
    }
    if (host->work.runs && host->node.raft.work == RAFT_WORK_RUNNING)
        host->work.deadline = raft_deadline(&host->node.raft);
    return true;
}

/* The event, and all that it leaves to do. */
static bool step_all(struct cluster *cluster, struct host *host, struct node_event *event,
                     enum gavel_status *ret_status)
{
    bool is_alive = step(cluster, host, event);

    *ret_status = cluster->actions.status;
    while (is_alive && node_has_next(&host->node))
        is_alive = step(cluster, host, &(struct node_event){.kind = NODE_NEXT});
    return is_alive;
}

enum gavel_status host_feed(struct cluster *cluster, struct host *host, struct node_event event)
{
    enum gavel_status status, ignored;
    bool is_alive;
    uint64_t life = host->life;

    cluster->unsent_count = 0;
    is_alive = step_all(cluster, host, &event, &status);
    if (is_alive && cluster->unsent_count > 0)
        is_alive = step_all(
            cluster, host,
            &(struct node_event){.kind = NODE_UNSENT,
                                 .unsent = {.numbers = cluster->unsent, .count = cluster->unsent_count}},
            &ignored);
    if (!is_alive)
        return status;
    host_arm(cluster, host);
    machine_build(cluster, host);
    if (cluster->watch.stepped && host->life == life)
        cluster->watch.stepped(cluster->watch.context, cluster, host);
    return status;
}

enum gavel_status host_step(struct cluster *cluster, struct host *host, const struct raft_event *event)
{
    return host_feed(cluster, host, (struct node_event){.kind = NODE_RAFT, .raft = *event});
}

static void take_timer(struct cluster *cluster, struct host *host, uint64_t number)
{
    struct raft_event event = {.kind = RAFT_TIMER};

    if (number != host->timer)
        return;
    host->timer_at = NEVER;
    if (host_clock(cluster, host) < raft_wake_at(&host->node.raft)) {
        host_arm(cluster, host);
        return;
    }
    host->wakes = cluster->now == host->woken_at ? host->wakes + 1 : 0;
    host->woken_at = cluster->now;
    if (host->wakes > WAKES_MAX)
        cluster_violate(cluster, RAFT_INVARIANT_STUCK, "%s wants to be woken again and again at one instant",
                        host->label);
    (void)host_step(cluster, host, &event); /* a timer cannot be refused */
}

static void take_told(struct cluster *cluster, struct host *host, uint64_t seq)
{
    struct raft_event event = {.kind = RAFT_PERSISTED, .seq = seq};

    /* A word that was put off twice, by a freeze and then by a stall, may come after a later one. A real disk
     * tells of its writes in order. */
    if (!host->is_failed && seq >= host->node.durable)
        (void)host_step(cluster, host, &event); /* nothing to refuse */
}

static void take_failure(struct cluster *cluster, struct host *host)
{
    struct raft_event event = {.kind = RAFT_DISK_FAILED};
    gavel_ns later = cluster_between(cluster, STREAM_NODE, 0, host->node.raft.settings.stop_margin);
    uint64_t life = host->life;

    host->is_failed = true;
    (void)host_step(cluster, host, &event); /* nothing to refuse */
    if (host->life == life)
        (void)cluster_push(cluster, cluster->now + later, EVENT_EXIT, host->slot);
}

/* Not while it is frozen or late; true: the event was put off, or is void. */
static bool is_put_off(struct cluster *cluster, const struct host *host, const struct event *event)
{
    gavel_ns until = ns_max(host->frozen_until, host->stalled_until);

    if (!host_is_up(host) || event->incarnation != host->life)
        return true;
    if (cluster->now >= until)
        return false;
    if (until != NEVER)
        heap_defer(&cluster->heap, event, until);
    return true;
}

void host_take(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];
    struct raft_event hint = {.kind = RAFT_LINK_LOST, .peer = event->number};

    switch (event->kind) {
    case EVENT_START:
        if (event->incarnation == host->life && !host->stays_down)
            host_start(cluster, host);
        return;
    case EVENT_SYNC:
        if (host_is_up(host))
            disk_sync(cluster, host, event->number);
        return;
    case EVENT_RESUME:
        if (event->incarnation == host->life && event->number == host->freezes)
            host_resume(cluster, host);
        return;
    default:
        break;
    }
    if (is_put_off(cluster, host, event))
        return;
    switch (event->kind) {
    case EVENT_TIMER:
        take_timer(cluster, host, event->number);
        break;
    case EVENT_TOLD:
        take_told(cluster, host, event->number);
        break;
    case EVENT_FAILED:
        take_failure(cluster, host);
        break;
    case EVENT_BUILT:
        machine_built(cluster, host);
        break;
    case EVENT_EXIT:
        chaos_crash(cluster, host, "ends, because its disk failed");
        break;
    case EVENT_TICK:
    case EVENT_SAID:
        operator_take(cluster, event);
        break;
    case EVENT_HINT:
        (void)host_step(cluster, host, &hint); /* a hint cannot be refused */
        break;
    default:
        host_work_take(cluster, event);
        break;
    }
}
