/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the measurements of elections on a cluster share: three nodes that
 * serve clients, and candidates that are processes of their own.
 */
#ifndef BENCH_SESSIONS_SESSIONS_H
#define BENCH_SESSIONS_SESSIONS_H

#include "bench/cluster/cluster.h"
#include "bench/sessions/client_load.h"

/* The default time to live of a session. */
#define SESSIONS_TTL_MS 2000

#define SESSIONS_URL_BYTES (CLIENT_LOAD_TARGET_BYTES + 8)

/* "path,path,path" or "127.0.0.1:port,…", as after "gavel://": all nodes, by Unix socket or by TCP. */
void sessions_target(const struct cluster *cluster, bool is_tcp,
                     char target[static CLIENT_LOAD_TARGET_BYTES]);

/*
 * That node by its Unix socket, and the others by TCP: so it comes first, and
 * they are used when it is gone.
 */
void sessions_target_near(const struct cluster *cluster, size_t node,
                          char target[static CLIENT_LOAD_TARGET_BYTES]);

/* The URL of a store of elections on the cluster, for libgavel: all nodes, by Unix socket. */
void sessions_url(const struct cluster *cluster, char url[static SESSIONS_URL_BYTES]);

/* The same with that node first, as sessions_target_near(). */
void sessions_url_near(const struct cluster *cluster, size_t node, char url[static SESSIONS_URL_BYTES]);

/* Starts a member and waits for its mark JOINED. */
GAVEL_CHECKED enum gavel_status sessions_start_with(struct rig *rig, uint32_t member, const char *name,
                                                    member_run run, void *user);

/* Starts a client load and waits until its sessions are open. */
GAVEL_CHECKED enum gavel_status sessions_start(struct rig *rig, uint32_t member, const char *name,
                                               struct client_load_plan *plan);

/* Sends an order to a client load or a library load and waits for its news; returns the mark of it. */
GAVEL_CHECKED enum gavel_status sessions_tell(struct rig *rig, uint32_t member, char letter,
                                              enum client_load_news news, gavel_ns limit,
                                              struct mark *ret_mark);

/*
 * Waits until all of the members from `first` on but the leader have seen it
 * lead, by what they recorded from `from` on. On a busy machine a leader may
 * lose its mandate without our doing; *leader is then the newest one. ERR_IO if
 * anybody has given up, ERR_TIMEOUT, ERR_STOPPED.
 */
GAVEL_CHECKED enum gavel_status sessions_await_standbys(const struct rig *rig, uint32_t first,
                                                        uint32_t members, size_t from, gavel_ns limit,
                                                        struct mark *leader);

/* Lets time pass until then, or until a signal asks to end. */
void sessions_wait(const struct rig *rig, gavel_ns until);

/* What nodes and one client need while nothing happens. */
struct sessions_rest {
    double nodes_cpu;    /* of all nodes and their guards, in per cent of a core */
    double node_rss_mib; /* of the node that has most, with its guard */
    double client_cpu;
    double client_rss_mib;
};

/* Lets the nodes and that member rest for `window`. ERR_STOPPED if a signal asks to end. */
GAVEL_CHECKED enum gavel_status sessions_rest(const struct cluster *cluster,
                                              const struct bench_cluster_status said[static CLUSTER_NODES],
                                              uint32_t client, gavel_ns window,
                                              struct sessions_rest *ret_rest);

/* Kills it; what it held no longer matters. */
void sessions_end(struct rig *rig, uint32_t member);

#endif
