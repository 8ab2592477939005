/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/node.h"

#include "base/error.h"
#include "sim/raft/ghost.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdio.h>
#include <string.h>

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
    if (quorum_has(quorum, FAULT_LOST)) { /* otherwise all are as nodes of 0.6.0 are, which have none */
        node->disk.state.directory = node->id * 1000;
        node->disk.snapshot.config.binds = first != NULL;
    }
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
    ghost_end(node);
    if (node->state == NODE_UP)
        raft_done(&node->raft);
    table_done(&node->table);
    disk_done(&node->disk);
    disk_done(&node->copy);
}

void node_clear(struct quorum *quorum, struct node *node)
{
    unsigned slot = (unsigned)(node - quorum->nodes);
    struct disk disk, copy;

    ghost_end(node);
    if (node->state == NODE_UP)
        raft_done(&node->raft);
    table_done(&node->table);
    disk_clear(&node->disk);
    disk_clear(&node->copy);
    disk = node->disk;
    copy = node->copy;
    memset(node, 0, sizeof *node);
    node->disk = disk;
    node->copy = copy;
    node->slot = slot;
    node->id = slot + 1;
    (void)snprintf(node->label, sizeof node->label, "%c", (char)('a' + slot));
    node->timer_at = NEVER;
    node->armed_for = NEVER;
}

void node_arm(struct quorum *quorum, struct node *node)
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
        node_arm(quorum, node);
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
    ghost_copy(quorum, node, 4);
    node->disk.state.incarnation++; /* durable before anything else happens */
    node->disk.state.start = node->id << 32 | node->disk.state.incarnation;
    ghost_recalls(node);
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
    if (quorum->watch.started)
        quorum->watch.started(quorum->watch.context, quorum, node);
    node_arm(quorum, node);
}

void node_die(struct quorum *quorum, struct node *node, bool has_guard, const char *why)
{
    if (node->state != NODE_UP)
        return;
    TRACE(quorum, node, "%s", why);
    if (quorum->watch.ended)
        quorum->watch.ended(quorum->watch.context, quorum, node);
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
