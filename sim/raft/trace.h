/* SPDX-License-Identifier: Apache-2.0 */

/* The story of a run of the cluster; see sim/common/story.h. */
#ifndef SIM_RAFT_TRACE_H
#define SIM_RAFT_TRACE_H

#include "core/raft/raft.h"
#include "sim/common/story.h"

struct cluster;
struct host;

void cluster_trace_line(struct cluster *cluster, const struct host *host, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* `node` is NULL for something that concerns all. */
#define TRACE(cluster, host, ...) STORY(cluster, cluster_trace_line, host, __VA_ARGS__)
#define TRACE_DETAIL(cluster, host, ...) STORY_DETAIL(cluster, cluster_trace_line, host, __VA_ARGS__)

/* The letter of a node. */
const char *cluster_label(const struct cluster *cluster, raft_id id);

/* What a seed stands for. */
void cluster_trace_profile(struct cluster *cluster, uint64_t seed);

/* What a core reports and asks for; heartbeats are only in the full story. */
void cluster_trace_action(struct cluster *cluster, const struct host *host, const struct raft_action *action);

/* A message, as a few words. */
const char *cluster_describe(const struct raft_message *message, char *text, size_t size);
const char *cluster_describe_config(const struct cluster *cluster, const struct raft_config *config,
                                    char *text, size_t size);

#endif
