/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a client load. */
#ifndef BENCH_SESSIONS_CLIENT_LOAD_INTERNAL_H
#define BENCH_SESSIONS_CLIENT_LOAD_INTERNAL_H

#include "bench/sessions/client_load.h"
#include "client/cluster.h"

#define CLIENT_LOAD_NAME_BYTES 32

struct client_load;
struct client_load_connection;

/* The groups of a set, by their number. */
struct client_load_groups {
    struct client_load *client_load;
    struct client_load_set set;
    size_t answered; /* campaigns */
    size_t held;
    uint64_t *epochs; /* that they are held with; 0: not held */
};

/* A campaign of one connection for its part of a set. */
struct client_load_job {
    struct client_load_connection *connection;
    struct client_load_groups *groups;
    size_t next; /* the number of the group whose campaign is answered next */
};

enum { CLIENT_LOAD_OWN, CLIENT_LOAD_OTHERS, CLIENT_LOAD_SETS };

/* One connection and its session. */
struct client_load_connection {
    struct client_load *client_load;
    size_t number;
    struct cluster_link *cluster;
    bool is_watching;
    struct event *pace;
    gavel_ns sent_at; /* of the write under way */
    int32_t priority; /* of its last write */
    struct client_load_job jobs[CLIENT_LOAD_SETS];
};

struct client_load {
    const struct member_context *context;
    const struct client_load_plan *plan;
    struct event_base *base;
    struct event *control;
    size_t watching;
    bool is_writing;
    bool is_hurried;
    bool has_failed;
    struct client_load_groups groups[CLIENT_LOAD_SETS];
    struct {
        size_t seen;
        size_t wrong;
        char after[CLIENT_LOAD_NAME_BYTES];
    } survey;
    struct client_load_connection connections[CLIENT_LOAD_CONNECTIONS_MAX];
};

/* Gives up, visibly to the driver. */
void client_load_fail(struct client_load *client_load, enum gavel_status status, const char *what,
                      const char *message);

void client_load_tell(const struct client_load *client_load, enum client_load_news news, int64_t value);

/* Campaigns on a connection for its part of a set. */
void client_load_campaign(struct client_load_connection *connection, struct client_load_groups *groups);

/* Leaves the connection's groups of that set. */
void client_load_leave(struct client_load_connection *connection, struct client_load_groups *groups);

/* Gives up the first group of the connection; its candidate goes to the end of the queue. */
void client_load_resign(struct client_load_connection *connection);

/* Writes after that part of a pace. */
void client_load_write_later(struct client_load_connection *connection, gavel_ns pause);

/* One more write: a note of the connection's first group, or a change of its candidate there. */
void client_load_write(struct client_load_connection *connection);

/* A change of a group in which the connection's session takes part. */
void client_load_heard(struct client_load_connection *connection, const Gavel__Change *change);

/* Lists its own groups at the cluster, and compares. */
void client_load_verify(struct client_load *client_load);

#endif
