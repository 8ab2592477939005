/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parts of a quorum, for its own files.
 *
 *     quorum.c         calls and callbacks around the pure client
 *     quorum_place.c   where the nodes are, from text
 *     quorum_stream.c  one connection: look-up, socket, TLS
 *     quorum_frame.c   its bytes, cut into frames
 *
 * Callbacks. A step of the client gives out what to send, which is done at
 * once, and what to tell, which waits in `due` until the loop is in our hands.
 * So a callback may make any call but quorum_free(): it feeds the client
 * another event, and what comes of it is told on the next turn.
 *
 * A stream that is over is freed on the next turn of the loop, too: whoever is
 * in the middle of it still holds it.
 */
#ifndef CLIENT_QUORUM_INTERNAL_H
#define CLIENT_QUORUM_INTERNAL_H

#include "client/quorum.h"
#include "net/address.h"
#include "net/resolve.h"
#include "net/tls.h"

#include <bsd/sys/tree.h>
#include <event2/bufferevent.h>
#include <openssl/ssl.h>
#include <sys/queue.h>

/* What waits to be written; a node that reads so slowly is no help. */
#define QUORUM_OUTPUT_MAX (16u << 20)
#define QUORUM_REASON_BYTES 256

struct quorum_stream {
    SLIST_ENTRY(quorum_stream) entry; /* of the dead */
    struct quorum *quorum;
    size_t which;
    struct resolve *resolve;
    struct event *connected; /* while the socket connects */
    int fd;                  /* until the bufferevent has it; -1 */
    struct bufferevent *bytes;
    SSL *ssl;   /* of it; NULL: plain */
    bool is_up; /* CONNECTED was told */
    bool has_failed;
    char reason[QUORUM_REASON_BYTES];
};

/* Who waits for the outcome of a submit or an ask. Its address is the token. */
struct quorum_call {
    LIST_ENTRY(quorum_call) entry;
    quorum_result_cb result; /* of a submit … */
    quorum_answer_cb answer; /* … or of an ask */
    void *user;
};

struct quorum_watcher {
    RB_ENTRY(quorum_watcher) by_number;
    uint64_t number;
    quorum_change_cb callback;
    void *user;
};
RB_HEAD(quorum_watchers, quorum_watcher);

struct quorum {
    struct event_base *base;
    struct quorum_place place; /* unix sockets first */
    size_t near_count;
    SSL_CTX *tls;            /* NULL: plain */
    struct tls_identity own; /* with tls: what our certificate says */
    struct client *client;
    struct quorum_events events;
    struct event *timer;
    gavel_ns wake_at;   /* that it is set to */
    struct event *turn; /* what is due is told, what is dead is freed */

    struct quorum_stream *stream; /* NULL: none */
    SLIST_HEAD(, quorum_stream) dead;
    unsigned attempts[CLIENT_ADDRESSES_MAX]; /* a name may have several addresses */

    LIST_HEAD(, quorum_call) calls;
    struct quorum_watchers watchers;
    uint64_t watch_numbers;

    struct client_action *due; /* in order, to be told */
    size_t due_count;
    size_t due_capacity;

    enum client_state told_state;
    char told_trouble[QUORUM_REASON_BYTES];
    bool has_told_state;
    bool told_refused;
};

/* quorum.c: an event from the loop; carries out what comes of it, and calls back. */
void quorum_step(struct quorum *quorum, struct client_event *event);

/* quorum_place.c: the rules that text and hand-made places obey alike. */
GAVEL_CHECKED enum gavel_status quorum_place_check(const struct quorum_place *place,
                                                   struct gavel_error *error);
bool quorum_is_path(const char *address);
bool quorum_is_localhost(const struct address_parts *parts);

/* quorum_stream.c */
void quorum_stream_open(struct quorum *quorum, size_t which);
void quorum_stream_close(struct quorum *quorum); /* what there is; freed later */
void quorum_stream_reap(struct quorum *quorum);  /* frees the dead */
/* It is over: the client learns of it on the next turn. */
void quorum_stream_fail(struct quorum_stream *stream, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* quorum_frame.c */
void quorum_frame_send(struct quorum_stream *stream, const Gavel__ClientFrame *frame);
void quorum_frame_read(struct bufferevent *bytes, void *context);

#endif
