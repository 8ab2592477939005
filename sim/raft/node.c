/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/node.h"

#include "base/error.h"
#include "sim/raft/ghost.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdio.h>
#include <string.h>

bool node_is_frozen(const struct cluster *cluster, const struct node *node)
{
    return cluster->now < node->frozen_until;
}

gavel_ns node_clock(const struct cluster *cluster, const struct node *node)
{
    return clock_local(&node->clock, cluster->now);
}

/* A machine that starts shows any time; it has nothing to do with that of others. */
static void draw_offset(struct cluster *cluster, struct node *node)
{
    gavel_ns shown = cluster_length(cluster, STREAM_NODE, NS_PER_S, 10000000 * NS_PER_S);

    node->clock.offset += shown - node_clock(cluster, node);
}

int64_t node_draw_rate(struct cluster *cluster)
{
    int64_t half = (int64_t)cluster->profile.worst.drift_ppm * 1000 / 2 - 1;
    int64_t rate = cluster_between(cluster, STREAM_NODE, -half, half);
    int64_t wild = cluster_between(cluster, STREAM_NODE, -300000000, 300000000);
    unsigned extreme = cluster_below(cluster, STREAM_NODE, 4);

    if (cluster_has(cluster, FAULT_BEYOND))
        return wild;
    if (!cluster_has(cluster, FAULT_RATE) || half <= 0)
        return 0;
    return extreme == 0 ? half : extreme == 1 ? -half : rate;
}

void node_create(struct cluster *cluster, struct node *node, const struct raft_config *first)
{
    node->state = NODE_DOWN;
    node->clock = (struct clock){.rate_ppb = node_draw_rate(cluster)};
    draw_offset(cluster, node);
    node->disk.state = (struct raft_state){.cluster = cluster->key, .generation = 1, .id = node->id};
    if (first)
        node->disk.snapshot.config = *first;
    if (cluster_has(cluster, FAULT_LOST)) { /* otherwise all are as nodes of 0.6.0 are, which have none */
        node->disk.state.directory = node->id * 1000;
        node->disk.snapshot.config.binds = first != NULL;
    }
    if (node->slot >= cluster->used)
        cluster->used = node->slot + 1;
}

static void drop_held(struct cluster *cluster, struct node *node)
{
    while (node->held) {
        struct message *message = node->held;

        node->held = message->next;
        net_recycle(cluster, message);
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

void node_clear(struct cluster *cluster, struct node *node)
{
    unsigned slot = (unsigned)(node - cluster->nodes);
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

void node_arm(struct cluster *cluster, struct node *node)
{
    gavel_ns wake = raft_wake_at(&node->raft);
    gavel_ns at;

    if (wake == NEVER || (wake == node->armed_for && node->timer_at != NEVER))
        return;
    node->armed_for = wake;
    at = ns_max(clock_real(&node->clock, wake), cluster->now) +
         cluster_between(cluster, STREAM_NODE, 0, cluster->profile.timer_late);
    if (node->timer_at <= at)
        return;
    node->timer_at = at;
    cluster_push(cluster, at, EVENT_TIMER, node->slot)->number = ++node->timer;
}

void node_set_rate(struct cluster *cluster, struct node *node, int64_t rate_ppb)
{
    gavel_ns shown = node_clock(cluster, node);

    node->clock.rate_ppb = rate_ppb;
    node->clock.offset += shown - node_clock(cluster, node);
    node->armed_for = NEVER; /* its timer is due at another real instant now */
    node->timer_at = NEVER;
    if (node_is_up(node))
        node_arm(cluster, node);
}

void node_start(struct cluster *cluster, struct node *node)
{
    struct raft_settings settings = cluster->profile.settings[node->slot];
    bool is_reboot = cluster_chance(cluster, STREAM_NODE, 300);
    struct gavel_error error = {0};
    struct raft_restore restore;
    enum gavel_status status;

    if (node->state != NODE_DOWN || node->ghost)
        return;
    if (node->disk.state.incarnation > 0)
        cluster_see(cluster, SIGHT_RESTARTS);
    if (is_reboot && node->disk.state.incarnation > 0)
        draw_offset(cluster, node);
    settings.context = cluster;
    ghost_copy(cluster, node, 4);
    node->disk.state.incarnation++; /* durable before anything else happens */
    node->disk.state.start = node->id << 32 | node->disk.state.incarnation;
    ghost_recalls(node);
    restore = (struct raft_restore){
        .state = node->disk.state,
        .snapshot = node->disk.snapshot,
        .entries = node->disk.entries,
        .entry_count = node->disk.entry_count,
        .seed = prng_next(&cluster->streams[STREAM_NODE]),
    };
    memset(&node->raft, 0, sizeof node->raft);
    status = raft_init(&node->raft, &settings, &restore, node_clock(cluster, node), &error);
    if (status != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_RESTORED, "%s cannot start from its own disk: %s",
                        node->label, error.message);
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
    TRACE(cluster, node, "starts: incarnation %llu, term %llu, log to %llu",
          (unsigned long long)node->disk.state.incarnation, (unsigned long long)node->disk.state.term,
          (unsigned long long)(node->disk.snapshot.index + node->disk.entry_count));
    raft_referee_started(cluster->referee, cluster->now, &node->raft, &restore);
    machine_restore(cluster, node);
    if (cluster->watch.started)
        cluster->watch.started(cluster->watch.context, cluster, node);
    node_arm(cluster, node);
}

void node_die(struct cluster *cluster, struct node *node, bool has_guard, const char *why)
{
    if (node->state != NODE_UP)
        return;
    TRACE(cluster, node, "%s", why);
    if (cluster->watch.ended)
        cluster->watch.ended(cluster->watch.context, cluster, node);
    raft_referee_ended(cluster->referee, cluster->now, node->id);
    node->state = NODE_DOWN;
    node->life++;
    node->work = (struct node_work){.number = node->work.number};
    drop_held(cluster, node);
    machine_clear(node);
    raft_done(&node->raft);
    disk_crash(cluster, node);
    node->frozen_until = 0;
    node->stalled_until = 0;
    if (has_guard)
        guard_write_obituary(cluster, node);
}

void node_freeze(struct cluster *cluster, struct node *node, gavel_ns until, bool is_suspended)
{
    if (!node_is_up(node) || node_is_frozen(cluster, node))
        return;
    TRACE(cluster, node, "is %s for %.3f s", is_suspended ? "suspended" : "frozen",
          (double)(until - cluster->now) / (double)NS_PER_S);
    node->frozen_until = until;
    node->loses_inbox = is_suspended;
    if (is_suspended)
        node->disk.frozen_until = until;
    if (until != NEVER)
        cluster_push(cluster, until, EVENT_RESUME, node->slot)->number = ++node->freezes;
}

void node_resume(struct cluster *cluster, struct node *node)
{
    if (!node_is_up(node) || node->frozen_until == 0)
        return;
    TRACE(cluster, node, "runs again");
    if (cluster->now < node->frozen_until)
        heap_hurry(&cluster->heap, node->slot, node->frozen_until, cluster->now);
    node->frozen_until = 0;
    node->disk.frozen_until = 0;
    node->loses_inbox = false;
}
