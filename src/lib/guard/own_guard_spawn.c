/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starting a process that the program never hears of.
 *
 *   program ──► middle ──► guard        the middle ends at once, and the guard
 *                 └─ ends               belongs to init (or the next subreaper)
 *
 * The middle process is made with no exit signal: it raises no SIGCHLD and a
 * wait for any child passes it over, so the program cannot take it for one of
 * its own; we alone wait for it. The guard could not be such a process by
 * itself, since execve(2) gives it an exit signal again.
 *
 * The program has other threads, so between fork and exec nothing may be used
 * that takes a lock: only system calls, made directly, so that no library that
 * stands in for libc (a sanitizer, say) gets in between. Signals are blocked
 * throughout: no handler of the program runs in the child.
 */
#include "lib/guard/own_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above everything that the descriptors are moved to in the end. */
#define HIGH_FD (GUARD_FD_ON_DEATH + GUARD_FD_COUNT)

/* Its place among the descriptors. */
#define LINE (GUARD_FD_LINE - GUARD_FD_ON_DEATH)

/* A plain fork without an exit signal, and without the handlers of pthread_atfork(). */
static pid_t split(void) { return (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L); }

static _Noreturn void quit(void)
{
    for (;;)
        (void)syscall(SYS_exit_group, 0);
}

static int lift(int fd) { return (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD); }

static int move(int from, int to) { return (int)syscall(SYS_dup3, from, to, 0); }

/* The descriptors go up out of the way first, since they may lie where others of them are to go. */
static bool arrange(const int fds[static GUARD_FD_COUNT], int high[static GUARD_FD_COUNT])
{
    int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);

    null = null < 0 ? -1 : lift(null);
    if (null < 0)
        return false;
    for (int i = 0; i < GUARD_FD_COUNT; i++)
        if ((high[i] = lift(fds[i])) < 0)
            return false;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (move(null, fd) < 0)
            return false;
    for (int i = 0; i < GUARD_FD_COUNT; i++)
        if (move(high[i], GUARD_FD_ON_DEATH + i) < 0)
            return false;
    return syscall(SYS_close_range, HIGH_FD, ~0U, 0) == 0;
}

static void tell_failure(int line, int number)
{
    const struct guard_message message = {.word = GUARD_FAILED, .number = number};

    (void)syscall(SYS_sendto, line, &message, sizeof message, MSG_NOSIGNAL, NULL,
                  0); /* nobody else to tell */
}

/* In the new process. Whatever fails, the program is told by the line. */
static _Noreturn void become_guard(const char *program, char *const *argv,
                                   const int fds[static GUARD_FD_COUNT])
{
    int high[GUARD_FD_COUNT] = {-1, -1, -1};
    int line = GUARD_FD_LINE;

    if (arrange(fds, high)) {
        (void)syscall(SYS_setsid); /* cannot fail: a new process leads no group */
        (void)syscall(SYS_execve, program, argv, environ);
    } else {
        line = high[LINE] >= 0 ? high[LINE] : fds[LINE];
    }
    tell_failure(line, errno);
    quit();
}

static void reap(pid_t middle)
{
    /* A program that waits for all kinds of children may have been faster; that is as good. */
    while (waitpid(middle, NULL, __WALL) < 0 && errno == EINTR)
        continue;
}

int own_guard_spawn(const char *program, const int fds[static GUARD_FD_COUNT])
{
    char name[] = "gavel-guard", whose[24];
    char *const argv[] = {name, whose, NULL};
    sigset_t all, before;
    int problem = 0;
    pid_t middle;

    (void)snprintf(whose, sizeof whose, "%ld", (long)getpid()); /* for people who look at the process */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    middle = split();
    if (middle == 0) {
        pid_t guard = split();

        if (guard == 0)
            become_guard(program, argv, fds);
        if (guard < 0)
            tell_failure(fds[LINE], errno);
        quit();
    }
    if (middle < 0)
        problem = errno;
    else
        reap(middle);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}
