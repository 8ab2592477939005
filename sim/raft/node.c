/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/node.h"

#include "base/error.h"
#include "sim/raft/chaos.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdio.h>
#include <string.h>

/* A node that is woken so often at one instant does not get anywhere. */
#define WAKES_MAX 1000

bool node_is_frozen(const struct quorum *quorum, const struct node *node)
{
    return quorum->now < node->frozen_until;
}

gavel_ns node_clock(const struct quorum *quorum, const struct node *node)
{
    return clock_local(&node->clock, quorum->now);
}

/* A machine that starts shows any time; it has nothing to do with that of others. */
static void draw_offset(struct quorum *quorum, struct node *node)
{
    gavel_ns shown = quorum_length(quorum, STREAM_NODE, NS_PER_S, 10000000 * NS_PER_S);

    node->clock.offset += shown - node_clock(quorum, node);
}

int64_t node_draw_rate(struct quorum *quorum)
{
    int64_t half = (int64_t)quorum->profile.worst.drift_ppm * 1000 / 2 - 1;
    int64_t rate = quorum_between(quorum, STREAM_NODE, -half, half);
    int64_t wild = quorum_between(quorum, STREAM_NODE, -300000000, 300000000);
    unsigned extreme = quorum_below(quorum, STREAM_NODE, 4);

    if (quorum_has(quorum, FAULT_BEYOND))
        return wild;
    if (!quorum_has(quorum, FAULT_RATE) || half <= 0)
        return 0;
    return extreme == 0 ? half : extreme == 1 ? -half : rate;
}

void node_create(struct quorum *quorum, struct node *node, const struct raft_config *first)
{
    node->state = NODE_DOWN;
    node->clock = (struct clock){.rate_ppb = node_draw_rate(quorum)};
    draw_offset(quorum, node);
    node->disk.state = (struct raft_state){.cluster = quorum->key, .generation = 1, .id = node->id};
    if (first)
        node->disk.snapshot.config = *first;
    if (node->slot >= quorum->used)
        quorum->used = node->slot + 1;
}

static void drop_held(struct quorum *quorum, struct node *node)
{
    while (node->held) {
        struct message *message = node->held;

        node->held = message->next;
        net_recycle(quorum, message);
    }
    node->held_last = NULL;
}

void node_done(struct node *node)
{
    if (node->state == NODE_UP)
        raft_done(&node->raft);
    table_done(&node->table);
    disk_done(&node->disk);
}

void node_clear(struct quorum *quorum, struct node *node)
{
    unsigned slot = (unsigned)(node - quorum->nodes);
    struct disk disk;

    if (node->state == NODE_UP)
        raft_done(&node->raft);
    table_done(&node->table);
    disk_clear(&node->disk);
    disk = node->disk;
    memset(node, 0, sizeof *node);
    node->disk = disk;
    node->slot = slot;
    node->id = slot + 1;
    (void)snprintf(node->label, sizeof node->label, "%c", (char)('a' + slot));
    node->timer_at = NEVER;
    node->armed_for = NEVER;
}

/* The timer is an event that may come early, never late: most wishes to be woken only move it back. */
static void arm(struct quorum *quorum, struct node *node)
{
    gavel_ns wake = raft_wake_at(&node->raft);
    gavel_ns at;

    if (wake == NEVER || (wake == node->armed_for && node->timer_at != NEVER))
        return;
    node->armed_for = wake;
    at = ns_max(clock_real(&node->clock, wake), quorum->now) +
         quorum_between(quorum, STREAM_NODE, 0, quorum->profile.timer_late);
    if (node->timer_at <= at)
        return;
    node->timer_at = at;
    quorum_push(quorum, at, EVENT_TIMER, node->slot)->number = ++node->timer;
}

void node_set_rate(struct quorum *quorum, struct node *node, int64_t rate_ppb)
{
    gavel_ns shown = node_clock(quorum, node);

    node->clock.rate_ppb = rate_ppb;
    node->clock.offset += shown - node_clock(quorum, node);
    node->armed_for = NEVER; /* its timer is due at another real instant now */
    node->timer_at = NEVER;
    if (node_is_up(node))
        arm(quorum, node);
}

void node_start(struct quorum *quorum, struct node *node)
{
    struct raft_settings settings = quorum->profile.settings[node->slot];
    bool is_reboot = quorum_chance(quorum, STREAM_NODE, 300);
    struct gavel_error error = {0};
    struct raft_restore restore;
    enum gavel_status status;

    if (node->state != NODE_DOWN)
        return;
    if (node->disk.state.incarnation > 0)
        quorum_see(quorum, SIGHT_RESTARTS);
    if (is_reboot && node->disk.state.incarnation > 0)
        draw_offset(quorum, node);
    settings.context = quorum;
    node->disk.state.incarnation++; /* durable before anything else happens */
    restore = (struct raft_restore){
        .state = node->disk.state,
        .snapshot = node->disk.snapshot,
        .entries = node->disk.entries,
        .entry_count = node->disk.entry_count,
        .seed = prng_next(&quorum->streams[STREAM_NODE]),
    };
    memset(&node->raft, 0, sizeof node->raft);
    status = raft_init(&node->raft, &settings, &restore, node_clock(quorum, node), &error);
    if (status != GAVEL_OK)
        quorum_violate(quorum, RAFT_INVARIANT_RESTORED, "%s cannot start from its own disk: %s", node->label,
                       error.message);
    node->state = NODE_UP;
    node->life++;
    node->frozen_until = 0;
    node->stalled_until = 0;
    node->loses_inbox = false;
    node->stays_down = false;
    node->is_failed = false;
    node->fuse = 0;
    node->told = 0;
    node->timer_at = NEVER;
    node->armed_for = NEVER;
    node->wakes = 0;
    TRACE(quorum, node, "starts: incarnation %llu, term %llu, log to %llu",
          (unsigned long long)node->disk.state.incarnation, (unsigned long long)node->disk.state.term,
          (unsigned long long)(node->disk.snapshot.index + node->disk.entry_count));
    raft_referee_started(quorum->referee, quorum->now, &node->raft, &restore);
    machine_restore(quorum, node);
    arm(quorum, node);
}

void node_die(struct quorum *quorum, struct node *node, bool has_guard, const char *why)
{
    if (node->state != NODE_UP)
        return;
    TRACE(quorum, node, "%s", why);
    raft_referee_ended(quorum->referee, quorum->now, node->id);
    node->state = NODE_DOWN;
    node->life++;
    node->work = (struct node_work){.number = node->work.number};
    drop_held(quorum, node);
    machine_clear(node);
    raft_done(&node->raft);
    disk_crash(quorum, node);
    node->frozen_until = 0;
    node->stalled_until = 0;
    if (has_guard)
        guard_mourn(quorum, node);
}

void node_freeze(struct quorum *quorum, struct node *node, gavel_ns until, bool is_suspended)
{
    if (!node_is_up(node) || node_is_frozen(quorum, node))
        return;
    TRACE(quorum, node, "is %s for %.3f s", is_suspended ? "suspended" : "frozen",
          (double)(until - quorum->now) / (double)NS_PER_S);
    node->frozen_until = until;
    node->loses_inbox = is_suspended;
    if (is_suspended)
        node->disk.frozen_until = until;
    if (until != NEVER)
        quorum_push(quorum, until, EVENT_RESUME, node->slot)->number = ++node->freezes;
}

void node_resume(struct quorum *quorum, struct node *node)
{
    if (!node_is_up(node) || node->frozen_until == 0)
        return;
    TRACE(quorum, node, "runs again");
    if (quorum->now < node->frozen_until)
        heap_hurry(&quorum->heap, node->slot, node->frozen_until, quorum->now);
    node->frozen_until = 0;
    node->disk.frozen_until = 0;
    node->loses_inbox = false;
}

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
    for (size_t i = 0; i < actions->count; i++) {
        quorum_see_action(quorum, node, &actions->items[i]);
        chaos_ambush(quorum, node, &actions->items[i]);
        carry_out(quorum, node, &actions->items[i]);
        if (burn(quorum, node) || node->life != life)
            return status;
    }
    if (node->work.runs && node->raft.work == RAFT_WORK_RUNNING)
        node->work.deadline = raft_deadline(&node->raft);
    arm(quorum, node);
    if (node->machine_index >= node->compacted + quorum->profile.compact_after)
        machine_compact(quorum, node);
    return status;
}

static void take_timer(struct quorum *quorum, struct node *node, uint64_t number)
{
    struct raft_event event = {.kind = RAFT_TIMER};

    if (number != node->timer)
        return;
    node->timer_at = NEVER;
    if (node_clock(quorum, node) < raft_wake_at(&node->raft)) {
        arm(quorum, node);
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
