/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the files of the API thread share. Everything here belongs to that
 * thread alone, but for `orders`, which others set.
 *
 *     listener ──► connection ──► api_dispatch() ──► a handler of the table
 *                                                     │         │
 *                             view, journal ◄─────────┘         └──► request to the consensus thread,
 *                                                                    comes back to `replies`
 */
#ifndef DAEMON_API_THREAD_H
#define DAEMON_API_THREAD_H

#include "daemon/api.h"
#include "daemon/api_token.h"
#include "daemon/request.h"

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <sys/queue.h>

#define API_BODY_MAX (64u * 1024)
#define API_HEADERS_MAX (8u * 1024)
#define API_URI_MAX (4u * 1024)
#define API_IDLE_S 30        /* a connection on which nothing happens */
#define API_REQUEST_S 10     /* from the first byte of a request to its last */
#define API_SPARE_FDS 128    /* kept free for what the node itself must open */
#define API_PAUSE_MS 100     /* of the listener, when no descriptor is left */
#define API_STREAMS_MAX 1000 /* of /events */
#define API_STREAM_BYTES_MAX                                                                                 \
    (256u * 1024)           /* that wait for the reader of one; the rest waits in the journal */
#define API_HEARTBEAT_S 15  /* a comment, so that both ends notice when the other is gone */
#define API_PENDING_MAX 64  /* requests that are with the consensus thread */
#define API_SILENCE_MS 3000 /* of the consensus thread, before /health says so */
#define API_STOP_MS 2000    /* what is under way may take so long when the node ends */
#define API_FLUSH_MS 100    /* and writing the last answers so long */

/* What another thread wants of this one. */
enum api_order { API_ORDER_RELOAD = 1, API_ORDER_STOP = 2 };

struct api_stream;

struct api_connection {
    TAILQ_ENTRY(api_connection) next; /* the longest unused first */
    struct api *api;
    struct evhttp_connection *http;
    struct bufferevent *bev;
    int fd;
    gavel_ns opened_at;
    gavel_ns reading_since; /* the first byte of a request that is not complete yet; 0 none */
    uint64_t requests;
    bool is_answering; /* a request is with a handler, or its answer is not out yet */
    bool is_writing;   /* bytes are going out that no handler wrote: a page of evhttp's own */
    LIST_ENTRY(api_connection) next_page; /* while is_writing */
    struct api_stream *stream;
    struct api_pending *pending;
};
TAILQ_HEAD(api_connections, api_connection);
LIST_HEAD(api_pages, api_connection);

/* A request that is with the consensus thread; the HTTP side may be gone when it comes back. */
struct api_pending {
    struct request request; /* first */
    struct api_connection *connection;
    struct evhttp_request *http; /* NULL: the client is gone */
    size_t route;
};

LIST_HEAD(api_streams, api_stream);

struct api_newborn {
    struct api_newborn *next;
    struct bufferevent *bev; /* with a reference of ours */
};

#define API_ROUTES_MAX 16
#define API_CODES_MAX 16

struct api_counts {
    uint64_t by_code[API_ROUTES_MAX + 1][API_CODES_MAX]; /* the last: a path that is none of ours */
    uint64_t connections;                                /* accepted */
    uint64_t cut;                                        /* closed by us: too slow, or to make room */
};

struct api {
    struct node_desk *desk;
    struct event_base *base;
    struct evhttp *http;
    struct evconnlistener *listener;
    uint16_t port;
    SSL_CTX *tls; /* NULL: plain */
    struct api_token token;
    bool is_open; /* it listens beyond loopback */
    pthread_t thread;
    bool has_thread;
    int orders_fd;
    _Atomic unsigned orders;
    bool is_stopping;
    gavel_ns stop_at;

    struct event *orders_event;
    struct event *newborn_event;
    struct event *resume_event; /* of the listener */
    struct event *sweep_event;
    struct event *replies_event;
    struct event *bell_event;
    struct event *heartbeat_event;
    struct event *pages_event;

    struct api_newborn *newborns; /* the oldest first */
    struct api_newborn **newborns_end;
    struct api_connections connections;
    struct api_pages pages;
    size_t connection_count;
    struct api_connection **by_fd; /* the connection of a descriptor, or NULL */
    size_t by_fd_size;
    int fd_limit;

    struct mailbox replies;
    size_t pending_count;

    int bell_fd;
    struct api_streams streams;
    size_t stream_count;

    char date[32]; /* of the header, made once a second */
    time_t date_at;
    struct api_counts counts;
    struct view view; /* the copy that a handler works with; large, so not on the stack */
};

/* One HTTP request on its way through a handler. */
struct api_call {
    struct api *api;
    struct evhttp_request *http;
    struct api_connection *connection; /* NULL if it is not known */
    size_t route;
    gavel_ns now;
};

/*
 * api.c: everything but the thread, for whoever drives the loop itself (api->base), as fuzzing does. Takes
 * the listening socket over, also when it fails.
 */
GAVEL_CHECKED enum gavel_status api_new(struct node_desk *desk, int listening, struct api **ret_api,
                                        struct gavel_error *error);
void api_free(struct api *api); /* safe on NULL */

/* api_bind.c: whether a listening socket can be reached from other machines. */
bool api_is_open(int fd);
/* api_bind.c: a listening socket for config->api_listen; the port it got. */
GAVEL_CHECKED enum gavel_status api_bind(const struct daemon_config *config, int *ret_fd, uint16_t *ret_port,
                                         struct gavel_error *error);

/* api_connection.c */
GAVEL_CHECKED enum gavel_status api_connections_init(struct api *api, int fd);
void api_connections_begin(struct api *api); /* on the thread */
void api_connections_done(struct api *api);
/* NULL if it is gone. */
struct api_connection *api_connection_of(struct api *api, struct evhttp_request *http);
void api_connection_used(struct api_connection *connection); /* a request is complete */

/* api_routes.c */
void api_dispatch(struct evhttp_request *http, void *user);
/* The table, for the test that compares it with the OpenAPI document, and for metrics. */
struct api_route {
    enum evhttp_cmd_type method;
    const char *path;
    const char *operation; /* operationId of the document */
    bool needs_token;
    void (*handle)(struct api_call *call);
};
size_t api_route_count(void);
const struct api_route *api_route_at(size_t which);

/* api_reply.c: each ends the call. */
void api_reply(struct api_call *call, int code, const char *type, const char *body, size_t length);
void api_reply_error(struct api_call *call, int code, enum gavel_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void api_reply_stale(struct api_call *call); /* only adds the header */
int api_http_code(enum gavel_status status);
const char *api_code_reason(int code);
size_t api_code_count(void);
int api_code_at(size_t which);
void api_count(struct api *api, size_t route, int code);

/* The handlers. */
void api_get_leader(struct api_call *call);
void api_get_status(struct api_call *call);
void api_get_members(struct api_call *call);
void api_get_elections(struct api_call *call);
void api_get_health(struct api_call *call);
void api_get_ready(struct api_call *call);
void api_get_metrics(struct api_call *call);
void api_get_openapi(struct api_call *call);
void api_get_events(struct api_call *call);
void api_post_transfer(struct api_call *call);
void api_post_stepdown(struct api_call *call);
void api_post_members(struct api_call *call);

/* api_admin.c: letters that came back. */
void api_answer_replies(struct api *api);
void api_pending_gone(struct api_pending *pending); /* the client went away */

/* api_events.c */
void api_streams_pump(struct api *api);
void api_streams_heartbeat(struct api *api);
void api_streams_end(struct api *api);
void api_stream_gone(struct api_stream *stream);

#endif
