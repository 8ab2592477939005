/* SPDX-License-Identifier: Apache-2.0 */

/* The loop of the guard. When it does what is in instants.h. */
#include "guard/keeper.h"

#include "base/error.h"
#include "guard/proc.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define STACK_BYTES (512 * 1024)

static void set_suicide(struct keeper *keeper, gavel_ns at)
{
    struct itimerspec spec = clock_alarm(at);

    (void)timer_settime(keeper->suicide, TIMER_ABSTIME, &spec, NULL); /* cannot fail with these */
}

void keeper_spare(struct keeper *keeper) { set_suicide(keeper, NEVER); }

/* Whether there is something that must not outlive the guard. */
static bool has_work(const struct keeper *keeper)
{
    return keeper->supervisor.state != SUPERVISOR_EMPTY && keeper->supervisor.state != SUPERVISOR_CLEARING;
}

/*
 * The mandate as it stands. One that is gone is not extended any more: what
 * was last read is its end, and the stop begins now.
 */
static void read_mandate(struct keeper *keeper)
{
    const struct guard_mandates *mandates = &keeper->start.mandates;
    gavel_ns stop_at, deadline;

    if (keeper->supervisor.state == SUPERVISOR_EMPTY)
        return;
    if (mandates->read(mandates->user, keeper->supervisor.epoch, &stop_at, &deadline)) {
        keeper->instants.stop_at = stop_at;
        keeper->instants.deadline = deadline;
    } else {
        keeper->instants.stop_at = ns_min(keeper->instants.stop_at, clock_now());
    }
}

/*
 * The kernel's timer is set before anything is started: a guard that is
 * frozen in the middle of it must not leave a command behind.
 */
static void step(struct keeper *keeper, struct supervisor_event *event)
{
    event->now = clock_now();
    event->stop_at = keeper->instants.stop_at;
    event->kill_at = instants_kill_at(&keeper->instants);
    supervisor_step(&keeper->supervisor, event, &keeper->actions);
    if (has_work(keeper))
        set_suicide(keeper, instants_suicide_at(&keeper->instants));
    keeper_carry_out(keeper);
}

void keeper_feed(struct keeper *keeper, enum supervisor_event_kind kind, size_t slot, int status)
{
    struct supervisor_event event = {.kind = kind, .slot = slot, .status = status};

    read_mandate(keeper);
    step(keeper, &event);
}

/* Begins with an epoch whose turn it is. */
static void start_next(struct keeper *keeper)
{
    struct supervisor_event event = {.kind = SUPERVISOR_START, .epoch = keeper->next_epoch};
    const struct guard_mandates *mandates = &keeper->start.mandates;
    struct instants *instants = &keeper->instants;

    keeper->next_epoch = 0;
    keeper->late_by = 0;
    keeper->last_status = keeper->demoted_status = -1;
    keeper->spawn_error = 0;
    *instants = (struct instants){.grace = keeper->start.spec->stop_grace, .orphan_until = NEVER};
    if (!mandates->read(mandates->user, event.epoch, &instants->stop_at, &instants->deadline))
        instants->stop_at = instants->deadline = 0;
    step(keeper, &event);
}

/* How things stand, if that has changed. */
static void report(struct keeper *keeper)
{
    const struct supervisor *supervisor = &keeper->supervisor;
    struct guard_report report = {
        .epoch = supervisor->epoch,
        .state = supervisor->state,
        .cause = supervisor->cause,
        .cause_slot = (uint32_t)supervisor->cause_slot,
        .cause_status = supervisor->cause_status,
        .last_status = keeper->last_status,
        .restarts = supervisor->restart_total,
        .late_by_ms = (int32_t)ms_from_ns(keeper->late_by + NS_PER_MS - 1),
        .ended_slot = (uint32_t)keeper->ended_slot,
        .ended_status = keeper->ended_status,
        .demoted_status = keeper->demoted_status,
        .spawn_error = keeper->spawn_error,
    };
    const struct guard_report *last = &keeper->reported;

    if (report.epoch != last->epoch || report.state != last->state || report.cause != last->cause ||
        report.restarts != last->restarts)
        keeper->owes_report = true;
    if (!keeper->owes_report || keeper->has_closed || keeper->is_orphaned)
        return;
    if (send(keeper->start.socket, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        errno == EAGAIN)
        return;
    keeper->owes_report = false;
    keeper->reported = report;
}

/* Nothing is left: the epoch is dead for good, and whoever waits for that is told. */
static void bury(struct keeper *keeper, uint64_t epoch)
{
    struct guard_frontend *frontend = keeper->start.frontend;
    const uint64_t one = 1;

    if (atomic_load(&frontend->dead_epoch) >= epoch)
        return;
    atomic_store(&frontend->dead_epoch, epoch);
    if (write(keeper->start.stopped_fd, &one, sizeof one) < 0)
        return; /* it is full of news already */
}

static void settle(struct keeper *keeper)
{
    const struct supervisor *supervisor = &keeper->supervisor;

    if (supervisor->state != SUPERVISOR_EMPTY)
        return;
    if (supervisor->epoch > keeper->stopped_epoch)
        keeper->stopped_epoch = supervisor->epoch;
    if (supervisor->epoch > atomic_load(&keeper->start.frontend->dead_epoch) && keeper->instants.deadline > 0)
        keeper->late_by = ns_max(clock_now() - keeper->instants.deadline, 0);
    report(keeper); /* first: who hears that it is dead ends, and wants to know how the command did */
    bury(keeper, keeper->stopped_epoch);
    if (keeper->next_epoch > keeper->stopped_epoch && !keeper->is_orphaned)
        start_next(keeper);
}

static void obey(struct keeper *keeper, const struct order *order)
{
    struct supervisor *supervisor = &keeper->supervisor;

    switch (order->kind) {
    case ORDER_RUN:
        if (order->epoch <= keeper->stopped_epoch || order->epoch <= supervisor->epoch)
            break;
        keeper->next_epoch = order->epoch;
        keeper_feed(keeper, SUPERVISOR_STOP, 0, 0);
        break;
    case ORDER_STOP:
        if (keeper->next_epoch <= order->epoch)
            keeper->next_epoch = 0;
        keeper->stopped_epoch = order->epoch > keeper->stopped_epoch ? order->epoch : keeper->stopped_epoch;
        if (supervisor->epoch <= order->epoch)
            keeper_feed(keeper, order->at_once ? SUPERVISOR_KILL : SUPERVISOR_STOP, 0, 0);
        break;
    case ORDER_KILL:
        keeper->next_epoch = 0;
        keeper_feed(keeper, SUPERVISOR_KILL, 0, 0);
        break;
    case ORDER_SIGNAL:
        for (size_t i = 0; i < supervisor->rules.child_count; i++)
            post_signal(&keeper->posts[i], order->signal_number);
        break;
    case ORDER_QUIT:
        keeper->may_quit = true;
        break;
    }
}

static void read_orders(struct keeper *keeper)
{
    struct order order;

    while (!keeper->has_closed) {
        ssize_t size = recv(keeper->start.socket, &order, sizeof order, MSG_DONTWAIT);

        if (size == (ssize_t)sizeof order)
            obey(keeper, &order);
        else if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        else
            keeper->has_closed = true; /* the end of the elector is told by its pidfd, not by this */
    }
}

/* The elector is dead. Nobody renews any more, and nobody waits for the children to end well. */
static void become_orphan(struct keeper *keeper)
{
    gavel_ns grace = keeper->start.spec->orphan_grace;
    struct supervisor_event event = {
        .kind = grace > 0 ? SUPERVISOR_STOP : SUPERVISOR_KILL, .is_orphaned = true, .grace = grace};

    keeper->is_orphaned = true;
    keeper->next_epoch = 0;
    keeper->instants.orphan_until = clock_now() + grace;
    read_mandate(keeper);
    step(keeper, &event);
}

/* While work runs the mandate is read again and again; while it stops only the kill is left to time. */
static gavel_ns wake_at(const struct keeper *keeper)
{
    enum supervisor_state state = keeper->supervisor.state;
    bool is_stopping = state == SUPERVISOR_STOPPING || state == SUPERVISOR_HOOK_DEMOTED;
    gavel_ns at = ns_min(keeper_sweep_at(keeper), supervisor_wake_at(&keeper->supervisor));

    if (!has_work(keeper))
        return at;
    return ns_min(at, is_stopping ? instants_kill_at(&keeper->instants)
                                  : instants_read_at(&keeper->instants, clock_now()));
}

static void set_timers(struct keeper *keeper)
{
    struct itimerspec spec = clock_alarm(wake_at(keeper));

    (void)timerfd_settime(keeper->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL); /* cannot fail with these */
    if (has_work(keeper))
        set_suicide(keeper, instants_suicide_at(&keeper->instants));
    else
        keeper_spare(keeper);
}

static void look_at_readiness(struct keeper *keeper, size_t slot)
{
    struct post *post = &keeper->posts[slot];
    char bytes[64];
    ssize_t size = read(post->ready_fd, bytes, sizeof bytes);

    if (size < 0)
        return;
    post_forget_readiness(
        post); /* the first byte says it all; without one it has closed its end and never will */
    if (size > 0)
        keeper_feed(keeper, SUPERVISOR_READY, slot, 0);
}

enum { WATCH_SIGNAL, WATCH_TIMER, WATCH_ELECTOR, WATCH_SOCKET, WATCH_CHILDREN };

/*
 * A limit of descriptors that was lowered below their count keeps poll(2)
 * from working at all. Until it is lifted they are looked at one by one.
 */
static bool look_one_by_one(struct pollfd *fds, size_t count)
{
    const struct timespec moment = {.tv_nsec = (long)NS_PER_MS};

    if (errno != EINVAL || proc_raise_limit())
        return false;
    (void)nanosleep(&moment, NULL); /* a shorter one does no harm */
    for (size_t i = 0; i < count; i++)
        if (poll(&fds[i], 1, 0) < 0)
            fds[i].revents = 0; /* not even one: only the timer of the kernel is left */
    return true;
}

/* Waits until anything happens. */
static void wait_for_news(struct keeper *keeper)
{
    struct pollfd fds[WATCH_CHILDREN + CHILDREN_MAX] = {
        [WATCH_SIGNAL] = {.fd = keeper->signal_fd, .events = POLLIN},
        [WATCH_TIMER] = {.fd = keeper->timer_fd, .events = POLLIN},
        [WATCH_ELECTOR] = {.fd = keeper->is_orphaned ? -1 : keeper->start.elector_fd, .events = POLLIN},
        [WATCH_SOCKET] = {.fd = keeper->has_closed ? -1 : keeper->start.socket, .events = POLLIN},
    };
    struct signalfd_siginfo info;
    uint64_t times;
    size_t count = keeper->supervisor.rules.child_count;

    if (keeper->owes_report)
        fds[WATCH_SOCKET].events |= POLLOUT;
    for (size_t i = 0; i < count; i++)
        fds[WATCH_CHILDREN + i] = (struct pollfd){.fd = keeper->posts[i].ready_fd, .events = POLLIN};
    if (poll(fds, WATCH_CHILDREN + count, -1) < 0 && !look_one_by_one(fds, WATCH_CHILDREN + count))
        return; /* interrupted, or no memory for a moment: everything is looked at again */
    if (fds[WATCH_ELECTOR].revents)
        become_orphan(keeper);
    while (fds[WATCH_SIGNAL].revents && read(keeper->signal_fd, &info, sizeof info) > 0)
        ;
    if (fds[WATCH_TIMER].revents && read(keeper->timer_fd, &times, sizeof times) < 0)
        times = 0; /* set anew in between */
    if (fds[WATCH_SOCKET].revents)
        read_orders(keeper);
    for (size_t i = 0; i < count; i++)
        if (fds[WATCH_CHILDREN + i].revents && keeper->posts[i].ready_fd >= 0)
            look_at_readiness(keeper, i);
}

static bool is_over(const struct keeper *keeper)
{
    return keeper->supervisor.state == SUPERVISOR_EMPTY && (keeper->is_orphaned || keeper->may_quit);
}

/* What helps to be in time, where it is permitted: before everybody else, and never waiting for the disk. */
static void take_precedence(void)
{
    struct sched_param parameter = {.sched_priority = sched_get_priority_max(SCHED_FIFO) - 1};
    struct rlimit allowed;

    /* Above whatever else runs in real time, but for the kernel's own; or as high as this user may. */
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter) < 0 &&
        getrlimit(RLIMIT_RTPRIO, &allowed) == 0 && allowed.rlim_cur > 0) {
        parameter.sched_priority = (int)allowed.rlim_cur;
        (void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter); /* else without */
    }
    (void)mlockall(MCL_CURRENT | MCL_FUTURE); /* likewise */
}

/* What a walk needs of the stack is taken now: once memory is locked, growing may be refused. */
static void touch_stack(void)
{
    volatile char room[STACK_BYTES];

    for (size_t i = 0; i < sizeof room; i += 1024)
        room[i] = 0;
}

/* Room for descriptors, as far as it is allowed; the children get the limit back that gavel had. */
static void raise_descriptors(struct keeper *keeper)
{
    struct rlimit limit;

    (void)getrlimit(RLIMIT_NOFILE, &keeper->descriptors); /* a valid resource, so it cannot fail */
    limit = keeper->descriptors;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* at worst the limit stays */
}

/*
 * The lowest numbers become spares: whatever the limit of descriptors is
 * lowered to, they can be used again when they are given up. The children get
 * what stood there.
 */
static void keep_low_numbers_spare(struct keeper *keeper)
{
    int *kept[] = {&keeper->stdin_fd, &keeper->stdout_fd};

    for (int number = 0; number < 2; number++) {
        *kept[number] = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (*kept[number] < 0 || keeper->tree.spare_fds[number] < 0)
            continue;
        if (dup3(keeper->tree.spare_fds[number], number, O_CLOEXEC) < 0)
            continue;
        (void)close(keeper->tree.spare_fds[number]); /* it holds nothing */
        keeper->tree.spare_fds[number] = number;
    }
}

static enum gavel_status set_up(struct keeper *keeper, struct gavel_error *error)
{
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    sigset_t all, children;

    (void)setsid(); /* signals of a terminal are for the elector */
    (void)prctl(PR_SET_NAME, "gavel-guard");
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    raise_descriptors(keeper);
    keeper->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    keeper->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (keeper->timer_fd < 0 || keeper->signal_fd < 0 ||
        timer_create(CLOCK_BOOTTIME, &how, &keeper->suicide) < 0)
        return error_set(error, GAVEL_ERR_IO,
                         "the guard cannot get what it needs: %s; look at the limits (ulimit -a)",
                         strerror(errno));
    return tree_open(&keeper->tree, keeper->start.spec->contain, error);
}

int keeper_run(const struct keeper_start *start)
{
    static struct keeper keeper; /* large, and there is one guard in a process */

    keeper = (struct keeper){.start = *start};
    tree_init(&keeper.tree);
    for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
        keeper.posts[i] = (struct post){.pidfd = -1, .ready_fd = -1};
    supervisor_init(&keeper.supervisor, &start->spec->rules);
    if (set_up(&keeper, &start->frontend->error) != GAVEL_OK)
        return 1;
    memcpy(start->frontend->cgroup, keeper.tree.cgroup, sizeof keeper.tree.cgroup);
    if (start->mandates.begin)
        start->mandates.begin(start->mandates.user);
    keep_low_numbers_spare(&keeper);
    touch_stack();
    take_precedence();
    keeper.last_status = keeper.demoted_status = -1;
    keeper.owes_report = true; /* the first one says that the guard is ready */
    while (!is_over(&keeper)) {
        report(&keeper);
        wait_for_news(&keeper);
        keeper_feed(&keeper, SUPERVISOR_TICK, 0, 0);
        keeper_sweep(&keeper);
        settle(&keeper);
        set_timers(&keeper);
    }
    tree_close(&keeper.tree);
    if (keeper.is_orphaned && start->mandates.release)
        start->mandates.release(start->mandates.user);
    return 0;
}
