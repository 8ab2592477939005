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

static void leave(struct cluster *cluster, struct node *node, struct message *message)
{
    const char *reason = NULL;

    if (raft_message_check(&message->body, &reason) != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_ASSERT,
                        "%s sends a message that raft_message_check() refuses: %s", node->label, reason);
    raft_referee_sent(cluster->referee, cluster->now, node->id, &message->body);
    net_send(cluster, message, node->slot);
}

static void send(struct cluster *cluster, struct node *node, const struct raft_action *action)
{
    struct message *message = net_copy(cluster, &action->send.message);

    message->after = action->send.after;
    if (message->after <= node->told) {
        leave(cluster, node, message);
        return;
    }
    if (node->held_last)
        node->held_last->next = message;
    else
        node->held = message;
    node->held_last = message;
}

/* Burns the fuse of a node that is to die between two of its actions. True: it is dead. */
static bool burn(struct cluster *cluster, struct node *node)
{
    if (node->fuse == 0 || --node->fuse > 0)
        return false;
    chaos_crash(cluster, node, "dies between two actions");
    return true;
}

/* What waited for the disk leaves, as far as it may. False: the node has died over it. */
static bool release_held(struct cluster *cluster, struct node *node)
{
    struct message **link = &node->held;
    struct message *last = NULL;

    while (*link) {
        struct message *message = *link;

        if (message->after > node->told) {
            last = message;
            link = &message->next;
            continue;
        }
        *link = message->next;
        message->next = NULL;
        if (!*link)
            node->held_last = last;
        leave(cluster, node, message);
        if (burn(cluster, node))
            return false;
    }
    node->held_last = last;
    return true;
}

static void carry_out(struct cluster *cluster, struct node *node, const struct raft_action *action)
{
    switch (action->kind) {
    case RAFT_PERSIST:
        disk_write(cluster, node, &action->persist);
        break;
    case RAFT_SEND:
        send(cluster, node, action);
        break;
    case RAFT_APPLY:
        machine_apply(cluster, node, action->apply.first, action->apply.last);
        break;
    case RAFT_RESTORE:
        machine_restore(cluster, node);
        break;
    case RAFT_CLAIM:
        node_work_claim(cluster, node, action->claim.term, action->claim.lease_epoch);
        break;
    case RAFT_STOP_WORK:
        node_work_stop(cluster, node);
        break;
    case RAFT_READ_READY:
        machine_read_ready(cluster, node, action->read.id, action->read.index);
        break;
    case RAFT_READ_LOST:
        machine_read_lost(node, action->read.id);
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
static void check_round(struct cluster *cluster, const struct node *node, uint64_t before)
{
    const struct raft *raft = &node->raft;

    if (raft->role != RAFT_LEADER || raft->lead_round == before)
        return;
    for (size_t i = 0; i < raft->peer_count; i++)
        if (!asks(&cluster->actions, raft->peers[i].id, raft->lead_round))
            cluster_violate(cluster, RAFT_INVARIANT_ASKED, "%s begins a round and does not ask node %llu",
                            node->label, (unsigned long long)raft->peers[i].id);
}

enum gavel_status node_step(struct cluster *cluster, struct node *node, struct raft_event *event)
{
    struct raft_actions *actions = &cluster->actions;
    raft_index config_index = node->raft.config_index;
    uint64_t round = node->raft.lead_round;
    bool may_choose =
        node->raft.work == RAFT_WORK_RUNNING && event->kind == RAFT_TRANSFER && event->transfer.target == 0;
    uint64_t life = node->life;
    enum gavel_status status;

    event->now = node_clock(cluster, node);
    raft_referee_before(cluster->referee, cluster->now, node->id, event);
    status = raft_step(&node->raft, event, actions);
    if (cluster->trace)
        for (size_t i = 0; i < actions->count; i++)
            cluster_trace_action(cluster, node, &actions->items[i]);
    raft_referee_after(cluster->referee, cluster->now, node->id, event, status, actions);
    check_round(cluster, node, round);
    cluster->hash =
        hash_add(cluster->hash, node->raft.state.term * 64 + (uint64_t)node->raft.role * 8 + actions->count);
    cluster->hash = hash_add(cluster->hash, node->raft.commit);
    if (node->raft.config_index < config_index && node->raft.snapshot.index < config_index)
        cluster_see(cluster, SIGHT_ROLLBACKS);
    if (node->raft.config_index > config_index && node->raft.role == RAFT_LEADER)
        chaos_ambush_change(cluster, node);
    if (node->raft.config_index > config_index && node->raft.role == RAFT_LEADER)
        shape_check_config(cluster, node);
    if (may_choose && status == GAVEL_OK)
        shape_check_target(cluster, node);
    for (size_t i = 0; i < actions->count; i++) {
        cluster_see_action(cluster, node, &actions->items[i]);
        chaos_ambush(cluster, node, &actions->items[i]);
        carry_out(cluster, node, &actions->items[i]);
        if (burn(cluster, node) || node->life != life)
            return status;
    }
    if (node->work.runs && node->raft.work == RAFT_WORK_RUNNING)
        node->work.deadline = raft_deadline(&node->raft);
    node_arm(cluster, node);
    if (node->machine_index >= node->compacted + cluster->profile.compact_after)
        machine_compact(cluster, node);
    if (cluster->watch.stepped && node->life == life)
        cluster->watch.stepped(cluster->watch.context, cluster, node);
    return status;
}

static void take_timer(struct cluster *cluster, struct node *node, uint64_t number)
{
    struct raft_event event = {.kind = RAFT_TIMER};

    if (number != node->timer)
        return;
    node->timer_at = NEVER;
    if (node_clock(cluster, node) < raft_wake_at(&node->raft)) {
        node_arm(cluster, node);
        return;
    }
    node->wakes = cluster->now == node->woken_at ? node->wakes + 1 : 0;
    node->woken_at = cluster->now;
    if (node->wakes > WAKES_MAX)
        cluster_violate(cluster, RAFT_INVARIANT_STUCK, "%s wants to be woken again and again at one instant",
                        node->label);
    (void)node_step(cluster, node, &event); /* a timer cannot be refused */
}

static void take_told(struct cluster *cluster, struct node *node, uint64_t seq)
{
    struct raft_event event = {.kind = RAFT_PERSISTED, .seq = seq};
    uint64_t life = node->life;

    if (node->is_failed)
        return;
    node->told = seq;
    if (cluster->profile.releases_first && !release_held(cluster, node))
        return;
    (void)node_step(cluster, node, &event); /* nothing to refuse */
    if (node->life == life && !cluster->profile.releases_first)
        (void)release_held(cluster, node); /* whether it died over it does not matter here */
}

static void take_failure(struct cluster *cluster, struct node *node)
{
    struct raft_event event = {.kind = RAFT_DISK_FAILED};
    gavel_ns later = cluster_between(cluster, STREAM_NODE, 0, node->raft.settings.stop_margin);
    uint64_t life = node->life;

    node->is_failed = true;
    (void)node_step(cluster, node, &event); /* nothing to refuse */
    if (node->life == life)
        (void)cluster_push(cluster, cluster->now + later, EVENT_EXIT, node->slot);
}

/* Not while it is frozen or late; true: the event was put off, or is void. */
static bool is_put_off(struct cluster *cluster, const struct node *node, const struct event *event)
{
    gavel_ns until = ns_max(node->frozen_until, node->stalled_until);

    if (!node_is_up(node) || event->incarnation != node->life)
        return true;
    if (cluster->now >= until)
        return false;
    if (until != NEVER)
        heap_defer(&cluster->heap, event, until);
    return true;
}

void node_take(struct cluster *cluster, const struct event *event)
{
    struct node *node = &cluster->nodes[event->slot];
    struct raft_event hint = {.kind = RAFT_LINK_LOST, .peer = event->number};

    switch (event->kind) {
    case EVENT_START:
        if (event->incarnation == node->life && !node->stays_down)
            node_start(cluster, node);
        return;
    case EVENT_SYNC:
        if (node_is_up(node))
            disk_sync(cluster, node, event->number);
        return;
    case EVENT_RESUME:
        if (event->incarnation == node->life && event->number == node->freezes)
            node_resume(cluster, node);
        return;
    default:
        break;
    }
    if (is_put_off(cluster, node, event))
        return;
    switch (event->kind) {
    case EVENT_TIMER:
        take_timer(cluster, node, event->number);
        break;
    case EVENT_TOLD:
        take_told(cluster, node, event->number);
        break;
    case EVENT_FAILED:
        take_failure(cluster, node);
        break;
    case EVENT_EXIT:
        chaos_crash(cluster, node, "ends, because its disk failed");
        break;
    case EVENT_HINT:
        (void)node_step(cluster, node, &hint); /* a hint cannot be refused */
        break;
    default:
        node_work_take(cluster, event);
        break;
    }
}
