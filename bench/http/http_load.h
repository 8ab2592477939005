/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Load: repeats one request on connections that stay open, one at a time on
 * each, and measures how long each answer takes. Works against a bare TCP echo
 * as well as against HTTP and the client protocol, so that they can be
 * compared.
 *
 * There are two ways to ask. In a closed loop, a connection asks again as soon
 * as it is answered; this shows the maximum number of answers. At a fixed rate,
 * the instants of asking are set beforehand, and an answer's time counts from
 * there, not from when a connection was free: a server that stalls delays every
 * request that was due meanwhile, and all of them show it.
 */
#ifndef BENCH_HTTP_HTTP_LOAD_H
#define BENCH_HTTP_HTTP_LOAD_H

#include "base/time.h"

#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_CONNECTIONS_MAX 64
#define LOAD_REQUEST_MAX 512
#define LOAD_ANSWER_MAX 4096
#define LOAD_SAMPLES_MAX (4u << 20)

/* What an answer is. */
enum load_kind {
    LOAD_HTTP,   /* a head with Content-Length, and a body; good if its status is 200 */
    LOAD_ECHO,   /* the request */
    LOAD_FRAMES, /* a length of 4 bytes, then that many bytes: the client protocol (wire/client.h) */
};

struct load_plan {
    uint16_t port; /* on 127.0.0.1 */
    unsigned connections;
    enum load_kind kind;
    char request[LOAD_REQUEST_MAX];
    size_t request_bytes;            /* 0: a string */
    char greeting[LOAD_REQUEST_MAX]; /* FRAMES: sent first on each connection, and answered by one frame */
    size_t greeting_bytes;
    /* NULL, or whether the first whole answer on a connection is a good one. */
    bool (*judge)(const char *answer, size_t size);
    uint64_t rate; /* per second; 0: a closed loop */
    gavel_ns duration;
};

/* In memory shared with children, since a child makes the load. */
struct load_result {
    gavel_ns elapsed;
    uint64_t answers;
    uint64_t failures;   /* answers that are not 200, connections that ended */
    uint64_t unanswered; /* at a fixed rate: due, but still without an answer a while after the end */
    size_t count;        /* of latencies; answers beyond LOAD_SAMPLES_MAX are only counted */
    gavel_ns latencies[LOAD_SAMPLES_MAX];
};

/* NULL: out of memory. */
struct load_result *load_result_new(void);
void load_result_free(struct load_result *result);

/* "GET path" on a connection that stays open. */
void load_plan_get(struct load_plan *plan, const char *path);

/* The same with "PUT path" and a body. */
void load_plan_put(struct load_plan *plan, const char *path, const char *body);

/*
 * Asks until the time is over; one thread. Failures are counted; an incomplete
 * answer ends its connection. ERR_IO if it could not even connect, or if no
 * connection is left.
 */
GAVEL_CHECKED enum gavel_status load_run(const struct load_plan *plan, struct load_result *result);

/* Listens on a free port of 127.0.0.1; returns the descriptor, or -1. */
int load_echo_listen(uint16_t *ret_port);

/* Echoes what it receives, on any number of connections, until `control` is readable; one thread. */
GAVEL_CHECKED enum gavel_status load_echo_run(int listener, int control);

#endif
