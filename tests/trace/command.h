/* SPDX-License-Identifier: Apache-2.0 */

/* What a story of the cluster can say. */
#ifndef TRACE_COMMAND_H
#define TRACE_COMMAND_H

#include "trace/host.h"

/* Carries out one command; false if it cannot be understood. */
bool command_run(struct cluster *cluster, char **words, size_t count);

/* By its letter; NULL if there is no such node. */
struct host *command_node(struct cluster *cluster, const char *word);

/* Says why a command cannot be understood; returns false. */
bool command_refuse(struct cluster *cluster, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* cluster.c: carries out what is due next if it is due by `end`; false if nothing is. */
bool cluster_advance(struct cluster *cluster, gavel_ns end);

/* until.c: the commands that wait for something. */
bool command_until(struct cluster *cluster, char **words, size_t count);
bool command_works(struct cluster *cluster, char **words, size_t count);

/* setup.c: the commands that make nodes. */
bool command_nodes(struct cluster *cluster, char **words, size_t count);
bool command_join(struct cluster *cluster, char **words, size_t count);
bool command_given(struct cluster *cluster, char **words, size_t count);

/* One key=value of the settings; false if there is no such key, or no such value. */
bool settings_take(struct raft_settings *settings, const char *key, const char *value);

/* surroundings.c: what surrounds one node. */
bool command_set(struct cluster *cluster, struct host *host, char **words, size_t count);
bool command_clock(struct cluster *cluster, struct host *host, char **words, size_t count);
bool command_slow_disk(struct cluster *cluster, struct host *host, char **words, size_t count);
bool command_disk_fails(struct cluster *cluster, struct host *host, char **words, size_t count);
bool command_disk(struct cluster *cluster, struct host *host, char **words, size_t count);
bool command_work_slow(struct cluster *cluster, struct host *host, char **words, size_t count);

/* look.c: what a node is like, and what is told of. */
bool command_show(struct cluster *cluster, char **words, size_t count);
bool command_watch(struct cluster *cluster, char **words, size_t count);
bool command_elections(struct cluster *cluster, struct host *host, char **words, size_t count);
bool command_table(struct cluster *cluster, struct host *host, char **words, size_t count);

/* progress.c: what a leader knows of the others. */
bool command_progress(struct cluster *cluster, struct host *host, char **words, size_t count);

/* order.c: what operators order. */
bool command_order(struct cluster *cluster, struct host *host, char **words, size_t count);

/* directory.c: what can happen to the data of a node. */
bool command_lose(struct cluster *cluster, char **words, size_t count);
bool command_refound(struct cluster *cluster, char **words, size_t count);
bool command_copy(struct cluster *cluster, char **words, size_t count);
bool command_restore(struct cluster *cluster, char **words, size_t count);

/* links.c: the commands about the network. */
bool command_cut(struct cluster *cluster, char **words, size_t count);
bool command_heal(struct cluster *cluster, char **words, size_t count);
bool command_partition(struct cluster *cluster, char **words, size_t count);
bool command_hold(struct cluster *cluster, char **words, size_t count);
bool command_let(struct cluster *cluster, char **words, size_t count);
bool command_deliver(struct cluster *cluster, char **words, size_t count);
bool command_drop(struct cluster *cluster, char **words, size_t count);
bool command_raise(struct cluster *cluster, char **words, size_t count);
bool command_repeat(struct cluster *cluster, char **words, size_t count);
bool command_delay(struct cluster *cluster, char **words, size_t count);
bool command_jitter(struct cluster *cluster, char **words, size_t count);
bool command_bandwidth(struct cluster *cluster, char **words, size_t count);
bool command_obituary(struct cluster *cluster, char **words, size_t count);

#endif
