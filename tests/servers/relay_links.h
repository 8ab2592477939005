/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connections of a relay (relay.h) and what is done to them. A link is the
 * connection of a client and the one to the server that belongs to it, with a
 * queue of pieces for each direction; a piece waits there until it is due.
 */
#ifndef TESTS_SERVERS_RELAY_LINKS_H
#define TESTS_SERVERS_RELAY_LINKS_H

#include "base/time.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define RELAY_LINKS_MAX 500

enum { UP, DOWN }; /* to the server, to the client */

struct link;
struct relay_links {
    int target;            /* the port of the server */
    bool drops;            /* nothing passes */
    bool mutes;            /* what the server says is swallowed … */
    bool snaps;            /* … or ends the link … */
    uint64_t silent_after; /* … once this many bytes in total have gone to it */
    gavel_ms delay_ms[2];
    uint64_t passed[2]; /* bytes */
    uint64_t opened;    /* links so far */
    bool is_out_of_memory;
    LIST_HEAD(, link) list;
    size_t count; /* of links; at most RELAY_LINKS_MAX, which the caller ensures */
};

/* That port of this machine. */
struct sockaddr_in relay_address(int port);

/* Takes over the connection of a client, and connects to the server for it. */
void relay_links_add(struct relay_links *links, int fd);

/* Resets all, or only those that lost bytes. */
void relay_links_cut(struct relay_links *links, bool spoiled_only);

/* Ends the server's side of all, with a reset or a FIN; their clients see nothing of it. */
void relay_links_leave_server(struct relay_links *links, bool by_reset);

/* Makes everything on its way due now. */
void relay_links_hurry(struct relay_links *links);

/* Fills in what to wait for, two for each link, and lowers *until to when the next piece is due. */
size_t relay_links_poll(const struct relay_links *links, struct pollfd *fds, gavel_ns now, gavel_ns *until);

/* Does what can be done, after poll() on exactly what the function above has filled in. */
void relay_links_turn(struct relay_links *links, const struct pollfd *fds);

#endif
