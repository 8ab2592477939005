/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/guard/guard.h"

#include "daemon/guard/obituary.h"
#include "daemon/guard/pulse.h"
#include "daemon/node/node.h"
#include "daemon/realtime.h"
#include "guard/tree.h"
#include "os/clock.h"
#include "os/notify.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between passes of SIGKILL over what a dead node has left. */
#define PASS_EVERY NS_PER_MS

/* Whether the node has got up is looked at so often, while a service manager waits to be told. */
#define LOOK_EVERY (20 * NS_PER_MS)

/* The service manager is not told of a node that does not move; whether it does again is looked at so
 * often. */
#define PULSE_EVERY (100 * NS_PER_MS)

enum state {
    RUNNING,  /* the node lives */
    CLEARING, /* it is dead, but something is left below us */
    WAITING,  /* nothing is left; the next one starts soon */
    ENDED,    /* … or none does */
};

struct process {
    struct guard_process settings;
    struct tree tree;
    struct obituary_sender sender;
    struct notify notify;
    struct pulse pulse;
    int signal_fd;
    int timer_fd;
    sigset_t signal_mask; /* as we were started with; the node gets it back */
    enum state state;
    pid_t guard_pid;
    pid_t node_pid; /* 0: none that was not reaped */
    int node_status;
    gavel_ns started_at;
    gavel_ns died_at;
    gavel_ns start_at; /* WAITING */
    gavel_ns pass_at;  /* CLEARING: the next SIGKILL */
    gavel_ns pause;    /* before the next start, if the node dies quickly */
    int failures;      /* in a row that never got up */
    bool has_been_up;  /* some node of this guard */
    bool has_obituary; /* the obituary of this one is out */
    bool is_asked;     /* to end */
    bool is_told;      /* the service manager, that the node is up */
    gavel_ns kill_at;  /* a node that was asked and does not end */
    gavel_ns watch_at; /* the next sign of life for the service manager */
    int code;
};

#define LOG(p, level, message, ...) log_line(&(p)->settings.log, clock_wall_ms(), level, message, __VA_ARGS__)

/* What the exit code of a shell would be. */
static int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/* After these, starting again would not help. That its port is taken is told to whoever starts it; but what
 * ran before, and finds the port taken for a moment, tries again. */
static bool is_final(const struct process *p)
{
    static const int codes[] = {NODE_EXIT_DONE, NODE_EXIT_CONFIG, NODE_EXIT_DISK, NODE_EXIT_FENCED,
                                NODE_EXIT_LOST};
    int status = p->node_status;

    for (size_t i = 0; WIFEXITED(status) && i < sizeof codes / sizeof *codes; i++)
        if (WEXITSTATUS(status) == codes[i])
            return true;
    return WIFEXITED(status) && WEXITSTATUS(status) == NODE_EXIT_BUSY && !p->has_been_up;
}

/* What the forked process does: it is the node from here on. */
static _Noreturn void be_node(struct process *p)
{
    struct guard_process settings = p->settings;

    /* A node without a guard would die without an obituary; and the guard may have died before this line. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != p->guard_pid)
        _exit(GUARD_PROCESS_EXIT_SYSTEM);
    (void)setpgid(0, 0); /* signals of a terminal are for the guard, which passes them on once */
    (void)prctl(PR_SET_NAME, "gaveld");
    (void)close(p->signal_fd); /* nothing of value was written to these */
    (void)close(p->timer_fd);
    obituary_sender_close(&p->sender);
    tree_close(&p->tree);
    notify_close(&p->notify);
    explicit_bzero(p->settings.key, sizeof p->settings.key); /* the node reads it itself */
    explicit_bzero(settings.key, sizeof settings.key);
    (void)pthread_sigmask(SIG_SETMASK, &p->signal_mask, NULL);
    _exit(settings.run(settings.user));
}

static void start_node(struct process *p)
{
    gavel_ns now = clock_now();

    atomic_store(&p->settings.memory->is_up, 0);
    atomic_store(&p->settings.memory->alive_at, 0);
    (void)fflush(NULL); /* or both would write it */
    p->node_pid = fork();
    if (p->node_pid == 0)
        be_node(p);
    if (p->node_pid < 0) {
        p->node_pid = 0;
        p->pause = ns_min(p->pause * 2, p->settings.pause_max);
        p->start_at = now + p->pause;
        LOG(p, LOG_ERROR, "cannot start the node; trying again", LOG_STR("why", strerror(errno)),
            LOG_I64("pause_ms", ms_from_ns(p->pause)), LOG_END);
        return;
    }
    p->state = RUNNING;
    p->has_obituary = false;
    p->started_at = now;
    p->kill_at = NEVER;
    pulse_begin(&p->pulse, p->settings.hung, now);
    LOG(p, LOG_INFO, "node started", LOG_I64("pid", p->node_pid), LOG_END);
}

/* Signals of real time have no names. */
static void describe(int status, char *how, size_t size)
{
    const char *core = WCOREDUMP(status) ? ", core dumped" : "";

    if (!WIFSIGNALED(status))
        (void)snprintf(how, size, "exit code %d", WEXITSTATUS(status));
    else if (sigabbrev_np(WTERMSIG(status)))
        (void)snprintf(how, size, "killed by SIG%s%s", sigabbrev_np(WTERMSIG(status)), core);
    else
        (void)snprintf(how, size, "killed by signal %d%s", WTERMSIG(status), core);
}

/* Says how the node ended, for people: one that was asked to and did is no casualty. */
static void log_death(struct process *p)
{
    const struct shared_memory *memory = p->settings.memory;
    int status = p->node_status;
    bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == NODE_EXIT_DONE;
    bool is_asked_for = p->is_asked || is_done;
    char how[64];

    describe(status, how, sizeof how);
    LOG(p, is_asked_for ? LOG_INFO : LOG_WARNING, is_done ? "node stopped" : "node died",
        LOG_U64("incarnation", atomic_load(&memory->incarnation)), LOG_I64("at_ns", p->died_at),
        LOG_STR("how", how), LOG_I64("lived_ms", ms_from_ns(p->died_at - p->started_at)),
        LOG_I64("cleared_us", (clock_now() - p->died_at) / NS_PER_US), LOG_END);
}

/* Whether, and when, there is to be another one. */
static void plan_next(struct process *p)
{
    bool was_up = atomic_load(&p->settings.memory->is_up);
    gavel_ns now = clock_now();

    p->failures = was_up ? 0 : p->failures + 1;
    p->has_been_up = p->has_been_up || was_up;
    if (is_final(p) || p->is_asked || p->failures >= p->settings.failures_max) {
        if (!is_final(p) && !p->is_asked)
            LOG(p, LOG_ERROR, "the node failed to start too often; giving up, see the errors above",
                LOG_I64("tries", p->failures), LOG_END);
        p->code = code_of(p->node_status);
        p->state = ENDED;
        return;
    }
    if (p->died_at - p->started_at >= p->settings.quick) {
        p->pause = 0;
        p->start_at = now;
    } else {
        p->pause = p->pause ? ns_min(p->pause * 2, p->settings.pause_max) : p->settings.pause_min;
        p->start_at = now + p->pause;
    }
    p->state = WAITING;
}

/*
 * A node that starts no processes is dead with its last thread, and that is known before it is reaped, which
 * may take the kernel a while. With children, only an empty tree is the proof.
 */
static void tell_early(struct process *p)
{
    siginfo_t info = {0};

    if (p->state != RUNNING || p->has_obituary || !p->settings.is_childless ||
        waitid(P_PID, (id_t)p->node_pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid != p->node_pid)
        return;
    p->died_at = clock_now();
    p->has_obituary = obituary_sender_send(&p->sender, p->settings.memory, p->settings.key, p->died_at);
}

/* Nothing is left below us: that is the proof. The obituary goes first, everything else can wait. */
static void bury(struct process *p)
{
    bool is_sent =
        p->has_obituary || obituary_sender_send(&p->sender, p->settings.memory, p->settings.key, clock_now());
    gavel_ns now = clock_now();

    log_death(p);
    if (is_sent)
        LOG(p, LOG_DEBUG, "obituary sent",
            LOG_U64("incarnation", atomic_load(&p->settings.memory->incarnation)),
            LOG_U64("peers", p->sender.peers.count), LOG_I64("after_us", (now - p->died_at) / NS_PER_US),
            LOG_END);
    plan_next(p);
}

/* Takes the dead; a node among them is the end of RUNNING. */
static void reap(struct process *p)
{
    int status;
    pid_t pid;

    tell_early(p);
    while (tree_reap(&pid, &status)) {
        if (pid != p->node_pid)
            continue; /* something that it had left behind */
        if (!p->has_obituary)
            p->died_at = clock_now();
        p->node_pid = 0;
        p->node_status = status;
        p->state = CLEARING;
        p->pass_at = p->died_at + p->settings.orphans;
    }
    if (p->state == CLEARING && tree_is_empty(&p->tree))
        bury(p);
}

/* What has not ended by itself in the time for it. */
static void clear(struct process *p, gavel_ns now)
{
    if (p->state != CLEARING || now < p->pass_at)
        return;
    (void)tree_signal(&p->tree, SIGKILL, 0); /* whether anything is left is for wait(2) to say */
    p->pass_at = clock_now() + PASS_EVERY;
    reap(p);
}

/* The first time it is asked to, the second time it has to. */
static void ask_to_end(struct process *p, int signal_number)
{
    if (p->state == RUNNING && p->is_asked) {
        LOG(p, LOG_WARNING, "asked again; killing the node", LOG_STR("signal", sigabbrev_np(signal_number)),
            LOG_END);
        p->kill_at = clock_now();
        return;
    }
    p->is_asked = true;
    (void)notify_send(&p->notify, "STOPPING=1"); /* nobody to tell is fine */
    if (p->state == RUNNING) {
        p->kill_at = clock_now() + p->settings.stop_limit;
        (void)kill(p->node_pid,
                   signal_number); /* a child of ours that is not reaped: the number is its own */
    } else if (p->state == WAITING) {
        p->state = ENDED;
    }
}

static void take_signals(struct process *p)
{
    struct signalfd_siginfo info;

    while (read(p->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;

        if (number == SIGTERM || number == SIGINT)
            ask_to_end(p, number);
        else if (number == SIGHUP && p->state == RUNNING)
            (void)kill(p->node_pid, number); /* as above */
    }
    reap(p);
}

/* The service manager hears once that the node is up, and from time to time that it and we are there. */
static void tell_manager(struct process *p, gavel_ns now)
{
    gavel_ns every = notify_watchdog_every(&p->notify);
    bool is_well = p->state != RUNNING || p->is_asked || pulse_is_fresh(p->settings.memory, now);

    if (!p->is_told && atomic_load(&p->settings.memory->is_up))
        p->is_told = notify_send(&p->notify, "READY=1\nSTATUS=node process %d", (int)p->node_pid);
    if (every <= 0 || now < p->watch_at)
        return;
    p->watch_at = now + (is_well ? every : PULSE_EVERY);
    if (is_well)
        (void)notify_send(&p->notify, "WATCHDOG=1"); /* the next one follows */
}

/* One that is asked to end has another limit. */
static void feel_pulse(struct process *p, gavel_ns now)
{
    if (p->state != RUNNING || p->is_asked ||
        !pulse_look(&p->pulse, p->settings.memory, &p->tree, p->node_pid, now))
        return;
    LOG(p, LOG_ERROR, "the node hangs; killing it", LOG_I64("pid", p->node_pid),
        LOG_I64("silent_ms", ms_from_ns(p->settings.hung)), LOG_END);
    p->kill_at = now;
}

static void be_in_time(struct process *p)
{
    gavel_ns now = clock_now();

    obituary_sender_repeat(&p->sender, now);
    clear(p, now);
    if (p->state == WAITING && now >= p->start_at)
        start_node(p);
    feel_pulse(p, now);
    if (p->state == RUNNING && now >= p->kill_at) {
        (void)kill(p->node_pid, SIGKILL); /* a child of ours that is not reaped */
        p->kill_at = NEVER;
    }
    tell_manager(p, now);
}

static gavel_ns wake_at(const struct process *p)
{
    gavel_ns at = obituary_sender_due_at(&p->sender);

    if (p->state == CLEARING)
        at = ns_min(at, p->pass_at);
    if (p->state == WAITING)
        at = ns_min(at, p->start_at);
    if (p->state == RUNNING)
        at = ns_min(at, ns_min(p->kill_at, p->is_asked ? NEVER : p->pulse.look_at));
    if (p->notify.fd >= 0 && !p->is_told)
        at = ns_min(at, clock_now() + LOOK_EVERY);
    return notify_watchdog_every(&p->notify) > 0 ? ns_min(at, p->watch_at) : at;
}

/* Waits until anything happens. */
static void wait_for_news(struct process *p)
{
    struct pollfd fds[] = {{.fd = p->signal_fd, .events = POLLIN}, {.fd = p->timer_fd, .events = POLLIN}};
    struct itimerspec spec = clock_alarm(wake_at(p));
    uint64_t times;

    (void)timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL); /* cannot fail with these */
    if (poll(fds, 2, -1) < 0)
        return; /* interrupted, or no memory for a moment: everything is looked at again */
    if (fds[0].revents)
        take_signals(p);
    if (fds[1].revents && read(p->timer_fd, &times, sizeof times) < 0)
        times = 0; /* set anew in between */
}

static bool set_up(struct process *p)
{
    struct gavel_error error = {0};
    sigset_t all, wanted;

    (void)sigemptyset(&wanted); /* with valid signals none of these fails */
    for (size_t i = 0; i < 4; i++)
        (void)sigaddset(&wanted, (int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP}[i]);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &p->signal_mask);
    (void)prctl(PR_SET_NAME, "gaveld-guard");
    p->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    p->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    obituary_sender_open(&p->sender, p->settings.key);
    notify_open(&p->notify);
    if (p->signal_fd < 0 || p->timer_fd < 0 || tree_open(&p->tree, CONTAIN_WALK, &error) != GAVEL_OK) {
        LOG(p, LOG_ERROR, "the guard lacks resources; check the limits (ulimit -a)",
            LOG_STR("why", error.status != GAVEL_OK ? error.message : strerror(errno)), LOG_END);
        return false;
    }
    if (!p->settings.realtime)
        return true;
    (void)realtime_take(REALTIME_EAGER); /* where it is not permitted, all are equal */
    (void)realtime_lock_memory();
    return true;
}

static void tear_down(struct process *p)
{
    if (p->signal_fd >= 0)
        (void)close(p->signal_fd); /* nothing of value was written to these */
    if (p->timer_fd >= 0)
        (void)close(p->timer_fd);
    obituary_sender_close(&p->sender);
    notify_close(&p->notify);
    tree_close(&p->tree);
    explicit_bzero(p->settings.key, sizeof p->settings.key);
    (void)pthread_sigmask(SIG_SETMASK, &p->signal_mask, NULL);
}

static gavel_ns or_default(gavel_ns value, gavel_ns fallback) { return value ? value : fallback; }

int guard_process_run(const struct guard_process *settings)
{
    struct process p = {.settings = *settings, .guard_pid = getpid(), .signal_fd = -1, .timer_fd = -1};

    p.settings.quick = or_default(settings->quick, NS_PER_S);
    p.settings.pause_min = or_default(settings->pause_min, 100 * NS_PER_MS);
    p.settings.pause_max = or_default(settings->pause_max, 2 * NS_PER_S);
    p.settings.hung = or_default(settings->hung, 10 * NS_PER_S);
    p.settings.orphans = or_default(settings->orphans, 100 * NS_PER_MS);
    p.settings.failures_max = settings->failures_max ? settings->failures_max : 10;
    p.settings.log.never_waits = true; /* who reads it slowly must not delay an obituary */
    tree_init(&p.tree);
    p.code = GUARD_PROCESS_EXIT_SYSTEM;
    if (set_up(&p)) {
        p.pause = p.settings.pause_min;
        p.state = WAITING;
        p.code = NODE_EXIT_DONE;
        be_in_time(&p); /* starts it */
        p.pause = 0;
        /* A last obituary is repeated like any other, unless the node has ended in order. */
        while (p.state != ENDED || (p.code != NODE_EXIT_DONE && obituary_sender_due_at(&p.sender) != NEVER)) {
            wait_for_news(&p);
            be_in_time(&p);
        }
    }
    tear_down(&p);
    return p.code;
}
