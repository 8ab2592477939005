/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/guard.h"

#include "base/error.h"
#include "guard/channel.h"
#include "os/clock.h"
#include "os/wakeup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The guard has nothing to do but to look around and say that it is there. */
#define START_LIMIT_MS 10000

/* It has nothing to do but to end. */
#define FINISH_LIMIT_MS 2000

/* Between two tries to give an order to a guard that does not read. */
#define RETRY_MS 10

static void close_all(struct guard *guard, int ends[2], int elector_fd)
{
    const int fds[] = {ends[0], ends[1], elector_fd, guard->stopped_fd, guard->pidfd};

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]); /* nothing of value was written to them */
    if (guard->shared)
        (void)munmap(guard->shared, sizeof *guard->shared);
    tree_close(&guard->tree);
    guard->pidfd = guard->socket = guard->stopped_fd = -1;
    guard->shared = NULL;
    guard->pid = 0;
}

static enum gavel_status open_all(struct guard *guard, int ends[2], int *ret_elector_fd,
                                  struct gavel_error *error)
{
    void *page = mmap(NULL, sizeof *guard->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    guard->shared = page == MAP_FAILED ? NULL : page;
    guard->stopped_fd = wakeup_open();
    *ret_elector_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (!guard->shared || guard->stopped_fd < 0 || *ret_elector_fd < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set(
            error, GAVEL_ERR_IO,
            "cannot get the resources for the guard: %s; check the limits (ulimit -a); Linux 5.3 or later is needed",
            strerror(errno));
    return tree_open(&guard->tree, CONTAIN_WALK, error);
}

/* The guard says something as soon as it is ready; one that is not dies. */
static enum gavel_status await_first_report(struct guard *guard, struct gavel_error *error)
{
    struct pollfd fds[] = {{.fd = guard->socket, .events = POLLIN}, {.fd = guard->pidfd, .events = POLLIN}};

    char report;

    while (poll(fds, 2, START_LIMIT_MS) < 0 && errno == EINTR)
        ;
    /* A guard that has died leaves something to read, too: the end. */
    if (fds[0].revents & POLLIN && recv(guard->socket, &report, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
        return GAVEL_OK;
    if ((fds[0].revents || fds[1].revents) && guard->shared->error.status != GAVEL_OK) {
        if (error)
            *error = guard->shared->error;
        return guard->shared->error.status;
    }
    return error_set(error, GAVEL_ERR_IO, "the guard did not start; check the limits (ulimit -a)");
}

enum gavel_status guard_start(struct guard *guard, struct guard_spec *spec,
                              const struct guard_mandates *mandates, struct gavel_error *error)
{
    int ends[2] = {-1, -1}, elector_fd = -1;
    enum gavel_status status;

    *guard = (struct guard){.pidfd = -1, .socket = -1, .stopped_fd = -1};
    pthread_mutex_init(&guard->cleaning, NULL);
    tree_init(&guard->tree);
    status = open_all(guard, ends, &elector_fd, error);
    if (status != GAVEL_OK)
        goto out;
    guard->pid = fork();
    if (guard->pid == 0) {
        const struct guard_loop_start start = {
            .spec = spec,
            .mandates = *mandates,
            .shared = guard->shared,
            .socket = ends[1],
            .stopped_fd = guard->stopped_fd,
            .elector_fd = elector_fd,
        };

        int code;

        (void)close(ends[0]); /* the elector's */
        code = guard_loop_run(&start);
        if (mandates->end)
            mandates->end(mandates->user);
        _exit(code);
    }
    if (guard->pid > 0)
        guard->pidfd = (int)syscall(SYS_pidfd_open, guard->pid, 0);
    if (guard->pidfd < 0) {
        status = error_set(error, GAVEL_ERR_IO, "cannot start the guard: %s; check the limits (ulimit -a)",
                           strerror(errno));
        goto out;
    }
    guard->socket = ends[0];
    (void)close(ends[1]);
    (void)close(elector_fd);
    ends[0] = ends[1] = elector_fd = -1;
    status = await_first_report(guard, error);
    if (status != GAVEL_OK)
        guard_finish(guard);
    return status;
out:
    close_all(guard, ends, elector_fd);
    return status;
}

/* Async-signal-safe. False if the guard does not take it now. */
static bool give(const struct guard *guard, const struct order *order)
{
    return send(guard->socket, order, sizeof *order, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *order;
}

static bool has_died(const struct guard *guard, int timeout_ms)
{
    struct pollfd fd = {.fd = guard->pidfd, .events = POLLIN};

    return poll(&fd, 1, timeout_ms) == 1;
}

/* A guard that does not read is frozen. False if it has died, or the time is over. */
static bool give_surely(const struct guard *guard, const struct order *order, gavel_ns until)
{
    while (!give(guard, order))
        if (has_died(guard, RETRY_MS) || clock_now() >= until)
            return false;
    return true;
}

bool guard_order_run(const struct guard *guard, uint64_t epoch)
{
    const struct order order = {.kind = ORDER_RUN, .epoch = epoch};

    return give(guard, &order);
}

bool guard_order_stop(const struct guard *guard, uint64_t epoch, bool at_once)
{
    const struct order order = {.kind = ORDER_STOP, .epoch = epoch, .at_once = at_once};

    return give(guard, &order);
}

uint64_t guard_dead_epoch(const struct guard *guard) { return atomic_load(&guard->shared->dead_epoch); }

void guard_run(const struct guard *guard, uint64_t epoch)
{
    const struct order order = {.kind = ORDER_RUN, .epoch = epoch};

    (void)give(guard, &order); /* that nothing runs shows by the lack of a report */
}

void guard_signal(const struct guard *guard, int signal_number)
{
    const struct order order = {.kind = ORDER_SIGNAL, .signal_number = signal_number};

    (void)give(guard, &order); /* a frozen guard cannot pass it on */
}

void guard_kill(const struct guard *guard)
{
    const struct order order = {.kind = ORDER_KILL};

    (void)give(guard, &order); /* if it is frozen, the kernel does it in time */
}

void guard_abandon(const struct guard *guard)
{
    (void)syscall(SYS_pidfd_send_signal, guard->pidfd, SIGKILL, NULL, 0); /* dead already, or soon */
}

bool guard_has_died(const struct guard *guard) { return has_died(guard, 0); }

/* Until the epoch is dead (true), the guard is (false), or the time is over (false). */
static bool await_death(const struct guard *guard, uint64_t epoch, gavel_ns until)
{
    while (atomic_load(&guard->shared->dead_epoch) < epoch) {
        struct pollfd fds[] = {{.fd = guard->stopped_fd, .events = POLLIN},
                               {.fd = guard->pidfd, .events = POLLIN}};
        gavel_ns left = until - clock_now();

        if (left <= 0)
            break;
        if (poll(fds, 2, (int)ns_min(ms_from_ns(left) + 1, 60000)) < 0)
            continue;
        if (fds[0].revents)
            wakeup_clear(guard->stopped_fd); /* the number counts, not the news */
        if (fds[1].revents)
            break;
    }
    return atomic_load(&guard->shared->dead_epoch) >= epoch;
}

bool guard_stop(const struct guard *guard, uint64_t epoch, bool at_once, gavel_ns until)
{
    const struct order order = {.kind = ORDER_STOP, .epoch = epoch, .at_once = at_once};

    (void)give_surely(guard, &order, until); /* whether it was obeyed is what counts */
    if (await_death(guard, epoch, until))
        return true;
    guard_abandon(guard);
    while (!has_died(guard, -1))
        ; /* interrupted by a signal */
    return atomic_load(&guard->shared->dead_epoch) >= epoch;
}

bool guard_read(const struct guard *guard, struct guard_report *ret_report)
{
    struct guard_report report;
    bool is_new = false;

    while (recv(guard->socket, &report, sizeof report, MSG_DONTWAIT) == (ssize_t)sizeof report) {
        *ret_report = report;
        is_new = true;
    }
    return is_new;
}

bool guard_clean_up(struct guard *guard, gavel_ns until)
{
    bool is_empty;

    pthread_mutex_lock(&guard->cleaning);
    is_empty = tree_end(&guard->tree, until);
    pthread_mutex_unlock(&guard->cleaning);
    return is_empty;
}

bool guard_clean_up_once(struct guard *guard)
{
    int status;
    pid_t pid;
    bool is_empty;

    pthread_mutex_lock(&guard->cleaning);
    (void)tree_signal(&guard->tree, SIGKILL, 0); /* whether anything is left is for wait(2) to say */
    while (tree_reap(&pid, &status))
        ;
    is_empty = tree_is_empty(&guard->tree);
    pthread_mutex_unlock(&guard->cleaning);
    return is_empty;
}

void guard_finish(struct guard *guard)
{
    const struct order order = {.kind = ORDER_QUIT};
    int ends[2] = {guard->socket, -1};

    if (guard->pid <= 0)
        return;
    if (!give(guard, &order) || !has_died(guard, FINISH_LIMIT_MS))
        guard_abandon(guard);
    (void)has_died(guard, FINISH_LIMIT_MS);
    (void)waitpid(guard->pid, NULL, WNOHANG); /* somebody else may have reaped it */
    if (guard->shared->cgroup[0])
        (void)rmdir(guard->shared->cgroup); /* a guard that could, has done so */
    close_all(guard, ends, -1);
    pthread_mutex_destroy(&guard->cleaning);
}
