/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the files of the API thread share. Everything here belongs to that
 * thread alone, except `orders`, which others set.
 *
 *     listener ──► connection ──► api_dispatch() ──► a handler of the table
 *                                                     │         │
 *                             view, journal ◄─────────┘         └──► request to the consensus thread,
 *                                                                    comes back to `replies`
 */
#ifndef DAEMON_API_INTERNAL_H
#define DAEMON_API_INTERNAL_H

#include "base/record.h"
#include "daemon/api/api.h"
#include "daemon/api/token.h"
#include "daemon/shared/forwarding.h"
#include "daemon/shared/loop.h"
#include "daemon/shared/request.h"

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
#define API_STREAMS_MAX 1000 /* of events, changes and campaigns */
/* Bytes that may wait for the reader of a stream; the rest waits in the journal. */
#define API_STREAM_BYTES_MAX (256u * 1024)
#define API_HEARTBEAT_S 15 /* between comments, by which both ends notice that the other is gone */
/* Bytes that may wait for a candidate; one that reads more slowly is cut off. */
#define API_CAMPAIGN_BYTES_MAX (16u * 1024)
#define API_FORWARDINGS_MAX 4096 /* questions that are with the forwarder */
#define API_PAGE_MAX 1000        /* of one listing */
#define API_PENDING_MAX 64       /* requests that are with the consensus thread */
#define API_SILENCE_MS 3000      /* of the consensus thread, before /health reports it */
#define API_STOP_MS 2000         /* for calls under way when the node ends */
#define API_FLUSH_MS 100         /* and for writing the last answers */

/* Orders from other threads to this one. */
enum api_order { API_ORDER_RELOAD = 1, API_ORDER_STOP = 2, API_ORDER_LEAVE = 4 };

/* What clients are told while node_shared.is_blind. */
#define API_BLIND                                                                                            \
    "the disk of this node does not answer, and what it says of groups is out of date; ask another one"

/* The callbacks of one kind of stream. Each may be called from the loop at any time. */
struct api_stream;
struct api_stream_kind {
    void (*pump)(struct api_stream *stream);     /* there may be something new, or room for it */
    void (*gone)(struct api_stream *stream);     /* it has ended; frees it */
    void (*farewell)(struct api_stream *stream); /* this node ends; NULL: say nothing */
    /* api.is_blind has changed; the stream may end. NULL: it shows nothing of the table. */
    void (*blinded)(struct api_stream *stream);
};

/* A stream of server-sent events; the first member of the struct that it is part of. */
struct api_stream {
    LIST_ENTRY(api_stream) next;
    struct evhttp_request *http;
    struct api_connection *connection;
    const struct api_stream_kind *kind;
};

struct api_later;

struct api_connection {
    TAILQ_ENTRY(api_connection) next; /* least recently used first */
    struct api *api;
    struct evhttp_connection *http;
    struct bufferevent *bev;
    int fd;
    gavel_ns opened_at;
    gavel_ns reading_since; /* the first byte of a request that is not complete yet; 0 none */
    uint64_t requests;
    bool is_answering;                    /* a request is with a handler, or its answer is not out yet */
    bool is_writing;                      /* evhttp is sending a page of its own, which no handler wrote */
    LIST_ENTRY(api_connection) next_page; /* while is_writing */
    struct api_stream *stream;
    struct api_pending *pending;
    struct api_later *later;
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

/* What the path of a call names, decoded. */
struct api_names {
    char group[NAME_MAX_BYTES + 1];
    char key[TABLE_NOTE_KEY_BYTES_MAX + 1];
};

/* A call that is answered later; the client may go first. */
struct api_later {
    LIST_ENTRY(api_later) next;
    struct api_connection *connection;
    struct evhttp_request *http; /* NULL: it is answered, or the client is gone */
    size_t route;
    unsigned wants;
    struct api_names names;
    void *user;
    void (*gone)(void *user); /* nobody waits any more, and nothing may be answered */
};

/* A question that is with the forwarder, or none (number 0). It lives in whatever waits for it. */
struct api_forwarding {
    RB_ENTRY(api_forwarding) by_number;
    struct api *api;
    uint64_t number;
    gavel_ns sent_at;
    void *user;
    void (*answered)(void *user, const Gavel__ClientFrame *frame);
};

LIST_HEAD(api_streams, api_stream);
LIST_HEAD(api_laters, api_later);
LIST_HEAD(api_campaigns, api_campaign);
LIST_HEAD(api_transfers, api_transfer);
RB_HEAD(api_forwardings, api_forwarding);

struct api_newborn {
    struct api_newborn *next;
    struct bufferevent *bev; /* with a reference of ours */
};

#define API_ROUTES_MAX 32
#define API_CODES_MAX 20

struct api_counts {
    uint64_t by_code[API_ROUTES_MAX + 1][API_CODES_MAX]; /* the last row: unknown paths */
    uint64_t connections;                                /* accepted */
    uint64_t cut;                                        /* closed by us: too slow, or to free descriptors */
};

struct api {
    struct node_shared *shared;
    struct event_base *base;
    struct evhttp *http;
    struct evconnlistener *listener;
    uint16_t port;
    SSL_CTX *tls; /* NULL: plain */
    struct api_token token;
    bool is_open; /* it listens beyond loopback */
    pthread_t thread;
    bool has_thread;
    struct loop_orders orders;
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
    struct event *forwardings_event;
    struct event *table_event;

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
    bool is_blind; /* node_shared.is_blind, as far as the streams were told */

    struct mailbox answers; /* of forwardings */
    struct api_forwardings forwardings;
    size_t forwarding_count;
    uint64_t forwarding_numbers;
    struct api_laters laters;
    int table_fd; /* rings when the table has changed */
    struct api_campaigns campaigns;
    _Atomic unsigned campaign_count; /* read by others */
    bool is_leaving;                 /* no further campaigns: the node will end */
    struct api_transfers transfers;
    struct table_cursor counted; /* changes up to here are counted in `elected` */
    uint64_t elected;

    char date[32]; /* of the header, made once a second */
    time_t date_at;
    struct api_counts counts;
    struct view view; /* the copy that a handler works with; large, so not on the stack */
};

/* One HTTP request on its way through a handler. */
struct api_call {
    struct api *api;
    struct evhttp_request *http;
    struct api_connection *connection; /* NULL if unknown */
    size_t route;
    gavel_ns now;
    gavel_ns asked_at; /* when the leader of the cluster was asked; 0: it was not */
    unsigned wants;    /* of the handler */
    struct api_names names;
};

/*
 * api.c: everything except the thread, for callers that drive the loop (api->base) themselves, as fuzzing
 * does. Takes over the listening socket, also on failure.
 */
GAVEL_CHECKED enum gavel_status api_new(struct node_shared *shared, int listening, struct api **ret_api,
                                        struct gavel_error *error);
void api_free(struct api *api); /* safe on NULL */

/* bind.c: whether a listening socket can be reached from other machines. */
bool api_is_open(int fd);
/* bind.c: a listening socket for config->api_listen, and its port. */
GAVEL_CHECKED enum gavel_status api_bind(const struct daemon_config *config, int *ret_fd, uint16_t *ret_port,
                                         struct gavel_error *error);

/* connection.c */
GAVEL_CHECKED enum gavel_status api_connections_init(struct api *api, int fd);
void api_connections_begin(struct api *api); /* on the thread */
void api_connections_done(struct api *api);
/* NULL if it is gone. */
struct api_connection *api_connection_of(struct api *api, struct evhttp_request *http);
void api_connection_used(struct api_connection *connection); /* a request is complete */

/* routes.c */
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
const char *api_method_name(enum evhttp_cmd_type method);

/* path.c: paths with names in them, "/groups/{group}/notes/{key}". */
bool api_path_fits(const char *pattern, const char *path);
/* For a path that fits. False: the call has been answered. */
bool api_path_read(struct api_call *call, const char *pattern, const char *path);
/* Reads what follows the ?. False: the call has been answered. Call evhttp_clear_headers() in any case. */
bool api_query_read(struct api_call *call, struct evkeyvalq *ret_pairs);
/* False: the call has been answered. *ret_number is untouched if there is no such key. */
bool api_query_number(struct api_call *call, const struct evkeyvalq *pairs, const char *key, int64_t least,
                      int64_t most, int64_t *ret_number);
bool api_query_flag(struct api_call *call, const struct evkeyvalq *pairs, const char *key, bool *ret_flag);
/* A text of at most `most` bytes, "" if there is none. Borrows from the pairs. */
bool api_query_text(struct api_call *call, const struct evkeyvalq *pairs, const char *key, size_t most,
                    const char **ret_text);

/* reply.c: each ends the call. */
void api_reply(struct api_call *call, int code, const char *type, const char *body, size_t length);
void api_reply_error(struct api_call *call, int code, enum gavel_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void api_reply_stale(struct api_call *call); /* only adds the header */
/* Any bytes, unchanged. */
void api_reply_bytes(struct api_call *call, const uint8_t *bytes, size_t length);
/* The error that a forwarded request came back with; message may be "". */
void api_reply_failure(struct api_call *call, enum gavel_status status, const char *message);
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
void api_get_groups(struct api_call *call);
void api_get_group(struct api_call *call);
void api_get_group_leader(struct api_call *call);
void api_get_group_leader_name(struct api_call *call);
void api_get_group_watch(struct api_call *call);
void api_get_watch(struct api_call *call);
void api_get_notes(struct api_call *call);
void api_get_note(struct api_call *call);
void api_put_note(struct api_call *call);
void api_delete_note(struct api_call *call);
void api_delete_group(struct api_call *call);
void api_post_campaign(struct api_call *call);
void api_post_keepalive(struct api_call *call);
void api_post_resign(struct api_call *call);
void api_post_own_events(struct api_call *call);
void api_post_group_transfer(struct api_call *call);

/* admin.c: messages that came back. */
void api_answer_replies(struct api *api);
void api_pending_gone(struct api_pending *pending); /* the client went away */

/* stream.c: what all streams of server-sent events have in common. */
/* False, and the call has been answered: there are too many, or the node is ending. */
bool api_stream_may_open(struct api_call *call);
void api_stream_open(struct api_call *call, struct api_stream *stream, const struct api_stream_kind *kind);
void api_stream_push(struct api_stream *stream, const char *text, size_t length);
/* Bytes that the reader has not taken yet. */
size_t api_stream_waiting(const struct api_stream *stream);
/* In order: what was pushed still goes out. The stream is gone afterwards. */
void api_stream_end(struct api_stream *stream);
void api_stream_cut(struct api_stream *stream);  /* at once; likewise */
void api_stream_gone(struct api_stream *stream); /* the connection goes */
void api_streams_pump(struct api *api);
void api_streams_heartbeat(struct api *api);
void api_streams_look(struct api *api); /* whether is_blind has changed */
void api_streams_end(struct api *api);

/* forwarding.c */
void api_later_begin(struct api_call *call, struct api_later *later, void (*gone)(void *user), void *user);
/* The call, to be answered now. */
struct api_call api_later_end(struct api_later *later);
void api_later_gone(struct api_later *later); /* the connection goes */
void api_forwarding_init(struct api_forwarding *forwarding, struct api *api,
                         void (*answered)(void *user, const Gavel__ClientFrame *frame), void *user);
/* False: there is no room; nothing was sent, and nothing will be answered. One at a time. */
bool api_forwarding_request(struct api_forwarding *forwarding, Gavel__Request *request);
bool api_forwarding_ask(struct api_forwarding *forwarding, Gavel__Ask *ask);
bool api_forwarding_keep_alive(struct api_forwarding *forwarding, uint64_t session);
void api_forwarding_drop(struct api_forwarding *forwarding); /* drops its answer; safe if there is none */
void api_reply_busy(struct api_call *call);                  /* there was no room */
/* The outcome of operation `which` of a request: OK and its result, or a status and a sentence ("" none). */
enum gavel_status api_forwarding_outcome(const Gavel__ClientFrame *frame, size_t which,
                                         const Gavel__OpResult **ret_result, const char **ret_message);
void api_forwardings_answer(struct api *api);
void api_forwardings_end(struct api *api); /* tells all that wait that this node is ending */
void api_forwardings_done(struct api *api);

/* campaign.c */
struct api_word;
/* The session was kept alive by its client, through this node. */
void api_campaign_kept(struct api *api, uint64_t session, const struct api_word *word);
void api_campaigns_leave(struct api *api);
void api_campaigns_done(struct api *api);
bool api_stream_is_campaign(const struct api_stream *stream);

/* group_transfer.c */
void api_transfers_look(struct api *api);

/* groups.c */
void api_groups_count(struct api *api); /* the changes since the last time, for metrics */
struct metrics_api;
void api_groups_measure(struct api *api, struct metrics_api *ret_measure);

#endif
