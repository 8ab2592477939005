/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection to a gaveld cluster: sockets and TLS around the pure client of
 * core/session/client.h, on the caller's event base. Nothing blocks. Callbacks
 * come from the loop, never from within a call; they may call anything but
 * cluster_link_free(). One thread only; several connections may share one base.
 * Writing to a node that has gone away raises SIGPIPE: the caller must ignore
 * or block it.
 */
#ifndef CLIENT_CLUSTER_H
#define CLIENT_CLUSTER_H

#include "core/session/client.h"

#include <event2/event.h>

/*
 * Where the nodes are:
 *
 *     h1:7600,h2:7600,h3:7600?ca=FILE&cert=FILE&key=FILE     TCP; TLS with ca, cert and key
 *     /run/gavel/n1.sock,127.0.0.1:7600                      a path is a Unix socket
 *
 * Plain TCP is for loopback only. Further options after '?': ttl_ms, and with
 * TLS revoked=FILE, the list of revoked certificates, also of nodes; it is read
 * again for every connection.
 */
struct cluster_link_target {
    char addresses[CLIENT_ADDRESSES_MAX][256];
    size_t count;
    char ca[256];
    char cert[256];
    char key[256];
    char revoked[256]; /* "": none */
    uint32_t ttl_ms;   /* 0: not given */
};

/* Parses what follows "gavel://". ERR_INVALID; *error names the part that is wrong. */
GAVEL_CHECKED enum gavel_status cluster_link_target_parse(const char *text,
                                                          struct cluster_link_target *ret_target,
                                                          struct gavel_error *error);

struct cluster_link;

/* A session for a link that was made without. */
struct cluster_link_session_options {
    uint32_t ttl_ms; /* overridden by that of the target */
    gavel_ns silence;
    const struct table_process *process; /* NULL: not sent */
    bool is_paced;                       /* see cluster_link_taken() */
    /* The id of the session is written here before it is first sent, and so is that of each later one; NULL:
     * nowhere. Borrowed. */
    _Atomic uint64_t *noted;
};

struct cluster_link_events {
    /* The deadline of that session (client_session_number()) has moved; 0: there is none any more. */
    void (*deadline)(void *user, uint64_t number, gavel_ns deadline);
    void (*session_lost)(void *user, uint64_t number);
    /* NULL if not wanted. `trouble` is "" when it is up. */
    void (*state)(void *user, enum client_state state, const char *trouble);
    void (*closed)(void *user); /* cluster_link_close() is done */
    /* NULL if not wanted. A node has answered the hello; its answer is borrowed. */
    void (*welcomed)(void *user, const Gavel__ClientWelcome *welcome);
    void *user;
};

typedef void (*cluster_link_result_cb)(void *user, enum gavel_status status, const char *message,
                                       const Gavel__OpResult *const *results, size_t count);
typedef void (*cluster_link_answer_cb)(void *user, enum gavel_status status, const char *message,
                                       const Gavel__Answer *answer); /* NULL if status is not OK */
/*
 * If `change` is NULL, the watch has reached `revision`: everything before it
 * was reported, or with is_gap may have been missed, so look at the whole
 * state. change->session is 0 unless the change is about the session that is open now.
 */
typedef void (*cluster_link_change_cb)(void *user, const Gavel__Change *change, uint64_t revision,
                                       bool is_gap);

/*
 * Connects, and reconnects for ever. ttl_ms 0: no session, until
 * cluster_link_open_session() asks for one; otherwise target->ttl_ms overrides
 * ttl_ms. `process` NULL: not sent. ERR_INVALID, ERR_IO
 * (certificates), ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status cluster_link_new(struct event_base *base,
                                                 const struct cluster_link_target *target, uint32_t ttl_ms,
                                                 const char *name, const struct table_process *process,
                                                 const struct cluster_link_events *events,
                                                 struct cluster_link **ret_cluster,
                                                 struct gavel_error *error);
/* Ends the session in order; after events.closed, cluster_link_free() may be called. */
void cluster_link_close(struct cluster_link *cluster);
/*
 * Takes effect at once; the session is left to expire, and pending callbacks
 * never come. Safe on NULL. Must not be called from a callback.
 */
void cluster_link_free(struct cluster_link *cluster);

/* Each op is copied. The callback comes exactly once. */
void cluster_link_submit(struct cluster_link *cluster, const Gavel__Op *const *ops, size_t count,
                         gavel_ns give_up_at, cluster_link_result_cb callback, void *user);
void cluster_link_ask(struct cluster_link *cluster, const Gavel__Ask *ask, gavel_ns give_up_at,
                      cluster_link_answer_cb callback, void *user);

/*
 * Watches a group, a prefix or, if both are NULL, the groups of this session.
 * Returns its number; 0: no memory.
 */
uint64_t cluster_link_watch(struct cluster_link *cluster, const char *group, const char *prefix,
                            uint64_t after_revision, cluster_link_change_cb callback, void *user);
void cluster_link_unwatch(struct cluster_link *cluster, uint64_t watch);

/*
 * Opens a session; once, and only on a link that has none. ERR_INVALID: the time to live. ERR_STATE: it has
 * one, or is closed.
 * If it is paced, a keep-alive is sent only after cluster_link_taken() has confirmed the newest deadline that
 * the callback has told. While a newer one waits to be told, the call has no effect.
 */
GAVEL_CHECKED enum gavel_status cluster_link_open_session(struct cluster_link *cluster,
                                                          const struct cluster_link_session_options *options,
                                                          struct gavel_error *error);
void cluster_link_taken(struct cluster_link *cluster);

/* What proves to the cluster that the sessions of this link are ours, also while there is none. Random;
 * another may be set before anything was sent, that is before the loop runs, to act on sessions of a process
 * that is dead. */
void cluster_link_secret(const struct cluster_link *cluster, uint8_t ret_secret[CLIENT_SECRET_BYTES]);
void cluster_link_set_secret(struct cluster_link *cluster, const uint8_t secret[CLIENT_SECRET_BYTES]);

uint64_t cluster_link_session(const struct cluster_link *cluster);
uint64_t cluster_link_session_number(const struct cluster_link *cluster); /* as client_session_number() */
gavel_ns cluster_link_session_lasts(const struct cluster_link *cluster);  /* as client_session_lasts() */
gavel_ns cluster_link_deadline(const struct cluster_link *cluster);
const char *cluster_link_trouble(const struct cluster_link *cluster);
bool cluster_link_is_refused(
    const struct cluster_link *cluster); /* by all nodes; events.state reports when that changes */

#endif
