/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The real API over loopback, with a fake consensus thread: it publishes a
 * view, puts events into the journal when told to, and answers requests as the
 * test wants; groups have a real frontend and a real table behind them
 * (api_cluster.h). And a client: libcurl for what is HTTP, a bare socket for
 * what is not.
 */
#ifndef TESTS_API_FRONTEND_H
#define TESTS_API_FRONTEND_H

#include "api_cluster.h"
#include "daemon/api/api.h"
#include "daemon/api/internal.h"

#include <jansson.h>

struct api_frontend {
    struct node_shared frontend;
    struct daemon_config *config;
    struct api *api;
    struct api_cluster cluster; /* answers forwardings, on the consensus thread */
    pthread_t consensus;
    _Atomic bool is_ending;
    _Atomic bool is_silent; /* publishes nothing */
    _Atomic bool holds;     /* answers nothing */
    _Atomic int asked;      /* requests that came */

    pthread_mutex_t mutex; /* of what follows */
    struct view view;
    struct request answer; /* status, message, names of what is answered */
    struct request last;   /* the last that was asked */
    char directory[64];
};

/* A node n1 of n1, n2, n3 that leads with a lease. Settings may be changed before api_frontend_start(). */
int api_frontend_setup(void **state);
int api_frontend_setup_stopped(void **state); /* without api_frontend_start() */
int api_frontend_teardown(void **state);
void api_frontend_start(struct api_frontend *frontend);

/* Publishes it, and has done so on return. */
void api_frontend_follow(struct api_frontend *frontend); /* n2 leads, and is heard */
void api_frontend_orphan(struct api_frontend *frontend); /* nobody leads */
void api_frontend_answer(struct api_frontend *frontend, enum gavel_status status, const char *message,
                         const char *leader_api);
void api_frontend_last(struct api_frontend *frontend, struct request *ret_request);
void api_frontend_wait_asked(struct api_frontend *frontend, int count);
/* Puts an event about `node`; returns its id. */
uint64_t api_frontend_put(struct api_frontend *frontend, enum journal_event event, const char *node,
                          const char *text);

struct http_answer {
    long code;
    size_t length;
    char headers[4096];
    char body[256 * 1024];
};

/* One call; body NULL for GET, otherwise POST. Headers end with NULL; "" for none. */
struct http_answer *http_ask(struct api_frontend *frontend, const char *path, const char *body,
                             const char *header);
struct http_answer *http_ask_method(struct api_frontend *frontend, const char *method, const char *path,
                                    const char *body, const char *header);
/* The value of a header into the buffer; false if there is none. */
bool http_header(const struct http_answer *answer, const char *name, char *buffer, size_t size);

/* The body as JSON. */
json_t *http_json(const struct http_answer *answer);

/* Asks, and checks the code and that the body is an error of this status; returns the message (static). */
const char *http_expect_error(struct api_frontend *frontend, const char *path, const char *body, long code,
                              enum gavel_status status);

/* A socket with a limit of time on everything. */
int raw_open(const struct api_frontend *frontend);
void raw_say(int fd, const char *text);
/* Reads until `until` is in it, or the end; within limit_ms. Returns the length; *ret_is_closed (may be
 * NULL). */
size_t raw_hear(int fd, char *buffer, size_t size, const char *until, int limit_ms, bool *ret_is_closed);

#endif
