/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The clients thread: sockets of clients (TCP with TLS, unix), frames, look-ups in
 * this node's table, watches. Requests that need the leader are forwarded to the
 * consensus thread.
 */
#ifndef DAEMON_CLIENTS_CLIENTS_H
#define DAEMON_CLIENTS_CLIENTS_H

#include "daemon/node/node.h"

struct clients;

/*
 * Listens on config->clients_listen and config->socket ("": not there), on a thread of its own. *ret_clients
 * is NULL if neither is set. ERR_IO, ERR_INVALID, with the next step.
 */
GAVEL_CHECKED enum gavel_status clients_start(struct node_shared *shared, struct clients **ret_clients,
                                              struct gavel_error *error);
void clients_reload(struct clients *clients);         /* the certificates; safe on NULL */
void clients_stop(struct clients *clients);           /* waits for the thread, frees; safe on NULL */
uint16_t clients_port(const struct clients *clients); /* 0: no TCP */

/* The lowest descriptor that no client gets: all from there on are reserved for the node and for HTTP. */
int clients_fd_limit(void);

struct clients_counts {
    uint64_t connections; /* now */
    uint64_t accepted;
    uint64_t cut;     /* too slow, or bad frames */
    uint64_t watches; /* now */
    uint64_t changes; /* sent */
    uint64_t lookups;
};
void clients_count(struct clients *clients,
                   struct clients_counts *ret_counts); /* any thread; safe on NULL: zeros */

#endif
