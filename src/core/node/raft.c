/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Raft inside the node. What it wants written, and what may be sent, leaves at
 * once; messages that depend on a write wait here for it; what it decides for
 * the table and the work is left to do.
 */
#include "core/node/internal.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>

static void hold(struct node *node, const struct raft_action *action)
{
    struct node_held *held = malloc(sizeof *held);

    if (!held)
        return;                              /* a message that is lost: Raft repeats itself */
    if (node->held_count == NODE_HELD_MAX) { /* a disk that is full or slow: the oldest is lost */
        struct node_held *oldest = STAILQ_FIRST(&node->held);

        STAILQ_REMOVE_HEAD(&node->held, next);
        node->held_count--;
        free(oldest);
    }
    *held = (struct node_held){.after = action->send.after, .message = action->send.message};
    STAILQ_INSERT_TAIL(&node->held, held, next);
    node->held_count++;
    ASSERT(node->held_count <= NODE_HELD_MAX);
}

static void send(struct node *node, const struct raft_action *action)
{
    bool must_wait = action->send.after > node->durable;

    if (PLANTED(NODE_SENDS_AT_ONCE))
        must_wait = false;
    if (must_wait)
        hold(node, action);
    else
        node_act(node, NODE_SEND)->message = &action->send.message;
}

/* In their order; those that still have to wait stay. */
void node_release_held(struct node *node)
{
    struct node_helds waiting = STAILQ_HEAD_INITIALIZER(waiting);
    struct node_held *held;

    while ((held = STAILQ_FIRST(&node->held))) {
        STAILQ_REMOVE_HEAD(&node->held, next);
        if (held->after > node->durable) {
            STAILQ_INSERT_TAIL(&waiting, held, next);
            continue;
        }
        STAILQ_INSERT_TAIL(&node->actions->released, held, next);
        node->held_count--;
        if (PLANTED(NODE_FORGETS_HELD))
            continue;
        node_act(node, NODE_SEND)->message = &held->message;
    }
    STAILQ_CONCAT(&node->held, &waiting);
}

static struct node_todo *leave(struct node *node, enum raft_action_kind kind)
{
    struct node_todo *todo = &node->todo[(node->todo_first + node->todo_count) % NODE_TODO_MAX];

    ASSERT(node->todo_count < NODE_TODO_MAX);
    node->todo_count++;
    *todo = (struct node_todo){.kind = kind};
    return todo;
}

static void take_action(struct node *node, const struct raft_action *action)
{
    struct node_todo *todo;

    switch (action->kind) {
    case RAFT_PERSIST:
        node_act(node, NODE_PERSIST)->persist = &action->persist;
        break;
    case RAFT_SEND:
        send(node, action);
        break;
    case RAFT_APPLY:
        ASSERT(action->apply.first <= action->apply.last);
        todo = leave(node, RAFT_APPLY);
        todo->apply.next = action->apply.first;
        todo->apply.last = action->apply.last;
        if (PLANTED(NODE_SKIPS_AN_ENTRY))
            todo->apply.next += todo->apply.next < todo->apply.last;
        break;
    case RAFT_RESTORE:
        (void)leave(node, RAFT_RESTORE);
        break;
    case RAFT_CLAIM:
        todo = leave(node, RAFT_CLAIM);
        todo->claim.term = action->claim.term;
        todo->claim.lease_epoch = action->claim.lease_epoch;
        break;
    case RAFT_STOP_WORK:
        leave(node, RAFT_STOP_WORK)->stop_reason = action->stop.reason;
        break;
    case RAFT_TELL:
        node_act(node, NODE_TELL)->tell = action;
        node_orders_told(node, action);
        break;
    }
}

enum gavel_status node_step_raft(struct node *node, const struct node_moment *moment,
                                 const struct raft_event *event)
{
    struct node_actions *actions = node->actions;
    enum gavel_status status;
    raft_id leader;

    ASSERT(!actions->has_stepped); /* or what the first step has lent would be gone */
    actions->has_stepped = true;
    actions->event = *event;
    actions->event.now = moment->now;
    status = raft_step(&node->raft, &actions->event, &actions->raft);
    for (size_t i = 0; i < actions->raft.count; i++)
        take_action(node, &actions->raft.items[i]);
    node_orders_look_soon(node);
    leader = node->raft.leader;
    actions->status = status;
    if (PLANTED(NODE_FORGETS_LEADER))
        leader = node->forwarder.leader != 0 ? node->forwarder.leader : leader;
    forwarder_leader(&node->forwarder, moment->now, leader, node->raft.state.term);
    return status;
}
