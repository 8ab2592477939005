/* SPDX-License-Identifier: Apache-2.0 */

/* What callers can ask a candidate to do: subscribe, resign, be eligible, and see to it that there is a
 * leader. */

#include "base/record.h"
#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "lib/outcome.h"
#include "lib/view.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

static bool has_ended(struct gavel_candidate *candidate)
{
    bool ended;

    precedence_lock(&candidate->lock);
    ended = candidate->has_ended;
    precedence_unlock(&candidate->lock);
    return ended;
}

enum gavel_status gavel_subscribe(struct gavel_candidate *candidate,
                                  const struct gavel_subscriber *subscriber, uint64_t *ret_id)
{
    struct gavel *gavel = candidate->gavel;
    struct subscription *subscription;
    struct command *command;
    uint64_t id;

    if (subscriber->work_interval_ms < 0)
        return GAVEL_ERR_INVALID;
    pthread_mutex_lock(&gavel->mutex);
    id = candidate->next_subscription++;
    pthread_mutex_unlock(&gavel->mutex);
    subscription = subscription_new(subscriber, id);
    if (!subscription)
        return GAVEL_ERR_NO_MEMORY;
    if (ret_id)
        *ret_id = id;
    if (handle_is_driver(gavel)) {
        deliver_subscribe(candidate, subscription);
        lib_candidate_set_timer(candidate); /* its on_work may be the next thing due */
        return GAVEL_OK;
    }
    command = command_new(COMMAND_SUBSCRIBE, candidate);
    if (!command) {
        free(subscription);
        return GAVEL_ERR_NO_MEMORY;
    }
    command->subscription = subscription;
    command_enqueue(gavel, command);
    return GAVEL_OK;
}

static bool is_done(void *argument)
{
    const struct command *command = argument;

    return command->is_done;
}

enum gavel_status gavel_unsubscribe(struct gavel_candidate *candidate, uint64_t id)
{
    struct command command = {.kind = COMMAND_UNSUBSCRIBE, .candidate = candidate, .id = id};
    struct gavel *gavel = candidate->gavel;

    if (watchdog_is_reporter(&gavel->watchdog))
        return GAVEL_ERR_STATE; /* it would wait for its own callback */
    if (handle_is_driver(gavel))
        return command_withdraw(gavel, candidate, id) ? GAVEL_OK : deliver_unsubscribe(candidate, id);
    pthread_mutex_lock(&gavel->mutex);
    command_enqueue_locked(gavel, &command);
    (void)loop_wait(gavel, is_done, &command, NEVER); /* bounded by the callbacks under way */
    pthread_mutex_unlock(&gavel->mutex);
    return command.status;
}

/* Whether there is a mandate that could be given up. */
static bool holds_mandate(struct gavel_candidate *candidate)
{
    bool holds;

    precedence_lock(&candidate->lock);
    holds = candidate->machine.state == CANDIDATE_PREPARING || candidate->machine.state == CANDIDATE_LEADING;
    precedence_unlock(&candidate->lock);
    return holds;
}

enum gavel_status gavel_resign(struct gavel_candidate *candidate, const char *successor)
{
    struct command *command;

    if (successor &&
        (name_check("successor", successor, NULL) != GAVEL_OK || strcmp(successor, candidate->id) == 0))
        return GAVEL_ERR_INVALID;
    if (candidate->is_single || !holds_mandate(candidate))
        return GAVEL_ERR_STATE;
    command = command_new(COMMAND_RESIGN, candidate);
    if (!command)
        return GAVEL_ERR_NO_MEMORY;
    if (successor)
        strcpy(command->name, successor); /* checked above */
    command_enqueue(candidate->gavel, command);
    return GAVEL_OK;
}

enum gavel_status gavel_finish(struct gavel_candidate *candidate)
{
    struct command *command;

    if (candidate->is_single)
        return GAVEL_ERR_STATE;
    if (has_ended(candidate))
        return GAVEL_ERR_STOPPED;
    command = command_new(COMMAND_FINISH, candidate);
    if (!command)
        return GAVEL_ERR_NO_MEMORY;
    command_enqueue(candidate->gavel, command);
    return GAVEL_OK;
}

enum gavel_status lib_tell_outcome(struct gavel_candidate *candidate, const struct outcome *outcome)
{
    struct command *command;

    if (candidate->is_single)
        return GAVEL_ERR_STATE;
    if (has_ended(candidate))
        return GAVEL_ERR_STOPPED;
    command = command_new(COMMAND_OUTCOME, candidate);
    if (!command)
        return GAVEL_ERR_NO_MEMORY;
    *command->outcome = *outcome;
    command_enqueue(candidate->gavel, command);
    return GAVEL_OK;
}

enum gavel_status gavel_set_eligible(struct gavel_candidate *candidate, bool eligible)
{
    struct command *command;

    if (candidate->is_single)
        return GAVEL_ERR_STATE;
    if (has_ended(candidate))
        return GAVEL_ERR_STOPPED;
    command = command_new(COMMAND_SET_ELIGIBLE, candidate);
    if (!command)
        return GAVEL_ERR_NO_MEMORY;
    command->flag = eligible;
    command_enqueue(candidate->gavel, command);
    return GAVEL_OK;
}

/* Somebody waits for a leader. */
struct wish {
    struct gavel_candidate *candidate;
    const char *desired; /* "" for any */
    bool must_change;    /* force without a name: any leader but the present one */
    uint64_t from_epoch;
    uint64_t seen_epoch; /* at the call: force is not meant for a leader that came since */
    uint64_t epoch;      /* of the leader as the machine has it, 0 if it has none; as last looked at */
    bool has_leader;
    bool has_ended;
    struct gavel_leader_info leader; /* as last looked at, if has_leader */
};

/* Whether what was wished for has come true, or never will. Takes the candidate's lock inside the
 * handle's. */
static bool look(void *argument)
{
    struct wish *wish = argument;

    precedence_lock(&wish->candidate->lock);
    wish->has_leader = view_leader_locked(wish->candidate, &wish->leader);
    wish->has_ended = wish->candidate->has_ended;
    wish->epoch = candidate_leader_epoch(&wish->candidate->machine);
    precedence_unlock(&wish->candidate->lock);
    if (wish->has_ended)
        return true;
    if (!wish->has_leader)
        return false;
    if (wish->desired[0] != '\0')
        return strcmp(wish->leader.id, wish->desired) == 0;
    return !wish->must_change || wish->leader.epoch != wish->from_epoch;
}

/* The bound of the settings, and the minimum mandate of a leader that is asked to go. */
static gavel_ns patience(struct gavel_candidate *candidate, const struct gavel_ensure_options *options)
{
    const struct gavel_settings *settings = &candidate->machine.settings; /* fixed */
    struct gavel_bounds bounds;
    size_t candidates;

    if (options->timeout_ms > 0)
        return ns_from_ms(options->timeout_ms);
    precedence_lock(&candidate->lock);
    candidates = peers_active(&candidate->machine.peers);
    precedence_unlock(&candidate->lock);
    gavel_settings_bounds(settings, candidates > 0 ? candidates : 1, &bounds);
    return ns_from_ms(bounds.gap_loss_ms + settings->observation_ms + settings->start_jitter_max_ms +
                      (options->force ? 0 : settings->min_mandate_ms) + settings->heartbeat_ms +
                      settings->heartbeat_jitter_ms);
}

/*
 * Asks the machine and waits. It is asked again once per heartbeat, since the
 * first time may find it too early in its start to know whom to ask. A forced
 * change that has happened ends the wait, so it is never asked for twice.
 */
static enum gavel_status pursue(struct wish *wish, bool force, gavel_ns until)
{
    struct gavel_candidate *candidate = wish->candidate;
    struct gavel *gavel = candidate->gavel;
    bool is_fulfilled = false;

    pthread_mutex_lock(&gavel->mutex);
    while (!is_fulfilled && clock_now() < until) {
        struct command *command = command_new(COMMAND_ENSURE, candidate);
        gavel_ns again_at = clock_now() + ns_from_ms(candidate->machine.settings.heartbeat_ms);

        if (!command)
            break;
        command->flag = force;
        command->epoch = wish->seen_epoch;
        strcpy(command->name, wish->desired); /* checked by the caller */
        command_enqueue_locked(gavel, command);
        is_fulfilled = loop_wait(gavel, look, wish, ns_min(again_at, until));
    }
    pthread_mutex_unlock(&gavel->mutex);
    if (wish->has_ended)
        return GAVEL_ERR_STOPPED;
    if (is_fulfilled)
        return GAVEL_OK;
    return wish->has_leader ? GAVEL_ERR_LEADER_TRANSFER_FAILED : GAVEL_ERR_TIMEOUT;
}

enum gavel_status gavel_ensure_leader(struct gavel_candidate *candidate,
                                      const struct gavel_ensure_options *options,
                                      struct gavel_leader_info *ret_leader)
{
    static const struct gavel_ensure_options defaults = {0};
    struct wish wish = {.candidate = candidate, .desired = ""};
    enum gavel_status status = GAVEL_OK;
    bool is_fulfilled;

    if (!options)
        options = &defaults;
    if (options->timeout_ms < 0 ||
        (options->desired && name_check("desired", options->desired, NULL) != GAVEL_OK))
        return GAVEL_ERR_INVALID;
    if (handle_is_callback(candidate->gavel))
        return GAVEL_ERR_STATE;
    if (options->desired)
        wish.desired = options->desired;
    is_fulfilled = look(&wish);
    wish.seen_epoch = wish.epoch;
    if (is_fulfilled && options->force && !options->desired && !candidate->is_single) {
        wish.must_change = true;
        wish.from_epoch = wish.leader.epoch;
        is_fulfilled = wish.has_ended;
    }
    if (!is_fulfilled)
        status = candidate->is_single
                     ? GAVEL_ERR_LEADER_TRANSFER_FAILED
                     : pursue(&wish, options->force, clock_now() + patience(candidate, options));
    else if (wish.has_ended)
        status = GAVEL_ERR_STOPPED;
    if (status == GAVEL_OK && ret_leader)
        *ret_leader = wish.leader;
    return status;
}
