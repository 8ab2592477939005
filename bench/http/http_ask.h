/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request at a time to an HTTP server on loopback, over a connection that
 * stays open. Asking and reading the answer are separate, so that a measurement
 * can leave its request with a server that is frozen.
 */
#ifndef BENCH_HTTP_HTTP_ASK_H
#define BENCH_HTTP_HTTP_ASK_H

#include "base/time.h"

#include <gavel/status.h>

#include <stdint.h>

#define HTTP_ANSWER_MAX (64u * 1024)

struct http_line {
    uint16_t port; /* on 127.0.0.1 */
    int fd;        /* -1: not connected */
};

/* An answer: its status and its body, which ends with a NUL. */
struct http_answer {
    int code;
    char body[HTTP_ANSWER_MAX];
};

void http_line_init(struct http_line *line, uint16_t port);
void http_line_close(struct http_line *line);

/* Connects if necessary, and sends. `body` NULL: none. ERR_IO. */
GAVEL_CHECKED enum gavel_status http_line_ask(struct http_line *line, const char *method, const char *path,
                                              const char *body);

/* Reads the whole answer. ERR_TIMEOUT, ERR_IO; the connection is closed after either. */
GAVEL_CHECKED enum gavel_status http_line_hear(struct http_line *line, gavel_ns until,
                                               struct http_answer *ret_answer);

/*
 * Reads a stream of server-sent events until one of that name has begun; body
 * is all that has come since the last call, with the head if this is the first.
 * ERR_TIMEOUT; ERR_IO also if the stream ends, or the answer is no 200. Close
 * the connection when the stream is not needed any more.
 */
GAVEL_CHECKED enum gavel_status http_line_hear_event(struct http_line *line, const char *event,
                                                     gavel_ns until, struct http_answer *ret_answer);

/* Both; tries again with a new connection if the server had closed the old one. */
GAVEL_CHECKED enum gavel_status http_line_get(struct http_line *line, const char *path, gavel_ns until,
                                              struct http_answer *ret_answer);

#endif
