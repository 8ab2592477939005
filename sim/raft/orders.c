/* SPDX-License-Identifier: Apache-2.0 */

/* People who command at random, and the things that go wrong just then. */

#include "sim/raft/chaos.h"
#include "sim/raft/operator.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static bool can_be_asked(const struct cluster *cluster, const struct host *host)
{
    return host_is_up(host) && !host_is_frozen(cluster, host) && cluster->now >= host->stalled_until;
}

static struct host *leader_for(struct cluster *cluster)
{
    struct host *leader = cluster_leader(cluster);

    return leader && can_be_asked(cluster, leader) ? leader : NULL;
}

static struct host *anybody(struct cluster *cluster, enum fault fault)
{
    return &cluster->hosts[cluster_below(cluster, STREAM_FAULTS + fault, cluster->used)];
}

/* Somebody gets into trouble while the transfer is under way. */
static void sabotage(struct cluster *cluster, enum fault fault, const struct host *leader, unsigned target)
{
    unsigned stream = STREAM_FAULTS + fault;
    unsigned what = cluster_below(cluster, stream, 8);
    gavel_ns when = cluster_length(cluster, stream, 50 * NS_PER_US, 100 * NS_PER_MS);
    gavel_ns length = cluster_length(cluster, stream, 10 * NS_PER_MS, NS_PER_S);
    unsigned victim = what & 1 ? target : leader->slot;

    if (what >= 6 || !cluster_has(cluster, what < 2 ? FAULT_CRASH : FAULT_PARTIAL))
        return;
    if (what < 2)
        (void)cluster_push(cluster, cluster->now + when, EVENT_STRIKE, victim);
    else
        cluster_push(cluster, cluster->now + when, EVENT_CUT, victim)->number = (uint64_t)length;
}

/* The node that the leader has the least hope for: dead, cut off, or far behind. */
static unsigned worst_target(const struct host *leader)
{
    const struct raft_peer *worst = NULL;

    for (size_t i = 0; i < leader->node.raft.peer_count; i++) {
        const struct raft_peer *peer = &leader->node.raft.peers[i];

        if (raft_config_votes(&leader->node.raft.config, peer->id) && (!worst || peer->match < worst->match))
            worst = peer;
    }
    return worst ? (unsigned)worst->id - 1 : leader->slot;
}

static void transfer(struct cluster *cluster, enum fault fault, bool is_forced)
{
    struct host *leader = leader_for(cluster);
    unsigned drawn = cluster_below(cluster, STREAM_FAULTS + fault, cluster->used);
    bool is_hopeless = cluster_chance(cluster, STREAM_FAULTS + fault, 300);
    unsigned target = leader && is_hopeless ? worst_target(leader) : drawn;
    bool chooses = cluster_chance(cluster, STREAM_FAULTS + fault, 250);
    struct raft_event event = {
        .kind = RAFT_TRANSFER,
        .transfer = {.target = chooses ? 0 : target + 1, .is_forced = is_forced},
    };
    enum gavel_status status;

    if (!leader)
        return;
    TRACE(cluster, leader, "is asked to hand over to %s%s",
          chooses ? "whoever is best" : cluster->hosts[target].label, is_forced ? ", by force" : "");
    sabotage(cluster, fault, leader, target);
    if (operators_exist(cluster)) {
        operator_transfer(cluster, leader, chooses ? SLOTS_MAX : target, is_forced);
        return;
    }
    status = host_step(cluster, leader, &event);
    if (status != GAVEL_OK)
        TRACE(cluster, leader, "refuses: %s", gavel_status_name(status));
}

/* Impatient people ask again before the first transfer has ended, or just when it was given up. */
static gavel_ns ask_again_at(struct cluster *cluster)
{
    unsigned stream = STREAM_FAULTS + FAULT_TRANSFER;
    gavel_ns at = cluster->now + cluster_length(cluster, stream, 200 * NS_PER_US, 80 * NS_PER_MS);
    gavel_ns after = cluster_length(cluster, stream, NS_PER_US, 10 * NS_PER_MS);
    bool waits = cluster_chance(cluster, stream, 500);
    const struct host *leader = cluster_leader(cluster);

    if (!waits || !leader || leader->node.raft.transfer.phase == RAFT_TRANSFER_NONE)
        return at;
    return ns_max(clock_real(&leader->clock, leader->node.raft.transfer.give_up_at), cluster->now) +
           cluster->profile.timer_late + after;
}

void order_insist(struct cluster *cluster, uint64_t times)
{
    transfer(cluster, FAULT_TRANSFER, false);
    if (times > 0)
        cluster_push(cluster, ask_again_at(cluster), EVENT_INSIST, 0)->number = times - 1;
}

void order_transfer(struct cluster *cluster)
{
    bool insists = cluster_chance(cluster, STREAM_FAULTS + FAULT_TRANSFER, 700);

    order_insist(cluster, insists ? 1 + cluster_below(cluster, STREAM_FAULTS + FAULT_TRANSFER, 20) : 0);
}

static void give(struct cluster *cluster, struct host *host, enum raft_event_kind kind, const char *what)
{
    struct raft_event event = {.kind = kind};
    enum gavel_status status;

    if (!host || !can_be_asked(cluster, host))
        return;
    TRACE(cluster, host, "is told to %s", what);
    status = host_step(cluster, host, &event);
    if (status != GAVEL_OK)
        TRACE(cluster, host, "refuses: %s", gavel_status_name(status));
}

void order_force(struct cluster *cluster)
{
    bool takes_over = cluster_chance(cluster, STREAM_FAULTS + FAULT_FORCE, 500);
    struct host *host = anybody(cluster, FAULT_FORCE);

    if (takes_over && operators_exist(cluster) && can_be_asked(cluster, host))
        operator_transfer(cluster, host, host->slot, true);
    else if (takes_over)
        give(cluster, host, RAFT_TAKE_OVER, "take over");
    else
        transfer(cluster, FAULT_FORCE, true);
}

void order_step_down(struct cluster *cluster)
{
    struct host *host = anybody(cluster, FAULT_STEP_DOWN);
    bool asks_anybody = cluster_chance(cluster, STREAM_FAULTS + FAULT_STEP_DOWN, 100);

    if (!asks_anybody)
        host = leader_for(cluster);
    if (operators_exist(cluster) && host && can_be_asked(cluster, host))
        operator_end_work(cluster, host);
    else
        give(cluster, host, RAFT_STEP_DOWN, "step down");
}

void order_stand(struct cluster *cluster, struct host *host)
{
    give(cluster, host, RAFT_CAMPAIGN, "stand for election");
}

void order_campaign(struct cluster *cluster) { order_stand(cluster, anybody(cluster, FAULT_CAMPAIGN)); }

/* Somebody wants a node to lead that is too far away for it. */
void order_distant(struct cluster *cluster)
{
    struct host *target = anybody(cluster, FAULT_DISTANT);
    struct host *leader = leader_for(cluster);
    struct raft_event event = {.kind = RAFT_TRANSFER};

    for (unsigned i = 0; i < cluster->used && cluster->profile.distance[target->slot] == 0; i++)
        target = &cluster->hosts[(target->slot + 1) % cluster->used];
    if (cluster->profile.distance[target->slot] == 0 || cluster->profile.mood == MOOD_CALM || !leader ||
        leader == target || !can_be_asked(cluster, leader))
        return;
    TRACE(cluster, leader, "is told to hand over to %s, which is far away", target->label);
    event.transfer.target = target->id;
    event.transfer.timeout = 2 * NS_PER_S;
    (void)host_step(cluster, leader, &event); /* a refusal is an answer, too */
}
