/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steps of a node: an event goes into the core, and what comes out is carried
 * out in order. Messages that depend on a write wait for it. A node may die
 * after any of its actions, and after any message that had waited.
 */
#include "sim/raft/chaos.h"
#include "sim/raft/shape.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

/* A node that is woken so often at one instant does not get anywhere. */
#define WAKES_MAX 1000

static void leave(struct cluster *cluster, struct host *host, struct message *message)
{
    const char *reason = NULL;

    if (raft_message_check(&message->body, &reason) != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_ASSERT,
                        "%s sends a message that raft_message_check() refuses: %s", host->label, reason);
    raft_referee_sent(cluster->referee, cluster->now, host->id, &message->body);
    net_send(cluster, message, host->slot);
}

static void send(struct cluster *cluster, struct host *host, const struct raft_action *action)
{
    struct message *message = net_copy(cluster, &action->send.message);

    message->after = action->send.after;
    if (message->after <= host->told) {
        leave(cluster, host, message);
        return;
    }
    if (host->held_last)
        host->held_last->next = message;
    else
        host->held = message;
    host->held_last = message;
}

/* Burns the fuse of a node that is to die between two of its actions. True: it is dead. */
static bool burn(struct cluster *cluster, struct host *host)
{
    if (host->fuse == 0 || --host->fuse > 0)
        return false;
    chaos_crash(cluster, host, "dies between two actions");
    return true;
}

/* What waited for the disk leaves, as far as it may. False: the node has died over it. */
static bool release_held(struct cluster *cluster, struct host *host)
{
    struct message **link = &host->held;
    struct message *last = NULL;

    while (*link) {
        struct message *message = *link;

        if (message->after > host->told) {
            last = message;
            link = &message->next;
            continue;
        }
        *link = message->next;
        message->next = NULL;
        if (!*link)
            host->held_last = last;
        leave(cluster, host, message);
        if (burn(cluster, host))
            return false;
    }
    host->held_last = last;
    return true;
}

static void carry_out(struct cluster *cluster, struct host *host, const struct raft_action *action)
{
    switch (action->kind) {
    case RAFT_PERSIST:
        disk_write(cluster, host, &action->persist);
        break;
    case RAFT_SEND:
        send(cluster, host, action);
        break;
    case RAFT_APPLY:
        machine_apply(cluster, host, action->apply.first, action->apply.last);
        break;
    case RAFT_RESTORE:
        machine_restore(cluster, host);
        break;
    case RAFT_CLAIM:
        host_work_claim(cluster, host, action->claim.term, action->claim.lease_epoch);
        break;
    case RAFT_STOP_WORK:
        host_work_stop(cluster, host);
        break;
    case RAFT_READ_READY:
        machine_read_ready(cluster, host, action->read.id, action->read.index);
        break;
    case RAFT_READ_LOST:
        machine_read_lost(host, action->read.id);
        break;
    case RAFT_TELL:
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
    const struct raft *raft = &host->raft;

    if (raft->role != RAFT_LEADER || raft->lead_round == before)
        return;
    for (size_t i = 0; i < raft->peer_count; i++)
        if (!asks(&cluster->actions, raft->peers[i].id, raft->lead_round))
            cluster_violate(cluster, RAFT_INVARIANT_ASKED, "%s begins a round and does not ask node %llu",
                            host->label, (unsigned long long)raft->peers[i].id);
}

enum gavel_status host_step(struct cluster *cluster, struct host *host, struct raft_event *event)
{
    struct raft_actions *actions = &cluster->actions;
    raft_index config_index = host->raft.config_index;
    uint64_t round = host->raft.lead_round;
    bool may_choose =
        host->raft.work == RAFT_WORK_RUNNING && event->kind == RAFT_TRANSFER && event->transfer.target == 0;
    uint64_t life = host->life;
    enum gavel_status status;

    event->now = host_clock(cluster, host);
    raft_referee_before(cluster->referee, cluster->now, host->id, event);
    status = raft_step(&host->raft, event, actions);
    if (cluster->trace)
        for (size_t i = 0; i < actions->count; i++)
            cluster_trace_action(cluster, host, &actions->items[i]);
    raft_referee_after(cluster->referee, cluster->now, host->id, event, status, actions);
    check_round(cluster, host, round);
    cluster->hash =
        hash_add(cluster->hash, host->raft.state.term * 64 + (uint64_t)host->raft.role * 8 + actions->count);
    cluster->hash = hash_add(cluster->hash, host->raft.commit);
    if (host->raft.config_index < config_index && host->raft.snapshot.index < config_index)
        cluster_see(cluster, SIGHT_ROLLBACKS);
    if (host->raft.config_index > config_index && host->raft.role == RAFT_LEADER)
        chaos_ambush_change(cluster, host);
    if (host->raft.config_index > config_index && host->raft.role == RAFT_LEADER)
        shape_check_config(cluster, host);
    if (may_choose && status == GAVEL_OK)
        shape_check_target(cluster, host);
    for (size_t i = 0; i < actions->count; i++) {
        cluster_see_action(cluster, host, &actions->items[i]);
        chaos_ambush(cluster, host, &actions->items[i]);
        carry_out(cluster, host, &actions->items[i]);
        if (burn(cluster, host) || host->life != life)
            return status;
    }
    if (host->work.runs && host->raft.work == RAFT_WORK_RUNNING)
        host->work.deadline = raft_deadline(&host->raft);
    host_arm(cluster, host);
    if (host->machine_index >= host->compacted + cluster->profile.compact_after)
        machine_compact(cluster, host);
    if (cluster->watch.stepped && host->life == life)
        cluster->watch.stepped(cluster->watch.context, cluster, host);
    return status;
}

static void take_timer(struct cluster *cluster, struct host *host, uint64_t number)
{
    struct raft_event event = {.kind = RAFT_TIMER};

    if (number != host->timer)
        return;
    host->timer_at = NEVER;
    if (host_clock(cluster, host) < raft_wake_at(&host->raft)) {
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
    uint64_t life = host->life;

    if (host->is_failed)
        return;
    host->told = seq;
    if (cluster->profile.releases_first && !release_held(cluster, host))
        return;
    (void)host_step(cluster, host, &event); /* nothing to refuse */
    if (host->life == life && !cluster->profile.releases_first)
        (void)release_held(cluster, host); /* whether it died over it does not matter here */
}

static void take_failure(struct cluster *cluster, struct host *host)
{
    struct raft_event event = {.kind = RAFT_DISK_FAILED};
    gavel_ns later = cluster_between(cluster, STREAM_NODE, 0, host->raft.settings.stop_margin);
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
    case EVENT_EXIT:
        chaos_crash(cluster, host, "ends, because its disk failed");
        break;
    case EVENT_HINT:
        (void)host_step(cluster, host, &hint); /* a hint cannot be refused */
        break;
    default:
        host_work_take(cluster, event);
        break;
    }
}
