/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Candidates of groups that live in the namespaces of
 * the nodes and use them as a store, while everything is done to the nodes
 * that is done to nodes, and some things to the candidates.
 *
 *     group g1   run 1 · run 2 · session 3   each beats into one log per group (tests/run)
 *     group g2   run 4 · run 5 · session 6 …
 *
 * A `gavel run` holds a lease mandate, a session_candidate one of its session; both stand
 * in the same groups. Nothing is believed but the logs of beats.
 */
#ifndef CHAOS_CANDIDATES_H
#define CHAOS_CANDIDATES_H

#include "cluster.h"

#define CANDIDATE_GROUPS 2
#define CANDIDATES_PER_GROUP 3
#define CANDIDATES (CANDIDATE_GROUPS * CANDIDATES_PER_GROUP)

struct candidate {
    pid_t pid; /* 0: none */
    int node;  /* in whose namespace it lives */
    int group;
    bool has_session;
    bool is_paused;
};

struct candidates {
    struct cluster *cluster;
    char beat[PATH_MAX];
    char session_candidate[PATH_MAX];
    char address[1024]; /* of the cluster, behind gavel:// */
    struct candidate list[CANDIDATES];
    int ended; /* that had to be started again */
};

/* All of them, on the founders' namespaces. */
void candidates_start(struct candidates *candidates, struct cluster *cluster, const char *beat,
                      const char *session_candidate);

/* Does something to one of them; `random` decides. Whoever has ended, or was frozen before, goes on. */
void candidates_disturb(struct candidates *candidates, uint32_t random);

/* The candidate that beat last in that group; NULL: none has. */
const struct candidate *candidates_worker(const struct candidates *candidates, int group);

/* Everybody goes on; then every group must be worked for within the limit. Prints which is not. */
bool candidates_are_led(struct candidates *candidates, int limit_ms);

/* Ends all in order, kills who does not; false if somebody had to be killed. */
bool candidates_stop(struct candidates *candidates, int limit_ms);

/* The referee of tests/run over the log of each group. */
bool candidates_referee(const struct candidates *candidates, const char *beat_referee);

#endif
