/* SPDX-License-Identifier: Apache-2.0 */

/* Orders to hand over: to a named node or to the best, by force at the node that shall lead, or to nobody. */
#include "core/node/internal.h"

#include "base/planted.h"

#include <inttypes.h>
#include <stdio.h>

/* Why Raft does not begin a transfer now. */
static const char *transfer_trouble(const struct raft *raft)
{
    if (raft->transfer.phase != RAFT_TRANSFER_NONE)
        return "another transfer is under way; wait for it";
    if (raft->change != RAFT_CHANGE_NONE || raft->config.is_joint)
        return "a change of members is under way; wait for it";
    return "the leader has just been elected; try again in a moment";
}

static enum gavel_status take_over(struct node *node, const struct node_moment *moment,
                                   struct node_pending *pending)
{
    pending->ask_at = moment->now + node->raft.settings.election_max;
    return node_step_raft(node, moment, &(struct raft_event){.kind = RAFT_TAKE_OVER});
}

static enum gavel_status begin_forced_here(struct node *node, const struct node_moment *moment,
                                           struct node_pending *pending)
{
    char name[NODE_ADDRESSES_NAME_BYTES];

    pending->has_begun = take_over(node, moment, pending) == GAVEL_OK;
    if (pending->has_begun)
        return GAVEL_OK;
    node_refuse_order(node, &pending->order, GAVEL_ERR_STATE,
                      "%s cannot lead: it is not a voter, or a witness",
                      node_name_of(node, node->raft.state.id, name));
    return GAVEL_ERR_STATE;
}

/* A target that would be elected and could not work; an operator who insists has --force. */
static bool refuse_far(struct node *node, const struct node_order *order, raft_id target)
{
    gavel_ns round_trip, longest;

    if (order->is_forced || !raft_is_far(&node->raft, target, &round_trip, &longest))
        return false;
    node_refuse_order(
        node, order, GAVEL_ERR_LEADER_TRANSFER_FAILED,
        "%s could not hold a lease: it answers after %" PRId64 " ms, and with a lease of %" PRId64
        " ms nobody can work who is answered after more than %" PRId64
        " ms; lengthen lease_ms, or use `gavel handover --cluster --to NODE --force`",
        order->name, ms_from_ns(round_trip), ms_from_ns(node->raft.settings.promise), ms_from_ns(longest));
    return true;
}

/* Whether it is no member, or one that never leads. */
static enum gavel_status refuse_target(struct node *node, const struct node_order *order,
                                       const struct raft_member *target)
{
    if (!target) {
        node_refuse_order(node, order, GAVEL_ERR_NOT_FOUND,
                          "there is no member \"%s\"; `gavel member list` names them all", order->name);
        return GAVEL_ERR_NOT_FOUND;
    }
    if (target->is_witness || !target->is_voter) {
        node_refuse_order(node, order, GAVEL_ERR_INVALID, "%s is a %s and never leads", order->name,
                          target->is_witness ? "witness" : "learner");
        return GAVEL_ERR_INVALID;
    }
    return GAVEL_OK;
}

enum gavel_status node_begin_transfer(struct node *node, const struct node_moment *moment,
                                      struct node_pending *pending)
{
    const struct node_order *order = &pending->order;
    raft_id self = node->raft.state.id;
    struct raft_event event = {.kind = RAFT_TRANSFER};
    enum gavel_status status = GAVEL_OK;

    if (order->name[0])
        status = refuse_target(node, order, raft_config_find(&node->raft.config, pending->target));
    if (status != GAVEL_OK)
        return status;
    if (pending->target == self && order->is_forced && node->raft.role != RAFT_LEADER)
        return begin_forced_here(node, moment, pending);
    if (node_refuse_unless_leader(node, moment, order) != GAVEL_OK)
        return GAVEL_ERR_NOT_LEADER;
    if (pending->target == self) {
        node_refuse_order(node, order, GAVEL_OK, "%s leads already", order->name);
        return GAVEL_ERR_DONE;
    }
    if (pending->target != 0 && refuse_far(node, order, pending->target))
        return GAVEL_ERR_LEADER_TRANSFER_FAILED;
    event.transfer.target = pending->target;
    event.transfer.is_forced = order->is_forced;
    event.transfer.timeout = ns_max(pending->give_up_at - moment->now, 1);
    status = node_step_raft(node, moment, &event);
    if (status == GAVEL_ERR_INVALID)
        node_refuse_order(node, order, GAVEL_ERR_LEADER_TRANSFER_FAILED, "there is nobody to hand over to");
    else if (status != GAVEL_OK)
        node_refuse_order(node, order, GAVEL_ERR_STATE, "%s", transfer_trouble(&node->raft));
    return status;
}

/* Where nobody stands by himself, somebody must be named: then it is a transfer to the best. */
enum gavel_status node_begin_step_down(struct node *node, const struct node_moment *moment,
                                       struct node_pending *pending)
{
    const struct raft_settings *settings = &node->raft.settings;
    enum gavel_status status;

    if (node_refuse_unless_leader(node, moment, &pending->order) != GAVEL_OK)
        return GAVEL_ERR_NOT_LEADER;
    if (settings->auto_failover) /* OK: we lead */
        return node_step_raft(node, moment, &(struct raft_event){.kind = RAFT_STEP_DOWN});
    status = node_step_raft(
        node, moment,
        &(struct raft_event){.kind = RAFT_TRANSFER, .transfer = {.timeout = settings->election_max}});
    if (status != GAVEL_OK)
        node_refuse_order(node, &pending->order, GAVEL_ERR_STATE,
                          "auto_failover is off, and there is nobody to hand over to now: %s",
                          transfer_trouble(&node->raft));
    return status;
}

/* We lost the others while we handed over, and were elected again: that transfer is over. */
static bool settle_by_self(struct node *node, struct node_pending *p)
{
    char name[NODE_ADDRESSES_NAME_BYTES];

    if (p->has_begun || node->raft.role != RAFT_LEADER || node->raft.state.term <= p->term)
        return false;
    node_answer_order(node, p, GAVEL_ERR_LEADER_TRANSFER_FAILED,
                      "%s was elected again before another node took over; ask again",
                      node_name_of(node, node->raft.state.id, name));
    return true;
}

/* Another has led since, without being named by a transfer of ours. */
static bool settle_by_other(struct node *node, struct node_pending *p)
{
    bool is_right = !p->order.name[0] || node->raft.leader == p->target;

    if (p->has_begun || p->elected || node->raft.role == RAFT_LEADER || node->raft.leader == 0)
        return false;
    node_answer_order(node, p, is_right ? GAVEL_OK : GAVEL_ERR_LEADER_TRANSFER_FAILED,
                      "another node was elected meanwhile");
    return true;
}

bool node_settle_transfer(struct node *node, const struct node_moment *moment, struct node_pending *p)
{
    const struct node_said *said = node_said_by(node, p->elected);
    char name[NODE_ADDRESSES_NAME_BYTES];

    if (p->has_begun && node->claim.is_held) {
        node_answer_order(node, p, GAVEL_OK, "%s leads now", node_name_of(node, node->raft.state.id, name));
        return true;
    }
    if (p->has_begun && node->raft.role != RAFT_LEADER && moment->now >= p->ask_at) {
        /* Another may have been faster, and does not know yet that it is to hand over. */
        (void)take_over(node, moment, p); /* refused: it may be a voter again before its time is up */
        return false;
    }
    if (PLANTED(TRANSFER_TOLD_EARLY) && !p->has_begun && node->raft.role != RAFT_LEADER) {
        node_answer_order(node, p, GAVEL_OK, "%s leads now", p->order.name);
        return true;
    }
    if (p->elected && said && said->is_working && said->term > p->term) {
        node_answer_order(node, p, GAVEL_OK, "%s leads now", node_name_of(node, p->elected, name));
        return true;
    }
    return settle_by_self(node, p) || settle_by_other(node, p);
}

/* The work has stopped, not only the leading: a lease that lapses ends that at once. */
bool node_settle_step_down(struct node *node, struct node_pending *p)
{
    char name[NODE_ADDRESSES_NAME_BYTES];
    bool leads = node->raft.role == RAFT_LEADER && node->raft.state.term == p->term;
    bool is_stopping = node->raft.work == RAFT_WORK_STOPPING;

    if (PLANTED(STEP_DOWN_TOLD_EARLY))
        leads = is_stopping = false;
    if (leads || is_stopping)
        return false;
    node_answer_order(node, p, GAVEL_OK, "%s has stepped down",
                      node_name_of(node, node->raft.state.id, name));
    return true;
}
