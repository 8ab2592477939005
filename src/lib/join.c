/* SPDX-License-Identifier: Apache-2.0 */

/* Joining and leaving a group. */

#include "lib/join.h"

#include "base/error.h"
#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP_DEFAULT "default"
#define PRESET_DEFAULT "local"

static void default_id(char *buffer, size_t size)
{
    char host[NAME_MAX_BYTES + 1 - 16] = "";

    if (gethostname(host, sizeof host) < 0 || host[0] == '\0')
        (void)snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    (void)snprintf(buffer, size, "%s-%ld", host, (long)getpid()); /* room was kept for the number */
}

static enum gavel_status choose_settings(const struct gavel *gavel, const struct gavel_join_options *options,
                                         struct gavel_settings *ret_settings, struct gavel_error *error)
{
    const char *preset = options->preset;

    if (options->settings) {
        *ret_settings = *options->settings;
        return GAVEL_OK;
    }
    if (!preset)
        preset = gavel->store ? gavel->capabilities.preset : PRESET_DEFAULT;
    if (gavel_settings_preset(preset, ret_settings) != GAVEL_OK)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "there is no preset \"%s\"; use local, cluster, database, coordinator, object-store or frugal",
            preset);
    return GAVEL_OK;
}

static enum gavel_status check_options(const struct gavel *gavel, const struct gavel_join_options *options,
                                       struct gavel_error *error)
{
    if (options->subscriber.work_interval_ms < 0)
        return error_set(error, GAVEL_ERR_INVALID, "work_interval_ms is negative; use 0 for the default");
    if (options->enabled && !gavel->store)
        return error_set(
            error, GAVEL_ERR_STATE,
            "this handle was opened without a store, so an election is not possible; name a store, or join with enabled = false");
    return GAVEL_OK;
}

static enum gavel_status init_machine(struct gavel_candidate *candidate,
                                      const struct gavel_join_options *options, struct gavel_error *error)
{
    const struct gavel *gavel = candidate->gavel;
    struct candidate_config config = {
        .group = options->group ? options->group : GROUP_DEFAULT,
        .id = options->candidate,
        .address = gavel->bell.address,
        .store = gavel->store_url,
        .priority = options->priority,
        .eligible = options->eligible,
        .clock = gavel->capabilities.clock,
        .process = gavel->self,
        .is_guarded = gavel->is_guarded,
        .has_sessions = options->enabled && gavel->capabilities.has_sessions,
        .seed = entropy_u64(),
        .wall_ms = clock_wall_ms(),
    };
    char id[NAME_MAX_BYTES + 1];
    enum gavel_status status;

    if (!config.id) {
        default_id(id, sizeof id);
        config.id = id;
    }
    status = choose_settings(gavel, options, &config.settings, error);
    if (status == GAVEL_OK)
        status = candidate_init(&candidate->machine, &config, error);
    if (status != GAVEL_OK)
        return status;
    candidate->group = candidate->watchdog_entry.group = candidate->machine.group;
    candidate->id = candidate->machine.id;
    return GAVEL_OK;
}

/* On the watchdog's thread. */
static void report_overrun(struct watchdog_entry *entry, uint64_t epoch)
{
    struct gavel_candidate *candidate =
        (void *)((char *)entry - offsetof(struct gavel_candidate, watchdog_entry));

    deliver_overrun(candidate, epoch);
}

static struct gavel_candidate *candidate_new(struct gavel *gavel, const struct gavel_join_options *options)
{
    struct gavel_candidate *candidate = calloc(1, sizeof *candidate);
    struct subscription *subscription = subscription_new(&options->subscriber, 1);

    if (!candidate || !subscription) {
        free(candidate);
        free(subscription);
        return NULL;
    }
    precedence_init(&candidate->lock);
    subscriptions_init(&candidate->subscriptions);
    candidate->gavel = gavel;
    candidate->is_single = !options->enabled;
    candidate->timer = candidate->lapse = candidate->end = (struct timer){.at = NEVER, .index = TIMER_OUT};
    candidate->watchdog_entry = (struct watchdog_entry)WATCHDOG_ENTRY_INIT;
    candidate->watchdog_entry.report = options->overrun == GAVEL_OVERRUN_REPORT ? report_overrun : NULL;
    candidate->start_command = (struct command){.kind = COMMAND_START, .candidate = candidate};
    candidate->stop_command = (struct command){.kind = COMMAND_STOP, .candidate = candidate};
    candidate->next_subscription = 2;
    deliver_subscribe(candidate, subscription); /* nothing runs yet, so nothing is called */
    metrics_init(&candidate->metrics, clock_wall_ms());
    return candidate;
}

/* Without an entry, should they all be taken, the lease decides. Mutex held. */
static void take_on_death_entry(struct gavel_candidate *candidate)
{
    struct on_death *on_death = candidate->gavel->on_death;

    if (!on_death || candidate->is_single)
        return;
    candidate->on_death_entry = on_death_take(on_death, candidate->group, candidate->id);
    if (candidate->on_death_entry)
        candidate->on_death_entry->candidate_timeout_ms = candidate->machine.settings.candidate_timeout_ms;
}

/* Into the lists and on its way; from here on it belongs to the loop. */
static enum gavel_status enter(struct gavel_candidate *candidate, struct gavel_error *error)
{
    struct gavel *gavel = candidate->gavel;
    enum gavel_status status;

    pthread_mutex_lock(&gavel->mutex);
    if (gavel->is_closing) {
        pthread_mutex_unlock(&gavel->mutex);
        return error_set(error, GAVEL_ERR_STATE,
                         "the handle is being closed, so nobody can join group \"%s\" with it any more",
                         candidate->group);
    }
    status = publish_slot(&gavel->publish, candidate->is_single ? NULL : gavel->session.published,
                          &candidate->published);
    if (status == GAVEL_OK)
        status = lib_candidate_enlist(candidate);
    if (status == GAVEL_OK) {
        take_on_death_entry(candidate);
        command_enqueue_locked(gavel, &candidate->start_command);
    } else {
        publish_return(&gavel->publish, candidate->published);
    }
    pthread_mutex_unlock(&gavel->mutex);
    if (status == GAVEL_ERR_STATE && candidate->machine.has_sessions)
        return error_set(
            error, status,
            "this handle is in group \"%s\" already, and in %.60s one handle is one candidate of a group; use gavel_subscribe() on the first, or open another handle",
            candidate->group, gavel->store_url);
    if (status == GAVEL_ERR_STATE)
        return error_set(
            error, status,
            "candidate \"%s\" is in group \"%s\" already; choose another id, or use gavel_subscribe() on the first",
            candidate->id, candidate->group);
    if (status != GAVEL_OK)
        return error_set(error, status, "cannot keep the mandate of group \"%s\": %s", candidate->group,
                         gavel_status_text(status));
    return GAVEL_OK;
}

enum gavel_status gavel_join(struct gavel *gavel, const struct gavel_join_options *options,
                             struct gavel_candidate **ret_candidate, struct gavel_error *error)
{
    static const struct gavel_join_options defaults = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    enum gavel_status status;

    if (!options)
        options = &defaults;
    status = check_options(gavel, options, error);
    if (status != GAVEL_OK)
        return status;
    candidate = candidate_new(gavel, options);
    if (!candidate)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    status = init_machine(candidate, options, error);
    if (status == GAVEL_OK && candidate->machine.has_sessions)
        status = lib_session_begin(gavel, &candidate->machine.settings, error);
    if (status == GAVEL_OK)
        status = enter(candidate, error);
    if (status != GAVEL_OK) {
        lib_candidate_free(candidate);
        return status;
    }
    *ret_candidate = candidate;
    return GAVEL_OK;
}

static bool is_gone(void *argument)
{
    const struct gavel_candidate *candidate = argument;

    return candidate->is_gone;
}

/* False if another thread has asked it already, and so will free it. Mutex held. */
static bool ask_to_stop(struct gavel_candidate *candidate)
{
    if (candidate->is_stop_asked)
        return false;
    candidate->is_stop_asked = true;
    command_enqueue_locked(candidate->gavel, &candidate->stop_command);
    return true;
}

enum gavel_status gavel_leave(struct gavel_candidate *candidate)
{
    struct gavel *gavel;

    if (!candidate)
        return GAVEL_OK;
    gavel = candidate->gavel;
    if (handle_is_callback(gavel))
        return GAVEL_ERR_STATE;
    pthread_mutex_lock(&gavel->mutex);
    if (!ask_to_stop(candidate)) {
        pthread_mutex_unlock(&gavel->mutex);
        return GAVEL_ERR_STATE;
    }
    gavel->leavers++;
    (void)loop_wait(gavel, is_gone, candidate, NEVER); /* the machine bounds it */
    gavel->leavers--;
    pthread_cond_broadcast(&gavel->changed);
    pthread_mutex_unlock(&gavel->mutex); /* the handle may be gone after this */
    lib_candidate_free(candidate);
    return GAVEL_OK;
}

static bool has_no_leavers(void *argument)
{
    const struct gavel *gavel = argument;

    return gavel->leavers == 0;
}

void join_leave_all(struct gavel *gavel)
{
    struct gavel_candidate *leaving = NULL;

    pthread_mutex_lock(&gavel->mutex);
    gavel->is_closing = true;
    for (struct gavel_candidate *candidate = gavel->first_candidate; candidate; candidate = candidate->next) {
        if (!ask_to_stop(candidate))
            continue;
        candidate->next_leaving = leaving;
        leaving = candidate;
    }
    while (leaving) {
        struct gavel_candidate *candidate = leaving;

        leaving = candidate->next_leaving;
        (void)loop_wait(gavel, is_gone, candidate, NEVER); /* the machine bounds it */
        lib_candidate_free(candidate);
    }
    (void)loop_wait(gavel, has_no_leavers, gavel, NEVER); /* likewise */
    pthread_mutex_unlock(&gavel->mutex);
}
