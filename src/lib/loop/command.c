/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/loop/command.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "os/clock.h"

#include <stdlib.h>

/* Those that are part of a candidate do without. */
struct long_command {
    struct command command; /* first, so that freeing it frees the whole */
    struct outcome outcome;
    char name[NAME_MAX_BYTES + 1];
};

struct command *command_new(enum command_kind kind, struct gavel_candidate *candidate)
{
    struct long_command *whole = calloc(1, sizeof *whole);
    struct command *command;

    if (!whole)
        return NULL;
    command = &whole->command;
    command->name = whole->name;
    command->outcome = &whole->outcome;
    command->kind = kind;
    command->candidate = candidate;
    command->is_allocated = true;
    return command;
}

void command_enqueue_locked(struct gavel *gavel, struct command *command)
{
    command->next = NULL;
    if (gavel->commands.last)
        gavel->commands.last->next = command;
    else
        gavel->commands.first = command;
    gavel->commands.last = command;
    gavel->commands.count++;
    loop_wake(gavel);
}

void command_enqueue(struct gavel *gavel, struct command *command)
{
    pthread_mutex_lock(&gavel->mutex);
    command_enqueue_locked(gavel, command);
    pthread_mutex_unlock(&gavel->mutex);
}

/* Hands a command back to its sender. The mutex is held. */
static void finish(struct command *command, enum gavel_status status)
{
    if (command->is_allocated) {
        free(command->subscription); /* NULL once it was taken in */
        free(command);
        return;
    }
    command->status = status;
    command->is_done = true;
}

void command_drop(struct gavel *gavel, const struct gavel_candidate *candidate)
{
    struct command *command = gavel->commands.first;

    gavel->commands = (struct command_queue){0};
    while (command) {
        struct command *next = command->next;

        if (command->candidate == candidate)
            finish(command, GAVEL_ERR_STOPPED);
        else
            command_enqueue_locked(gavel, command);
        command = next;
    }
}

bool command_withdraw(struct gavel *gavel, const struct gavel_candidate *candidate, uint64_t id)
{
    struct command *command;
    bool is_found = false;

    pthread_mutex_lock(&gavel->mutex);
    for (command = gavel->commands.first; command && !is_found; command = command->next) {
        if (command->kind != COMMAND_SUBSCRIBE || command->candidate != candidate || !command->subscription ||
            command->subscription->id != id)
            continue;
        free(command->subscription);
        command->subscription = NULL; /* the command does nothing then */
        is_found = true;
    }
    pthread_mutex_unlock(&gavel->mutex);
    return is_found;
}

static enum gavel_status run(struct command *command)
{
    struct gavel_candidate *candidate = command->candidate;
    struct candidate_event event = {0};

    if (command->kind == COMMAND_START) {
        lib_candidate_start(candidate);
        return GAVEL_OK;
    }
    if (command->kind != COMMAND_STOP)
        lib_candidate_start_now(candidate);
    switch (command->kind) {
    case COMMAND_START:
        break;
    case COMMAND_STOP:
        lib_candidate_stop(candidate);
        return GAVEL_OK;
    case COMMAND_SUBSCRIBE:
        if (command->subscription)
            deliver_subscribe(candidate, command->subscription);
        command->subscription = NULL;
        lib_candidate_set_timer(candidate); /* its on_work may be the next thing due */
        return GAVEL_OK;
    case COMMAND_UNSUBSCRIBE:
        return deliver_unsubscribe(candidate, command->id);
    case COMMAND_RESIGN:
        event.kind = CANDIDATE_RESIGN;
        event.resign.successor = command->name;
        break;
    case COMMAND_FINISH:
        event.kind = CANDIDATE_FINISH;
        break;
    case COMMAND_OUTCOME:
        event.kind = CANDIDATE_OUTCOME;
        event.outcome = *command->outcome;
        break;
    case COMMAND_ENSURE:
        event.kind = CANDIDATE_ENSURE;
        event.ensure.epoch = command->epoch;
        event.ensure.force = command->flag;
        event.ensure.desired = command->name;
        break;
    case COMMAND_SET_ELIGIBLE:
        event.kind = CANDIDATE_SET_ELIGIBLE;
        event.eligible = command->flag;
        break;
    }
    lib_candidate_feed(candidate, &event);
    return GAVEL_OK;
}

/* Mutex held. */
static struct command *take(struct command_queue *queue)
{
    struct command *command = queue->first;

    if (!command)
        return NULL;
    queue->first = command->next;
    if (!queue->first)
        queue->last = NULL;
    queue->count--;
    return command;
}

void command_run_queued(struct gavel *gavel)
{
    struct command *command;
    enum gavel_status status;

    pthread_mutex_lock(&gavel->mutex);
    for (size_t left = gavel->commands.count; left > 0 && (command = take(&gavel->commands)); left--) {
        pthread_mutex_unlock(&gavel->mutex);
        status = run(command);
        if (lib_session_stop_at(gavel) <= clock_now()) /* its callbacks may have taken long */
            lib_candidate_demote_lapsed(gavel);
        pthread_mutex_lock(&gavel->mutex);
        finish(command, status);
    }
    pthread_mutex_unlock(&gavel->mutex);
}
