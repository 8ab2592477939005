/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A node as its clients see it, on the loop of the test: it greets, opens
 * sessions, and answers everything with success, unless told otherwise.
 */
#ifndef TESTS_CLIENT_FAKE_NODE_H
#define TESTS_CLIENT_FAKE_NODE_H

#include "net/tls.h"
#include "wire/client.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <sys/queue.h>

struct fake_client {
    LIST_ENTRY(fake_client) entry;
    struct fake_node *node;
    struct bufferevent *bytes;
};

struct fake_node {
    struct event_base *base;
    SSL_CTX *tls; /* NULL: plain */
    struct evconnlistener *listener;
    char path[108]; /* of a unix socket; "" TCP */
    uint16_t port;
    LIST_HEAD(, fake_client) clients;

    bool is_mute;                  /* answers nothing but the greeting */
    bool is_blind;                 /* does not even read */
    bool denies_session;           /* keep-alives are told that the session is gone */
    const char *says;              /* these bytes instead of a greeting */
    const _Atomic uint64_t *noted; /* where the session stands before its opening comes; NULL: nowhere */

    size_t hellos;
    uint8_t secret[16]; /* of the newest */
    size_t opened;
    size_t closed;
    size_t kept;
    size_t requests;
    size_t asks;
    size_t watches;
    uint32_t ttl_ms;        /* of the newest opening */
    uint64_t session;       /* of the newest request */
    uint64_t request;       /* its id */
    uint64_t watch;         /* the newest, on the wire */
    uint64_t watch_session; /* that it is of; 0 none */
};

void fake_node_on_tcp(struct fake_node *node, struct event_base *base, const struct tls_files *files);
void fake_node_on_unix(struct fake_node *node, struct event_base *base, const char *path);
/* Stops listening and cuts all connections. */
void fake_node_stop(struct fake_node *node);
void fake_node_cut(struct fake_node *node);
/* Sends a change to all connections. */
void fake_node_change(struct fake_node *node, uint64_t revision);

#endif
