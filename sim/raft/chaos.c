/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/chaos.h"

#include "sim/raft/ghost.h"
#include "sim/raft/members.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static unsigned below(struct cluster *cluster, enum fault fault, unsigned bound)
{
    return cluster_below(cluster, STREAM_FAULTS + fault, bound);
}

struct host *chaos_pick(struct cluster *cluster, enum fault fault)
{
    struct host *host = &cluster->hosts[below(cluster, fault, cluster->used)];
    bool prefers_leader = below(cluster, fault, 2) == 0;
    struct host *leader = cluster_leader(cluster);

    return prefers_leader && leader ? leader : host;
}

static gavel_ns draw_length(struct cluster *cluster, enum fault fault, gavel_ns low, gavel_ns high)
{
    return ns_min(cluster_length(cluster, STREAM_FAULTS + fault, low, high), cluster->profile.longest);
}

static double seconds(gavel_ns ns) { return (double)ns / (double)NS_PER_S; }

static void cut_both(struct cluster *cluster, unsigned a, unsigned b, gavel_ns until)
{
    net_cut(cluster, a, b, until, ALL_KINDS);
    net_cut(cluster, b, a, until, ALL_KINDS);
}

void chaos_cut_off(struct cluster *cluster, const struct host *host, gavel_ns length)
{
    TRACE(cluster, host, "is cut off for %.3f s", seconds(length));
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        cut_both(cluster, host->slot, i, cluster->now + length);
}

/* Two halves; the slots of `bridge` belong to both. */
static void split(struct cluster *cluster, unsigned half, unsigned bridge, gavel_ns length)
{
    char text[SLOTS_MAX * 2 + 1] = "";
    unsigned n = 0;

    for (unsigned i = 0; i < cluster->used; i++) {
        if (half & 1U << i)
            text[n++] = cluster->hosts[i].label[0];
        for (unsigned j = 0; j < i; j++)
            if (((half >> i ^ half >> j) & 1) && !(bridge & 1U << i) && !(bridge & 1U << j))
                cut_both(cluster, i, j, cluster->now + length);
    }
    text[n] = '\0';
    TRACE(cluster, NULL, "the network falls apart for %.3f s: {%s} and the others%s", seconds(length), text,
          bridge ? ", with a bridge" : "");
}

static void partition(struct cluster *cluster)
{
    unsigned half = below(cluster, FAULT_PARTITION, 1U << SLOTS_MAX);

    split(cluster, half, 0, draw_length(cluster, FAULT_PARTITION, 20 * NS_PER_MS, 3 * NS_PER_S));
}

static void bridge(struct cluster *cluster)
{
    unsigned half = below(cluster, FAULT_BRIDGE, 1U << SLOTS_MAX);
    unsigned both = 1U << below(cluster, FAULT_BRIDGE, cluster->used);

    split(cluster, half, both, draw_length(cluster, FAULT_BRIDGE, 20 * NS_PER_MS, 3 * NS_PER_S));
}

void chaos_split(struct cluster *cluster, const struct host *host)
{
    unsigned half = 1U << host->slot | 1U << below(cluster, FAULT_PARTIAL, cluster->used) |
                    1U << below(cluster, FAULT_PARTIAL, cluster->used);

    split(cluster, half, 0, draw_length(cluster, FAULT_PARTIAL, 100 * NS_PER_MS, 2 * NS_PER_S));
}

static void one_way(struct cluster *cluster)
{
    const struct host *host = chaos_pick(cluster, FAULT_ONE_WAY);
    bool hears = below(cluster, FAULT_ONE_WAY, 2) == 0;
    gavel_ns length = draw_length(cluster, FAULT_ONE_WAY, 20 * NS_PER_MS, 3 * NS_PER_S);

    TRACE(cluster, host, "%s for %.3f s", hears ? "is not heard" : "hears nothing", seconds(length));
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        net_cut(cluster, hears ? host->slot : i, hears ? i : host->slot, cluster->now + length, ALL_KINDS);
}

static void partial(struct cluster *cluster)
{
    unsigned count = 1 + below(cluster, FAULT_PARTIAL, cluster->used);
    gavel_ns length = draw_length(cluster, FAULT_PARTIAL, 20 * NS_PER_MS, 3 * NS_PER_S);

    for (unsigned i = 0; i < count; i++) {
        const struct host *a = chaos_pick(cluster, FAULT_PARTIAL);
        const struct host *b = &cluster->hosts[below(cluster, FAULT_PARTIAL, cluster->used)];

        if (a == b)
            continue;
        TRACE(cluster, a, "cannot talk to %s for %.3f s", b->label, seconds(length));
        cut_both(cluster, a->slot, b->slot, cluster->now + length);
    }
}

static void deafen(struct cluster *cluster)
{
    const struct host *host = chaos_pick(cluster, FAULT_DEAF);
    unsigned kind = below(cluster, FAULT_DEAF, RAFT_MESSAGE_KIND_COUNT);
    bool is_into = below(cluster, FAULT_DEAF, 2) == 0;
    bool is_one = below(cluster, FAULT_DEAF, 2) == 0;
    unsigned peer = below(cluster, FAULT_DEAF, cluster->used);
    gavel_ns length = draw_length(cluster, FAULT_DEAF, 50 * NS_PER_MS, 3 * NS_PER_S);

    TRACE(cluster, host, "no %s %s %s for %.3f s", raft_message_name((enum raft_message_kind)kind),
          is_into ? "reaches it from" : "of it reaches", is_one ? cluster->hosts[peer].label : "anybody",
          seconds(length));
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (!is_one || i == peer)
            net_cut(cluster, is_into ? i : host->slot, is_into ? host->slot : i, cluster->now + length,
                    1U << kind);
}

static void freeze(struct cluster *cluster)
{
    struct host *host = chaos_pick(cluster, FAULT_PAUSE);

    host_freeze(cluster, host, cluster->now + draw_length(cluster, FAULT_PAUSE, 5 * NS_PER_MS, 2 * NS_PER_S),
                false);
}

static void suspend(struct cluster *cluster)
{
    unsigned count = 1 + below(cluster, FAULT_SUSPEND, cluster->used);

    for (unsigned i = 0; i < count; i++) {
        struct host *host = chaos_pick(cluster, FAULT_SUSPEND);

        host_freeze(cluster, host,
                    cluster->now + draw_length(cluster, FAULT_SUSPEND, 20 * NS_PER_MS, 2 * NS_PER_S), true);
    }
}

static void stall(struct cluster *cluster)
{
    struct host *host = chaos_pick(cluster, FAULT_STALL);
    gavel_ns length = draw_length(cluster, FAULT_STALL, NS_PER_MS, 300 * NS_PER_MS);
    gavel_ns until = ns_max(host->stalled_until, cluster->now + length);

    if (!host_is_up(host))
        return;
    TRACE(cluster, host, "its event loop is late by %.3f s", seconds(length));
    if (cluster->now < host->stalled_until) /* what waits, waits for longer */
        heap_hurry(&cluster->heap, host->slot, host->stalled_until, until);
    host->stalled_until = until;
}

/* The others are told that the connection is gone, soon, and not always. */
static void hint(struct cluster *cluster, const struct host *host)
{
    for (unsigned i = 0; i < cluster->used; i++) {
        gavel_ns delay = draw_length(cluster, FAULT_HINT, 100 * NS_PER_US, 20 * NS_PER_MS);
        bool is_told = below(cluster, FAULT_HINT, 4) != 0;

        if (is_told && i != host->slot && cluster_has(cluster, FAULT_HINT))
            cluster_push(cluster, cluster->now + delay, EVENT_HINT, i)->number = host->id;
    }
}

void chaos_damage(struct cluster *cluster, struct host *host)
{
    TRACE(cluster, host, "its disk is damaged: it never comes back");
    cluster->counts.faults++;
    host->state = HOST_DAMAGED;
    if (cluster_has(cluster, FAULT_LOST) && ghost_may_come(cluster, host))
        ghost_begin(cluster, host);
    (void)cluster_push(cluster, cluster->now + 300 * NS_PER_MS, EVENT_REPLACE, 0);
}

void chaos_crash_for(struct cluster *cluster, struct host *host, const char *why, gavel_ns down_for)
{
    bool is_flipped = cluster_chance(cluster, STREAM_CRASH, 250);
    bool stays_down = cluster_chance(cluster, STREAM_CRASH, 80) && down_for == 0;
    gavel_ns drawn =
        ns_min(cluster_length(cluster, STREAM_CRASH, NS_PER_MS, 2 * NS_PER_S), cluster->profile.longest);

    if (!host_is_up(host))
        return;
    hint(cluster, host);
    host_die(cluster, host, true, why);
    if (is_flipped && (cluster_has(cluster, FAULT_FLIP) || cluster_has(cluster, FAULT_LOST)) &&
        members_can_spare(cluster, host)) {
        chaos_damage(cluster, host);
        return;
    }
    host->stays_down = stays_down && cluster->healed == 0 && cluster->profile.longest == NEVER;
    (void)cluster_push(cluster, cluster->now + (down_for ? down_for : drawn), EVENT_START, host->slot);
}

void chaos_crash(struct cluster *cluster, struct host *host, const char *why)
{
    chaos_crash_for(cluster, host, why, 0);
}

static void crash(struct cluster *cluster)
{
    chaos_crash(cluster, chaos_pick(cluster, FAULT_CRASH), "is killed");
}

static void light_fuse(struct cluster *cluster)
{
    struct host *host = chaos_pick(cluster, FAULT_BOUNDARY);
    int fuse = 1 + (int)below(cluster, FAULT_BOUNDARY, 12);

    if (host_is_up(host) && host->fuse == 0)
        host->fuse = fuse;
}

static void black_out(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->used; i++)
        if (below(cluster, FAULT_BLACKOUT, 10) < 7)
            chaos_crash(cluster, &cluster->hosts[i], "is killed with others");
}

static void slow_disk(struct cluster *cluster)
{
    struct host *host = chaos_pick(cluster, FAULT_SLOW_DISK);
    gavel_ns length = draw_length(cluster, FAULT_SLOW_DISK, 20 * NS_PER_MS, 2 * NS_PER_S);

    TRACE(cluster, host, "its disk is slow for %.3f s", seconds(length));
    host->disk.slow_until = cluster->now + length;
}

static void hang_disk(struct cluster *cluster)
{
    struct host *host = chaos_pick(cluster, FAULT_HUNG_DISK);

    disk_hang(cluster, host,
              cluster->now + draw_length(cluster, FAULT_HUNG_DISK, 200 * NS_PER_MS, 5 * NS_PER_S));
}

static void bad_disk(struct cluster *cluster)
{
    struct host *host = chaos_pick(cluster, FAULT_BAD_DISK);

    if (host_is_up(host) && !host->is_failed)
        host->disk.fails = true;
}

static void replay(struct cluster *cluster)
{
    unsigned kept = cluster->obituary_count < OBITUARIES_KEPT ? cluster->obituary_count : OBITUARIES_KEPT;
    unsigned which = below(cluster, FAULT_OBIT_REPLAY, kept ? kept : 1);

    if (kept == 0)
        return;
    TRACE(cluster, &cluster->hosts[cluster->obituaries[which].node - 1],
          "its obituary of incarnation %llu comes again",
          (unsigned long long)cluster->obituaries[which].incarnation);
    guard_spread(cluster, &cluster->obituaries[which], false);
}

static void forge(struct cluster *cluster, enum fault fault, bool has_good_mac)
{
    struct host *host = chaos_pick(cluster, fault);
    struct raft_certificate certificate = {
        .kind = RAFT_CERT_OBITUARY, .node = host->id, .incarnation = host->disk.state.incarnation};

    if (!host_is_up(host))
        return;
    TRACE(cluster, host, "an obituary of it with a %s mac, although it lives",
          has_good_mac ? "good" : "wrong");
    guard_sign(cluster, &certificate);
    if (!has_good_mac)
        certificate.mac[below(cluster, fault, RAFT_MAC_BYTES)] ^= 1;
    else
        host->declared_dead = host->disk.state.incarnation;
    guard_spread(cluster, &certificate, !has_good_mac);
}

static void forge_badly(struct cluster *cluster) { forge(cluster, FAULT_OBIT_FALSE, false); }
static void forge_well(struct cluster *cluster) { forge(cluster, FAULT_FORGED, true); }
static void false_hint(struct cluster *cluster) { hint(cluster, chaos_pick(cluster, FAULT_HINT)); }

static void change_rate(struct cluster *cluster)
{
    host_set_rate(cluster, chaos_pick(cluster, FAULT_RATE), host_draw_rate(cluster));
}

/* What happens by itself, and how rarely: 2 is as often as the profile says. */
static const struct {
    void (*happen)(struct cluster *cluster);
    unsigned rarity;
} lasting[FAULT_COUNT] = {
    [FAULT_PARTITION] = {partition, 4},
    [FAULT_ONE_WAY] = {one_way, 4},
    [FAULT_PARTIAL] = {partial, 4},
    [FAULT_BRIDGE] = {bridge, 4},
    [FAULT_DEAF] = {deafen, 4},
    [FAULT_RATE] = {change_rate, 4},
    [FAULT_PAUSE] = {freeze, 2},
    [FAULT_SUSPEND] = {suspend, 4},
    [FAULT_STALL] = {stall, 2},
    [FAULT_CRASH] = {crash, 2},
    [FAULT_BOUNDARY] = {light_fuse, 2},
    [FAULT_COUP] = {chaos_coup, 4},
    [FAULT_BLACKOUT] = {black_out, 8},
    [FAULT_SLOW_DISK] = {slow_disk, 2},
    [FAULT_BAD_DISK] = {bad_disk, 4},
    [FAULT_HUNG_DISK] = {hang_disk, 4},
    [FAULT_OBIT_REPLAY] = {replay, 2},
    [FAULT_OBIT_FALSE] = {forge_badly, 2},
    [FAULT_FORGED] = {forge_well, 2},
    [FAULT_HINT] = {false_hint, 4},
    [FAULT_TRANSFER] = {order_transfer, 1},
    [FAULT_FORCE] = {order_force, 2},
    [FAULT_STEP_DOWN] = {order_step_down, 4},
    [FAULT_CAMPAIGN] = {order_campaign, 2},
    [FAULT_DISTANT] = {order_distant, 2},
    [FAULT_MEMBERS] = {order_members, 1},
    [FAULT_LOST] = {chaos_lose, 1},
};

/* Just before the liveness phase, so that it begins in the middle of something. */
static void plan_last(struct cluster *cluster, enum fault fault)
{
    bool is_wanted = below(cluster, fault, 4) == 0;
    gavel_ns before = draw_length(cluster, fault, 100 * NS_PER_US, NS_PER_S);

    if (is_wanted && cluster->profile.heal_at > before)
        cluster_push(cluster, cluster->profile.heal_at - before, EVENT_FAULT, 1)->number = fault;
}

static void plan(struct cluster *cluster, enum fault fault)
{
    gavel_ns every = cluster->profile.fault_every * lasting[fault].rarity / 2;
    gavel_ns delay = cluster_between(cluster, STREAM_FAULTS + fault, every / 16, 2 * every);

    cluster_push(cluster, cluster->now + delay, EVENT_FAULT, 0)->number = fault;
}

void chaos_begin(struct cluster *cluster)
{
    for (unsigned fault = 0; fault < FAULT_COUNT; fault++)
        if (lasting[fault].happen && cluster_has(cluster, (enum fault)fault)) {
            plan(cluster, (enum fault)fault);
            plan_last(cluster, (enum fault)fault);
        }
    if (cluster_has(cluster, FAULT_LOST))
        unbound_begin(cluster);
    (void)cluster_push(cluster, cluster->profile.heal_at, EVENT_HEAL, 0);
}

void chaos_take(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];

    if (cluster->healed != 0)
        return;
    cluster->counts.faults++;
    switch ((enum event_kind)event->kind) {
    case EVENT_FAULT:
        if (event->slot == 0) /* not the last one */
            plan(cluster, (enum fault)event->number);
        lasting[event->number].happen(cluster);
        break;
    case EVENT_STRIKE:
        if (event->incarnation == host->life)
            chaos_crash_for(cluster, host, "is killed", (gavel_ns)event->number);
        break;
    case EVENT_FREEZE:
        if (event->incarnation == host->life)
            host_freeze(cluster, host, cluster->now + (gavel_ns)event->number, false);
        break;
    case EVENT_CAMPAIGN:
        order_stand(cluster, host);
        break;
    case EVENT_INSIST:
        order_insist(cluster, event->number);
        break;
    default:
        chaos_cut_off(cluster, host, (gavel_ns)event->number);
        break;
    }
}
