/* SPDX-License-Identifier: Apache-2.0 */

/* The loop of the guard. When it does what is in instants.h. */
#include "guard/loop.h"

#include "base/error.h"
#include "guard/proc.h"
#include "os/clock.h"
#include "os/wakeup.h"

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

static void set_suicide(struct guard_loop *loop, gavel_ns at)
{
    struct itimerspec spec = clock_alarm(at);

    (void)timer_settime(loop->suicide, TIMER_ABSTIME, &spec, NULL); /* cannot fail with these */
}

void guard_loop_spare(struct guard_loop *loop) { set_suicide(loop, NEVER); }

/* Whether there is something that must not outlive the guard. */
static bool has_work(const struct guard_loop *loop)
{
    return loop->supervisor.state != SUPERVISOR_EMPTY && loop->supervisor.state != SUPERVISOR_CLEARING;
}

/*
 * The mandate as it stands. One that is gone is not extended any more: what
 * was last read is its end, and the stop begins now.
 */
static void read_mandate(struct guard_loop *loop)
{
    const struct guard_mandates *mandates = &loop->start.mandates;
    gavel_ns stop_at, deadline;

    if (loop->supervisor.state == SUPERVISOR_EMPTY)
        return;
    if (mandates->read(mandates->user, loop->supervisor.epoch, &stop_at, &deadline)) {
        loop->instants.stop_at = stop_at;
        loop->instants.deadline = deadline;
    } else {
        loop->instants.stop_at = ns_min(loop->instants.stop_at, clock_now());
    }
}

/*
 * The kernel's timer is set before anything is started: a guard that is
 * frozen in the middle of it must not leave a command behind.
 */
static void step(struct guard_loop *loop, struct supervisor_event *event)
{
    event->now = clock_now();
    event->stop_at = loop->instants.stop_at;
    event->kill_at = instants_kill_at(&loop->instants);
    supervisor_step(&loop->supervisor, event, &loop->actions);
    if (has_work(loop))
        set_suicide(loop, instants_suicide_at(&loop->instants));
    guard_loop_carry_out(loop);
}

void guard_loop_feed(struct guard_loop *loop, enum supervisor_event_kind kind, size_t slot, int status)
{
    struct supervisor_event event = {.kind = kind, .slot = slot, .status = status};

    read_mandate(loop);
    step(loop, &event);
}

/* Begins with an epoch whose turn it is. */
static void start_next(struct guard_loop *loop)
{
    struct supervisor_event event = {.kind = SUPERVISOR_START, .epoch = loop->next_epoch};
    const struct guard_mandates *mandates = &loop->start.mandates;
    struct instants *instants = &loop->instants;

    loop->next_epoch = 0;
    loop->late_by = 0;
    loop->last_status = loop->demoted_status = -1;
    loop->spawn_error = 0;
    *instants = (struct instants){.grace = loop->start.spec->stop_grace, .orphan_until = NEVER};
    if (!mandates->read(mandates->user, event.epoch, &instants->stop_at, &instants->deadline))
        instants->stop_at = instants->deadline = 0;
    step(loop, &event);
}

/* How things stand, if that has changed. */
static void report(struct guard_loop *loop)
{
    const struct supervisor *supervisor = &loop->supervisor;
    struct guard_report report = {
        .epoch = supervisor->epoch,
        .state = supervisor->state,
        .cause = supervisor->cause,
        .cause_slot = (uint32_t)supervisor->cause_slot,
        .cause_status = supervisor->cause_status,
        .last_status = loop->last_status,
        .restarts = supervisor->restart_total,
        .late_by_ms = (int32_t)ms_from_ns(loop->late_by + NS_PER_MS - 1),
        .ended_slot = (uint32_t)loop->ended_slot,
        .ended_status = loop->ended_status,
        .demoted_status = loop->demoted_status,
        .spawn_error = loop->spawn_error,
    };
    const struct guard_report *last = &loop->reported;

    if (report.epoch != last->epoch || report.state != last->state || report.cause != last->cause ||
        report.restarts != last->restarts)
        loop->owes_report = true;
    if (!loop->owes_report || loop->has_closed || loop->is_orphaned)
        return;
    if (send(loop->start.socket, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EAGAIN)
        return;
    loop->owes_report = false;
    loop->reported = report;
}

/* Nothing is left: the epoch is dead for good, and whoever waits for that is told. */
static void bury(struct guard_loop *loop, uint64_t epoch)
{
    struct guard_shared *shared = loop->start.shared;

    if (atomic_load(&shared->dead_epoch) >= epoch)
        return;
    atomic_store(&shared->dead_epoch, epoch);
    wakeup_ring(loop->start.stopped_fd);
}

static void settle(struct guard_loop *loop)
{
    const struct supervisor *supervisor = &loop->supervisor;

    if (supervisor->state != SUPERVISOR_EMPTY)
        return;
    if (supervisor->epoch > loop->stopped_epoch)
        loop->stopped_epoch = supervisor->epoch;
    if (supervisor->epoch > atomic_load(&loop->start.shared->dead_epoch) && loop->instants.deadline > 0)
        loop->late_by = ns_max(clock_now() - loop->instants.deadline, 0);
    report(loop); /* first: who hears that it is dead ends, and wants to know how the command did */
    bury(loop, loop->stopped_epoch);
    if (loop->next_epoch > loop->stopped_epoch && !loop->is_orphaned)
        start_next(loop);
}

static void obey(struct guard_loop *loop, const struct order *order)
{
    struct supervisor *supervisor = &loop->supervisor;

    switch (order->kind) {
    case ORDER_RUN:
        if (order->epoch <= loop->stopped_epoch || order->epoch <= supervisor->epoch)
            break;
        loop->next_epoch = order->epoch;
        guard_loop_feed(loop, SUPERVISOR_STOP, 0, 0);
        break;
    case ORDER_STOP:
        if (loop->next_epoch <= order->epoch)
            loop->next_epoch = 0;
        loop->stopped_epoch = order->epoch > loop->stopped_epoch ? order->epoch : loop->stopped_epoch;
        if (supervisor->epoch <= order->epoch)
            guard_loop_feed(loop, order->at_once ? SUPERVISOR_KILL : SUPERVISOR_STOP, 0, 0);
        break;
    case ORDER_KILL:
        loop->next_epoch = 0;
        guard_loop_feed(loop, SUPERVISOR_KILL, 0, 0);
        break;
    case ORDER_SIGNAL:
        for (size_t i = 0; i < supervisor->rules.child_count; i++)
            slot_signal(&loop->slots[i], order->signal_number);
        break;
    case ORDER_QUIT:
        loop->may_quit = true;
        break;
    }
}

static void read_orders(struct guard_loop *loop)
{
    struct order order;

    while (!loop->has_closed) {
        ssize_t size = recv(loop->start.socket, &order, sizeof order, MSG_DONTWAIT);

        if (size == (ssize_t)sizeof order)
            obey(loop, &order);
        else if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        else
            loop->has_closed = true; /* the end of the elector is told by its pidfd, not by this */
    }
}

/* The elector is dead. Nobody renews any more, and nobody waits for the children to end well. */
static void become_orphan(struct guard_loop *loop)
{
    gavel_ns grace = loop->start.spec->orphan_grace;
    struct supervisor_event event = {
        .kind = grace > 0 ? SUPERVISOR_STOP : SUPERVISOR_KILL, .is_orphaned = true, .grace = grace};

    loop->is_orphaned = true;
    loop->next_epoch = 0;
    loop->instants.orphan_until = clock_now() + grace;
    read_mandate(loop);
    step(loop, &event);
}

/* While work runs the mandate is read again and again; while it stops only the kill is left to time. */
static gavel_ns wake_at(const struct guard_loop *loop)
{
    enum supervisor_state state = loop->supervisor.state;
    bool is_stopping = state == SUPERVISOR_STOPPING || state == SUPERVISOR_HOOK_DEMOTED;
    gavel_ns at = ns_min(guard_loop_sweep_at(loop), supervisor_wake_at(&loop->supervisor));

    if (!has_work(loop))
        return at;
    return ns_min(at, is_stopping ? instants_kill_at(&loop->instants)
                                  : instants_read_at(&loop->instants, clock_now()));
}

static void set_timers(struct guard_loop *loop)
{
    struct itimerspec spec = clock_alarm(wake_at(loop));

    (void)timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL); /* cannot fail with these */
    if (has_work(loop))
        set_suicide(loop, instants_suicide_at(&loop->instants));
    else
        guard_loop_spare(loop);
}

static void look_at_readiness(struct guard_loop *loop, size_t slot)
{
    struct slot_process *process = &loop->slots[slot];
    char bytes[64];
    ssize_t size = read(process->ready_fd, bytes, sizeof bytes);

    if (size < 0)
        return;
    slot_forget_readiness(
        process); /* the first byte says it all; without one it has closed its end and never will */
    if (size > 0)
        guard_loop_feed(loop, SUPERVISOR_READY, slot, 0);
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
static void wait_for_news(struct guard_loop *loop)
{
    struct pollfd fds[WATCH_CHILDREN + CHILDREN_MAX] = {
        [WATCH_SIGNAL] = {.fd = loop->signal_fd, .events = POLLIN},
        [WATCH_TIMER] = {.fd = loop->timer_fd, .events = POLLIN},
        [WATCH_ELECTOR] = {.fd = loop->is_orphaned ? -1 : loop->start.elector_fd, .events = POLLIN},
        [WATCH_SOCKET] = {.fd = loop->has_closed ? -1 : loop->start.socket, .events = POLLIN},
    };
    struct signalfd_siginfo info;
    uint64_t times;
    size_t count = loop->supervisor.rules.child_count;

    if (loop->owes_report)
        fds[WATCH_SOCKET].events |= POLLOUT;
    for (size_t i = 0; i < count; i++)
        fds[WATCH_CHILDREN + i] = (struct pollfd){.fd = loop->slots[i].ready_fd, .events = POLLIN};
    if (poll(fds, WATCH_CHILDREN + count, -1) < 0 && !look_one_by_one(fds, WATCH_CHILDREN + count))
        return; /* interrupted, or no memory for a moment: everything is looked at again */
    if (fds[WATCH_ELECTOR].revents)
        become_orphan(loop);
    while (fds[WATCH_SIGNAL].revents && read(loop->signal_fd, &info, sizeof info) > 0)
        ;
    if (fds[WATCH_TIMER].revents && read(loop->timer_fd, &times, sizeof times) < 0)
        times = 0; /* set anew in between */
    if (fds[WATCH_SOCKET].revents)
        read_orders(loop);
    for (size_t i = 0; i < count; i++)
        if (fds[WATCH_CHILDREN + i].revents && loop->slots[i].ready_fd >= 0)
            look_at_readiness(loop, i);
}

static bool is_over(const struct guard_loop *loop)
{
    return loop->supervisor.state == SUPERVISOR_EMPTY && (loop->is_orphaned || loop->may_quit);
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
static void raise_descriptors(struct guard_loop *loop)
{
    struct rlimit limit;

    (void)getrlimit(RLIMIT_NOFILE, &loop->descriptors); /* a valid resource, so it cannot fail */
    limit = loop->descriptors;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* at worst the limit stays */
}

/*
 * The lowest numbers become spares: whatever the limit of descriptors is
 * lowered to, they can be used again when they are given up. The children get
 * what stood there.
 */
static void keep_low_numbers_spare(struct guard_loop *loop)
{
    int *kept[] = {&loop->stdin_fd, &loop->stdout_fd};

    for (int number = 0; number < 2; number++) {
        *kept[number] = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (*kept[number] < 0 || loop->tree.spare_fds[number] < 0)
            continue;
        if (dup3(loop->tree.spare_fds[number], number, O_CLOEXEC) < 0)
            continue;
        (void)close(loop->tree.spare_fds[number]); /* it holds nothing */
        loop->tree.spare_fds[number] = number;
    }
}

static enum gavel_status set_up(struct guard_loop *loop, struct gavel_error *error)
{
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    sigset_t all, children;

    (void)setsid(); /* signals of a terminal are for the elector */
    (void)prctl(PR_SET_NAME, "gavel-run-guard");
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    raise_descriptors(loop);
    loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    loop->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (loop->timer_fd < 0 || loop->signal_fd < 0 || timer_create(CLOCK_BOOTTIME, &how, &loop->suicide) < 0)
        return error_set(error, GAVEL_ERR_IO, "the guard lacks resources: %s; check the limits (ulimit -a)",
                         strerror(errno));
    return tree_open(&loop->tree, loop->start.spec->contain, error);
}

int guard_loop_run(const struct guard_loop_start *start)
{
    static struct guard_loop loop; /* large, and there is one guard in a process */

    loop = (struct guard_loop){.start = *start};
    tree_init(&loop.tree);
    for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
        loop.slots[i] = (struct slot_process){.pidfd = -1, .ready_fd = -1};
    supervisor_init(&loop.supervisor, &start->spec->rules);
    if (set_up(&loop, &start->shared->error) != GAVEL_OK)
        return 1;
    memcpy(start->shared->cgroup, loop.tree.cgroup, sizeof loop.tree.cgroup);
    if (start->mandates.begin)
        start->mandates.begin(start->mandates.user);
    keep_low_numbers_spare(&loop);
    touch_stack();
    take_precedence();
    loop.last_status = loop.demoted_status = -1;
    loop.owes_report = true; /* the first one says that the guard is ready */
    while (!is_over(&loop)) {
        report(&loop);
        wait_for_news(&loop);
        guard_loop_feed(&loop, SUPERVISOR_TICK, 0, 0);
        guard_loop_sweep(&loop);
        settle(&loop);
        set_timers(&loop);
    }
    tree_close(&loop.tree);
    if (loop.is_orphaned && start->mandates.release)
        start->mandates.release(start->mandates.user);
    return 0;
}
