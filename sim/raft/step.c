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

static void leave(struct quorum *quorum, struct node *node, struct message *message)
{
    const char *reason = NULL;

    if (raft_message_check(&message->body, &reason) != GAVEL_OK)
        quorum_violate(quorum, RAFT_INVARIANT_ASSERT,
                       "%s sends a message that raft_message_check() refuses: %s", node->label, reason);
    raft_referee_sent(quorum->referee, quorum->now, node->id, &message->body);
    net_send(quorum, message, node->slot);
}

static void send(struct quorum *quorum, struct node *node, const struct raft_action *action)
{
    struct message *message = net_copy(quorum, &action->send.message);

    message->after = action->send.after;
    if (message->after <= node->told) {
        leave(quorum, node, message);
        return;
    }
    if (node->held_last)
        node->held_last->next = message;
    else
        node->held = message;
    node->held_last = message;
}

/* Burns the fuse of a node that is to die between two of its actions. True: it is dead. */
static bool burn(struct quorum *quorum, struct node *node)
{
    if (node->fuse == 0 || --node->fuse > 0)
        return false;
    chaos_crash(quorum, node, "dies between two actions");
    return true;
}

/* What waited for the disk leaves, as far as it may. False: the node has died over it. */
static bool release_held(struct quorum *quorum, struct node *node)
{
    struct message **place = &node->held;
    struct message *last = NULL;

    while (*place) {
        struct message *message = *place;

        if (message->after > node->told) {
            last = message;
            place = &message->next;
            continue;
        }
        *place = message->next;
        message->next = NULL;
        if (!*place)
            node->held_last = last;
        leave(quorum, node, message);
        if (burn(quorum, node))
            return false;
    }
    node->held_last = last;
    return true;
}

static void carry_out(struct quorum *quorum, struct node *node, const struct raft_action *action)
{
    switch (action->kind) {
    case RAFT_PERSIST:
        disk_write(quorum, node, &action->persist);
        break;
    case RAFT_SEND:
        send(quorum, node, action);
        break;
    case RAFT_APPLY:
        machine_apply(quorum, node, action->apply.first, action->apply.last);
        break;
    case RAFT_RESTORE:
        machine_restore(quorum, node);
        break;
    case RAFT_CLAIM:
        node_work_claim(quorum, node, action->claim.term, action->claim.lease_epoch);
        break;
    case RAFT_STOP_WORK:
        node_work_stop(quorum, node);
        break;
    case RAFT_READ_READY:
        machine_read_ready(quorum, node, action->read.id, action->read.index);
        break;
    case RAFT_READ_LOST:
        machine_read_lost(node, action->read.id);
        break;
    case RAFT_TELL:
        break;
    }
}

enum gavel_status node_step(struct quorum *quorum, struct node *node, struct raft_event *event)
{
    struct raft_actions *actions = &quorum->actions;
    raft_index config_index = node->raft.config_index;
    bool may_choose =
        node->raft.work == RAFT_WORK_RUNNING && event->kind == RAFT_TRANSFER && event->transfer.target == 0;
    uint64_t life = node->life;
    enum gavel_status status;

    event->now = node_clock(quorum, node);
    raft_referee_before(quorum->referee, quorum->now, node->id, event);
    status = raft_step(&node->raft, event, actions);
    if (quorum->trace)
        for (size_t i = 0; i < actions->count; i++)
            quorum_trace_action(quorum, node, &actions->items[i]);
    raft_referee_after(quorum->referee, quorum->now, node->id, event, status, actions);
    quorum->hash =
        hash_add(quorum->hash, node->raft.state.term * 64 + (uint64_t)node->raft.role * 8 + actions->count);
    quorum->hash = hash_add(quorum->hash, node->raft.commit);
    if (node->raft.config_index < config_index && node->raft.snapshot.index < config_index)
        quorum_see(quorum, SIGHT_ROLLBACKS);
    if (node->raft.config_index > config_index && node->raft.role == RAFT_LEADER)
        chaos_ambush_change(quorum, node);
    if (node->raft.config_index > config_index && node->raft.role == RAFT_LEADER)
        shape_check_config(quorum, node);
    if (may_choose && status == GAVEL_OK)
        shape_check_target(quorum, node);
    for (size_t i = 0; i < actions->count; i++) {
        quorum_see_action(quorum, node, &actions->items[i]);
        chaos_ambush(quorum, node, &actions->items[i]);
        carry_out(quorum, node, &actions->items[i]);
        if (burn(quorum, node) || node->life != life)
            return status;
    }
    if (node->work.runs && node->raft.work == RAFT_WORK_RUNNING)
        node->work.deadline = raft_deadline(&node->raft);
    node_arm(quorum, node);
    if (node->machine_index >= node->compacted + quorum->profile.compact_after)
        machine_compact(quorum, node);
    if (quorum->watch.stepped && node->life == life)
        quorum->watch.stepped(quorum->watch.context, quorum, node);
    return status;
}

static void take_timer(struct quorum *quorum, struct node *node, uint64_t number)
{
    struct raft_event event = {.kind = RAFT_TIMER};

    if (number != node->timer)
        return;
    node->timer_at = NEVER;
    if (node_clock(quorum, node) < raft_wake_at(&node->raft)) {
        node_arm(quorum, node);
        return;
    }
    node->wakes = quorum->now == node->woken_at ? node->wakes + 1 : 0;
    node->woken_at = quorum->now;
    if (node->wakes > WAKES_MAX)
        quorum_violate(quorum, RAFT_INVARIANT_STUCK, "%s wants to be woken again and again at one instant",
                       node->label);
    (void)node_step(quorum, node, &event); /* a timer cannot be refused */
}

static void take_told(struct quorum *quorum, struct node *node, uint64_t seq)
{
    struct raft_event event = {.kind = RAFT_PERSISTED, .seq = seq};
    uint64_t life = node->life;

    if (node->is_failed)
        return;
    node->told = seq;
    if (quorum->profile.releases_first && !release_held(quorum, node))
        return;
    (void)node_step(quorum, node, &event); /* nothing to refuse */
    if (node->life == life && !quorum->profile.releases_first)
        (void)release_held(quorum, node); /* whether it died over it does not matter here */
}

static void take_failure(struct quorum *quorum, struct node *node)
{
    struct raft_event event = {.kind = RAFT_DISK_FAILED};
    gavel_ns later = quorum_between(quorum, STREAM_NODE, 0, node->raft.settings.stop_margin);
    uint64_t life = node->life;

    node->is_failed = true;
    (void)node_step(quorum, node, &event); /* nothing to refuse */
    if (node->life == life)
        (void)quorum_push(quorum, quorum->now + later, EVENT_EXIT, node->slot);
}

/* Not while it is frozen or late; true: the event was put off, or is void. */
static bool is_put_off(struct quorum *quorum, const struct node *node, const struct event *event)
{
    gavel_ns until = ns_max(node->frozen_until, node->stalled_until);

    if (!node_is_up(node) || event->incarnation != node->life)
        return true;
    if (quorum->now >= until)
        return false;
    if (until != NEVER)
        quorum_defer(quorum, event, until);
    return true;
}

void node_take(struct quorum *quorum, const struct event *event)
{
    struct node *node = &quorum->nodes[event->slot];
    struct raft_event hint = {.kind = RAFT_LINK_LOST, .peer = event->number};

    switch (event->kind) {
    case EVENT_START:
        if (event->incarnation == node->life && !node->stays_down)
            node_start(quorum, node);
        return;
    case EVENT_SYNC:
        if (node_is_up(node))
            disk_sync(quorum, node, event->number);
        return;
    case EVENT_RESUME:
        if (event->incarnation == node->life && event->number == node->freezes)
            node_resume(quorum, node);
        return;
    default:
        break;
    }
    if (is_put_off(quorum, node, event))
        return;
    switch (event->kind) {
    case EVENT_TIMER:
        take_timer(quorum, node, event->number);
        break;
    case EVENT_TOLD:
        take_told(quorum, node, event->number);
        break;
    case EVENT_FAILED:
        take_failure(quorum, node);
        break;
    case EVENT_EXIT:
        chaos_crash(quorum, node, "ends, because its disk failed");
        break;
    case EVENT_HINT:
        (void)node_step(quorum, node, &hint); /* a hint cannot be refused */
        break;
    default:
        node_work_take(quorum, event);
        break;
    }
}
