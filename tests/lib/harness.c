/* SPDX-License-Identifier: Apache-2.0 */

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int scene_setup(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);

    if (!scene)
        return -1;
    (void)snprintf(scene->directory, sizeof scene->directory, "/tmp/gavel-lib-XXXXXX");
    if (!mkdtemp(scene->directory))
        return -1;
    (void)snprintf(scene->path, sizeof scene->path, "%s/gavel.db", scene->directory);
    (void)snprintf(scene->url, sizeof scene->url, "sqlite:%s", scene->path);
    *state = scene;
    return 0;
}

/* A guard of a program that has ended may still be at work on the store, and write files again. */
static bool is_removed(void *argument)
{
    const struct scene *scene = argument;
    DIR *directory = opendir(scene->directory);
    const struct dirent *entry;

    if (!directory)
        return errno == ENOENT;
    while ((entry = readdir(directory)))
        (void)unlinkat(dirfd(directory), entry->d_name, 0); /* "." and ".." stay */
    (void)closedir(directory);
    return rmdir(scene->directory) == 0;
}

int scene_teardown(void **state)
{
    struct scene *scene = *state;
    bool is_gone = comes_true(is_removed, scene, LIMIT_MS);

    free(scene);
    return is_gone ? 0 : -1;
}

void recorder_init(struct recorder *recorder)
{
    pthread_condattr_t attributes;

    *recorder = (struct recorder){0};
    pthread_mutex_init(&recorder->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&recorder->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void recorder_done(struct recorder *recorder)
{
    pthread_cond_destroy(&recorder->changed);
    pthread_mutex_destroy(&recorder->mutex);
}

/* The recorder's mutex is held. */
static void note(struct recorder *recorder, char letter)
{
    size_t length = strlen(recorder->order);

    if (length < sizeof recorder->order - 1)
        recorder->order[length] = letter;
}

static void elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct recorder *recorder = user;

    pthread_mutex_lock(&recorder->mutex);
    recorder->elected++;
    note(recorder, 'e');
    recorder->epoch = epoch;
    recorder->was_leader_when_elected = gavel_is_leader(candidate);
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->mutex);
}

static void demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct recorder *recorder = user;
    gavel_ms hang_ms;

    pthread_mutex_lock(&recorder->mutex);
    hang_ms = recorder->hang_ms;
    recorder->was_leader_when_demoted = gavel_is_leader(candidate);
    recorder->reason = reason;
    note(recorder, 'd');
    pthread_mutex_unlock(&recorder->mutex);
    if (hang_ms > 0) {
        struct timespec t = {.tv_sec = hang_ms / 1000, .tv_nsec = hang_ms % 1000 * 1000000};

        while (nanosleep(&t, &t) < 0 && errno == EINTR)
            continue;
    }
    pthread_mutex_lock(&recorder->mutex);
    recorder->demoted++;
    recorder->demoted_at_ns = gavel_now_ns();
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->mutex);
}

static void work(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct recorder *recorder = user;

    (void)candidate;
    pthread_mutex_lock(&recorder->mutex);
    recorder->worked++;
    recorder->work_epoch = epoch;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->mutex);
}

static void event_came(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct recorder *recorder = user;

    (void)candidate;
    pthread_mutex_lock(&recorder->mutex);
    recorder->events[event->kind]++;
    if (event->kind == GAVEL_EVENT_BECAME_LEADER)
        note(recorder, 'B');
    if (event->kind == GAVEL_EVENT_LOST_LEADERSHIP)
        note(recorder, 'L');
    if (event->kind == GAVEL_EVENT_STOPPED)
        recorder->stopped = event->status;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->mutex);
}

struct gavel_subscriber recorder_subscriber(struct recorder *recorder)
{
    return (struct gavel_subscriber){.on_elected = elected,
                                     .on_demoted = demoted,
                                     .on_work = work,
                                     .on_event = event_came,
                                     .user = recorder};
}

static struct timespec limit_at(gavel_ms limit_ms)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail */
    t.tv_sec += limit_ms / 1000;
    t.tv_nsec += limit_ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

bool recorder_sees(struct recorder *recorder, const int *counter, int least, gavel_ms limit_ms)
{
    struct timespec until = limit_at(limit_ms);
    bool is_seen;

    pthread_mutex_lock(&recorder->mutex);
    while (*counter < least)
        if (pthread_cond_timedwait(&recorder->changed, &recorder->mutex, &until) == ETIMEDOUT)
            break;
    is_seen = *counter >= least;
    pthread_mutex_unlock(&recorder->mutex);
    return is_seen;
}

int recorder_count(struct recorder *recorder, const int *counter)
{
    int count;

    pthread_mutex_lock(&recorder->mutex);
    count = *counter;
    pthread_mutex_unlock(&recorder->mutex);
    return count;
}

bool comes_true(bool (*is_true)(void *argument), void *argument, gavel_ms limit_ms)
{
    int64_t until = gavel_now_ns() + limit_ms * 1000000;
    const struct timespec pause = {.tv_nsec = 2000000};

    while (!is_true(argument)) {
        if (gavel_now_ns() >= until)
            return false;
        (void)nanosleep(&pause, NULL); /* between two looks */
    }
    return true;
}

struct gavel_settings quick_settings(void)
{
    struct gavel_settings settings;

    assert_int_equal(gavel_settings_preset("local", &settings), GAVEL_OK);
    settings.heartbeat_ms = 200;
    settings.heartbeat_jitter_ms = 20;
    settings.election_interval_ms = 200;
    settings.candidate_timeout_ms = 1500;
    settings.call_timeout_ms = 300;
    /* A loaded machine is late, and a process whose work stops too late is ended. */
    settings.lease_ms = 6000;
    settings.stop_grace_ms = 2500;
    settings.stop_margin_ms = 500;
    return settings;
}

static struct gavel_settings usual_settings(void)
{
    struct gavel_settings settings;

    assert_int_equal(gavel_settings_preset("local", &settings), GAVEL_OK);
    settings.lease_ms *= 5; /* as above */
    settings.stop_grace_ms *= 5;
    return settings;
}

struct gavel_settings patient_settings(void)
{
    struct gavel_settings settings;

    assert_int_equal(gavel_settings_preset("local", &settings), GAVEL_OK);
    settings.heartbeat_ms = 300000;
    settings.heartbeat_jitter_ms = 0;
    settings.election_interval_ms = 300000;
    settings.candidate_timeout_ms = 3600000;
    settings.lease_ms = 1200000;
    settings.call_timeout_ms = 5000;
    return settings;
}

struct gavel *open_gavel(const char *url)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = url;
    if (gavel_open(&options, &gavel, &error) != GAVEL_OK)
        fail_msg("cannot open %s: %s", url, error.message);
    return gavel;
}

struct gavel_candidate *join_group(struct gavel *gavel, const char *group, const char *id,
                                   const struct gavel_settings *settings, struct recorder *recorder)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    const struct gavel_settings usual = usual_settings();
    struct gavel_candidate *candidate = NULL;
    struct gavel_error error = {0};

    options.group = group;
    options.candidate = id;
    options.settings = settings ? settings : &usual;
    if (recorder)
        options.subscriber = recorder_subscriber(recorder);
    if (gavel_join(gavel, &options, &candidate, &error) != GAVEL_OK)
        fail_msg("cannot join %s: %s", group, error.message);
    return candidate;
}
