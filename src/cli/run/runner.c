/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The main thread of a runner. The library's thread talks to the guard by
 * itself (runner_mandate.c), so that nothing that happens here, such as a
 * stderr that nobody reads, costs the mandate or delays the end of the work.
 */
#include "cli/run/runner.h"

#include "base/error.h"
#include "cli/run/beginning.h"
#include "cli/run/runner_state.h"
#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals that come so soon after the first are the same wish. */
#define SAME_WISH_MS 200

/* At the end: how long a slow reader of stdout may take for what the children said. */
#define DRAIN_MS 2000

static const int stopping_signals[] = {SIGTERM, SIGINT};
static const int passed_signals[] = {SIGHUP, SIGUSR1, SIGUSR2};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One that whoever started us had ignored (nohup, a job in the background) stays so. */
static void add_unless_ignored(sigset_t *signals, int number)
{
    struct sigaction action;

    if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_IGN)
        sigaddset(signals, number);
}

/* Blocked before any thread starts, so that only the main thread ever sees them. */
static bool take_signals(struct runner *runner)
{
    sigemptyset(&runner->signals);
    sigaddset(&runner->signals, SIGCHLD);
    for (size_t i = 0; i < COUNT(stopping_signals); i++)
        add_unless_ignored(&runner->signals, stopping_signals[i]);
    for (size_t i = 0; i < COUNT(passed_signals); i++)
        add_unless_ignored(&runner->signals, passed_signals[i]);
    pthread_sigmask(SIG_BLOCK, &runner->signals, &runner->plan->spec.signal_mask);
    runner->signal_fd = signalfd(-1, &runner->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return runner->signal_fd >= 0;
}

/* The guard of the one runner, and when the first signal came: a handler has nowhere else to look. */
static const struct guard *volatile told_guard;
static _Atomic gavel_ns told_to_stop_at;

/* A later signal means "now": no more grace. Ending ourselves would help nobody: the guard kills as well. */
static void end_at_once(int number)
{
    int saved = errno;

    (void)number;
    if (told_guard && clock_now() - atomic_load(&told_to_stop_at) >= ns_from_ms(SAME_WISH_MS))
        guard_kill(told_guard);
    errno = saved;
}

static void let_signals_through(struct runner *runner)
{
    const struct sigaction action = {.sa_handler = end_at_once, .sa_flags = SA_RESTART};
    sigset_t stopping;

    told_guard = runner->guard.pid > 0 ? &runner->guard : NULL;
    atomic_store(&told_to_stop_at, clock_now());
    sigemptyset(&stopping);
    for (size_t i = 0; i < COUNT(stopping_signals); i++) {
        if (!sigismember(&runner->signals, stopping_signals[i]))
            continue;
        sigaction(stopping_signals[i], &action, NULL);
        sigaddset(&stopping, stopping_signals[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &stopping, NULL);
}

static void take_signal(struct runner *runner)
{
    struct signalfd_siginfo info;

    while (read(runner->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;

        if (number == SIGCHLD)
            continue; /* told by reap() */
        if (number == SIGTERM || number == SIGINT) {
            runner->stop_signal = number;
            runner_end(runner, END_SIGNAL);
        } else {
            runner_pass_signal(runner, number);
        }
    }
}

/* Health checks, and what they leave behind: orphans of theirs come to us. */
static void reap(struct runner *runner)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (health_reaped(&runner->health, pid, status, clock_now()))
            runner_log_health(runner);
}

static gavel_ns wake_at(const struct runner *runner)
{
    gavel_ns at = health_wake_at(&runner->health);

    at = ns_min(at, runner->cooling_until == 0 ? NEVER : runner->cooling_until);
    at = ns_min(at, runner_order_due_at(runner));
    return ns_min(at, runner->watchdog_at);
}

static void serve(struct runner *runner)
{
    struct pollfd fds[] = {
        {.fd = runner->signal_fd, .events = POLLIN},
        {.fd = runner->news.fd, .events = POLLIN},
        {.fd = runner->guard.socket, .events = POLLIN},
        {.fd = runner->guard.pidfd, .events = POLLIN},
    };
    gavel_ns now = clock_now(), at = wake_at(runner);
    gavel_ns wait = at == NEVER ? NEVER : ns_max(at - now, 0);

    if (poll(fds, COUNT(fds), wait == NEVER ? -1 : (int)ns_min(ms_from_ns(wait) + 1, 60000)) < 0 &&
        errno != EINTR)
        runner_end(runner, END_FAILURE);
    now = clock_now();
    take_signal(runner);
    reap(runner);
    runner_take_news(runner);
    if (fds[2].revents)
        runner_take_report(runner);
    if (fds[3].revents)
        runner_guard_died(runner);
    runner_check_order(runner, now);
    health_tick(&runner->health, now);
    runner_update_eligibility(runner, now);
    if (now >= runner->watchdog_at) {
        notify_send(&runner->notify, "WATCHDOG=1");
        runner->watchdog_at = now + notify_watchdog_every(&runner->notify);
    }
}

static enum gavel_status open_prefix(struct runner *runner, struct gavel_error *error)
{
    struct guard_spec *spec = &runner->plan->spec;
    const char *names[CHILDREN_MAX];
    enum gavel_status status;

    if (!runner->plan->has_prefix)
        return GAVEL_OK;
    for (size_t i = 0; i < spec->rules.child_count; i++)
        names[i] = spec->children[i].name;
    status = prefix_open(&runner->prefix, names, spec->rules.child_count, runner->cli->color, error);
    if (status != GAVEL_OK)
        return status;
    runner->has_prefix = true;
    for (size_t i = 0; i < spec->rules.child_count; i++) {
        spec->children[i].stdout_fd = prefix_stdout(&runner->prefix, i);
        spec->children[i].stderr_fd = prefix_stderr(&runner->prefix, i);
    }
    return GAVEL_OK;
}

/* The guard first: it must be forked before there is any thread. */
static enum gavel_status start(struct runner *runner, struct gavel_error *error)
{
    const struct guard_mandates mandates = {
        .begin = runner_begin_guard,
        .read = runner_read_mandate,
        .release = runner_release_for_the_dead,
        .end = runner_end_guard,
        .user = runner,
    };
    enum gavel_status status = open_prefix(runner, error);
    struct store_location location;

    store_location_look(runner->cli->config.store, &location); /* the guard opens it, too */

    if (status == GAVEL_OK && on_death_new(1, &runner->on_death) != GAVEL_OK)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory for what the guard has to know");
    if (status == GAVEL_OK)
        status = guard_start(&runner->guard, &runner->plan->spec, &mandates, error);
    if (status != GAVEL_OK)
        return status;
    if (runner->has_prefix)
        status = prefix_start(&runner->prefix, error);
    if (status == GAVEL_OK)
        status = runner_join(runner, error);
    if (status == GAVEL_OK)
        beginning_log(runner->cli, runner->plan->id, &location);
    return status;
}

/* Everything stops, is released and goes; the guard's last report says how the command ended. */
static void finish(struct runner *runner)
{
    struct gavel_error error = {0};

    notify_send(&runner->notify, "STOPPING=1");
    let_signals_through(runner);
    health_done(&runner->health);
    runner_take_report(runner);
    runner_leave(runner);
    runner_take_news(runner);
    runner_take_report(runner);
    if (runner->guard.pid > 0 && guard_has_died(&runner->guard) && runner->end == END_SIGNAL)
        runner->end = END_GUARD;
    told_guard = NULL;
    guard_finish(&runner->guard);
    if (runner->has_prefix &&
        prefix_finish(&runner->prefix, clock_now() + ns_from_ms(DRAIN_MS), &error) != GAVEL_OK)
        log_line(&runner->cli->log, clock_wall_ms(), LOG_WARNING, "some output of the children is lost",
                 LOG_STR("reason", error.message), LOG_END);
    notify_close(&runner->notify);
}

int runner_run(const struct cli *cli, struct run_plan *plan)
{
    struct runner *runner = calloc(1, sizeof *runner);
    struct gavel_error error = {0};
    int code;

    if (!runner)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    runner->own = *cli;
    runner->own.log.never_waits = true;
    runner->cli = &runner->own;
    runner->plan = plan;
    runner->guard = (struct guard){.pidfd = -1, .socket = -1, .stopped_fd = -1};
    runner->report.last_status = -1;
    runner->was_healthy = true; /* one that never is has to be told, too */
    notify_open(&runner->notify);
    health_init(&runner->health, plan->healthy, plan->healthy_every_ms, plan->healthy_timeout_ms,
                plan->healthy_failures);
    runner->watchdog_at = notify_watchdog_every(&runner->notify) > 0 ? 0 : NEVER;
    if (!take_signals(runner) || !news_queue_init(&runner->news))
        return cli_fail(cli, GAVEL_ERR_IO, "cannot get a descriptor: %s; raise the limit (ulimit -n)",
                        strerror(errno));
    if (start(runner, &error) != GAVEL_OK) {
        finish(runner);
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        notify_send(&runner->notify, "READY=1\nSTATUS=Stands by for %s.", cli->config.group);
        while (!runner->is_ending)
            serve(runner);
        finish(runner);
        code = runner_exit_code(runner);
    }
    news_queue_done(&runner->news);
    (void)close(runner->signal_fd);
    /* The memory that is shared with the guard ends with the process: a store that did not answer any more
     * was left behind, and may still write to it. */
    free(runner);
    return code;
}
