/* SPDX-License-Identifier: Apache-2.0 */

/* Trouble that does not come by chance: it waits until much hangs on it. */

#include "sim/raft/chaos.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static unsigned below(struct quorum *quorum, enum fault fault, unsigned bound)
{
    return quorum_below(quorum, STREAM_FAULTS + fault, bound);
}

static gavel_ns draw_length(struct quorum *quorum, enum fault fault, gavel_ns low, gavel_ns high)
{
    return quorum_length(quorum, STREAM_FAULTS + fault, low, high);
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

void chaos_ambush(struct quorum *quorum, struct node *node, const struct raft_action *action)
{
    unsigned chance = quorum_has(quorum, FAULT_AMBUSH) ? weight(action) : 0;
    unsigned stream = STREAM_FAULTS + FAULT_AMBUSH;
    gavel_ns when;
    gavel_ns length;
    unsigned what;

    if (chance == 0 || !quorum_chance(quorum, stream, chance))
        return;
    when = quorum->now + (gavel_ns)below(quorum, FAULT_AMBUSH, 2) *
                             draw_length(quorum, FAULT_AMBUSH, NS_PER_US, 2 * NS_PER_MS);
    length = draw_length(quorum, FAULT_AMBUSH, 100 * NS_PER_US, 400 * NS_PER_MS);
    what = below(quorum, FAULT_AMBUSH, 4);
    quorum_push(quorum, when,
                what < 2    ? EVENT_STRIKE
                : what == 2 ? EVENT_CUT
                            : EVENT_FREEZE,
                node->slot)
        ->number = (uint64_t)length;
}

/* Most of all if it removes itself: until that is committed its vote, or its log, may be needed. */
void chaos_ambush_change(struct quorum *quorum, struct node *leader)
{
    unsigned chance = raft_config_votes(&leader->raft.config, leader->id) ? 400 : 800;
    unsigned what;
    gavel_ns when;
    gavel_ns length;

    if (!quorum_has(quorum, FAULT_AMBUSH) || !quorum_chance(quorum, STREAM_FAULTS + FAULT_AMBUSH, chance))
        return;
    what = below(quorum, FAULT_AMBUSH, 4);
    when = quorum->now + draw_length(quorum, FAULT_AMBUSH, NS_PER_US, 4 * NS_PER_MS);
    length = draw_length(quorum, FAULT_AMBUSH, 50 * NS_PER_MS, 3 * NS_PER_S);
    if (what < 2) /* before its entry has left */
        chaos_cut_off(quorum, leader, length);
    else
        quorum_push(quorum, when, what == 2 ? EVENT_STRIKE : EVENT_CUT, leader->slot)->number =
            (uint64_t)length;
}

/* What a leader fears most: the others forget it while it cannot be told. */
void chaos_coup(struct quorum *quorum)
{
    const struct node *leader = chaos_pick(quorum, FAULT_COUP);
    gavel_ns length = draw_length(quorum, FAULT_COUP, 50 * NS_PER_MS, NS_PER_S);
    gavel_ns when = draw_length(quorum, FAULT_COUP, NS_PER_MS, 100 * NS_PER_MS);
    unsigned candidate = below(quorum, FAULT_COUP, quorum->used);

    TRACE(quorum, leader, "is cut off for %.3f s, and the others restart", (double)length / (double)NS_PER_S);
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        gavel_ns down_for = draw_length(quorum, FAULT_COUP, 100 * NS_PER_US, 20 * NS_PER_MS);
        bool is_spared = below(quorum, FAULT_COUP, 5) == 0;

        net_cut(quorum, leader->slot, i, quorum->now + length, ALL_KINDS);
        net_cut(quorum, i, leader->slot, quorum->now + length, ALL_KINDS);
        if (i < quorum->used && i != leader->slot && !is_spared)
            chaos_crash_for(quorum, &quorum->nodes[i], "is restarted", down_for);
    }
    (void)quorum_push(quorum, quorum->now + when, EVENT_CAMPAIGN, candidate);
}
