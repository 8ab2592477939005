/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The actions that a step returns. Those without which the node could not go on
 * have their place reserved.
 */
#include "core/node/internal.h"

#include "base/assert.h"

#include <stdlib.h>

/* Raft's, the held messages that one write sets free, the answers to orders, one for the table and one for
 * addresses. */
#define RESERVED (RAFT_ACTIONS_MAX + NODE_HELD_MAX + NODE_ORDERS_MAX + 2)

enum gavel_status node_actions_init(struct node_actions *actions)
{
    *actions = (struct node_actions){.capacity = RESERVED};
    actions->items = calloc(RESERVED, sizeof *actions->items);
    STAILQ_INIT(&actions->released);
    STAILQ_INIT(&actions->replies);
    STAILQ_INIT(&actions->answers);
    STAILQ_INIT(&actions->ordered);
    return actions->items ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

void node_actions_clear(struct node_actions *actions)
{
    struct node_held *held;
    struct frontend_reply *reply;
    struct forwarder_answer *answer;
    struct node_pending *ordered;

    while ((held = STAILQ_FIRST(&actions->released))) {
        STAILQ_REMOVE_HEAD(&actions->released, next);
        free(held);
    }
    while ((reply = STAILQ_FIRST(&actions->replies))) {
        STAILQ_REMOVE_HEAD(&actions->replies, next);
        frontend_reply_free(reply);
    }
    while ((answer = STAILQ_FIRST(&actions->answers))) {
        STAILQ_REMOVE_HEAD(&actions->answers, next);
        forwarder_answer_free(answer);
    }
    table_outcome_done(&actions->outcome);
    while ((ordered = STAILQ_FIRST(&actions->ordered))) {
        STAILQ_REMOVE_HEAD(&actions->ordered, next);
        free(ordered);
    }
    actions->refusal[0] = '\0';
    free(actions->deaths);
    actions->deaths = NULL;
    actions->count = 0;
    actions->status = GAVEL_OK;
    actions->has_stepped = false;
    actions->raft.count = 0;
}

void node_actions_done(struct node_actions *actions)
{
    if (!actions->items)
        return;
    node_actions_clear(actions);
    free(actions->items);
    *actions = (struct node_actions){0};
}

struct node_action *node_act(struct node *node, enum node_action_kind kind)
{
    struct node_actions *actions = node->actions;
    bool may_wait = kind == NODE_FORWARD || kind == NODE_ANSWER || kind == NODE_WATCH;

    if (actions->count == actions->capacity) {
        struct node_action *grown = realloc(actions->items, 2 * actions->capacity * sizeof *actions->items);

        ASSERT(grown || may_wait);
        if (!grown)
            return NULL;
        actions->items = grown;
        actions->capacity *= 2;
    }
    actions->items[actions->count] = (struct node_action){.kind = kind};
    return &actions->items[actions->count++];
}
