/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection to a gaveld quorum: sockets and TLS around the pure client of
 * core/session/client.h, on an event base of the caller's. Nothing blocks; callbacks
 * come from the loop, never from within a call; they may call anything but
 * quorum_free(). One thread; many quorums may share one base. A node that goes
 * away while it is written to raises SIGPIPE: the caller ignores or blocks it.
 */
#ifndef CLIENT_QUORUM_H
#define CLIENT_QUORUM_H

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
struct quorum_place {
    char addresses[CLIENT_ADDRESSES_MAX][256];
    size_t count;
    char ca[256];
    char cert[256];
    char key[256];
    char revoked[256]; /* "": none */
    uint32_t ttl_ms;   /* 0: not said */
};

/* What follows "gavel://". ERR_INVALID with the part that is wrong. */
GAVEL_CHECKED enum gavel_status quorum_place_parse(const char *text, struct quorum_place *ret_place,
                                                   struct gavel_error *error);

struct quorum;

struct quorum_events {
    /* The deadline of the session has moved; 0: there is no session. */
    void (*deadline)(void *user, gavel_ns deadline);
    void (*session_lost)(void *user);
    /* NULL if not wanted. `trouble` "" when it is up. */
    void (*state)(void *user, enum client_state state, const char *trouble);
    void (*closed)(void *user); /* quorum_close() is done */
    void *user;
};

typedef void (*quorum_result_cb)(void *user, enum gavel_status status, const char *message,
                                 const Gavel__OpResult *const *results, size_t count);
typedef void (*quorum_answer_cb)(void *user, enum gavel_status status, const char *message,
                                 const Gavel__Answer *answer); /* NULL if status is not OK */
/* change NULL: the watch stands at `revision` and all before is told, or (is_gap) may have been missed: look
 * at the whole. */
typedef void (*quorum_change_cb)(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap);

/* ttl_ms 0: no session (place->ttl_ms beats it). `process` NULL: not told. ERR_INVALID, ERR_IO
 * (certificates), ERR_NO_MEMORY. It connects by itself, for ever. */
GAVEL_CHECKED enum gavel_status quorum_new(struct event_base *base, const struct quorum_place *place,
                                           uint32_t ttl_ms, const char *name,
                                           const struct table_process *process,
                                           const struct quorum_events *events, struct quorum **ret_quorum,
                                           struct gavel_error *error);
/* Ends the session in order; then events.closed comes, and quorum_free() may be called. */
void quorum_close(struct quorum *quorum);
/* At once; the session is left to expire. Callbacks that are due never come. Safe on NULL. Not from a
 * callback. */
void quorum_free(struct quorum *quorum);

/* Each op is copied. The callback comes exactly once. */
void quorum_submit(struct quorum *quorum, const Gavel__Op *const *ops, size_t count, gavel_ns give_up_at,
                   quorum_result_cb callback, void *user);
void quorum_ask(struct quorum *quorum, const Gavel__Ask *ask, gavel_ns give_up_at, quorum_answer_cb callback,
                void *user);

/* Returns its number, or 0 without memory. group, or prefix, or (both NULL) the groups of this session. */
uint64_t quorum_watch(struct quorum *quorum, const char *group, const char *prefix, uint64_t after_revision,
                      quorum_change_cb callback, void *user);
void quorum_unwatch(struct quorum *quorum, uint64_t watch);

uint64_t quorum_session(const struct quorum *quorum);
gavel_ns quorum_deadline(const struct quorum *quorum);
const char *quorum_trouble(const struct quorum *quorum);
bool quorum_is_refused(const struct quorum *quorum); /* by all nodes; events.state tells when that changes */

#endif
