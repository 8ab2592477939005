/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection to a gaveld cluster: sockets and TLS around the pure client of
 * core/session/client.h, on an event base of the caller's. Nothing blocks; callbacks
 * come from the loop, never from within a call; they may call anything but
 * cluster_link_free(). One thread; many clusters may share one base. A node that goes
 * away while it is written to raises SIGPIPE: the caller ignores or blocks it.
 */
#ifndef CLIENT_CLUSTER_H
#define CLIENT_CLUSTER_H

#include "core/session/client.h"

#include <event2/event.h>

/*
 * Where the nodes are:
 *
 *     h1:7600,h2:7600,h3:7600?ca=FILE&cert=FILE&key=FILE     TCP; with ca, cert and key TLS
 *     /run/gavel/n1.sock,127.0.0.1:7600                      a path is a unix socket
 *
 * Plain TCP only to loopback. Further options after '?': ttl_ms, and with TLS revoked=FILE, the list of
 * certificates that are not taken any more, of nodes too; it is read anew for every connection.
 */
struct cluster_link_target {
    char addresses[CLIENT_ADDRESSES_MAX][256];
    size_t count;
    char ca[256];
    char cert[256];
    char key[256];
    char revoked[256]; /* "": none */
    uint32_t ttl_ms;   /* 0: not said */
};

/* What follows "gavel://". ERR_INVALID with the part that is wrong. */
GAVEL_CHECKED enum gavel_status cluster_link_target_parse(const char *text,
                                                          struct cluster_link_target *ret_target,
                                                          struct gavel_error *error);

struct cluster_link;

struct cluster_link_events {
    /* The deadline of the session has moved; 0: there is no session. */
    void (*deadline)(void *user, gavel_ns deadline);
    void (*session_lost)(void *user);
    /* NULL if not wanted. `trouble` "" when it is up. */
    void (*state)(void *user, enum client_state state, const char *trouble);
    void (*closed)(void *user); /* cluster_link_close() is done */
    /* NULL if not wanted. A node has answered the hello; what it says is borrowed. */
    void (*welcomed)(void *user, const Gavel__ClientWelcome *welcome);
    void *user;
};

typedef void (*cluster_link_result_cb)(void *user, enum gavel_status status, const char *message,
                                       const Gavel__OpResult *const *results, size_t count);
typedef void (*cluster_link_answer_cb)(void *user, enum gavel_status status, const char *message,
                                       const Gavel__Answer *answer); /* NULL if status is not OK */
/* change NULL: the watch stands at `revision` and all before is told, or (is_gap) may have been missed: look
 * at the whole. */
typedef void (*cluster_link_change_cb)(void *user, const Gavel__Change *change, uint64_t revision,
                                       bool is_gap);

/* ttl_ms 0: no session (target->ttl_ms beats it). `process` NULL: not told. ERR_INVALID, ERR_IO
 * (certificates), ERR_NO_MEMORY. It connects by itself, for ever. */
GAVEL_CHECKED enum gavel_status cluster_link_new(struct event_base *base,
                                                 const struct cluster_link_target *target, uint32_t ttl_ms,
                                                 const char *name, const struct table_process *process,
                                                 const struct cluster_link_events *events,
                                                 struct cluster_link **ret_cluster,
                                                 struct gavel_error *error);
/* Ends the session in order; then events.closed comes, and cluster_link_free() may be called. */
void cluster_link_close(struct cluster_link *cluster);
/* At once; the session is left to expire. Callbacks that are due never come. Safe on NULL. Not from a
 * callback. */
void cluster_link_free(struct cluster_link *cluster);

/* Each op is copied. The callback comes exactly once. */
void cluster_link_submit(struct cluster_link *cluster, const Gavel__Op *const *ops, size_t count,
                         gavel_ns give_up_at, cluster_link_result_cb callback, void *user);
void cluster_link_ask(struct cluster_link *cluster, const Gavel__Ask *ask, gavel_ns give_up_at,
                      cluster_link_answer_cb callback, void *user);

/* Returns its number, or 0 without memory. group, or prefix, or (both NULL) the groups of this session. */
uint64_t cluster_link_watch(struct cluster_link *cluster, const char *group, const char *prefix,
                            uint64_t after_revision, cluster_link_change_cb callback, void *user);
void cluster_link_unwatch(struct cluster_link *cluster, uint64_t watch);

uint64_t cluster_link_session(const struct cluster_link *cluster);
gavel_ns cluster_link_deadline(const struct cluster_link *cluster);
const char *cluster_link_trouble(const struct cluster_link *cluster);
bool cluster_link_is_refused(
    const struct cluster_link *cluster); /* by all nodes; events.state tells when that changes */

#endif
