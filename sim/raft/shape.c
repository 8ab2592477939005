/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/shape.h"

#include "sim/raft/trace.h"

enum shape { STAR, CHAIN, RING, ONE_WAY, PAIRS, SHAPES };

static const char *const names[SHAPES] = {"a star", "a chain", "a ring", "full of links of one way",
                                          "without some links"};

/* The healed slots in an order of their own; the first is the hub of a star. */
static unsigned shuffle(struct cluster *cluster, unsigned order[SLOTS_MAX])
{
    unsigned count = 0;

    for (unsigned i = 0; i < cluster->used; i++)
        if (cluster->healed & 1U << i)
            order[count++] = i;
    for (unsigned i = count; i > 1; i--) {
        unsigned k = cluster_below(cluster, STREAM_FAULTS + FAULT_PARTIAL, i);
        unsigned slot = order[k];

        order[k] = order[i - 1];
        order[i - 1] = slot;
    }
    return count;
}

/* Whether the link between two places of the order is there at all. */
static bool has_link(struct cluster *cluster, enum shape shape, unsigned a, unsigned b, unsigned count)
{
    bool is_lucky = cluster_chance(cluster, STREAM_FAULTS + FAULT_PARTIAL, 600);
    unsigned apart = a < b ? b - a : a - b;

    switch (shape) {
    case STAR:
        return a == 0 || b == 0;
    case CHAIN:
        return apart == 1;
    case RING:
        return apart == 1 || apart == count - 1;
    case PAIRS:
        return is_lucky;
    default:
        return true;
    }
}

void shape_cut(struct cluster *cluster, unsigned ret_heard[SLOTS_MAX])
{
    enum shape shape = (enum shape)cluster_below(cluster, STREAM_FAULTS + FAULT_PARTIAL, SHAPES);
    unsigned order[SLOTS_MAX];
    unsigned count = shuffle(cluster, order);

    for (unsigned i = 0; i < SLOTS_MAX; i++)
        ret_heard[i] = cluster->healed & 1U << i ? cluster->healed : 0;
    for (unsigned a = 0; a < count; a++)
        for (unsigned b = a + 1; b < count; b++) {
            bool is_there = has_link(cluster, shape, a, b, count);
            unsigned ways = cluster_below(cluster, STREAM_FAULTS + FAULT_PARTIAL, 6);

            if (!is_there || (shape == ONE_WAY && ways == 0)) {
                net_cut(cluster, order[a], order[b], NEVER, ALL_KINDS);
                ret_heard[order[a]] &= ~(1U << order[b]);
            }
            if (!is_there || (shape == ONE_WAY && ways == 1)) {
                net_cut(cluster, order[b], order[a], NEVER, ALL_KINDS);
                ret_heard[order[b]] &= ~(1U << order[a]);
            }
        }
    TRACE(cluster, &cluster->hosts[order[0]], "is the first of the network, which is %s from now on",
          names[shape]);
}

unsigned shape_near(const struct cluster *cluster, unsigned slots)
{
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (cluster->profile.distance[i] > 0)
            slots &= ~(1U << i);
    return slots;
}

gavel_ns shape_delay(const struct cluster *cluster, unsigned slots)
{
    const struct profile *p = &cluster->profile;
    gavel_ns most = 0;
    gavel_ns next = 0;

    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        if (!(slots & 1U << i) || p->distance[i] <= next)
            continue;
        next = ns_min(most, p->distance[i]) > next ? ns_min(most, p->distance[i]) : next;
        most = ns_max(most, p->distance[i]);
    }
    return p->link_max + p->jitter + p->timer_late + most + next;
}

gavel_ns shape_write(const struct cluster *cluster, unsigned slots)
{
    gavel_ns most = 0;

    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (slots & 1U << i)
            most = ns_max(most, cluster->profile.disk[i]);
    return cluster->profile.write_max + most;
}

struct reach {
    const struct cluster *cluster;
    const struct host *leader;
};

/* By what the links are: what the leader measured cannot have been shorter, but for its clock. */
static bool answers_in_time(const void *context, raft_id id)
{
    const struct reach *reach = context;
    const struct raft_settings *s = &reach->leader->node.raft.settings;
    unsigned from = reach->leader->slot;
    unsigned to = (unsigned)id - 1;
    gavel_ns promise = ns_max(s->promise, reach->cluster->profile.settings[to].promise);
    gavel_ns lease = promise / (1000000 + s->drift_ppm) * (1000000 - s->drift_ppm) - s->stop_margin;
    gavel_ns there = reach->cluster->network.links[from][to].base;
    gavel_ns back = reach->cluster->network.links[to][from].base;

    return id == reach->leader->id ||
           ns_shrink(there + back, s->drift_ppm) <= lease - s->heartbeat + NS_PER_MS;
}

void shape_check_target(struct cluster *cluster, const struct host *leader)
{
    struct reach reach = {cluster, leader};

    if (!(cluster->profile.faults & FAULT_BIT(FAULT_BEYOND)) &&
        !answers_in_time(&reach, leader->node.raft.transfer.target))
        cluster_violate(cluster, RAFT_INVARIANT_REACH,
                        "%s works and hands over to %s, which is too far away to work", leader->label,
                        cluster_label(cluster, leader->node.raft.transfer.target));
}

void shape_check_config(struct cluster *cluster, const struct host *leader)
{
    struct reach reach = {cluster, leader};
    struct raft_config target = leader->node.raft.config;

    if (!target.is_joint || cluster->profile.faults & FAULT_BIT(FAULT_BEYOND) ||
        leader->node.raft.change != RAFT_CHANGE_JOINT)
        return;
    raft_config_leave(&leader->node.raft.config, &target);
    if (!raft_config_decides(&target, answers_in_time, &reach))
        cluster_violate(cluster, RAFT_INVARIANT_REACH,
                        "%s changes the members so that no majority answers it in time for a lease",
                        leader->label);
}
