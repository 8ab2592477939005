/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/chaos.h"

#include "sim/raft/ghost.h"
#include "sim/raft/members.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static unsigned below(struct quorum *quorum, enum fault fault, unsigned bound)
{
    return quorum_below(quorum, STREAM_FAULTS + fault, bound);
}

struct node *chaos_pick(struct quorum *quorum, enum fault fault)
{
    struct node *node = &quorum->nodes[below(quorum, fault, quorum->used)];
    bool prefers_leader = below(quorum, fault, 2) == 0;
    struct node *leader = quorum_leader(quorum);

    return prefers_leader && leader ? leader : node;
}

static gavel_ns draw_length(struct quorum *quorum, enum fault fault, gavel_ns low, gavel_ns high)
{
    return ns_min(quorum_length(quorum, STREAM_FAULTS + fault, low, high), quorum->profile.longest);
}

static double seconds(gavel_ns ns) { return (double)ns / (double)NS_PER_S; }

static void cut_both(struct quorum *quorum, unsigned a, unsigned b, gavel_ns until)
{
    net_cut(quorum, a, b, until, ALL_KINDS);
    net_cut(quorum, b, a, until, ALL_KINDS);
}

void chaos_cut_off(struct quorum *quorum, const struct node *node, gavel_ns length)
{
    TRACE(quorum, node, "is cut off for %.3f s", seconds(length));
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        cut_both(quorum, node->slot, i, quorum->now + length);
}

/* Two halves; the slots of `bridge` belong to both. */
static void split(struct quorum *quorum, unsigned half, unsigned bridge, gavel_ns length)
{
    char text[SLOTS_MAX * 2 + 1] = "";
    unsigned n = 0;

    for (unsigned i = 0; i < quorum->used; i++) {
        if (half & 1U << i)
            text[n++] = quorum->nodes[i].label[0];
        for (unsigned j = 0; j < i; j++)
            if (((half >> i ^ half >> j) & 1) && !(bridge & 1U << i) && !(bridge & 1U << j))
                cut_both(quorum, i, j, quorum->now + length);
    }
    text[n] = '\0';
    TRACE(quorum, NULL, "the network falls apart for %.3f s: {%s} and the others%s", seconds(length), text,
          bridge ? ", with a bridge" : "");
}

static void partition(struct quorum *quorum)
{
    unsigned half = below(quorum, FAULT_PARTITION, 1U << SLOTS_MAX);

    split(quorum, half, 0, draw_length(quorum, FAULT_PARTITION, 20 * NS_PER_MS, 3 * NS_PER_S));
}

static void bridge(struct quorum *quorum)
{
    unsigned half = below(quorum, FAULT_BRIDGE, 1U << SLOTS_MAX);
    unsigned both = 1U << below(quorum, FAULT_BRIDGE, quorum->used);

    split(quorum, half, both, draw_length(quorum, FAULT_BRIDGE, 20 * NS_PER_MS, 3 * NS_PER_S));
}

void chaos_split(struct quorum *quorum, const struct node *node)
{
    unsigned half = 1U << node->slot | 1U << below(quorum, FAULT_PARTIAL, quorum->used) |
                    1U << below(quorum, FAULT_PARTIAL, quorum->used);

    split(quorum, half, 0, draw_length(quorum, FAULT_PARTIAL, 100 * NS_PER_MS, 2 * NS_PER_S));
}

static void one_way(struct quorum *quorum)
{
    const struct node *node = chaos_pick(quorum, FAULT_ONE_WAY);
    bool hears = below(quorum, FAULT_ONE_WAY, 2) == 0;
    gavel_ns length = draw_length(quorum, FAULT_ONE_WAY, 20 * NS_PER_MS, 3 * NS_PER_S);

    TRACE(quorum, node, "%s for %.3f s", hears ? "is not heard" : "hears nothing", seconds(length));
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        net_cut(quorum, hears ? node->slot : i, hears ? i : node->slot, quorum->now + length, ALL_KINDS);
}

static void partial(struct quorum *quorum)
{
    unsigned count = 1 + below(quorum, FAULT_PARTIAL, quorum->used);
    gavel_ns length = draw_length(quorum, FAULT_PARTIAL, 20 * NS_PER_MS, 3 * NS_PER_S);

    for (unsigned i = 0; i < count; i++) {
        const struct node *a = chaos_pick(quorum, FAULT_PARTIAL);
        const struct node *b = &quorum->nodes[below(quorum, FAULT_PARTIAL, quorum->used)];

        if (a == b)
            continue;
        TRACE(quorum, a, "cannot talk to %s for %.3f s", b->label, seconds(length));
        cut_both(quorum, a->slot, b->slot, quorum->now + length);
    }
}

static void deafen(struct quorum *quorum)
{
    const struct node *node = chaos_pick(quorum, FAULT_DEAF);
    unsigned kind = below(quorum, FAULT_DEAF, RAFT_MESSAGE_KIND_COUNT);
    bool is_into = below(quorum, FAULT_DEAF, 2) == 0;
    bool is_one = below(quorum, FAULT_DEAF, 2) == 0;
    unsigned peer = below(quorum, FAULT_DEAF, quorum->used);
    gavel_ns length = draw_length(quorum, FAULT_DEAF, 50 * NS_PER_MS, 3 * NS_PER_S);

    TRACE(quorum, node, "no %s %s %s for %.3f s", raft_message_name((enum raft_message_kind)kind),
          is_into ? "reaches it from" : "of it reaches", is_one ? quorum->nodes[peer].label : "anybody",
          seconds(length));
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (!is_one || i == peer)
            net_cut(quorum, is_into ? i : node->slot, is_into ? node->slot : i, quorum->now + length,
                    1U << kind);
}

static void freeze(struct quorum *quorum)
{
    struct node *node = chaos_pick(quorum, FAULT_PAUSE);

    node_freeze(quorum, node, quorum->now + draw_length(quorum, FAULT_PAUSE, 5 * NS_PER_MS, 2 * NS_PER_S),
                false);
}

static void suspend(struct quorum *quorum)
{
    unsigned count = 1 + below(quorum, FAULT_SUSPEND, quorum->used);

    for (unsigned i = 0; i < count; i++) {
        struct node *node = chaos_pick(quorum, FAULT_SUSPEND);

        node_freeze(quorum, node,
                    quorum->now + draw_length(quorum, FAULT_SUSPEND, 20 * NS_PER_MS, 2 * NS_PER_S), true);
    }
}

static void stall(struct quorum *quorum)
{
    struct node *node = chaos_pick(quorum, FAULT_STALL);
    gavel_ns length = draw_length(quorum, FAULT_STALL, NS_PER_MS, 300 * NS_PER_MS);

    if (!node_is_up(node))
        return;
    TRACE(quorum, node, "its event loop is late by %.3f s", seconds(length));
    node->stalled_until = ns_max(node->stalled_until, quorum->now + length);
}

/* The others are told that the connection is gone, soon, and not always. */
static void hint(struct quorum *quorum, const struct node *node)
{
    for (unsigned i = 0; i < quorum->used; i++) {
        gavel_ns delay = draw_length(quorum, FAULT_HINT, 100 * NS_PER_US, 20 * NS_PER_MS);
        bool is_told = below(quorum, FAULT_HINT, 4) != 0;

        if (is_told && i != node->slot && quorum_has(quorum, FAULT_HINT))
            quorum_push(quorum, quorum->now + delay, EVENT_HINT, i)->number = node->id;
    }
}

void chaos_crash_for(struct quorum *quorum, struct node *node, const char *why, gavel_ns down_for)
{
    bool is_flipped = quorum_chance(quorum, STREAM_CRASH, 250);
    bool stays_down = quorum_chance(quorum, STREAM_CRASH, 80) && down_for == 0;
    gavel_ns drawn =
        ns_min(quorum_length(quorum, STREAM_CRASH, NS_PER_MS, 2 * NS_PER_S), quorum->profile.longest);

    if (!node_is_up(node))
        return;
    hint(quorum, node);
    node_die(quorum, node, true, why);
    if (is_flipped && (quorum_has(quorum, FAULT_FLIP) || quorum_has(quorum, FAULT_LOST)) &&
        members_can_spare(quorum, node)) {
        TRACE(quorum, node, "its disk is damaged: it never comes back");
        quorum->counts.faults++;
        node->state = NODE_DAMAGED;
        if (quorum_has(quorum, FAULT_LOST) && ghost_may_come(quorum, node))
            ghost_begin(quorum, node);
        (void)quorum_push(quorum, quorum->now + 300 * NS_PER_MS, EVENT_REPLACE, 0);
        return;
    }
    node->stays_down = stays_down && quorum->healed == 0 && quorum->profile.longest == NEVER;
    (void)quorum_push(quorum, quorum->now + (down_for ? down_for : drawn), EVENT_START, node->slot);
}

void chaos_crash(struct quorum *quorum, struct node *node, const char *why)
{
    chaos_crash_for(quorum, node, why, 0);
}

static void crash(struct quorum *quorum)
{
    chaos_crash(quorum, chaos_pick(quorum, FAULT_CRASH), "is killed");
}

static void light_fuse(struct quorum *quorum)
{
    struct node *node = chaos_pick(quorum, FAULT_BOUNDARY);
    int fuse = 1 + (int)below(quorum, FAULT_BOUNDARY, 12);

    if (node_is_up(node) && node->fuse == 0)
        node->fuse = fuse;
}

static void black_out(struct quorum *quorum)
{
    for (unsigned i = 0; i < quorum->used; i++)
        if (below(quorum, FAULT_BLACKOUT, 10) < 7)
            chaos_crash(quorum, &quorum->nodes[i], "is killed with others");
}

static void slow_disk(struct quorum *quorum)
{
    struct node *node = chaos_pick(quorum, FAULT_SLOW_DISK);
    gavel_ns length = draw_length(quorum, FAULT_SLOW_DISK, 20 * NS_PER_MS, 2 * NS_PER_S);

    TRACE(quorum, node, "its disk is slow for %.3f s", seconds(length));
    node->disk.slow_until = quorum->now + length;
}

static void hang_disk(struct quorum *quorum)
{
    struct node *node = chaos_pick(quorum, FAULT_HUNG_DISK);

    disk_hang(quorum, node,
              quorum->now + draw_length(quorum, FAULT_HUNG_DISK, 200 * NS_PER_MS, 5 * NS_PER_S));
}

static void bad_disk(struct quorum *quorum)
{
    struct node *node = chaos_pick(quorum, FAULT_BAD_DISK);

    if (node_is_up(node) && !node->is_failed)
        node->disk.fails = true;
}

static void replay(struct quorum *quorum)
{
    unsigned kept = quorum->obituary_count < OBITUARIES_KEPT ? quorum->obituary_count : OBITUARIES_KEPT;
    unsigned which = below(quorum, FAULT_OBIT_REPLAY, kept ? kept : 1);

    if (kept == 0)
        return;
    TRACE(quorum, &quorum->nodes[quorum->obituaries[which].node - 1],
          "its obituary of incarnation %llu comes again",
          (unsigned long long)quorum->obituaries[which].incarnation);
    guard_spread(quorum, &quorum->obituaries[which], false);
}

static void forge(struct quorum *quorum, enum fault fault, bool has_good_mac)
{
    struct node *node = chaos_pick(quorum, fault);
    struct raft_certificate certificate = {
        .kind = RAFT_CERT_OBITUARY, .node = node->id, .incarnation = node->disk.state.incarnation};

    if (!node_is_up(node))
        return;
    TRACE(quorum, node, "an obituary of it with a %s mac, although it lives",
          has_good_mac ? "good" : "wrong");
    guard_sign(quorum, &certificate);
    if (!has_good_mac)
        certificate.mac[below(quorum, fault, RAFT_MAC_BYTES)] ^= 1;
    else
        node->mourned = node->disk.state.incarnation;
    guard_spread(quorum, &certificate, !has_good_mac);
}

static void forge_badly(struct quorum *quorum) { forge(quorum, FAULT_OBIT_FALSE, false); }
static void forge_well(struct quorum *quorum) { forge(quorum, FAULT_FORGED, true); }
static void false_hint(struct quorum *quorum) { hint(quorum, chaos_pick(quorum, FAULT_HINT)); }

static void change_rate(struct quorum *quorum)
{
    node_set_rate(quorum, chaos_pick(quorum, FAULT_RATE), node_draw_rate(quorum));
}

/* What happens by itself, and how rarely: 2 is as often as the profile says. */
static const struct {
    void (*happen)(struct quorum *quorum);
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
};

/* Just before the liveness phase, so that it begins in the middle of something. */
static void plan_last(struct quorum *quorum, enum fault fault)
{
    bool is_wanted = below(quorum, fault, 4) == 0;
    gavel_ns before = draw_length(quorum, fault, 100 * NS_PER_US, NS_PER_S);

    if (is_wanted && quorum->profile.heal_at > before)
        quorum_push(quorum, quorum->profile.heal_at - before, EVENT_FAULT, 1)->number = fault;
}

static void plan(struct quorum *quorum, enum fault fault)
{
    gavel_ns every = quorum->profile.fault_every * lasting[fault].rarity / 2;
    gavel_ns delay = quorum_between(quorum, STREAM_FAULTS + fault, every / 16, 2 * every);

    quorum_push(quorum, quorum->now + delay, EVENT_FAULT, 0)->number = fault;
}

void chaos_begin(struct quorum *quorum)
{
    for (unsigned fault = 0; fault < FAULT_COUNT; fault++)
        if (lasting[fault].happen && quorum_has(quorum, (enum fault)fault)) {
            plan(quorum, (enum fault)fault);
            plan_last(quorum, (enum fault)fault);
        }
    (void)quorum_push(quorum, quorum->profile.heal_at, EVENT_HEAL, 0);
}

void chaos_take(struct quorum *quorum, const struct event *event)
{
    struct node *node = &quorum->nodes[event->slot];

    if (quorum->healed != 0)
        return;
    quorum->counts.faults++;
    switch ((enum event_kind)event->kind) {
    case EVENT_FAULT:
        if (event->slot == 0) /* not the last one */
            plan(quorum, (enum fault)event->number);
        lasting[event->number].happen(quorum);
        break;
    case EVENT_STRIKE:
        if (event->incarnation == node->life)
            chaos_crash_for(quorum, node, "is killed", (gavel_ns)event->number);
        break;
    case EVENT_FREEZE:
        if (event->incarnation == node->life)
            node_freeze(quorum, node, quorum->now + (gavel_ns)event->number, false);
        break;
    case EVENT_CAMPAIGN:
        order_stand(quorum, node);
        break;
    case EVENT_INSIST:
        order_insist(quorum, event->number);
        break;
    default:
        chaos_cut_off(quorum, node, (gavel_ns)event->number);
        break;
    }
}
