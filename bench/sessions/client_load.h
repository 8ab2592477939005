/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A member of a rig that plays many clients of a cluster: one process, one
 * thread, and a connection with a session of its own for each of them, by the
 * client protocol. It campaigns in groups when told to, and records when it
 * holds them.
 *
 *     JOINED            all sessions are open
 *     c: campaigns  ─►  HOLDS     every group of its own is led by one of its sessions
 *     s: stands by  ─►  STANDS    every group of the other set has one more candidate of it
 *                       HALF, FOLLOWED   it leads half of these, all of these
 *     l: leaves     ─►  LEFT      it has no candidate left in these
 *     w, e: writes, one after the other on each connection at its pace, until told to rest
 *     h: the same in a hurry: without a pause between an answer and the next write
 *     v: compares   ─►  VERIFIED  with what the cluster says about its groups
 *
 * A candidate is a client load of one that campaigns at once and reports every
 * change of the leader, as participant.h does with libgavel.
 */
#ifndef BENCH_SESSIONS_CLIENT_LOAD_H
#define BENCH_SESSIONS_CLIENT_LOAD_H

#include "bench/props/rig.h"

#include <stdatomic.h>

#define CLIENT_LOAD_CONNECTIONS_MAX 128
#define CLIENT_LOAD_TARGETS_MAX 3
#define CLIENT_LOAD_TARGET_BYTES 2048
#define CLIENT_LOAD_PREFIX_BYTES 16
#define CLIENT_LOAD_LATENCIES_MAX (1u << 20)

#define CLIENT_LOAD_CAMPAIGN 'c'
#define CLIENT_LOAD_STAND_BY 's'
#define CLIENT_LOAD_LEAVE 'l'
#define CLIENT_LOAD_WRITE 'w'
#define CLIENT_LOAD_HURRY 'h'
#define CLIENT_LOAD_REST 'e'
#define CLIENT_LOAD_VERIFY 'v'

/* What it marks with MARK_RESULT, as the epoch of the mark; in the order in which they can come. */
enum client_load_news {
    CLIENT_LOAD_HOLDS = 1,
    CLIENT_LOAD_STANDS,
    CLIENT_LOAD_HALF,
    CLIENT_LOAD_FOLLOWED,
    CLIENT_LOAD_LEFT,
    CLIENT_LOAD_VERIFIED, /* `value`: how many of its groups are not led as before */
    CLIENT_LOAD_ANSWERED, /* `value`: a connection whose write after board->since was answered */
};

/* In memory that driver and client_load share. */
struct client_load_board {
    _Atomic gavel_ns since; /* the answer to the first write sent at or after this is noted … */
    _Atomic gavel_ns answered_at[CLIENT_LOAD_CONNECTIONS_MAX]; /* … here, if it is 0 */
    _Atomic uint64_t gaps;                                     /* in watches: missed changes */
    _Atomic uint64_t lost; /* sessions, and mandates that others have now */
    _Atomic size_t latency_count;
    gavel_ns latencies[CLIENT_LOAD_LATENCIES_MAX]; /* of writes; those beyond are only counted */
};

struct client_load_set {
    char prefix[CLIENT_LOAD_PREFIX_BYTES];
    size_t count;
};

struct client_load_plan {
    char targets[CLIENT_LOAD_TARGETS_MAX]
                [CLIENT_LOAD_TARGET_BYTES]; /* as after "gavel://"; connections take turns */
    size_t target_count;
    size_t connections;
    uint32_t ttl_ms;
    bool tells_process; /* so that nodes on this machine see its death */
    bool is_candidate;
    struct client_load_set own;
    struct client_load_set others; /* initially led by others */
    bool writes_notes; /* a write is a note of its first group; else a change of its candidate there */
    gavel_ns pace;     /* between a write's answer and the next write */
    struct client_load_board *board;
};

/* NULL: out of memory. */
struct client_load_board *client_load_board_new(void);
void client_load_board_free(struct client_load_board *board); /* safe on NULL */

/* A member_run(); user is a struct client_load_plan. */
int client_load_run(const struct member_context *context, void *user);

#endif
