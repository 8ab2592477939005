/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of orders that wait. It is gone through after every event that one
 * of them may wait for, as a piece of NODE_NEXT: one step of Raft each time, so
 * an order that needs one ends the look, and the next look goes on.
 */
#include "core/node/internal.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* For a change of members that nobody gave a time for. */
#define MEMBERS_TIMEOUT (30 * NS_PER_S)
#define TIMEOUT_MAX (3600 * NS_PER_S)
/* A learner that could not be made a voter is tried again so much later. */
#define PROMOTE_AGAIN (10 * NS_PER_S)

/* ---- answers ---- */

static void act(struct node *node, uint64_t id, enum gavel_status status, const char *text)
{
    struct node_action *action = node_act(node, NODE_ORDERED);

    action->ordered.id = id;
    action->ordered.status = status;
    action->ordered.text = text;
}

void node_refuse_order(struct node *node, const struct node_order *order, enum gavel_status status,
                       const char *format, ...)
{
    va_list arguments;

    ASSERT(!node->actions->refusal[0]); /* a step takes one order at most */
    va_start(arguments, format);
    (void)vsnprintf(node->actions->refusal, sizeof node->actions->refusal, format, arguments);
    va_end(arguments);
    act(node, order->id, status, node->actions->refusal);
}

void node_answer_order(struct node *node, struct node_pending *pending, enum gavel_status status,
                       const char *format, ...)
{
    va_list arguments;

    ASSERT(node->orders.count > 0);
    STAILQ_REMOVE(&node->orders.waiting, pending, node_pending, next); /* answered exactly once */
    STAILQ_INSERT_TAIL(&node->actions->ordered, pending, next);
    node->orders.count--;
    va_start(arguments, format);
    (void)vsnprintf(pending->text, sizeof pending->text, format, arguments);
    va_end(arguments);
    act(node, pending->order.id, status, pending->text);
}

const char *node_name_of(const struct node *node, raft_id id, char buffer[static NODE_ADDRESSES_NAME_BYTES])
{
    return node_addresses_name(&node->members.addresses, id, buffer);
}

/* ---- taking on ---- */

/* Another node leads, and was heard of lately. */
static bool hears_leader(const struct node *node, gavel_ns now)
{
    const struct raft *raft = &node->raft;

    return raft->leader != 0 && raft->leader != raft->state.id &&
           now < raft->heard_at + raft->settings.election_max;
}

enum gavel_status node_refuse_unless_leader(struct node *node, const struct node_moment *moment,
                                            const struct node_order *order)
{
    char name[NODE_ADDRESSES_NAME_BYTES];

    if (node->raft.role == RAFT_LEADER)
        return GAVEL_OK;
    if (!hears_leader(node, moment->now)) {
        node_refuse_order(
            node, order, GAVEL_ERR_NO_LEADER,
            "there is no leader at the moment; wait for an election, or see `gavel status` for who is missing");
        return GAVEL_ERR_NO_LEADER;
    }
    node_refuse_order(node, order, GAVEL_ERR_NOT_LEADER, "%s leads; ask it",
                      node_name_of(node, node->raft.leader, name));
    return GAVEL_ERR_NOT_LEADER;
}

static gavel_ns timeout_of(const struct node *node, const struct node_order *order)
{
    if (order->timeout > 0)
        return ns_min(order->timeout, TIMEOUT_MAX);
    if (order->kind == NODE_TRANSFER || order->kind == NODE_STEP_DOWN)
        return node->raft.settings.transfer_timeout;
    return MEMBERS_TIMEOUT;
}

static enum gavel_status begin(struct node *node, const struct node_moment *moment,
                               struct node_pending *pending)
{
    enum gavel_status status;

    if (pending->order.kind == NODE_TRANSFER)
        return node_begin_transfer(node, moment, pending);
    if (pending->order.kind == NODE_STEP_DOWN)
        return node_begin_step_down(node, moment, pending);
    status = node_refuse_unless_leader(node, moment, &pending->order);
    return status == GAVEL_OK ? node_begin_member(node, moment, pending) : status;
}

static enum gavel_status take(struct node *node, const struct node_moment *moment,
                              const struct node_order *order)
{
    struct node_orders *orders = &node->orders;
    struct node_pending *pending;
    enum gavel_status status;

    if (node->leaving.is_stopping) {
        node_refuse_order(node, order, GAVEL_ERR_STATE, "this node is stopping; ask another");
        return GAVEL_ERR_STATE;
    }
    pending = orders->count < NODE_ORDERS_MAX ? calloc(1, sizeof *pending) : NULL;
    if (!pending) {
        node_refuse_order(node, order, GAVEL_ERR_STATE, "too many requests are waiting; try again later");
        return GAVEL_ERR_STATE;
    }
    *pending = (struct node_pending){
        .order = *order, .give_up_at = moment->now + timeout_of(node, order), .term = node->raft.state.term};
    if (order->name[0] && node->members.id_of_name)
        pending->target = node->members.id_of_name(order->name);
    status = begin(node, moment, pending);
    if (status != GAVEL_OK) {
        free(pending); /* answered */
        return status;
    }
    STAILQ_INSERT_TAIL(&orders->waiting, pending, next);
    orders->count++;
    ASSERT(orders->count <= NODE_ORDERS_MAX);
    orders->must_look = true; /* it may have been done in one step */
    return GAVEL_OK;
}

void node_take_order(struct node *node, const struct node_moment *moment, const struct node_order *order)
{
    node->actions->status = take(node, moment, order);
}

/* ---- what they wait for ---- */

/* An elected leader needs a moment to have its lease; the operator wants one that works. */
static void transfer_told(struct node *node, bool is_done, raft_id target, const char *why)
{
    char name[NODE_ADDRESSES_NAME_BYTES], self[NODE_ADDRESSES_NAME_BYTES];
    struct node_pending *p, *following;

    for (p = STAILQ_FIRST(&node->orders.waiting); p; p = following) {
        bool is_step_down = p->order.kind == NODE_STEP_DOWN && !node->raft.settings.auto_failover;

        following = STAILQ_NEXT(p, next);
        if (p->has_begun || (p->order.kind != NODE_TRANSFER && !is_step_down))
            continue;
        if (is_done && (is_step_down || (p->target != 0 && p->target != target)))
            continue; /* settled by the new leader */
        if (is_done) {
            p->elected = target;
            p->give_up_at = ns_min(p->give_up_at, node->raft.now + node->raft.settings.election_max);
            continue;
        }
        node_answer_order(node, p, GAVEL_ERR_LEADER_TRANSFER_FAILED,
                          "%s; %s stays leader. See `gavel status` for the state of %s", why,
                          node_name_of(node, node->raft.state.id, self), node_name_of(node, target, name));
    }
}

static void change_failed(struct node *node, const char *why)
{
    struct node_pending *p, *following;

    /* What failed for its distance will fail again for a while. */
    node->members.promotes_from = node->raft.now + PROMOTE_AGAIN;
    for (p = STAILQ_FIRST(&node->orders.waiting); p; p = following) {
        following = STAILQ_NEXT(p, next);
        if (p->order.kind >= NODE_MEMBER_ADD)
            node_answer_order(node, p, GAVEL_ERR_STATE, "the change of members was abandoned: %s", why);
    }
}

void node_orders_told(struct node *node, const struct raft_action *action)
{
    const char *text = action->tell.text ? action->tell.text : "";

    if (action->tell.news == RAFT_NEWS_TRANSFER_DONE)
        transfer_told(node, true, action->tell.node, "");
    else if (action->tell.news == RAFT_NEWS_TRANSFER_FAILED)
        transfer_told(node, false, action->tell.node, text);
    else if (action->tell.news == RAFT_NEWS_CHANGE_FAILED)
        change_failed(node, text);
}

/* Only members matter, so there is room for all that do. */
void node_take_said(struct node *node, const struct node_said *said)
{
    struct node_orders *orders = &node->orders;
    size_t at = 0;

    while (at < orders->said_count && orders->said[at].node != said->node)
        at++;
    for (size_t i = 0; i < orders->said_count && at == RAFT_MEMBERS_MAX; i++)
        if (!raft_config_find(&node->raft.config, orders->said[i].node))
            at = i;
    if (at == RAFT_MEMBERS_MAX)
        return;
    if (at == orders->said_count)
        orders->said_count++;
    orders->said[at] = *said;
    node_orders_look_soon(node);
}

const struct node_said *node_said_by(const struct node *node, raft_id id)
{
    for (size_t i = 0; i < node->orders.said_count; i++)
        if (node->orders.said[i].node == id)
            return &node->orders.said[i];
    return NULL;
}

bool node_is_being_removed(const struct node *node, raft_id id)
{
    const struct node_pending *p;

    STAILQ_FOREACH(p, &node->orders.waiting, next)
        if (p->order.kind == NODE_MEMBER_REMOVE && p->target == id)
            return true;
    return false;
}

/* ---- looking ---- */

static void time_is_up(struct node *node, struct node_pending *p)
{
    char name[NODE_ADDRESSES_NAME_BYTES];

    if (p->order.kind == NODE_TRANSFER && p->elected)
        node_answer_order(node, p, GAVEL_OK, "%s was elected", node_name_of(node, p->elected, name));
    else if (p->order.kind == NODE_TRANSFER)
        node_answer_order(node, p, GAVEL_ERR_LEADER_TRANSFER_FAILED, "%s did not take over in time",
                          p->order.name[0] ? p->order.name : "nobody");
    else if (p->order.kind == NODE_STEP_DOWN)
        node_answer_order(node, p, GAVEL_ERR_TIMEOUT, "the work has not stopped yet");
    else if (p->order.kind == NODE_MEMBER_REMOVE && !p->has_begun) /* it has no record to follow */
        node_answer_order(node, p, GAVEL_ERR_TIMEOUT,
                          "%s is still a member: its removal did not begin in time, behind another change or "
                          "without a majority; see `gavel member list`, and ask again",
                          p->order.name);
    else
        node_answer_order(node, p, GAVEL_ERR_TIMEOUT,
                          "it is not done yet; the leader goes on with it: see `gavel member list`");
}

/* Answers it if what it waits for has come, or cannot come any more. False: it still waits. */
static bool settle(struct node *node, const struct node_moment *moment, struct node_pending *p)
{
    if (p->order.kind == NODE_TRANSFER)
        return node_settle_transfer(node, moment, p);
    if (p->order.kind == NODE_STEP_DOWN)
        return node_settle_step_down(node, p);
    return node_settle_member(node, moment, p);
}

static bool is_time_up(const struct node_pending *p, gavel_ns now)
{
    if (PLANTED(ORDER_WAITS_FOR_EVER))
        return false;
    return now >= p->give_up_at;
}

void node_orders_look_soon(struct node *node) { node->orders.must_look = node->orders.count > 0; }

bool node_look_at_orders(struct node *node, const struct node_moment *moment)
{
    struct node_orders *orders = &node->orders;
    struct node_pending *p, *following;

    if (!orders->must_look)
        return false;
    orders->must_look = false;
    for (p = STAILQ_FIRST(&orders->waiting); p; p = following) {
        bool is_settled;

        following = STAILQ_NEXT(p, next);
        is_settled = settle(node, moment, p);
        if (node->actions->has_stepped) { /* the list may be another now */
            node_orders_look_soon(node);
            break;
        }
        if (!is_settled && is_time_up(p, moment->now))
            time_is_up(node, p);
    }
    return true;
}

void node_orders_done(struct node *node)
{
    struct node_pending *p;

    while ((p = STAILQ_FIRST(&node->orders.waiting))) {
        STAILQ_REMOVE_HEAD(&node->orders.waiting, next);
        free(p);
    }
}
