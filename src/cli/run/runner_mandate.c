/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The mandate of a runner: what the library's thread tells the guard, and
 * what the guard does about it when the elector is dead.
 */
#include "cli/run/runner_state.h"

#include "os/clock.h"
#include "store/store.h"

/* Without an election the mandate never ends; far away, and still a number to calculate with. */
#define FAR_AWAY (NEVER / 2)
#define SINGLE_EPOCH 1

/* A guard that has not ended the tree so long after the deadline gets no more time: we do it ourselves. */
#define LATE_LIMIT (3 * NS_PER_S)

/* That it leads is told before the guard can report that the command runs. */
static void tell_elected(struct runner *runner, uint64_t epoch)
{
    const struct gavel_event event = {
        .kind = GAVEL_EVENT_BECAME_LEADER, .epoch = epoch, .leader = "", .previous = "", .message = ""};

    news_put(&runner->news, &event);
}

static void on_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct runner *runner = user;

    if (candidate) /* without an election the beginning has said so */
        tell_elected(runner, epoch);
    atomic_store(&runner->run_ordered_at, clock_now());
    atomic_store(&runner->run_epoch, epoch);
    guard_run(&runner->guard, epoch);
}

/* By when a guard that is well has ended the tree, and a little more. */
static gavel_ns stop_limit(const struct runner *runner)
{
    const struct guard_spec *spec = &runner->plan->spec;
    gavel_ns stop_at, deadline;

    if (!runner->cli->config.enabled)
        deadline =
            clock_now() + spec->stop_grace + (spec->rules.has_on_demoted ? spec->rules.hook_timeout : 0);
    else if (!on_death_read_mandate(runner->on_death, &runner->on_death->entries[0], runner->run_epoch,
                                    &stop_at, &deadline))
        deadline = clock_now() + spec->stop_grace;
    return deadline + LATE_LIMIT;
}

/*
 * Returns when nothing of the work is left. A guard that is gone leaves that
 * to us; we are the next subreaper, so whatever it ran is below us now.
 */
static void on_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct runner *runner = user;
    bool is_over;

    (void)candidate;
    /* If somebody else may lead already, every moment counts. */
    is_over =
        guard_stop(&runner->guard, runner->run_epoch, reason == GAVEL_REASON_SUPERSEDED, stop_limit(runner));
    while (!is_over)
        is_over = guard_clean_up(&runner->guard, NEVER);
}

static void on_event(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct runner *runner = user;

    (void)candidate;
    if (event->kind != GAVEL_EVENT_HEARTBEAT && event->kind != GAVEL_EVENT_ELECTION_CHECK &&
        event->kind != GAVEL_EVENT_BECAME_LEADER) /* told by on_elected() */
        news_put(&runner->news, event);
}

static bool may_lead(const struct runner *runner, gavel_ns now)
{
    return runner->cli->config.eligible && health_is_good(&runner->health) && now >= runner->cooling_until;
}

enum gavel_status runner_join(struct runner *runner, struct gavel_error *error)
{
    const struct config *config = &runner->cli->config;
    const struct gavel_options options = {
        .store = config->store, .threaded = true, .doorbell = config->doorbell};
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    enum gavel_status status;

    if (!config->enabled) {
        on_elected(NULL, SINGLE_EPOCH, runner);
        return GAVEL_OK;
    }
    status = gavel_open_guarded(&options, runner->on_death, &runner->gavel, error);
    if (status != GAVEL_OK)
        return status;
    runner->is_eligible = may_lead(runner, clock_now());
    join.group = config->group;
    join.candidate = runner->plan->id;
    join.settings = &config->settings;
    join.priority = config->priority;
    join.eligible = runner->is_eligible;
    join.overrun = GAVEL_OVERRUN_REPORT; /* the guard ends the work in time */
    join.subscriber.on_elected = on_elected;
    join.subscriber.on_demoted = on_demoted;
    join.subscriber.on_event = on_event;
    join.subscriber.user = runner;
    return gavel_join(runner->gavel, &join, &runner->candidate, error);
}

void runner_leave(struct runner *runner)
{
    if (runner->gavel)
        (void)gavel_close(runner->gavel); /* not from a callback, so it does not fail */
    else if (runner->guard.pid > 0)
        on_demoted(NULL, GAVEL_REASON_STOPPED, runner);
    runner->gavel = NULL;
    runner->candidate = NULL;
}

void runner_update_eligibility(struct runner *runner, gavel_ns now)
{
    bool may = may_lead(runner, now);

    if (runner->cooling_until != 0 && now >= runner->cooling_until)
        runner->cooling_until = 0;
    if (may == runner->is_eligible || !runner->candidate)
        return;
    runner->is_eligible = may;
    (void)gavel_set_eligible(runner->candidate, may); /* if it has ended, its event tells */
}

void runner_begin_guard(void *user)
{
    struct runner *runner = user;

    if (runner->has_prefix)
        prefix_close_readers(&runner->prefix);
    /* Opened now, it need not be when every millisecond counts; if that fails, the elector tells why. */
    if (runner->cli->config.enabled &&
        store_open(runner->cli->config.store, &runner->store_for_the_dead, NULL) != GAVEL_OK)
        runner->store_for_the_dead = NULL;
}

/* Whoever closes a store last leaves all of it in its file. */
void runner_end_guard(void *user)
{
    struct runner *runner = user;

    store_close(runner->store_for_the_dead);
    runner->store_for_the_dead = NULL;
}

bool runner_read_mandate(void *user, uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline)
{
    const struct runner *runner = user;

    if (runner->cli->config.enabled)
        return on_death_read_mandate(runner->on_death, &runner->on_death->entries[0], epoch, ret_stop_at,
                                     ret_deadline);
    *ret_stop_at = *ret_deadline = FAR_AWAY;
    return true;
}

void runner_release_for_the_dead(void *user)
{
    const struct runner *runner = user;
    const struct config *config = &runner->cli->config;
    const struct log *log = &runner->cli->log;
    struct gavel_error error = {0};
    enum gavel_status status;
    size_t released = 0;
    gavel_ns until;

    if (!config->enabled)
        return;
    /* Two leases on there is nothing left to release. A session may last longer than a lease. */
    until = on_death_give_up_at(runner->on_death, 2 * ns_from_ms(config->settings.lease_ms));
    status = on_death_release(runner->on_death, runner->store_for_the_dead,
                              runner->store_for_the_dead ? 0 : until, &released, &error);
    if (status != GAVEL_OK &&
        runner->store_for_the_dead) /* it may only be this connection that does not work any more */
        status = on_death_release(runner->on_death, NULL, until, &released, &error);
    if (status != GAVEL_OK)
        log_line(log, clock_wall_ms(), LOG_ERROR, "the elector died and its mandate could not be released",
                 LOG_STR("group", config->group), LOG_STR("candidate", runner->plan->id),
                 LOG_STR("reason", error.message), LOG_END);
    else
        log_line(log, clock_wall_ms(), LOG_WARNING, "the elector died; the guard ended the work",
                 LOG_STR("group", config->group), LOG_STR("candidate", runner->plan->id),
                 LOG_U64("released", released), LOG_END);
}

void runner_finish_once(struct runner *runner)
{
    enum gavel_status status = gavel_finish(runner->candidate);

    runner->has_succeeded = true;
    if (status != GAVEL_OK && status != GAVEL_ERR_STOPPED) /* else the last event tells what came of it */
        runner_end(runner, END_FAILURE);
}
