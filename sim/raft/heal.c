/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The liveness phase: a random majority heals: its nodes run, with whole links
 * among them, clocks within the bound and disks that write. All others stay in
 * the trouble they are in, for good: dead, frozen, cut off, heard without
 * hearing, hearing without being heard, or with a disk that hangs. A node whose obituary was forged
 * must start again: nobody promises anything to a dead incarnation.
 */
#include "sim/raft/chaos.h"
#include "sim/raft/members.h"
#include "sim/raft/shape.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdio.h>

#define START_WITHIN (20 * NS_PER_MS)
/* A leader whose disk hangs is asked for something soon, and hands over after a second; or after four, if its
 * disk was so slow before that the core could not tell sooner. */
#define HANDS_OVER_WITHIN (4500 * NS_PER_MS)

/* After a while, when there may be a leader again, somebody wants a far node to lead. */
#define DISTANT_WITHIN (2 * NS_PER_S)

/* Only so many nodes as are needed, or a few more. */
static unsigned choose(struct quorum *quorum)
{
    unsigned slots = members_sound(quorum);
    unsigned first = quorum_below(quorum, STREAM_HEAL, SLOTS_MAX);

    if (!members_decide(quorum, slots) || !members_can_elect(quorum, slots))
        return 0;
    if (quorum->profile.mood == MOOD_CALM || quorum->profile.longest != NEVER ||
        quorum->profile.faults & FAULT_BIT(FAULT_DISTANT))
        return slots; /* nothing was broken, or not for long; or too few are near enough */
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        unsigned bit = 1U << (first + i) % SLOTS_MAX;
        bool goes = quorum_chance(quorum, STREAM_HEAL, 600);

        if (slots & bit && goes && members_decide(quorum, slots & ~bit) &&
            members_can_elect(quorum, slots & ~bit))
            slots &= ~bit;
    }
    return slots;
}

static void heal_node(struct quorum *quorum, struct node *node)
{
    gavel_ns delay = quorum_between(quorum, STREAM_HEAL, 0, START_WITHIN);
    int64_t half = (int64_t)quorum->profile.worst.drift_ppm * 1000 / 2 - 1;
    int64_t rate = quorum_between(quorum, STREAM_HEAL, -half, half);

    if (quorum->profile.faults & FAULT_BIT(FAULT_BEYOND))
        node_set_rate(quorum, node, rate);
    if (quorum->now < node->stalled_until)
        heap_hurry(&quorum->heap, node->slot, node->stalled_until, quorum->now);
    node->stalled_until = 0;
    node->fuse = 0;
    node_resume(quorum, node);
    if (node_is_up(node) && (node->is_failed || node->mourned == node->disk.state.incarnation))
        node_die(quorum, node, true, node->is_failed ? "ends, because its disk failed" : "is restarted");
    disk_heal(quorum, node);
    node->stays_down = false;
    if (!node_is_up(node))
        (void)quorum_push(quorum, quorum->now + delay, EVENT_START, node->slot);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (quorum->healed & 1U << i)
            net_mend(quorum, node->slot, i);
}

/*
 * All that is wrong with it is its disk: it hears and is heard, and may be the one that leads. Not where
 * guests run: its table stands still, and that gaveld then sends its clients elsewhere is not simulated.
 */
static bool hang(struct quorum *quorum, struct node *node)
{
    if (!node_is_up(node) || node->is_failed || node->mourned == node->disk.state.incarnation ||
        !(quorum->profile.faults & FAULT_BIT(FAULT_HUNG_DISK)) || quorum->watch.healed)
        return false;
    node->fuse = 0;
    node_resume(quorum, node);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (quorum->healed & 1U << i) {
            net_mend(quorum, node->slot, i);
            net_mend(quorum, i, node->slot);
        }
    disk_hang(quorum, node, NEVER);
    return true;
}

/* What is broken stays broken, in one way or another. */
static void abandon(struct quorum *quorum, struct node *node)
{
    unsigned what = quorum_below(quorum, STREAM_HEAL, 8);
    bool is_heard = what == 0;
    bool hears = what == 1;

    if (what >= 6 && hang(quorum, node))
        return;

    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        if (!(quorum->healed & 1U << i))
            continue;
        if (!is_heard)
            net_cut(quorum, node->slot, i, NEVER, ALL_KINDS);
        if (!hears)
            net_cut(quorum, i, node->slot, NEVER, ALL_KINDS);
    }
    if (what == 2 && node_is_up(node))
        node_die(quorum, node, true, "is killed for good");
    node->stays_down |= what == 2;
    if (what == 3 && !node_is_frozen(quorum, node))
        node_freeze(quorum, node, NEVER, false);
}

static void describe(struct quorum *quorum)
{
    char text[SLOTS_MAX * 2 + 1] = "";
    unsigned n = 0;

    for (unsigned i = 0; i < quorum->used; i++)
        if (quorum->healed & 1U << i)
            text[n++] = quorum->nodes[i].label[0];
    text[n] = '\0';
    TRACE(quorum, NULL, "%s heal, and all other faults last", text);
}

/* When the last message that is under way arrives: until then something of the past may still disturb. */
static gavel_ns last_arrival(const struct quorum *quorum)
{
    gavel_ns last = 0;

    for (size_t i = 0; i < quorum->heap.count; i++) {
        const struct event *event = &quorum->heap.items[i];

        if (event->kind == EVENT_ARRIVE || event->kind == EVENT_OBITUARY)
            last = ns_max(last, event->at);
    }
    return last;
}

/*
 * How long messages and writes take among those that can be counted on: all healed nodes, or, if those that
 * are near can decide alone, only they.
 */
static void measure(struct quorum *quorum, struct raft_referee_healed *healed)
{
    unsigned near = shape_near(quorum, quorum->healed);

    if (!members_decide(quorum, near) || !members_can_elect(quorum, near))
        near = quorum->healed;
    healed->delay = shape_delay(quorum, near);
    healed->far_delay = shape_delay(quorum, quorum->healed);
    healed->write = 2 * shape_write(quorum, quorum->healed); /* the one under way, then its own */
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (quorum->healed & ~near & 1U << i)
            healed->far |= UINT64_C(1) << quorum->nodes[i].id;
}

/* The network is whole no more; who hears whom is told by id. */
static void reshape(struct quorum *quorum, struct raft_referee_healed *healed, uint64_t heard[SLOTS_MAX])
{
    unsigned slots[SLOTS_MAX];

    shape_cut(quorum, slots);
    for (size_t k = 0; k < healed->count; k++)
        heard[k] = (uint64_t)slots[healed->ids[k] - 1] << 1; /* id = slot + 1 */
    healed->heard = heard;
}

void heal_take(struct quorum *quorum)
{
    unsigned slots = choose(quorum);
    const struct profile *p = &quorum->profile;
    struct raft_referee_healed healed = {
        .settings = &p->worst,
    };
    raft_id ids[SLOTS_MAX] = {0};
    uint64_t heard[SLOTS_MAX];
    bool has_hung = false;

    if (slots == 0) { /* nothing can be asked of what is left */
        TRACE(quorum, NULL, "no majority can heal");
        quorum->is_over = true;
        return;
    }
    quorum->healed = slots;
    describe(quorum);
    measure(quorum, &healed);
    for (unsigned i = 0; i < quorum->used; i++) {
        struct node *node = &quorum->nodes[i];

        if (node->state == NODE_UNUSED || node->state == NODE_DAMAGED)
            continue;
        if (slots & 1U << i) {
            ids[healed.count++] = node->id;
            heal_node(quorum, node);
        } else {
            abandon(quorum, node);
            has_hung = has_hung || node->disk.hung_until == NEVER;
        }
    }
    healed.ids = ids;
    if (p->faults & FAULT_BIT(FAULT_PARTIAL) && !has_hung && !quorum->watch.healed &&
        quorum_below(quorum, STREAM_HEAL, 4) > 0)
        reshape(quorum, &healed, heard);
    healed.start_within = ns_max(START_WITHIN, last_arrival(quorum) - quorum->now);
    if (has_hung)
        healed.start_within += ns_stretch(HANDS_OVER_WITHIN, p->worst.drift_ppm);
    if (healed.far != 0) {
        (void)quorum_push(quorum, quorum->now + healed.start_within + DISTANT_WITHIN / 2, EVENT_DISTANT, 0);
        healed.start_within += DISTANT_WITHIN;
    }
    raft_referee_healed(quorum->referee, quorum->now, &healed);
    quorum->rest = 300 * NS_PER_MS + 4 * (healed.write - 2 * p->write_max);
    quorum->quiet_at = ns_max(p->end_at, raft_referee_peace_by(quorum->referee) + 50 * NS_PER_MS);
    quorum->quiet_at += quorum->rest - 300 * NS_PER_MS;
    if (quorum->watch.healed) {
        quorum->quiet_at = NEVER;
        quorum->watch.healed(quorum->watch.context, quorum);
        return;
    }
    (void)quorum_push(quorum, quorum->now, EVENT_PROBE, 0);
}
