/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Candidates of groups that run in the namespaces of the nodes and use them as
 * a store, while the nodes suffer all their faults, and the candidates some of
 * their own.
 *
 *     group g1   run 1 · run 2 · session 3   each beats into one log per group (tests/run)
 *     group g2   run 4 · run 5 · session 6 …
 *
 * A `gavel run` holds a mandate by lease, a session_candidate one by session;
 * both stand in the same groups. Only the logs of beats are believed.
 */
#ifndef CHAOS_CANDIDATES_H
#define CHAOS_CANDIDATES_H

#include "cluster.h"

#define CANDIDATE_GROUPS 2
#define CANDIDATES_PER_GROUP 3
#define CANDIDATES (CANDIDATE_GROUPS * CANDIDATES_PER_GROUP)

struct candidate {
    pid_t pid; /* 0: none */
    int node;  /* whose namespace it runs in */
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
    int ended; /* how many had to be started again */
};

/* All of them, on the founders' namespaces. */
void candidates_start(struct candidates *candidates, struct cluster *cluster, const char *beat,
                      const char *session_candidate);

/* Disturbs one of them; `random` decides how. Those that have ended, or were frozen before, go on. */
void candidates_disturb(struct candidates *candidates, uint32_t random);

/* The candidate that beat last in that group; NULL: none has. */
const struct candidate *candidates_worker(const struct candidates *candidates, int group);

/* Lets all go on; then every group must have a working leader within the limit. Prints those that do not. */
bool candidates_are_led(struct candidates *candidates, int limit_ms);

/* Ends all in order and kills those that do not end; false if any had to be killed. */
bool candidates_stop(struct candidates *candidates, int limit_ms);

/* The referee of tests/run over the log of each group. */
bool candidates_referee(const struct candidates *candidates, const char *beat_referee);

#endif
