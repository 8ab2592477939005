/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/commands/leader_commands.h"

#include "base/error.h"
#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* An order that the guard did not take is given again after so long. */
#define RETRY (10 * NS_PER_MS)

/* Between passes of SIGKILL over what a dead guard has left. */
#define PASS NS_PER_MS

/* A guard that is told to run something says so at once; one that has not after so long never will. */
#define ORDER_LIMIT (5 * NS_PER_S)

/* When the node ends, children that do not are killed after so long; the guard does it before. */
#define FINISH_LIMIT (2 * NS_PER_S)

/* The node is dead and nothing of the children is left. The guard process above sees that for itself. */
static void release_nothing(void *user) { (void)user; }

static bool watch(struct leader_commands *c, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(c->fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void set_timer(struct leader_commands *c, gavel_ns at)
{
    struct itimerspec spec = clock_alarm(at);

    (void)timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL); /* cannot fail with these */
}

enum gavel_status leader_commands_start(struct leader_commands *c, const struct daemon_config *config,
                                        struct shared_memory *memory, struct gavel_error *error)
{
    const struct guard_mandates mandates = {
        .read = shared_memory_read_mandate, .release = release_nothing, .user = memory};
    enum gavel_status status;

    *c = (struct leader_commands){.fd = -1, .timer_fd = -1};
    status = leader_commands_plan_make(config, &c->plan, error);
    if (status != GAVEL_OK)
        return status;
    status = guard_start(&c->guard, &c->plan.spec, &mandates, error);
    if (status != GAVEL_OK) {
        leader_commands_plan_done(&c->plan);
        *c = (struct leader_commands){.fd = -1, .timer_fd = -1};
        return status;
    }
    c->fd = epoll_create1(EPOLL_CLOEXEC);
    c->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->fd < 0 || c->timer_fd < 0 || !watch(c, c->timer_fd) || !watch(c, c->guard.pidfd) ||
        !watch(c, c->guard.socket) || !watch(c, c->guard.stopped_fd)) {
        status = error_set(error, GAVEL_ERR_IO, "cannot watch the children: %s; check the limits (ulimit -a)",
                           strerror(errno));
        leader_commands_finish(c);
    }
    return status;
}

/* Gives what is to be ordered and was not taken yet. The stop goes first: it never hurts. */
static void give_orders(struct leader_commands *c)
{
    if (c->is_dying || c->is_lost)
        return;
    if (c->stop_epoch && guard_order_stop(&c->guard, c->stop_epoch, c->stops_at_once))
        c->stop_epoch = 0;
    if (c->run_epoch && guard_order_run(&c->guard, c->run_epoch))
        c->run_epoch = 0;
    if (c->stop_epoch || c->run_epoch)
        set_timer(c, clock_now() + RETRY);
    else if (c->ordered > c->report.epoch && c->ordered > guard_dead_epoch(&c->guard))
        set_timer(c, c->ordered_at + ORDER_LIMIT);
}

void leader_commands_run(struct leader_commands *c, uint64_t epoch)
{
    if (epoch <= c->ordered || epoch <= c->stopped)
        return;
    c->ordered = c->run_epoch = epoch;
    c->ordered_at = clock_now();
    give_orders(c);
}

void leader_commands_stop(struct leader_commands *c, uint64_t epoch, bool at_once)
{
    if (epoch > c->stopped)
        c->stopped = epoch;
    if (c->run_epoch <= epoch)
        c->run_epoch = 0;
    c->stop_epoch = c->stopped;
    c->stops_at_once = at_once;
    give_orders(c);
    if (leader_commands_has_stopped(c, c->stopped))
        set_timer(c, clock_now()); /* nothing more will happen, and whoever watches must hear of it */
}

bool leader_commands_has_stopped(const struct leader_commands *c, uint64_t epoch)
{
    return c->is_lost || guard_dead_epoch(&c->guard) >= epoch;
}

static void forget(struct leader_commands *c, int fd)
{
    (void)epoll_ctl(c->fd, EPOLL_CTL_DEL, fd, NULL); /* at worst it is told of again */
}

/* The guard is dead; its children are killed by the kernel, whatever they have left by us, pass by pass. */
static void clean_up(struct leader_commands *c)
{
    if (!c->is_dying) {
        c->is_dying = true;
        forget(c, c->guard.pidfd); /* readable for ever */
        forget(c, c->guard.socket);
    }
    if (!guard_clean_up_once(&c->guard)) {
        set_timer(c, clock_now() + PASS);
        return;
    }
    c->is_lost = true;
}

static void drain(struct leader_commands *c)
{
    const int fds[] = {c->timer_fd, c->guard.stopped_fd};
    uint64_t times;

    for (size_t i = 0; i < 2; i++)
        if (read(fds[i], &times, sizeof times) < 0)
            times = 0; /* there was nothing */
}

static const char *name_of(const struct leader_commands *c, uint32_t slot)
{
    return slot < c->plan.spec.rules.child_count ? c->plan.spec.children[slot].name : "";
}

static void tell_status(char *text, size_t size, int status)
{
    if (status >= 0 && WIFSIGNALED(status))
        (void)snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (status >= 0)
        (void)snprintf(text, size, "exit code %d", WEXITSTATUS(status));
}

/* Why all has stopped. */
static void tell_cause(const struct leader_commands *c, struct leader_commands_event *event)
{
    static const char *const causes[SUPERVISOR_CAUSE_COUNT] = {
        [CAUSE_NONE] = "it could not be started",
        [CAUSE_ORDERED] = "it was told to stop",
        [CAUSE_LAPSED] = "the mandate ended",
        [CAUSE_ENDED] = "a child has ended",
        [CAUSE_RESIGN] = "a child has ended and wants another node to lead",
        [CAUSE_LIMIT] = "a child has ended too often",
        [CAUSE_NOT_READY] = "a child was not ready in time",
        [CAUSE_HOOK_FAILED] = "a hook has failed",
    };
    const struct guard_report *report = &c->report;
    char how[80] = "";

    tell_status(how, sizeof how, report->cause_status);
    (void)snprintf(event->text, sizeof event->text, "%s%s%s",
                   report->cause < SUPERVISOR_CAUSE_COUNT ? causes[report->cause] : "", *how ? ": " : "",
                   how);
    if (report->spawn_error)
        (void)snprintf(event->text, sizeof event->text, "it could not be started: %s",
                       strerror(report->spawn_error));
    event->late_by_ms = report->late_by_ms;
    if (report->cause != CAUSE_ORDERED && report->cause != CAUSE_LAPSED && report->cause != CAUSE_NONE)
        event->child = name_of(c, report->cause_slot);
}

/* The next difference between what was reported and what was told. */
static bool next_event(struct leader_commands *c, struct leader_commands_event *event)
{
    const struct guard_report *report = &c->report;

    *event = (struct leader_commands_event){.epoch = report->epoch, .child = ""};
    if (report->restarts > c->told_restarts) {
        c->told_restarts = report->restarts;
        event->news = LEADER_COMMANDS_RESTARTED;
        event->child = name_of(c, report->ended_slot);
        tell_status(event->text, sizeof event->text, report->ended_status);
        return true;
    }
    if (report->state == SUPERVISOR_RUNNING && c->told_running != report->epoch) {
        c->told_running = report->epoch;
        event->news = LEADER_COMMANDS_RUNS;
        return true;
    }
    if (report->state == SUPERVISOR_EMPTY && report->epoch > c->settled) {
        c->settled = report->epoch;
        event->news = report->epoch <= c->stopped ? LEADER_COMMANDS_STOPPED : LEADER_COMMANDS_GAVE_UP;
        tell_cause(c, event);
        return true;
    }
    if (c->is_lost && !c->has_told_loss) {
        c->has_told_loss = true;
        event->news = LEADER_COMMANDS_LOST;
        event->epoch = c->ordered;
        (void)snprintf(event->text, sizeof event->text, "the guard of the children has died");
        return true;
    }
    return false;
}

bool leader_commands_look(struct leader_commands *c, struct leader_commands_event *ret_event)
{
    struct leader_commands_event event;

    drain(c);
    if (!c->is_lost) {
        if (!c->is_dying)
            (void)guard_read(&c->guard, &c->report); /* the newest, if there is one */
        /* One that has never said that it runs what it was told to is frozen or worse. */
        if (!c->is_dying && c->ordered > c->report.epoch && c->ordered > guard_dead_epoch(&c->guard) &&
            clock_now() >= c->ordered_at + ORDER_LIMIT)
            guard_abandon(&c->guard); /* its death is noticed like any other */
        if (c->is_dying || guard_has_died(&c->guard))
            clean_up(c);
        else
            give_orders(c);
    }
    if (!next_event(c, &event))
        return false;
    *ret_event = event;
    return true;
}

void leader_commands_finish(struct leader_commands *c)
{
    if (c->guard.pid > 0) {
        if (!c->is_lost && !c->is_dying &&
            !guard_stop(&c->guard, UINT64_MAX, true, clock_now() + FINISH_LIMIT))
            (void)guard_clean_up(&c->guard,
                                 clock_now() + FINISH_LIMIT); /* the guard process above does the rest */
        guard_finish(&c->guard);
    }
    if (c->timer_fd > 0)
        (void)close(c->timer_fd); /* nothing of value was written to these */
    if (c->fd > 0)
        (void)close(c->fd);
    leader_commands_plan_done(&c->plan);
    *c = (struct leader_commands){.fd = -1, .timer_fd = -1};
}
