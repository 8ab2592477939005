/* SPDX-License-Identifier: Apache-2.0 */

/* What happens to a runner, told to people and to the service manager. */
#include "cli/run/runner_state.h"

#include "os/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define WHO(runner) LOG_STR("group", (runner)->cli->config.group), LOG_STR("candidate", (runner)->plan->id)

static void tell_leader(struct runner *runner, const struct news *news)
{
    const char *group = runner->cli->config.group;

    if (strcmp(news->leader, runner->plan->id) == 0) {
        notify_send(&runner->notify, "STATUS=Leads %s with epoch %llu.", group,
                    (unsigned long long)news->epoch);
        return;
    }
    if (news->leader[0] == '\0') {
        notify_send(&runner->notify, "STATUS=Stands by for %s, which has no leader.", group);
        return;
    }
    notify_send(&runner->notify, "STATUS=Stands by for %s, which %s leads.", group, news->leader);
    log_line(&runner->cli->log, clock_wall_ms(), LOG_INFO, "another leads", WHO(runner),
             LOG_STR("leader", news->leader), LOG_U64("epoch", news->epoch), LOG_END);
    if (runner->plan->is_once && !runner->plan->waits)
        runner_end(runner, END_BUSY);
}

static void note_stopped(struct runner *runner, const struct news *news)
{
    runner->has_stopped = true;
    runner->stopped = news->status;
    (void)snprintf(runner->stopped_message, sizeof runner->stopped_message, "%s", news->message);
    if (news->status == GAVEL_ERR_DONE)
        log_line(&runner->cli->log, clock_wall_ms(), LOG_INFO, "done for good", WHO(runner),
                 LOG_STR("by", news->previous), LOG_U64("epoch", news->epoch), LOG_END);
    if (news->status == GAVEL_OK && runner->has_succeeded)
        log_line(&runner->cli->log, clock_wall_ms(), LOG_INFO, "recorded as done", WHO(runner),
                 LOG_U64("epoch", runner->report.epoch), LOG_END);
    runner_end(runner, END_CANDIDATE);
}

/* The library cannot know that the guard has ended the work in time. */
static void tell_overrun(const struct runner *runner, const struct news *news)
{
    log_line(&runner->cli->log, clock_wall_ms(), LOG_WARNING,
             "the elector did not run when the mandate ended; the guard ends the work by itself", WHO(runner),
             LOG_U64("epoch", news->epoch), LOG_END);
}

static void tell(struct runner *runner, const struct news *news)
{
    const struct log *log = &runner->cli->log;

    switch (news->kind) {
    case GAVEL_EVENT_BECAME_LEADER:
        log_line(log, clock_wall_ms(), LOG_INFO, "leads", WHO(runner), LOG_U64("epoch", news->epoch),
                 LOG_END);
        break;
    case GAVEL_EVENT_LOST_LEADERSHIP:
        log_line(log, clock_wall_ms(), LOG_INFO, "no longer leads", WHO(runner),
                 LOG_U64("epoch", news->epoch), LOG_STR("reason", gavel_reason_name(news->reason)), LOG_END);
        break;
    case GAVEL_EVENT_LEADER_CHANGED:
        tell_leader(runner, news);
        break;
    case GAVEL_EVENT_BREAKER_OPEN:
        log_line(log, clock_wall_ms(), LOG_WARNING, "the store fails", WHO(runner),
                 LOG_STR("status", gavel_status_name(news->status)),
                 LOG_STR("reason", news->message[0] ? news->message : gavel_status_text(news->status)),
                 LOG_END);
        break;
    case GAVEL_EVENT_BREAKER_CLOSED:
        log_line(log, clock_wall_ms(), LOG_INFO, "the store works again", WHO(runner),
                 LOG_I64("after_ms", news->took_ms), LOG_END);
        break;
    case GAVEL_EVENT_MANDATE_RENEWED:
        log_line(log, clock_wall_ms(), LOG_INFO,
                 "leads with a new epoch; the command keeps the one it was started with", WHO(runner),
                 LOG_U64("epoch", news->epoch), LOG_END);
        break;
    case GAVEL_EVENT_OVERRUN:
        tell_overrun(runner, news);
        break;
    case GAVEL_EVENT_STOPPED:
        note_stopped(runner, news);
        break;
    default:
        break;
    }
}

void runner_take_news(struct runner *runner)
{
    struct news news;

    while (news_take(&runner->news, &news))
        tell(runner, &news);
}

void runner_log_health(struct runner *runner)
{
    bool is_good = health_is_good(&runner->health);

    if (is_good == runner->was_healthy)
        return;
    runner->was_healthy = is_good;
    if (is_good)
        log_line(&runner->cli->log, clock_wall_ms(), LOG_INFO, "healthy", WHO(runner), LOG_END);
    else
        log_line(&runner->cli->log, clock_wall_ms(), LOG_WARNING,
                 "unhealthy; does not lead until it is healthy", WHO(runner),
                 LOG_STR("reason", health_reason(&runner->health)), LOG_END);
}

void runner_pass_signal(struct runner *runner, int number)
{
    bool is_running = runner->report.state != SUPERVISOR_EMPTY;

    if (is_running)
        guard_signal(&runner->guard, number);
    log_line(&runner->cli->log, clock_wall_ms(), LOG_INFO,
             is_running ? "passed a signal on" : "no command runs here to pass a signal on to", WHO(runner),
             LOG_STR("signal", sigabbrev_np(number)), LOG_END);
}

/* "exit code 3", "signal KILL". */
static const char *describe(int status, char *buffer, size_t size)
{
    const char *name = status >= 0 && WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;

    if (status < 0)
        (void)snprintf(buffer, size, "it had not started");
    else if (name)
        (void)snprintf(buffer, size, "signal %s", name);
    else if (WIFSIGNALED(status)) /* one without a name of its own */
        (void)snprintf(buffer, size, "signal %d", WTERMSIG(status));
    else
        (void)snprintf(buffer, size, "exit code %d", WEXITSTATUS(status));
    return buffer;
}

static const char *sentence(enum supervisor_cause cause)
{
    switch (cause) {
    case CAUSE_LAPSED:
        return "stopped: the mandate could not be renewed";
    case CAUSE_ENDED:
    case CAUSE_RESIGN:
        return "ended";
    case CAUSE_LIMIT:
        return "restarted too often; another may lead, this one cools down";
    case CAUSE_NOT_READY:
        return "not ready in time; another may lead, this one cools down";
    case CAUSE_HOOK_FAILED:
        return "the hook on_elected failed; another may lead, this one cools down";
    case CAUSE_NONE:
    case CAUSE_ORDERED:
        break;
    }
    return "stopped";
}

static enum log_level level_of(const struct guard_report *report)
{
    bool is_expected =
        report->cause == CAUSE_ORDERED ||
        ((report->cause == CAUSE_ENDED || report->cause == CAUSE_RESIGN) && report->cause_status == 0);

    return is_expected ? LOG_INFO : LOG_WARNING;
}

/* As the command was told it. */
static uint64_t epoch_of(const struct runner *runner, const struct guard_report *report)
{
    return runner->cli->config.enabled ? report->epoch : 0;
}

/* Everything has stopped. */
static void log_end(const struct runner *runner, const struct guard_report *report)
{
    const struct guard_spec *spec = &runner->plan->spec;
    const struct log *log = &runner->cli->log;
    size_t child = report->cause_slot < spec->rules.child_count ? report->cause_slot : 0;
    int status = report->cause_status >= 0 ? report->cause_status : report->last_status;
    char how[64];

    log_line(log, clock_wall_ms(), level_of(report), sentence(report->cause), WHO(runner),
             LOG_STR("child", spec->children[child].name), LOG_U64("epoch", epoch_of(runner, report)),
             LOG_STR("how", describe(status, how, sizeof how)), LOG_END);
    if (report->demoted_status > 0)
        log_line(log, clock_wall_ms(), LOG_WARNING, "the hook on_demoted failed", WHO(runner),
                 LOG_STR("how", describe(report->demoted_status, how, sizeof how)), LOG_END);
    if (report->late_by_ms > 0)
        log_line(
            log, clock_wall_ms(), LOG_ERROR,
            "the command was still running after the deadline, so two may have overlapped; give a tree of many processes a longer --stop-grace, and look for processes in uninterruptible sleep or that cannot be signalled",
            WHO(runner), LOG_I64("late_by_ms", report->late_by_ms), LOG_END);
}

void runner_log_report(const struct runner *runner, const struct guard_report *before, bool is_settled)
{
    const struct guard_report *report = &runner->report;
    const struct guard_spec *spec = &runner->plan->spec;
    const struct log *log = &runner->cli->log;
    char how[64];

    if (report->spawn_error && report->spawn_error != before->spawn_error)
        log_line(log, clock_wall_ms(), LOG_ERROR, "cannot start a process; check the limits (ulimit -a)",
                 WHO(runner), LOG_STR("reason", strerror(report->spawn_error)), LOG_END);
    if (report->restarts > before->restarts && report->state != SUPERVISOR_EMPTY &&
        report->ended_slot < spec->rules.child_count)
        log_line(log, clock_wall_ms(), LOG_WARNING, "a child ended and is restarted", WHO(runner),
                 LOG_STR("child", spec->children[report->ended_slot].name),
                 LOG_STR("how", describe(report->ended_status, how, sizeof how)),
                 LOG_U64("restarts", report->restarts), LOG_END);
    if (report->state == SUPERVISOR_RUNNING && before->state != SUPERVISOR_RUNNING)
        log_line(log, clock_wall_ms(), LOG_INFO, "runs the command", WHO(runner),
                 LOG_U64("epoch", epoch_of(runner, report)), LOG_END);
    if (is_settled && report->cause != CAUSE_NONE)
        log_end(runner, report);
}
