/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many candidates of one handle of libgavel, at a real cluster of three nodes: who was
 * told what, and whether the cluster says the same.
 */
#ifndef TESTS_LIB_CLUSTER_MANY_H
#define TESTS_LIB_CLUSTER_MANY_H

#include <gavel/gavel.h>

#include "store/cluster/nodes.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MANY_GROUPS 10000
/* Where a session must not end before all are led: with sanitizers, on a machine that is busy, ten thousand
 * take too long. */
#ifdef __SANITIZE_ADDRESS__
#define MANY_TIMED 2000
#else
#define MANY_TIMED MANY_GROUPS
#endif
#define MANY_LIMIT_MS 60000 /* for anything that a test waits for; a loaded machine is not a failure */

struct many;

struct many_member {
    struct many *many;
    struct gavel_candidate *candidate;
    size_t number;
    gavel_ms grace_ms;

    /* under the mutex */
    gavel_ms hang_ms; /* in on_demoted */
    int elected;
    int demoted;
    int overruns;
    size_t place; /* among those that were told to stop, from 1 on */
    uint64_t epoch;
    int64_t demoted_at_ns;
    char trouble[256]; /* why it cannot, if it said so */
};

struct many {
    struct gavel *gavel;
    struct many_member *members;
    size_t count;
    const char *id;
    bool is_ineligible; /* those that join from now on */
    /* Called without the lock, by the library's thread; NULL: nothing is done. */
    void (*on_elected)(struct many_member *member);

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t elected; /* how often any of them was */
    size_t demoted;
    size_t overruns;
    size_t troubled; /* of those that said why they cannot */
    size_t wrong;    /* elected twice, with an epoch that is not higher, or a leader while it is demoted */
};

/* A lease of so long, and what fits in it. */
struct gavel_settings many_settings(gavel_ms lease_ms, gavel_ms grace_ms);

/* Opens the store; nobody has joined. */
void many_open(struct many *many, const char *url, const char *id, size_t count);
/* Group g0, g1, …; an overrun is reported. */
void many_join(struct many *many, size_t number, const struct gavel_settings *settings);
void many_join_all(struct many *many, const struct gavel_settings *settings);
/* From now on its on_demoted takes so long. */
void many_hang(struct many *many, size_t number, gavel_ms hang_ms);
/* Leaves all groups and frees everything. */
void many_close(struct many *many);

/* Until one of its counters is that high; fails after the limit. */
void many_await(struct many *many, const size_t *counter, size_t least);
size_t many_count(struct many *many, const size_t *counter);
/* Until all that joined lead, whatever happened before. */
void many_await_all(struct many *many);

/* By the cluster, by the candidates and by what they were told: each leads its group, once, with the same
 * epoch. */
void many_expect_mandates(struct many *many, const char *url);
/* No candidate leads by gavel_is_leader(). */
void many_expect_none(const struct many *many);

/* Everybody was told once, and who needs longest to stop was told first. */
void many_expect_order(struct many *many);

/* What this process has on its heap. */
size_t many_heap_mib(void);

/* For cmocka: *state is a struct test_cluster that has a leader. */
int many_set_up(void **state);
int many_tear_down(void **state);
/* All nodes of it. */
void many_freeze(struct test_cluster *cluster);
void many_thaw(struct test_cluster *cluster);

void many_pause_ms(gavel_ms ms);

#endif
