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
#include "sim/raft/program.h"
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
static unsigned choose(struct cluster *cluster)
{
    unsigned slots = members_sound(cluster);
    unsigned first = cluster_below(cluster, STREAM_HEAL, SLOTS_MAX);

    if (!members_decide(cluster, slots) || !members_can_elect(cluster, slots))
        return 0;
    if (operators_exist(cluster) && cluster_chance(cluster, STREAM_FAULTS + FAULT_ORDERS, 500))
        return slots; /* for the records of members */
    if (cluster->profile.mood == MOOD_CALM || cluster->profile.longest != NEVER ||
        cluster->profile.faults & FAULT_BIT(FAULT_DISTANT))
        return slots; /* nothing was broken, or not for long; or too few are near enough */
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        unsigned bit = 1U << (first + i) % SLOTS_MAX;
        bool goes = cluster_chance(cluster, STREAM_HEAL, 600);

        if (slots & bit && goes && members_decide(cluster, slots & ~bit) &&
            members_can_elect(cluster, slots & ~bit))
            slots &= ~bit;
    }
    return slots;
}

static void heal_node(struct cluster *cluster, struct host *host)
{
    gavel_ns delay = cluster_between(cluster, STREAM_HEAL, 0, START_WITHIN);
    int64_t half = (int64_t)cluster->profile.worst.drift_ppm * 1000 / 2 - 1;
    int64_t rate = cluster_between(cluster, STREAM_HEAL, -half, half);

    if (cluster->profile.faults & FAULT_BIT(FAULT_BEYOND))
        host_set_rate(cluster, host, rate);
    if (cluster->now < host->stalled_until)
        heap_hurry(&cluster->heap, host->slot, host->stalled_until, cluster->now);
    host->stalled_until = 0;
    host->fuse = 0;
    host_resume(cluster, host);
    if (host_is_up(host) &&
        (host->is_failed || program_is_old(cluster, host) ||
         host->operator.is_stopping || host->declared_dead == host->disk.state.incarnation))
        host_die(cluster, host, true, host->is_failed ? "ends, because its disk failed" : "is restarted");
    disk_heal(cluster, host);
    host->stays_down = false;
    if (!host_is_up(host))
        (void)cluster_push(cluster, cluster->now + delay, EVENT_START, host->slot);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (cluster->healed & 1U << i)
            net_mend(cluster, host->slot, i);
}

/*
 * All that is wrong with it is its disk: it hears and is heard, and may be the one that leads. Not where
 * services run: its table stands still, and that gaveld then sends its clients elsewhere is not simulated.
 */
static bool hang(struct cluster *cluster, struct host *host)
{
    if (!host_is_up(host) || host->is_failed || host->declared_dead == host->disk.state.incarnation ||
        !(cluster->profile.faults & FAULT_BIT(FAULT_HUNG_DISK)) || cluster->watch.healed)
        return false;
    host->fuse = 0;
    host_resume(cluster, host);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (cluster->healed & 1U << i) {
            net_mend(cluster, host->slot, i);
            net_mend(cluster, i, host->slot);
        }
    disk_hang(cluster, host, NEVER);
    return true;
}

/* What is broken stays broken, in one way or another. */
static void abandon(struct cluster *cluster, struct host *host)
{
    unsigned what = cluster_below(cluster, STREAM_HEAL, 8);
    bool is_heard = what == 0;
    bool hears = what == 1;

    if (what >= 6 && hang(cluster, host))
        return;

    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        if (!(cluster->healed & 1U << i))
            continue;
        if (!is_heard)
            net_cut(cluster, host->slot, i, NEVER, ALL_KINDS);
        if (!hears)
            net_cut(cluster, i, host->slot, NEVER, ALL_KINDS);
    }
    if (what == 2 && host_is_up(host))
        host_die(cluster, host, true, "is killed for good");
    host->stays_down |= what == 2;
    if (what == 3 && !host_is_frozen(cluster, host))
        host_freeze(cluster, host, NEVER, false);
}

/*
 * Members that go on changing could end a majority that was chosen for the members as they are. Where all
 * that can heal does, Raft itself sees to it that a change leaves a majority that answers.
 */
static bool may_reconcile(const struct cluster *cluster)
{
    const uint64_t slow = FAULT_BIT(FAULT_DISTANT) | FAULT_BIT(FAULT_DISKS);

    return cluster->healed == members_sound(cluster) && !(cluster->profile.faults & slow);
}

static void describe(struct cluster *cluster)
{
    char text[SLOTS_MAX * 2 + 1] = "";
    unsigned n = 0;

    for (unsigned i = 0; i < cluster->used; i++)
        if (cluster->healed & 1U << i)
            text[n++] = cluster->hosts[i].label[0];
    text[n] = '\0';
    TRACE(cluster, NULL, "%s heal, and all other faults last", text);
}

/* When the last message that is under way arrives: until then something of the past may still disturb. */
static gavel_ns last_arrival(const struct cluster *cluster)
{
    gavel_ns last = 0;

    for (size_t i = 0; i < cluster->heap.count; i++) {
        const struct event *event = &cluster->heap.items[i];

        if (event->kind == EVENT_ARRIVE || event->kind == EVENT_OBITUARY)
            last = ns_max(last, event->at);
    }
    return last;
}

/*
 * How long messages and writes take among those that can be counted on: all healed nodes, or, if those that
 * are near can decide alone, only they.
 */
static void measure(struct cluster *cluster, struct raft_referee_healed *healed)
{
    unsigned near = shape_near(cluster, cluster->healed);

    if (!members_decide(cluster, near) || !members_can_elect(cluster, near))
        near = cluster->healed;
    healed->delay = shape_delay(cluster, near);
    healed->far_delay = shape_delay(cluster, cluster->healed);
    healed->write = 2 * shape_write(cluster, cluster->healed); /* the one under way, then its own */
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (cluster->healed & ~near & 1U << i)
            healed->far |= UINT64_C(1) << cluster->hosts[i].id;
}

/* The network is whole no more; who hears whom is told by id. */
static void reshape(struct cluster *cluster, struct raft_referee_healed *healed, uint64_t heard[SLOTS_MAX])
{
    unsigned slots[SLOTS_MAX];

    shape_cut(cluster, slots);
    for (size_t k = 0; k < healed->count; k++)
        heard[k] = (uint64_t)slots[healed->ids[k] - 1] << 1; /* id = slot + 1 */
    healed->heard = heard;
}

void heal_take(struct cluster *cluster)
{
    unsigned slots;
    const struct profile *p = &cluster->profile;
    struct raft_referee_healed healed = {
        .settings = &p->worst,
        .room = p->room,
    };
    raft_id ids[SLOTS_MAX] = {0};
    uint64_t heard[SLOTS_MAX];
    bool has_hung = false;

    refound_end(cluster);
    slots = choose(cluster);
    if (slots == 0) { /* nothing can be asked of what is left */
        TRACE(cluster, NULL, "no majority can heal");
        cluster->is_over = true;
        return;
    }
    cluster->healed = slots;
    cluster->operators.goes_on = may_reconcile(cluster);
    describe(cluster);
    measure(cluster, &healed);
    for (unsigned i = 0; i < cluster->used; i++) {
        struct host *host = &cluster->hosts[i];

        if (host->state == HOST_UNUSED || host->state == HOST_DAMAGED)
            continue;
        if (slots & 1U << i) {
            ids[healed.count++] = host->id;
            heal_node(cluster, host);
        } else {
            abandon(cluster, host);
            has_hung = has_hung || host->disk.hung_until == NEVER;
        }
    }
    healed.ids = ids;
    if (p->faults & FAULT_BIT(FAULT_PARTIAL) && !has_hung && !cluster->watch.healed &&
        cluster_below(cluster, STREAM_HEAL, 4) > 0 &&
        !(operators_exist(cluster) && cluster->operators.goes_on))
        reshape(cluster, &healed, heard);
    healed.start_within = ns_max(START_WITHIN, last_arrival(cluster) - cluster->now);
    if (has_hung)
        healed.start_within += ns_stretch(HANDS_OVER_WITHIN, p->worst.drift_ppm);
    if (healed.far != 0) {
        (void)cluster_push(cluster, cluster->now + healed.start_within + DISTANT_WITHIN / 2, EVENT_DISTANT,
                           0);
        healed.start_within += DISTANT_WITHIN;
    }
    raft_referee_healed(cluster->referee, cluster->now, &healed);
    cluster->rest = 300 * NS_PER_MS + 4 * (healed.write - 2 * p->write_max);
    cluster->quiet_at = ns_max(p->end_at, raft_referee_peace_by(cluster->referee) + 50 * NS_PER_MS);
    cluster->quiet_at += cluster->rest - 300 * NS_PER_MS;
    if (cluster->watch.healed) {
        cluster->quiet_at = NEVER;
        cluster->watch.healed(cluster->watch.context, cluster);
        return;
    }
    (void)cluster_push(cluster, cluster->now, EVENT_PROBE, 0);
}
