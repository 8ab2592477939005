/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parts of a connection to a cluster, for its own files.
 *
 *     cluster.c         calls and callbacks around the pure client
 *     cluster_target.c   where the nodes are, from text
 *     cluster_stream.c  one connection: look-up, socket, TLS
 *     cluster_frame.c   its bytes, cut into frames
 *
 * Callbacks. A step of the client returns what to send, which is sent at once,
 * and what to report, which waits in `due` until the loop runs us. So a
 * callback may make any call but cluster_link_free(): the call feeds the client
 * another event, and what follows from it is reported on the next turn.
 *
 * A stream that is over is also freed on the next turn of the loop, since its
 * caller may still hold it.
 */
#ifndef CLIENT_CLUSTER_INTERNAL_H
#define CLIENT_CLUSTER_INTERNAL_H

#include "client/cluster.h"
#include "net/address.h"
#include "net/resolve.h"
#include "net/tls.h"

#include <bsd/sys/tree.h>
#include <event2/bufferevent.h>
#include <openssl/ssl.h>
#include <sys/queue.h>

/* Bytes that may wait to be written; a node that reads more slowly is of no use. */
#define CLUSTER_OUTPUT_MAX (16u << 20)
#define CLUSTER_REASON_BYTES 256

struct cluster_link_stream {
    SLIST_ENTRY(cluster_link_stream) entry; /* of the dead */
    struct cluster_link *cluster;
    size_t which;
    struct resolve *resolve;
    struct event *connected; /* while the socket connects */
    int fd;                  /* until the bufferevent owns it; then -1 */
    struct bufferevent *bytes;
    SSL *ssl;   /* of `bytes`; NULL: plain */
    bool is_up; /* CONNECTED was reported */
    bool has_failed;
    char reason[CLUSTER_REASON_BYTES];
};

/* A pending submit or ask. Its address is the token. */
struct cluster_link_call {
    LIST_ENTRY(cluster_link_call) entry;
    cluster_link_result_cb result; /* of a submit … */
    cluster_link_answer_cb answer; /* … or of an ask */
    void *user;
};

struct cluster_link_watcher {
    RB_ENTRY(cluster_link_watcher) by_number;
    uint64_t number;
    cluster_link_change_cb callback;
    void *user;
};
RB_HEAD(cluster_link_watchers, cluster_link_watcher);

struct cluster_link {
    struct event_base *base;
    struct cluster_link_target target; /* unix sockets first */
    size_t near_count;
    SSL_CTX *tls;            /* NULL: plain */
    struct tls_identity own; /* with tls: what our certificate says */
    struct client *client;
    struct cluster_link_events events;
    struct event *timer;
    gavel_ns wake_at;   /* what the timer is set to */
    struct event *turn; /* reports what is due and frees what is dead */

    struct cluster_link_stream *stream; /* NULL: none */
    SLIST_HEAD(, cluster_link_stream) dead;
    unsigned attempts[CLIENT_ADDRESSES_MAX]; /* a name may have several addresses */

    LIST_HEAD(, cluster_link_call) calls;
    struct cluster_link_watchers watchers;
    uint64_t watch_numbers;

    struct client_action *due; /* to be reported, in order */
    size_t due_count;
    size_t due_capacity;

    gavel_ns told_deadline;  /* 0: none */
    _Atomic uint64_t *noted; /* struct cluster_link_session_options; NULL: nowhere */

    enum client_state told_state;
    char told_trouble[CLUSTER_REASON_BYTES];
    bool has_told_state;
    bool told_refused;
};

/* cluster.c: feeds an event from the loop, carries out what follows, and calls back. */
void cluster_link_step(struct cluster_link *cluster, struct client_event *event);

/* cluster_target.c: the rules for all targets, parsed or made by hand. */
GAVEL_CHECKED enum gavel_status cluster_link_target_check(const struct cluster_link_target *target,
                                                          struct gavel_error *error);
bool cluster_link_is_path(const char *address);
bool cluster_link_is_localhost(const struct address_parts *parts);

/* cluster_stream.c */
void cluster_link_stream_open(struct cluster_link *cluster, size_t which);
void cluster_link_stream_close(struct cluster_link *cluster); /* the current one, if any; freed later */
void cluster_link_stream_reap(struct cluster_link *cluster);  /* frees the dead */
/* Ends the stream; the client learns of it on the next turn. */
void cluster_link_stream_fail(struct cluster_link_stream *stream, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* cluster_frame.c */
void cluster_link_frame_send(struct cluster_link_stream *stream, const Gavel__ClientFrame *frame);
void cluster_link_frame_read(struct bufferevent *bytes, void *context);

#endif
