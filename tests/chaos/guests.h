/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Guests of the cluster: candidates of groups that live in the namespaces of
 * the nodes and use them as a store, while everything is done to the nodes
 * that is done to nodes, and some things to the guests.
 *
 *     group g1   run 1 · run 2 · camper 3        each beats into one log per group (tests/run)
 *     group g2   run 4 · run 5 · camper 6 …
 *
 * A `gavel run` holds a lease mandate, a camper one of its session; both stand
 * in the same groups. Nothing is believed but the logs of beats.
 */
#ifndef CHAOS_GUESTS_H
#define CHAOS_GUESTS_H

#include "crew.h"

#define GUEST_GROUPS 2
#define GUESTS_PER_GROUP 3
#define GUESTS (GUEST_GROUPS * GUESTS_PER_GROUP)

struct guest {
    pid_t pid; /* 0: none */
    int node;  /* in whose namespace it lives */
    int group;
    bool is_camper;
    bool is_paused;
};

struct guests {
    struct crew *crew;
    char beat[PATH_MAX];
    char camper[PATH_MAX];
    char place[1024]; /* of the cluster, behind gavel:// */
    struct guest list[GUESTS];
    int ended; /* that had to be started again */
};

/* All of them, on the founders' namespaces. */
void guests_start(struct guests *guests, struct crew *crew, const char *beat, const char *camper);

/* Does something to one of them; `random` decides. Whoever has ended, or was frozen before, goes on. */
void guests_disturb(struct guests *guests, uint32_t random);

/* The guest that beat last in that group; NULL: none has. */
const struct guest *guests_worker(const struct guests *guests, int group);

/* Everybody goes on; then every group must be worked for within the limit. Prints which is not. */
bool guests_are_led(struct guests *guests, int limit_ms);

/* Ends all in order, kills who does not; false if somebody had to be killed. */
bool guests_stop(struct guests *guests, int limit_ms);

/* The judge of tests/run over the log of each group. */
bool guests_judge(const struct guests *guests, const char *judge);

#endif
