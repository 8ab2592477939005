/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ghost: the data directory of a node is lost, and an empty one is founded
 * under its name. A real core speaks for the node that is gone, with another
 * directory, and everybody else must act as if it were not there. The referee
 * does not know it; what it judges is what the others make of its words.
 */
#ifndef SIM_RAFT_GHOST_H
#define SIM_RAFT_GHOST_H

#include <stdbool.h>

struct quorum;
struct node;
struct event;
struct raft_message;

/* Whether every other disk knows which directory the node had. Before that nobody could tell the two apart.
 */
bool ghost_may_come(const struct quorum *quorum, const struct node *node);

/* The node is damaged for good; its ghost begins. */
void ghost_begin(struct quorum *quorum, struct node *node);
void ghost_end(struct node *node);

/* A message for the node that is gone. */
void ghost_receive(struct quorum *quorum, struct node *node, const struct raft_message *message);

/* A GHOST event: its timer. */
void ghost_take(struct quorum *quorum, const struct event *event);

#endif
