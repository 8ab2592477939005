/* SPDX-License-Identifier: Apache-2.0 */

/* What the runs of the quorum tell; see sim/common/story.h. */
#ifndef SIM_RAFT_TRACE_H
#define SIM_RAFT_TRACE_H

#include "core/raft/raft.h"
#include "sim/common/story.h"

struct quorum;
struct node;

void quorum_trace_line(struct quorum *quorum, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* node may be NULL for something that concerns all. */
#define TRACE(quorum, node, ...)                                                                             \
    do {                                                                                                     \
        if ((quorum)->trace)                                                                                 \
            quorum_trace_line((quorum), (node), __VA_ARGS__);                                                \
    } while (0)

/* What only a whole story tells, not the short one of a failure. */
#define TRACE_DETAIL(quorum, node, ...)                                                                      \
    do {                                                                                                     \
        if ((quorum)->trace && (quorum)->trace->stream)                                                      \
            quorum_trace_line((quorum), (node), __VA_ARGS__);                                                \
    } while (0)

/* The letter of a node. */
const char *quorum_label(const struct quorum *quorum, raft_id id);

/* What a seed stands for. */
void quorum_trace_profile(struct quorum *quorum, uint64_t seed);

/* What a core tells, and asks for; heartbeats are only in the whole story. */
void quorum_trace_action(struct quorum *quorum, const struct node *node, const struct raft_action *action);

/* A message, as a few words. */
const char *quorum_describe(const struct raft_message *message, char *text, size_t size);
const char *quorum_describe_config(const struct quorum *quorum, const struct raft_config *config, char *text,
                                   size_t size);

#endif
