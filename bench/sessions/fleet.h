/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A member of a crew that plays many clients of a cluster: one process, one
 * thread, and a connection with a session of its own for each of them, by the
 * client protocol. It campaigns in groups when it is told to, and writes down
 * when it holds them.
 *
 *     JOINED            all sessions are open
 *     c: campaigns  ─►  HOLDS     every group of its own is led by one of its sessions
 *     s: stands by  ─►  STANDS    every group of the other set has a candidate of it more
 *                       HALF, FOLLOWED   half of these, all of these are led by it
 *     l: leaves     ─►  LEFT      it has no candidate in these any more
 *     w, e: writes, one after the other on each connection, until told to rest
 *     v: compares   ─►  VERIFIED  with what the cluster says of its groups
 *
 * A candidate is a fleet of one that campaigns at once and tells of every
 * change of the leader, as elector.h does with libgavel.
 */
#ifndef BENCH_SESSIONS_FLEET_H
#define BENCH_SESSIONS_FLEET_H

#include "bench/props/crew.h"

#include <stdatomic.h>

#define FLEET_CONNECTIONS_MAX 128
#define FLEET_PLACES_MAX 3
#define FLEET_PLACE_BYTES 2048
#define FLEET_PREFIX_BYTES 16

#define FLEET_CAMPAIGN 'c'
#define FLEET_STAND_BY 's'
#define FLEET_LEAVE 'l'
#define FLEET_WRITE 'w'
#define FLEET_REST 'e'
#define FLEET_VERIFY 'v'

/* What it marks with MARK_RESULT, as the epoch of the mark; in the order in which they can come. */
enum fleet_news {
    FLEET_HOLDS = 1,
    FLEET_STANDS,
    FLEET_HALF,
    FLEET_FOLLOWED,
    FLEET_LEFT,
    FLEET_VERIFIED, /* `value`: so many of its groups are not led as they were */
    FLEET_ANSWERED, /* `value`: a connection whose write after board->since was answered */
};

/* In memory that driver and fleet share. */
struct fleet_board {
    _Atomic gavel_ns since; /* the answer to the first write that was sent then or later is noted … */
    _Atomic gavel_ns answered_at[FLEET_CONNECTIONS_MAX]; /* … here, if it is 0 */
    _Atomic uint64_t writes;                             /* that were answered */
    _Atomic gavel_ns slowest;                            /* of them */
    _Atomic uint64_t gaps;                               /* in watches: changes that were not told */
    _Atomic uint64_t lost;                               /* sessions, and mandates that others have now */
};

struct fleet_set {
    char prefix[FLEET_PREFIX_BYTES];
    size_t count;
};

struct fleet_plan {
    char places[FLEET_PLACES_MAX][FLEET_PLACE_BYTES]; /* as after "gavel://"; connections take turns */
    size_t place_count;
    size_t connections;
    uint32_t ttl_ms;
    bool tells_process; /* so that nodes on this machine see its death */
    bool is_candidate;
    struct fleet_set own;
    struct fleet_set others; /* that others lead at first */
    gavel_ns pace;           /* between a write's answer and the next write */
    struct fleet_board *board;
};

/* NULL: out of memory. */
struct fleet_board *fleet_board_new(void);
void fleet_board_free(struct fleet_board *board); /* safe on NULL */

/* A post_run(); user is a struct fleet_plan. */
int fleet_run(const struct post *post, void *user);

#endif
