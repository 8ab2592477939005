/* SPDX-License-Identifier: Apache-2.0 */

/* People who command at random, and the things that go wrong just then. */

#include "sim/raft/chaos.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static bool can_be_asked(const struct quorum *quorum, const struct node *node)
{
    return node_is_up(node) && !node_is_frozen(quorum, node) && quorum->now >= node->stalled_until;
}

static struct node *leader_for(struct quorum *quorum)
{
    struct node *leader = quorum_leader(quorum);

    return leader && can_be_asked(quorum, leader) ? leader : NULL;
}

static struct node *anybody(struct quorum *quorum, enum fault fault)
{
    return &quorum->nodes[quorum_below(quorum, STREAM_FAULTS + fault, quorum->used)];
}

/* Somebody gets into trouble while the transfer is under way. */
static void sabotage(struct quorum *quorum, enum fault fault, const struct node *leader, unsigned target)
{
    unsigned stream = STREAM_FAULTS + fault;
    unsigned what = quorum_below(quorum, stream, 8);
    gavel_ns when = quorum_length(quorum, stream, 50 * NS_PER_US, 100 * NS_PER_MS);
    gavel_ns length = quorum_length(quorum, stream, 10 * NS_PER_MS, NS_PER_S);
    unsigned victim = what & 1 ? target : leader->slot;

    if (what >= 6 || !quorum_has(quorum, what < 2 ? FAULT_CRASH : FAULT_PARTIAL))
        return;
    if (what < 2)
        (void)quorum_push(quorum, quorum->now + when, EVENT_STRIKE, victim);
    else
        quorum_push(quorum, quorum->now + when, EVENT_CUT, victim)->number = (uint64_t)length;
}

/* The node that the leader has the least hope for: dead, cut off, or far behind. */
static unsigned worst_target(const struct node *leader)
{
    const struct raft_peer *worst = NULL;

    for (size_t i = 0; i < leader->raft.peer_count; i++) {
        const struct raft_peer *peer = &leader->raft.peers[i];

        if (raft_config_votes(&leader->raft.config, peer->id) && (!worst || peer->match < worst->match))
            worst = peer;
    }
    return worst ? (unsigned)worst->id - 1 : leader->slot;
}

static void transfer(struct quorum *quorum, enum fault fault, bool is_forced)
{
    struct node *leader = leader_for(quorum);
    unsigned drawn = quorum_below(quorum, STREAM_FAULTS + fault, quorum->used);
    bool is_hopeless = quorum_chance(quorum, STREAM_FAULTS + fault, 300);
    unsigned target = leader && is_hopeless ? worst_target(leader) : drawn;
    bool chooses = quorum_chance(quorum, STREAM_FAULTS + fault, 250);
    struct raft_event event = {
        .kind = RAFT_TRANSFER,
        .transfer = {.target = chooses ? 0 : target + 1, .is_forced = is_forced},
    };
    enum gavel_status status;

    if (!leader)
        return;
    TRACE(quorum, leader, "is asked to hand over to %s%s",
          chooses ? "whoever is best" : quorum->nodes[target].label, is_forced ? ", by force" : "");
    sabotage(quorum, fault, leader, target);
    status = node_step(quorum, leader, &event);
    if (status != GAVEL_OK)
        TRACE(quorum, leader, "refuses: %s", gavel_status_name(status));
}

/* Impatient people ask again before the first transfer has ended, or just when it was given up. */
static gavel_ns ask_again_at(struct quorum *quorum)
{
    unsigned stream = STREAM_FAULTS + FAULT_TRANSFER;
    gavel_ns at = quorum->now + quorum_length(quorum, stream, 200 * NS_PER_US, 80 * NS_PER_MS);
    gavel_ns after = quorum_length(quorum, stream, NS_PER_US, 10 * NS_PER_MS);
    bool waits = quorum_chance(quorum, stream, 500);
    const struct node *leader = quorum_leader(quorum);

    if (!waits || !leader || leader->raft.transfer.phase == RAFT_TRANSFER_NONE)
        return at;
    return ns_max(clock_real(&leader->clock, leader->raft.transfer.give_up_at), quorum->now) +
           quorum->profile.timer_late + after;
}

void order_insist(struct quorum *quorum, uint64_t times)
{
    transfer(quorum, FAULT_TRANSFER, false);
    if (times > 0)
        quorum_push(quorum, ask_again_at(quorum), EVENT_INSIST, 0)->number = times - 1;
}

void order_transfer(struct quorum *quorum)
{
    bool insists = quorum_chance(quorum, STREAM_FAULTS + FAULT_TRANSFER, 700);

    order_insist(quorum, insists ? 1 + quorum_below(quorum, STREAM_FAULTS + FAULT_TRANSFER, 20) : 0);
}

static void give(struct quorum *quorum, struct node *node, enum raft_event_kind kind, const char *what)
{
    struct raft_event event = {.kind = kind};
    enum gavel_status status;

    if (!node || !can_be_asked(quorum, node))
        return;
    TRACE(quorum, node, "is told to %s", what);
    status = node_step(quorum, node, &event);
    if (status != GAVEL_OK)
        TRACE(quorum, node, "refuses: %s", gavel_status_name(status));
}

void order_force(struct quorum *quorum)
{
    bool takes_over = quorum_chance(quorum, STREAM_FAULTS + FAULT_FORCE, 500);
    struct node *node = anybody(quorum, FAULT_FORCE);

    if (takes_over)
        give(quorum, node, RAFT_TAKE_OVER, "take over");
    else
        transfer(quorum, FAULT_FORCE, true);
}

void order_step_down(struct quorum *quorum)
{
    struct node *node = anybody(quorum, FAULT_STEP_DOWN);
    bool asks_anybody = quorum_chance(quorum, STREAM_FAULTS + FAULT_STEP_DOWN, 100);

    give(quorum, asks_anybody ? node : leader_for(quorum), RAFT_STEP_DOWN, "step down");
}

void order_stand(struct quorum *quorum, struct node *node)
{
    give(quorum, node, RAFT_CAMPAIGN, "stand for election");
}

void order_campaign(struct quorum *quorum) { order_stand(quorum, anybody(quorum, FAULT_CAMPAIGN)); }

/* Somebody wants a node to lead that is too far away for it. */
void order_distant(struct quorum *quorum)
{
    struct node *target = anybody(quorum, FAULT_DISTANT);
    struct node *leader = leader_for(quorum);
    struct raft_event event = {.kind = RAFT_TRANSFER};

    for (unsigned i = 0; i < quorum->used && quorum->profile.distance[target->slot] == 0; i++)
        target = &quorum->nodes[(target->slot + 1) % quorum->used];
    if (quorum->profile.distance[target->slot] == 0 || quorum->profile.mood == MOOD_CALM || !leader ||
        leader == target || !can_be_asked(quorum, leader))
        return;
    TRACE(quorum, leader, "is told to hand over to %s, which is far away", target->label);
    event.transfer.target = target->id;
    event.transfer.timeout = 2 * NS_PER_S;
    (void)node_step(quorum, leader, &event); /* a refusal is an answer, too */
}
