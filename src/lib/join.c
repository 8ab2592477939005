/* SPDX-License-Identifier: Apache-2.0 */

/* Joining and leaving a group. */

#include "lib/join.h"

#include "base/error.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "lib/member.h"
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
            "there is no preset \"%s\"; use local, database, coordinator, object-store or frugal", preset);
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
            "this handle was opened without a store, so an election is not possible; name a store, or "
            "join with enabled = false");
    return GAVEL_OK;
}

static enum gavel_status init_machine(struct gavel_candidate *member,
                                      const struct gavel_join_options *options, struct gavel_error *error)
{
    const struct gavel *gavel = member->gavel;
    struct candidate_config config = {
        .group = options->group ? options->group : GROUP_DEFAULT,
        .id = options->candidate,
        .address = gavel->bell.address,
        .priority = options->priority,
        .eligible = options->eligible,
        .clock = gavel->capabilities.clock,
        .process = gavel->self,
        .is_guarded = gavel->is_guarded,
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
        status = candidate_init(&member->machine, &config, error);
    if (status != GAVEL_OK)
        return status;
    memcpy(member->group, member->machine.group, sizeof member->group);
    memcpy(member->id, member->machine.id, sizeof member->id);
    return GAVEL_OK;
}

/* On the watchdog's thread. */
static void report_overrun(struct watchdog_entry *entry, uint64_t epoch)
{
    struct gavel_candidate *member =
        (void *)((char *)entry - offsetof(struct gavel_candidate, watchdog_entry));

    deliver_overrun(member, epoch);
}

static struct gavel_candidate *member_new(struct gavel *gavel, const struct gavel_join_options *options)
{
    struct gavel_candidate *member = calloc(1, sizeof *member);
    struct subscription *subscription = subscription_new(&options->subscriber, 1);

    if (!member || !subscription) {
        free(member);
        free(subscription);
        return NULL;
    }
    precedence_init(&member->lock);
    subscriptions_init(&member->subscriptions);
    member->gavel = gavel;
    member->is_single = !options->enabled;
    member->timer = member->lapse = (struct timer){.at = NEVER, .index = TIMER_OUT};
    member->watchdog_entry = (struct watchdog_entry){
        .deadline = NEVER,
        .group = member->group,
        .report = options->overrun == GAVEL_OVERRUN_REPORT ? report_overrun : NULL,
        .kill = {.at = NEVER, .index = TIMER_OUT},
    };
    member->start_command = (struct command){.kind = COMMAND_START, .candidate = member};
    member->stop_command = (struct command){.kind = COMMAND_STOP, .candidate = member};
    member->next_subscription = 2;
    deliver_subscribe(member, subscription); /* nothing runs yet, so nothing is called */
    metrics_init(&member->metrics, clock_wall_ms());
    return member;
}

/* Without an entry, should they all be taken, the lease decides. Mutex held. */
static void take_on_death_entry(struct gavel_candidate *member)
{
    struct on_death *on_death = member->gavel->on_death;

    if (!on_death || member->is_single)
        return;
    member->on_death_entry = on_death_take(on_death, member->group, member->id);
    if (member->on_death_entry)
        member->on_death_entry->candidate_timeout_ms = member->machine.settings.candidate_timeout_ms;
}

/* Into the lists and on its way; from here on it belongs to the loop. */
static enum gavel_status enter(struct gavel_candidate *member, struct gavel_error *error)
{
    struct gavel *gavel = member->gavel;
    enum gavel_status status;

    pthread_mutex_lock(&gavel->mutex);
    if (gavel->is_closing) {
        pthread_mutex_unlock(&gavel->mutex);
        return error_set(error, GAVEL_ERR_STATE,
                         "the handle is being closed, so nobody can join group \"%s\" with it any more",
                         member->group);
    }
    status = publish_slot(&gavel->publish, &member->published);
    if (status == GAVEL_OK)
        status = member_enlist(member);
    if (status == GAVEL_OK) {
        take_on_death_entry(member);
        command_post_locked(gavel, &member->start_command);
    } else {
        publish_return(&gavel->publish, member->published);
    }
    pthread_mutex_unlock(&gavel->mutex);
    if (status == GAVEL_ERR_STATE)
        return error_set(error, status,
                         "candidate \"%s\" is in group \"%s\" already; choose another id, or use "
                         "gavel_subscribe() on the first",
                         member->id, member->group);
    if (status != GAVEL_OK)
        return error_set(error, status, "cannot keep the mandate of group \"%s\": %s", member->group,
                         gavel_status_text(status));
    return GAVEL_OK;
}

enum gavel_status gavel_join(struct gavel *gavel, const struct gavel_join_options *options,
                             struct gavel_candidate **ret_candidate, struct gavel_error *error)
{
    static const struct gavel_join_options defaults = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *member;
    enum gavel_status status;

    if (!options)
        options = &defaults;
    status = check_options(gavel, options, error);
    if (status != GAVEL_OK)
        return status;
    member = member_new(gavel, options);
    if (!member)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    status = init_machine(member, options, error);
    if (status == GAVEL_OK)
        status = enter(member, error);
    if (status != GAVEL_OK) {
        member_free(member);
        return status;
    }
    *ret_candidate = member;
    return GAVEL_OK;
}

static bool is_gone(void *argument)
{
    const struct gavel_candidate *member = argument;

    return member->is_gone;
}

/* False if another thread has asked it already, and so will free it. Mutex held. */
static bool ask_to_stop(struct gavel_candidate *member)
{
    if (member->is_stop_asked)
        return false;
    member->is_stop_asked = true;
    command_post_locked(member->gavel, &member->stop_command);
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
    member_free(candidate);
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
    for (struct gavel_candidate *member = gavel->first_member; member; member = member->next) {
        if (!ask_to_stop(member))
            continue;
        member->next_leaving = leaving;
        leaving = member;
    }
    while (leaving) {
        struct gavel_candidate *member = leaving;

        leaving = member->next_leaving;
        (void)loop_wait(gavel, is_gone, member, NEVER); /* the machine bounds it */
        member_free(member);
    }
    (void)loop_wait(gavel, has_no_leavers, gavel, NEVER); /* likewise */
    pthread_mutex_unlock(&gavel->mutex);
}
