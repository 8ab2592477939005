/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

/* In the new process, which may take its time: it is not the guard. */
static _Noreturn void fail(const struct spawn *spawn, const char *what)
{
    int problem = errno;

    dprintf(STDERR_FILENO, "gavel run: cannot %s for \"%s\" (%s): %s\n", what, spawn->child->name,
            spawn->command->path, strerror(problem));
    _exit(problem == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* The kernel kills us when the guard dies; if that has happened already, nobody else would. */
static void die_with(pid_t guard)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a valid signal, so it cannot fail */
    if (getppid() != guard)
        _exit(EXIT_NOT_EXECUTABLE);
}

/*
 * Whatever whoever started gavel had ignored stays so; the guard itself handles nothing. But what the command
 * is asked to stop with must reach it: a shell ignores SIGINT for jobs in the background, nohup SIGHUP.
 */
static void reset_signals(const struct spawn *spawn)
{
    if (spawn->child->term_signal > 0)
        (void)signal(spawn->child->term_signal, SIG_DFL); /* fails for SIGKILL, which nobody can ignore */
    if (!spawn->ignores_sigpipe)
        (void)signal(SIGPIPE, SIG_DFL); /* a valid signal, so it cannot fail */
    (void)pthread_sigmask(SIG_SETMASK, spawn->signal_mask, NULL);
}

static void redirect(const struct spawn *spawn, int from, int to)
{
    if (from >= 0 && dup2(from, to) < 0)
        fail(spawn, "set up the descriptors");
}

static void become_user(const struct spawn *spawn)
{
    const struct guard_child *child = spawn->child;

    if (!child->has_user)
        return;
    if (setgroups(child->group_count, child->groups) < 0 || setgid(child->gid) < 0 || setuid(child->uid) < 0)
        fail(spawn, "become the user");
}

static _Noreturn void execute(const struct spawn *spawn, pid_t guard)
{
    const struct guard_child *child = spawn->child;

    (void)setsid(); /* a new process leads no group, so it cannot fail */
    die_with(guard);
    redirect(spawn, child->stdin_fd >= 0 ? child->stdin_fd : spawn->stdin_fd, STDIN_FILENO);
    redirect(spawn, child->stdout_fd >= 0 ? child->stdout_fd : spawn->stdout_fd, STDOUT_FILENO);
    redirect(spawn, child->stderr_fd, STDERR_FILENO);
    if (spawn->ready_fd >= 0 && spawn->ready_fd != child->ready_fd)
        redirect(spawn, spawn->ready_fd, child->ready_fd);
    else if (spawn->ready_fd >= 0)
        (void)fcntl(spawn->ready_fd, F_SETFD, 0); /* open, so it cannot fail */
    if (child->directory && chdir(child->directory) < 0)
        fail(spawn, "enter its directory");
    (void)setrlimit(RLIMIT_NOFILE, spawn->descriptors); /* at worst it has a higher limit */
    become_user(spawn);
    die_with(guard); /* a change of user takes it back */
    reset_signals(spawn);
    /* The path has a slash, so nothing is searched for; a script without an interpreter line is given to
     * sh. */
    (void)execvpe(spawn->command->path, spawn->command->argv, child->environment);
    fail(spawn, "execute the command");
}

pid_t spawn_process(const struct spawn *spawn, int *ret_pidfd)
{
    pid_t guard = getpid();
    pid_t pid = tree_fork(spawn->tree);

    if (pid == 0)
        execute(spawn, guard);
    if (pid > 0)
        *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* a child of ours that is not reaped */
    return pid;
}
