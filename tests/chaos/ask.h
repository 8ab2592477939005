/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request to the HTTP API of a node, from within its namespace, where it
 * listens on loopback: the test reaches a node whatever happens to its links.
 */
#ifndef CHAOS_ASK_H
#define CHAOS_ASK_H

#include "net.h"

#include <jansson.h>

struct ask {
    const struct net *net;
    int node;
    int port;
    const char *method;
    const char *path;
    const char *body; /* NULL: none */
    int limit_ms;     /* for everything */
};

/*
 * The HTTP code, or 0 if there was no answer in time. *ret_json (may be NULL)
 * is the body, which the caller frees with json_decref(), or NULL if it is not
 * JSON.
 */
int ask(const struct ask *question, json_t **ret_json);

/* Milliseconds and nanoseconds of CLOCK_BOOTTIME, the clock that nodes log by. */
int64_t now_ns(void);
int64_t now_ms(void);

#endif
