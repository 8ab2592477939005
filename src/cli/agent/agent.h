/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the files of `gavel agent` share.
 *
 *     program ── HTTP ──► connection ──► route ──► answers: what libgavel says at this moment
 *        ▲                                   └───► POST /stopped ──► drain ◄── waits ── on_demoted
 *        └── events ◄── streams ◄── news ◄── on_event
 *
 * The main thread serves HTTP; the callbacks run on the library's thread. They
 * share `drain` and `news`, which have their own locks, and the atomic fields.
 * Everything else belongs to the main thread.
 */
#ifndef CLI_AGENT_AGENT_H
#define CLI_AGENT_AGENT_H

#include "base/record.h"
#include "cli/agent/drain.h"
#include "cli/agent/news.h"
#include "cli/cli.h"

#include <gavel/gavel.h>

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/queue.h>

#define AGENT_LISTEN "127.0.0.1:7700"
#define AGENT_TOKEN_MIN 16
#define AGENT_TOKEN_MAX 255
#define AGENT_URI_MAX 2048u
#define AGENT_HEADERS_MAX (8u * 1024)
#define AGENT_BODY_MAX (16u * 1024)
#define AGENT_CONNECTIONS_MAX 256
#define AGENT_STREAMS_MAX 64
#define AGENT_STREAM_BYTES_MAX (64u * 1024) /* buffered for one reader; further events stay in the news */
#define AGENT_IDLE_S 30 /* without a complete request, or without reading from its stream */
#define AGENT_BEAT_S 15 /* between two comments on a stream */

/* Where it listens. */
struct agent_endpoint {
    int fd;
    char url[160];  /* for people: "http://127.0.0.1:7700" or "unix:/run/x.sock" */
    char path[112]; /* of the socket, removed at the end; "" for TCP */
};

struct agent_stream;

struct agent_connection {
    TAILQ_ENTRY(agent_connection) next; /* longest idle first */
    struct agent *agent;
    struct evhttp_connection *http;
    gavel_ns quiet_since; /* when its last request was answered, or when it connected */
    bool is_answering;
    struct agent_stream *stream;
};
TAILQ_HEAD(agent_connections, agent_connection);
LIST_HEAD(agent_streams, agent_stream);

/* A bufferevent that evhttp has asked for but not yet attached to a connection. */
struct agent_newborn {
    struct agent_newborn *next;
    struct bufferevent *bev; /* we hold a reference */
};

struct agent {
    const struct cli *cli;
    char id[NAME_MAX_BYTES + 1];     /* of the candidate */
    bool waits_for_program;          /* unless --no-drain */
    gavel_ns alive_within;           /* 0: the program need not report that it is alive */
    char token[AGENT_TOKEN_MAX + 1]; /* "": none is required */
    struct agent_endpoint endpoint;

    /* the library's side */
    struct on_death *on_death; /* NULL without an election */
    struct gavel *gavel;
    struct gavel_candidate *candidate; /* must not be used once is_leaving */
    struct drain drain;
    struct agent_news news;
    atomic_bool has_looked; /* the state of the group is known */
    atomic_bool is_beating; /* a heartbeat succeeded while leading; the streams are to report it */
    atomic_bool has_ended;  /* the candidate has stopped, whether asked to or not */
    enum gavel_status ended;
    char ended_message[256];

    /* the loop */
    struct event_base *base;
    struct evhttp *http;
    struct evconnlistener *listener;
    gavel_ns heard_at;   /* when the program last reported that it is alive */
    bool is_mute;        /* it has not reported in time and must not lead */
    gavel_ns told_until; /* the deadline that the streams were told last by on_extended() */

    struct event *events[8];
    size_t event_count;
    struct event *newborn_event;
    struct event *resume_event;
    struct agent_newborn *newborns; /* oldest first */
    struct agent_newborn **newborns_end;
    struct agent_connections connections;
    size_t connection_count;
    struct agent_streams streams;
    size_t stream_count;
    uint64_t logged; /* the newest event that was logged */
    uint64_t requests;
    uint64_t cut; /* connections closed because they were slow, or to make room */

    /* the end */
    sigset_t signals;
    int signal_fd;
    int signal_number;
    bool is_leaving;
    bool is_closed; /* the library has closed */
    int closed_fd;  /* an eventfd: the library has closed */
    pthread_t closer;
    bool has_closer;
};

/* One HTTP request on its way through a handler. */
struct agent_call {
    struct agent *agent;
    struct evhttp_request *http;
    struct agent_connection *connection;
};

/* listen.c */
GAVEL_CHECKED enum gavel_status agent_listen(const char *where, bool has_token,
                                             struct agent_endpoint *ret_endpoint, struct gavel_error *error);
void agent_listen_end(struct agent_endpoint *endpoint); /* removes the socket's file */
GAVEL_CHECKED enum gavel_status agent_token_read(const char *file, char ret_token[static AGENT_TOKEN_MAX + 1],
                                                 struct gavel_error *error);
bool agent_token_is_shown(const char *token, const char *authorization);

/* http.c: connections. Takes over the listening socket. */
GAVEL_CHECKED enum gavel_status agent_http_open(struct agent *agent);
void agent_http_close(struct agent *agent);
void agent_http_stop_listening(struct agent *agent);
struct agent_connection *agent_connection_of(struct agent *agent, struct evhttp_request *http);
bool agent_is_answering(const struct agent *agent);

/* routes.c */
void agent_dispatch(struct evhttp_request *http, void *user);
/* Each ends the call. The object is handed over. */
void agent_reply(struct agent_call *call, int code, json_t *body);
void agent_reply_text(struct agent_call *call, int code, const char *type, const char *text, size_t length);
void agent_reply_error(struct agent_call *call, int code, enum gavel_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The value of a query parameter: "" if it has none, NULL if it is absent. The caller frees it. */
char *agent_query(const struct agent_call *call, const char *key);

/* answers.c: the state at this moment. */
bool agent_leads(struct agent *agent);
/* `is_event`: it may be read much later, so nothing in it counts from its arrival. */
json_t *agent_status_json(struct agent *agent, bool is_event);
void agent_get_sidecar(struct agent_call *call);
void agent_get_leader(struct agent_call *call);
void agent_get_status(struct agent_call *call);
void agent_get_candidates(struct agent_call *call);
void agent_get_health(struct agent_call *call);
void agent_get_ready(struct agent_call *call);
void agent_get_metrics(struct agent_call *call);
void agent_post_resign(struct agent_call *call);
void agent_post_alive(struct agent_call *call);
void agent_post_stopped(struct agent_call *call);

/* stream.c */
void agent_get_events(struct agent_call *call);
void agent_streams_pump(struct agent *agent);
void agent_streams_beat(struct agent *agent); /* a comment, so that both ends notice when the other is gone */
void agent_streams_renewed(struct agent *agent); /* the mandate was renewed */
void agent_streams_end(struct agent *agent);
void agent_stream_gone(struct agent_stream *stream);

#endif
