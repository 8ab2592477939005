/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which program a node runs, in runs of the kind `orders`: an older one or a newer
 * one, and now and then another at a start, also an older one again. They differ in
 * the version of the table that they know (core/node/version.c), of which they tell
 * when they greet. In the liveness phase all are new.
 *
 * It judges: the cluster uses only what each of its members has run, no node goes
 * on by what it does not know, and in the end what all know is used.
 */
#ifndef SIM_RAFT_PROGRAM_H
#define SIM_RAFT_PROGRAM_H

#include "core/node/node.h"

struct cluster;
struct host;

/* At a start. */
void program_choose(struct cluster *cluster, struct host *host);
/* Another node may hear now what the host runs. */
void program_greet(struct cluster *cluster, struct host *host, const struct host *from);
/* The node has put an entry into its log of its own accord. */
void program_check_proposed(struct cluster *cluster, const struct host *host);
/* A NODE_APPLIED action. */
void program_check_applied(struct cluster *cluster, const struct host *host, const struct raft_entry *entry);
/* A NODE_FAIL action: its program is too old; somebody installs a newer one. */
void program_fail(struct cluster *cluster, struct host *host);
/* In the liveness phase. */
bool program_is_old(const struct cluster *cluster, const struct host *host);
/* The run is over, and all that can heal has. */
void program_check_used(struct cluster *cluster, const struct host *leader);

#endif
