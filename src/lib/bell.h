/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The doorbell's socket: one UDP port per handle, shared by its groups. Sends
 * "look now" to the addresses of other candidates and passes on what comes in.
 */
#ifndef LIB_BELL_H
#define LIB_BELL_H

#include "base/record.h"
#include "base/time.h"
#include "lib/source.h"

struct bell {
    struct source source;                /* fd -1: no doorbell */
    char address[ADDRESS_MAX_BYTES + 1]; /* where others ring; "" without a doorbell */
    gavel_ns window_at;                  /* start of the current time window */
    size_t received;                     /* datagrams in it */
    bool is_muted;                       /* too many: ignores the rest until the window is over */
};

/*
 * Binds the socket. `where` is a numeric "address" or "address:port", IPv6 in
 * brackets; NULL for 127.0.0.1, "" for no doorbell. ERR_INVALID, ERR_IO; *error
 * says what is wrong. The socket is not yet in the loop.
 */
GAVEL_CHECKED enum gavel_status bell_open(struct bell *bell, const char *where, struct gavel_error *error);

/* Safe without a socket. */
void bell_close(struct bell *bell);

/* Sends "look at this group now". Failures are ignored: it is only a hint. */
void bell_ring(const struct bell *bell, const char *group, const char *address);

/* Rings on behalf of a dead process, without a doorbell of its own. */
struct ringer {
    int v4; /* -1: not needed yet */
    int v6;
};

#define RINGER_INIT                                                                                          \
    {                                                                                                        \
        .v4 = -1, .v6 = -1                                                                                   \
    }

/* Like bell_ring(). */
void ringer_ring(struct ringer *ringer, const char *group, const char *address);
void ringer_done(struct ringer *ringer);

/* Listens again after a flood; returns when to call next, NEVER if it listens. Loop only. */
gavel_ns bell_unmute(struct gavel *gavel, gavel_ns now);

#endif
