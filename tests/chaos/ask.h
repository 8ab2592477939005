/* SPDX-License-Identifier: Apache-2.0 */

/* One question to the HTTP API of a node, from within its namespace, where it listens on loopback: the test
 * hears a node whatever becomes of its links. */
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

/* The HTTP code, or 0 if there was no answer in time. *ret_json (may be NULL) is the body, the caller's to
 * json_decref(), or NULL if it is no JSON. */
int ask(const struct ask *question, json_t **ret_json);

/* Milliseconds and nanoseconds of CLOCK_BOOTTIME, the clock that nodes log by. */
int64_t now_ns(void);
int64_t now_ms(void);

#endif
