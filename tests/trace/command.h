/* SPDX-License-Identifier: Apache-2.0 */

/* What a story of the quorum can say. */
#ifndef TRACE_COMMAND_H
#define TRACE_COMMAND_H

#include "trace/node.h"

/* Carries out one command; false if it cannot be understood. */
bool command_run(struct quorum *quorum, char **words, size_t count);

/* By its letter; NULL if there is no such node. */
struct node *command_node(struct quorum *quorum, const char *word);

/* setup.c: the commands that make nodes. */
bool command_nodes(struct quorum *quorum, char **words, size_t count);
bool command_join(struct quorum *quorum, char **words, size_t count);
bool command_given(struct quorum *quorum, char **words, size_t count);

/* directory.c: what can happen to the data of a node. */
bool command_lose(struct quorum *quorum, char **words, size_t count);
bool command_copy(struct quorum *quorum, char **words, size_t count);
bool command_restore(struct quorum *quorum, char **words, size_t count);

/* links.c: the commands about the network. */
bool command_cut(struct quorum *quorum, char **words, size_t count);
bool command_heal(struct quorum *quorum, char **words, size_t count);
bool command_partition(struct quorum *quorum, char **words, size_t count);
bool command_hold(struct quorum *quorum, char **words, size_t count);
bool command_let(struct quorum *quorum, char **words, size_t count);
bool command_deliver(struct quorum *quorum, char **words, size_t count);
bool command_drop(struct quorum *quorum, char **words, size_t count);
bool command_raise(struct quorum *quorum, char **words, size_t count);
bool command_repeat(struct quorum *quorum, char **words, size_t count);
bool command_delay(struct quorum *quorum, char **words, size_t count);
bool command_obituary(struct quorum *quorum, char **words, size_t count);

#endif
