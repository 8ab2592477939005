/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the tests of libgavel share: a directory with a store of its own, and a
 * recorder that writes down what a candidate's callbacks say and lets a test
 * wait for it with a limit.
 */
#ifndef TESTS_LIB_HARNESS_H
#define TESTS_LIB_HARNESS_H

#include <gavel/gavel.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* How long a test waits for what must happen. Far longer than it takes: a loaded machine is not a failure. */
#define LIMIT_MS 60000

struct scene {
    char directory[64];
    char url[160];  /* sqlite: */
    char path[128]; /* of its file */
};

/* cmocka's setup and teardown: *state is a struct scene with a fresh directory. */
int scene_setup(void **state);
int scene_teardown(void **state);

struct recorder {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int elected;
    int demoted;
    int worked;
    int events[GAVEL_EVENT_COUNT];
    uint64_t epoch;               /* of the last on_elected */
    uint64_t work_epoch;          /* of the last on_work */
    enum gavel_reason reason;     /* of the last on_demoted */
    enum gavel_status stopped;    /* of the `stopped` event */
    bool was_leader_when_elected; /* gavel_is_leader() inside on_elected */
    bool was_leader_when_demoted; /* gavel_is_leader() inside on_demoted */
    int64_t demoted_at_ns;
    gavel_ms hang_ms; /* how long on_demoted takes */
    char order[32];   /* e on_elected, B became_leader, L lost_leadership, d on_demoted, as they came */
};

void recorder_init(struct recorder *recorder);
void recorder_done(struct recorder *recorder);

/* A subscriber that passes everything to this recorder. */
struct gavel_subscriber recorder_subscriber(struct recorder *recorder);

/* Waits until *counter (of this recorder) is at least `least`; false after limit_ms. */
bool recorder_sees(struct recorder *recorder, const int *counter, int least, gavel_ms limit_ms);

int recorder_count(struct recorder *recorder, const int *counter);

/* Polls at short intervals until it is true; false after limit_ms. For what no callback reports. */
bool comes_true(bool (*is_true)(void *argument), void *argument, gavel_ms limit_ms);

/* The preset `local` with shorter times, for tests that must wait for a lease to run out. */
struct gavel_settings quick_settings(void);

/* The preset `local` with minutes between two looks: only a doorbell or a pidfd can explain what happens
 * sooner. */
struct gavel_settings patient_settings(void);

/* Opens or fails the test. */
struct gavel *open_gavel(const char *url);

/* Joins or fails the test. settings NULL: the preset local, with more time; recorder may be NULL. */
struct gavel_candidate *join_group(struct gavel *gavel, const char *group, const char *id,
                                   const struct gavel_settings *settings, struct recorder *recorder);

#endif
