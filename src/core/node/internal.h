/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of the node share. */
#ifndef CORE_NODE_INTERNAL_H
#define CORE_NODE_INTERNAL_H

#include "core/node/node.h"

/* The moment of the step. */
struct node_moment {
    gavel_ns now;
    int64_t wall_ms;
};

/* ---- action.c ---- */

void node_actions_clear(struct node_actions *actions);
/* The next action; NULL: no memory, which only FORWARD, ANSWER and WATCH meet. */
struct node_action *node_act(struct node *node, enum node_action_kind kind);

/* ---- raft.c ---- */

/* One step of Raft: what comes of it is acted or left to do. */
enum gavel_status node_step_raft(struct node *node, const struct node_moment *moment,
                                 const struct raft_event *event);
/* Messages that waited for no more than what is durable. */
void node_release_held(struct node *node);

/* ---- apply.c: the table, and what begins and ends with the work ---- */

void node_do_todo(struct node *node, const struct node_moment *moment);

/* ---- clients.c ---- */

void node_take_forwarded(struct node *node, const struct node_moment *moment,
                         const struct node_forwarded *forwarded);
void node_take_deaths(struct node *node, const struct node_moment *moment, const Gavel__Op *const *ops,
                      size_t count);
/* The pieces of NODE_NEXT; false: there was none. */
bool node_take_own_reply(struct node *node, const struct node_moment *moment);
bool node_take_own_delivery(struct node *node, const struct node_moment *moment);
bool node_propose(struct node *node, const struct node_moment *moment);
/* What forwarder and front end have for others becomes actions. */
void node_hand_out(struct node *node, gavel_ns now);

#endif
