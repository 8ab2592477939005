/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/host.h"

#include "base/error.h"
#include "sim/raft/ghost.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdio.h>
#include <string.h>

bool host_is_frozen(const struct cluster *cluster, const struct host *host)
{
    return cluster->now < host->frozen_until;
}

gavel_ns host_clock(const struct cluster *cluster, const struct host *host)
{
    return clock_local(&host->clock, cluster->now);
}

/* A machine that starts shows any time; it has nothing to do with that of others. */
static void draw_offset(struct cluster *cluster, struct host *host)
{
    gavel_ns shown = cluster_length(cluster, STREAM_NODE, NS_PER_S, 10000000 * NS_PER_S);

    host->clock.offset += shown - host_clock(cluster, host);
}

int64_t host_draw_rate(struct cluster *cluster)
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

void host_create(struct cluster *cluster, struct host *host, const struct raft_config *first)
{
    host->state = HOST_DOWN;
    host->clock = (struct clock){.rate_ppb = host_draw_rate(cluster)};
    draw_offset(cluster, host);
    host->disk.state = (struct raft_state){.cluster = cluster->key, .generation = 1, .id = host->id};
    if (first)
        host->disk.snapshot.config = *first;
    /* Otherwise all are as nodes of 0.6.0 are, which have none. */
    if (cluster_has(cluster, FAULT_LOST) || cluster->profile.is_bound) {
        host->disk.state.directory = host->id * 1000;
        host->disk.snapshot.config.binds = first != NULL;
    }
    if (host->slot >= cluster->used)
        cluster->used = host->slot + 1;
}

void host_done(struct host *host)
{
    ghost_end(host);
    node_done(&host->node);
    table_done(&host->table);
    node_build_free(host->build);
    table_done(&host->decoded);
    disk_done(&host->disk);
    disk_done(&host->copy);
}

void host_clear(struct cluster *cluster, struct host *host)
{
    unsigned slot = (unsigned)(host - cluster->hosts);
    struct disk disk, copy;

    ghost_end(host);
    node_done(&host->node);
    table_done(&host->table);
    node_build_free(host->build);
    table_done(&host->decoded);
    disk_clear(&host->disk);
    disk_clear(&host->copy);
    disk = host->disk;
    copy = host->copy;
    memset(host, 0, sizeof *host);
    host->disk = disk;
    host->copy = copy;
    host->slot = slot;
    host->id = slot + 1;
    (void)snprintf(host->label, sizeof host->label, "%c", (char)('a' + slot));
    host->timer_at = NEVER;
    host->armed_for = NEVER;
}

void host_arm(struct cluster *cluster, struct host *host)
{
    gavel_ns wake = raft_wake_at(&host->node.raft);
    gavel_ns at;

    if (wake == NEVER || (wake == host->armed_for && host->timer_at != NEVER))
        return;
    host->armed_for = wake;
    at = ns_max(clock_real(&host->clock, wake), cluster->now) +
         cluster_between(cluster, STREAM_NODE, 0, cluster->profile.timer_late);
    if (host->timer_at <= at)
        return;
    host->timer_at = at;
    cluster_push(cluster, at, EVENT_TIMER, host->slot)->number = ++host->timer;
}

void host_set_rate(struct cluster *cluster, struct host *host, int64_t rate_ppb)
{
    gavel_ns shown = host_clock(cluster, host);

    host->clock.rate_ppb = rate_ppb;
    host->clock.offset += shown - host_clock(cluster, host);
    host->armed_for = NEVER; /* its timer is due at another real instant now */
    host->timer_at = NEVER;
    if (host_is_up(host))
        host_arm(cluster, host);
}

void host_start(struct cluster *cluster, struct host *host)
{
    struct raft_settings settings = cluster->profile.settings[host->slot];
    bool is_reboot = cluster_chance(cluster, STREAM_NODE, 300);
    struct gavel_error error = {0};
    struct raft_restore restore;
    enum gavel_status status;

    if (host->state != HOST_DOWN || host->ghost)
        return;
    if (host->disk.state.incarnation > 0)
        cluster_see(cluster, SIGHT_RESTARTS);
    if (is_reboot && host->disk.state.incarnation > 0)
        draw_offset(cluster, host);
    settings.context = cluster;
    ghost_copy(cluster, host, 4);
    host->disk.state.incarnation++; /* durable before anything else happens */
    host->disk.state.start = host->id << 32 | host->disk.state.incarnation;
    ghost_recalls(host);
    restore = (struct raft_restore){
        .state = host->disk.state,
        .snapshot = host->disk.snapshot,
        .entries = host->disk.entries,
        .entry_count = host->disk.entry_count,
        .seed = prng_next(&cluster->streams[STREAM_NODE]),
    };
    status = node_init(&host->node, &host->table, &settings, &restore, host_clock(cluster, host), &error);
    if (status != GAVEL_OK)
        cluster_violate(cluster, RAFT_INVARIANT_RESTORED, "%s cannot start from its own disk: %s",
                        host->label, error.message);
    host->state = HOST_UP;
    host->life++;
    host->frozen_until = 0;
    host->stalled_until = 0;
    host->loses_inbox = false;
    host->stays_down = false;
    host->is_failed = false;
    host->fuse = 0;
    host->timer_at = NEVER;
    host->armed_for = NEVER;
    host->wakes = 0;
    TRACE(cluster, host, "starts: incarnation %llu, term %llu, log to %llu",
          (unsigned long long)host->disk.state.incarnation, (unsigned long long)host->disk.state.term,
          (unsigned long long)(host->disk.snapshot.index + host->disk.entry_count));
    raft_referee_started(cluster->referee, cluster->now, &host->node.raft, &restore);
    machine_restored(cluster, host);
    operator_introduce(cluster, host);
    if (cluster->watch.started)
        cluster->watch.started(cluster->watch.context, cluster, host);
    host_arm(cluster, host);
}

void host_die(struct cluster *cluster, struct host *host, bool has_guard, const char *why)
{
    if (host->state != HOST_UP)
        return;
    TRACE(cluster, host, "%s", why);
    if (cluster->watch.ended)
        cluster->watch.ended(cluster->watch.context, cluster, host);
    raft_referee_ended(cluster->referee, cluster->now, host->id);
    host->state = HOST_DOWN;
    host->life++;
    host->work = (struct host_work){.number = host->work.number};
    host->operator=(struct host_operator){0};
    node_done(&host->node);
    machine_clear(host);
    disk_crash(cluster, host);
    host->frozen_until = 0;
    host->stalled_until = 0;
    if (has_guard)
        guard_write_obituary(cluster, host);
}

void host_freeze(struct cluster *cluster, struct host *host, gavel_ns until, bool is_suspended)
{
    if (!host_is_up(host) || host_is_frozen(cluster, host))
        return;
    TRACE(cluster, host, "is %s for %.3f s", is_suspended ? "suspended" : "frozen",
          (double)(until - cluster->now) / (double)NS_PER_S);
    host->frozen_until = until;
    host->loses_inbox = is_suspended;
    if (is_suspended)
        host->disk.frozen_until = until;
    if (until != NEVER)
        cluster_push(cluster, until, EVENT_RESUME, host->slot)->number = ++host->freezes;
}

void host_resume(struct cluster *cluster, struct host *host)
{
    if (!host_is_up(host) || host->frozen_until == 0)
        return;
    TRACE(cluster, host, "runs again");
    if (cluster->now < host->frozen_until)
        heap_hurry(&cluster->heap, host->slot, host->frozen_until, cluster->now);
    host->frozen_until = 0;
    host->disk.frozen_until = 0;
    host->loses_inbox = false;
}
