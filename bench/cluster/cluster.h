/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the measurements of the cluster share: three real nodes on loopback with
 * default settings, and what they say about themselves. Instants are those that
 * the nodes put into their events, on the same CLOCK_BOOTTIME as ours, so no
 * figure contains the time until we hear of them.
 */
#ifndef BENCH_CLUSTER_CLUSTER_H
#define BENCH_CLUSTER_CLUSTER_H

#include "bench/bench.h"
#include "bench/http/http_ask.h"
#include "cli/cluster/local.h"

#define CLUSTER_NODES 3
#define CLUSTER_NAME_MAX 64
#define CLUSTER_EVENTS_MAX 512

/* The limit for anything that a trial waits for. A trial that takes longer has failed, and counts as this. */
#define CLUSTER_LIMIT_NS (15 * NS_PER_S)

struct bench_cluster_event {
    size_t node; /* that reports it */
    gavel_ns at;
    uint64_t term;
    char name[32];
    char whom[CLUSTER_NAME_MAX];
    char text[64];
};

/* A connection to /events of one node. */
struct bench_cluster_stream {
    int fd; /* -1: not connected */
    gavel_ns tried_at;
    char last_id[32]; /* of the last event heard; "": none */
    size_t have;
    char buffer[16u * 1024];
};

struct cluster {
    struct bench *bench;
    struct rig *rig;
    void *user;          /* of the `run` callback */
    bool serves_clients; /* nodes accept clients besides peers and HTTP */
    double load;         /* load average of the machine before we began; below 0 if unknown */
    struct local_cluster cluster;
    struct http_line lines[CLUSTER_NODES];
    struct bench_cluster_stream streams[CLUSTER_NODES];
    size_t event_count; /* since bench_cluster_forget() */
    struct bench_cluster_event events[CLUSTER_EVENTS_MAX];
    struct http_answer answer;   /* the last one */
    struct http_answer woken[2]; /* the same for two lines at once */
};

/* What a node says about itself. */
struct bench_cluster_status {
    bool is_leader;
    bool has_lease;
    uint64_t term;
    char leader[CLUSTER_NAME_MAX]; /* "": none */
    pid_t pid;
    pid_t guard_pid;
    int64_t uptime_ms;
    uint64_t commit;
    uint64_t applied;
    uint64_t snapshot; /* the log begins after this index */
    uint64_t late_heartbeats;
    size_t connected; /* peers */
};

/* What a process has cost so far; zeros if it is gone. */
struct bench_process_cost {
    gavel_ns cpu;
    int64_t rss_kib;
    int64_t pss_kib;
};

struct bench_process_cost bench_process_cost_of(pid_t pid);

/* What a node costs: both its processes. */
struct bench_cluster_cost {
    gavel_ns cpu;
    int64_t rss_kib;
    int64_t node_rss_kib; /* of the node process alone */
    int64_t pss_kib;
};

struct bench_cluster_cost bench_cluster_cost_of(const struct bench_cluster_status *said);

typedef enum gavel_status (*bench_cluster_run)(struct cluster *cluster);

/*
 * Starts a cluster, calls `run`, and ends the cluster. If there is no gaveld,
 * the section says so and is left out. If `run` fails, the end of the nodes'
 * logs goes to stderr.
 */
enum gavel_status bench_with_cluster(struct bench *bench, struct rig *rig, bench_cluster_run run);

/* The same with nodes that clients can connect to; `user` is cluster->user. */
enum gavel_status bench_with_clients(struct bench *bench, struct rig *rig, bench_cluster_run run, void *user);

/* The parts of that, for callers that start many. A failure leaves nothing behind. */
GAVEL_CHECKED enum gavel_status trial_cluster_open(struct cluster *cluster, struct gavel_error *error);
void trial_cluster_close(struct cluster *cluster);

/* ERR_TIMEOUT, ERR_IO: it does not answer, or its answer makes no sense. */
GAVEL_CHECKED enum gavel_status bench_cluster_ask_status(struct cluster *cluster, size_t node, gavel_ns until,
                                                         struct bench_cluster_status *ret_status);

/* The name of the leader by GET /leader, "" if it knows of none. */
GAVEL_CHECKED enum gavel_status bench_cluster_ask_leader(struct cluster *cluster, size_t node, gavel_ns until,
                                                         char ret_name[static CLUSTER_NAME_MAX]);

/* The same from an answer that has arrived. ERR_IO: it makes no sense. */
GAVEL_CHECKED enum gavel_status bench_cluster_read_status(const struct http_answer *answer,
                                                          struct bench_cluster_status *ret_status);
GAVEL_CHECKED enum gavel_status bench_cluster_read_leader(const struct http_answer *answer,
                                                          char ret_name[static CLUSTER_NAME_MAX]);

/*
 * Waits until one node leads with a lease, all follow it in one term, know what
 * it has committed and are connected to each other, and every node process has
 * run for `settled`: from then on none withholds its vote because it has just
 * started. ERR_TIMEOUT, ERR_STOPPED.
 */
GAVEL_CHECKED enum gavel_status bench_cluster_await_steady(
    struct cluster *cluster, gavel_ns settled, size_t *ret_leader,
    struct bench_cluster_status ret_statuses[static CLUSTER_NODES]);

/* Reads the events on the streams; waits for them until `until` at most. */
void bench_cluster_listen(struct cluster *cluster, gavel_ns until);

/* Forgets the events so far. */
void bench_cluster_forget(struct cluster *cluster);

/* Waits for the first event of that name at or after an instant. ERR_TIMEOUT, ERR_STOPPED. */
GAVEL_CHECKED enum gavel_status bench_cluster_expect(struct cluster *cluster, const char *name,
                                                     gavel_ns since, gavel_ns until,
                                                     struct bench_cluster_event *ret_event);

/*
 * The earliest event of that name heard so far, at or after an instant; `text`
 * NULL: with any text. NEVER: none.
 */
gavel_ns bench_cluster_first(const struct cluster *cluster, const char *name, const char *text,
                             gavel_ns since);

/* The node of that name, or CLUSTER_NODES. */
size_t bench_cluster_find(const struct cluster *cluster, const char *name);

/* Lets a random part of `longest` pass while events are heard. */
void bench_cluster_pause(struct cluster *cluster, gavel_ns longest);

/* POST /transfer to the leader, until it answers. ERR_LEADER_TRANSFER_FAILED: `target` does not lead. */
GAVEL_CHECKED enum gavel_status bench_cluster_ask_transfer(struct cluster *cluster, size_t leader,
                                                           size_t target, gavel_ns until);

/* Waits for the death of a process that is not our child. ERR_TIMEOUT. */
GAVEL_CHECKED enum gavel_status bench_cluster_await_death(pid_t pid, gavel_ns until);

/* Notes the file system of the data, the other load of the machine, and how many trials have failed. */
void bench_cluster_note(struct cluster *cluster, size_t failed);

#endif
