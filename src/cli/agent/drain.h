/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the program behind an agent has stopped its work. The library's
 * thread reports when the mandate begins and ends. When it ends, that thread
 * waits here until the program says over HTTP that it has stopped.
 *
 *     elected ──► works ──► lost ──► wait ──► released by the library
 *                                     ▲
 *                    POST /stopped ───┘   or the deadline, whichever is first
 *
 * The program may be faster than the library's thread: it sees by the clock
 * that its time is over, and reports before the library waits. That counts.
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
    bool has_stopped; /* the program has said so for that mandate */
    uint64_t first;   /* of the current or last mandate: its first epoch, */
    uint64_t newest;  /* and its newest */
};

/* What is known at one moment. */
struct drain_view {
    bool is_working;  /* the mandate has begun and was not reported lost */
    bool is_stopping; /* the program was told to stop and has not confirmed it */
    uint64_t first;
    uint64_t newest;
};

void drain_init(struct drain *drain);
void drain_done(struct drain *drain);

/* A mandate begins; it continues under another epoch; it is over, and the program must stop. */
void drain_elected(struct drain *drain, uint64_t epoch);
void drain_renewed(struct drain *drain, uint64_t epoch);
void drain_lost(struct drain *drain);

/* Waits until the program has stopped; false if `until` (on clock_now()) came first. */
bool drain_wait(struct drain *drain, gavel_ns until);

/*
 * The program reports that it has stopped the work of that epoch. `leads`: by
 * the clock the mandate still holds. Repeating the report is OK.
 *
 *     ERR_STATE       it has not led yet, or leads with that epoch right now
 *     ERR_TERM_STALE  an epoch of an earlier mandate
 *     ERR_INVALID     an epoch that it has not had
 */
GAVEL_CHECKED enum gavel_status drain_stopped(struct drain *drain, uint64_t epoch, bool leads,
                                              struct gavel_error *error);

void drain_look(struct drain *drain, struct drain_view *ret_view);

#endif
