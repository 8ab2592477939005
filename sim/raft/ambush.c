/* SPDX-License-Identifier: Apache-2.0 */

/* Trouble that does not come by chance: it waits until much hangs on it. */

#include "sim/raft/chaos.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static unsigned below(struct cluster *cluster, enum fault fault, unsigned bound)
{
    return cluster_below(cluster, STREAM_FAULTS + fault, bound);
}

static gavel_ns draw_length(struct cluster *cluster, enum fault fault, gavel_ns low, gavel_ns high)
{
    return cluster_length(cluster, STREAM_FAULTS + fault, low, high);
}

/* How much hangs on it: the chance, per mille, that somebody waited for it. */
static unsigned weight(const struct raft_action *action)
{
    switch (action->kind) {
    case RAFT_CLAIM:
    case RAFT_STOP_WORK:
        return 200;
    case RAFT_PERSIST:
        return action->persist.has_state || action->persist.truncate ? 20 : 0;
    case RAFT_SEND:
        switch (action->send.message.kind) {
        case RAFT_MSG_VOTE_REPLY:
            return action->send.message.vote_reply.reason == RAFT_GRANTED ? 100 : 0;
        case RAFT_MSG_TIMEOUT_NOW:
        case RAFT_MSG_SNAPSHOT:
        case RAFT_MSG_TAKE_OVER:
            return 200;
        case RAFT_MSG_APPEND:
            return action->send.message.append.entry_count > 0 ? 2 : 0;
        case RAFT_MSG_APPEND_REPLY:
            return 1;
        default:
            return 0;
        }
    default:
        return 0;
    }
}

void chaos_ambush(struct cluster *cluster, struct host *host, const struct raft_action *action)
{
    unsigned chance = cluster_has(cluster, FAULT_AMBUSH) ? weight(action) : 0;
    unsigned stream = STREAM_FAULTS + FAULT_AMBUSH;
    gavel_ns when;
    gavel_ns length;
    unsigned what;

    if (chance == 0 || !cluster_chance(cluster, stream, chance))
        return;
    when = cluster->now + (gavel_ns)below(cluster, FAULT_AMBUSH, 2) *
                              draw_length(cluster, FAULT_AMBUSH, NS_PER_US, 2 * NS_PER_MS);
    length = draw_length(cluster, FAULT_AMBUSH, 100 * NS_PER_US, 400 * NS_PER_MS);
    what = below(cluster, FAULT_AMBUSH, 4);
    cluster_push(cluster, when,
                 what < 2    ? EVENT_STRIKE
                 : what == 2 ? EVENT_CUT
                             : EVENT_FREEZE,
                 host->slot)
        ->number = (uint64_t)length;
}

/* Most of all if it removes itself: until that is committed its vote, or its log, may be needed. */
void chaos_ambush_change(struct cluster *cluster, struct host *leader)
{
    unsigned chance = raft_config_votes(&leader->node.raft.config, leader->id) ? 400 : 800;
    unsigned what;
    gavel_ns when;
    gavel_ns length;

    if (!cluster_has(cluster, FAULT_AMBUSH) || !cluster_chance(cluster, STREAM_FAULTS + FAULT_AMBUSH, chance))
        return;
    what = below(cluster, FAULT_AMBUSH, 4);
    when = cluster->now + draw_length(cluster, FAULT_AMBUSH, NS_PER_US, 4 * NS_PER_MS);
    length = draw_length(cluster, FAULT_AMBUSH, 50 * NS_PER_MS, 3 * NS_PER_S);
    if (what < 2) /* before its entry has left */
        chaos_cut_off(cluster, leader, length);
    else
        cluster_push(cluster, when, what == 2 ? EVENT_STRIKE : EVENT_CUT, leader->slot)->number =
            (uint64_t)length;
}

/* What a leader fears most: the others forget it while it cannot be told. */
void chaos_coup(struct cluster *cluster)
{
    const struct host *leader = chaos_pick(cluster, FAULT_COUP);
    gavel_ns length = draw_length(cluster, FAULT_COUP, 50 * NS_PER_MS, NS_PER_S);
    gavel_ns when = draw_length(cluster, FAULT_COUP, NS_PER_MS, 100 * NS_PER_MS);
    unsigned candidate = below(cluster, FAULT_COUP, cluster->used);

    TRACE(cluster, leader, "is cut off for %.3f s, and the others restart",
          (double)length / (double)NS_PER_S);
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        gavel_ns down_for = draw_length(cluster, FAULT_COUP, 100 * NS_PER_US, 20 * NS_PER_MS);
        bool is_spared = below(cluster, FAULT_COUP, 5) == 0;

        net_cut(cluster, leader->slot, i, cluster->now + length, ALL_KINDS);
        net_cut(cluster, i, leader->slot, cluster->now + length, ALL_KINDS);
        if (i < cluster->used && i != leader->slot && !is_spared)
            chaos_crash_for(cluster, &cluster->hosts[i], "is restarted", down_for);
    }
    (void)cluster_push(cluster, cluster->now + when, EVENT_CAMPAIGN, candidate);
}
