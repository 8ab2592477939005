/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the program behind an agent has stopped its work. The library's
 * thread tells how the mandate begins and ends and, when it ends, waits here;
 * the program says by HTTP that it has stopped.
 *
 *     elected ──► works ──► lost ──► wait ──► released by the library
 *                                     ▲
 *                    POST /stopped ───┘   or the deadline, whichever is first
 *
 * The program may be faster than the library's thread: it has seen by the
 * clock that its time is over, and says so before anybody waits. That counts.
 */
#ifndef CLI_AGENT_DRAIN_H
#define CLI_AGENT_DRAIN_H

#include "base/time.h"

#include <gavel/status.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct drain {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool has_led;     /* first and newest mean something */
    bool is_lost;     /* the mandate is over, or was never there */
    bool has_stopped; /* the program has said so, of that mandate */
    uint64_t first;   /* epochs of the present or the last mandate: the one it began with, */
    uint64_t newest;  /* and the one it was renewed as */
};

/* What is known at one moment. */
struct drain_view {
    bool is_working;  /* the mandate has begun, and nobody has said that it is over */
    bool is_stopping; /* the program has been told to stop and has not said that it has */
    uint64_t first;
    uint64_t newest;
};

void drain_init(struct drain *drain);
void drain_done(struct drain *drain);

/* A mandate begins; it goes on as another epoch; it is over, and the program has to stop. */
void drain_elected(struct drain *drain, uint64_t epoch);
void drain_renewed(struct drain *drain, uint64_t epoch);
void drain_lost(struct drain *drain);

/* Waits until the program has stopped; false if that instant (of clock_now()) came first. */
bool drain_wait(struct drain *drain, gavel_ns until);

/*
 * The program says that it has stopped what it did with that epoch. `leads`:
 * by the clock the mandate still holds. Said again, it is OK again.
 *
 *     ERR_STATE       it has not led yet, or leads with that epoch right now
 *     ERR_TERM_STALE  an epoch of an earlier mandate
 *     ERR_INVALID     an epoch that it has not had
 */
GAVEL_CHECKED enum gavel_status drain_stopped(struct drain *drain, uint64_t epoch, bool leads,
                                              struct gavel_error *error);

void drain_look(struct drain *drain, struct drain_view *ret_view);

#endif
