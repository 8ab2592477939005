/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/health.h"

#include "base/assert.h"
#include "config/duration.h"
#include "config/run_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void health_init(struct health *health, const char *command, gavel_ms every, gavel_ms timeout, int failures)
{
    ASSERT(failures >= 1);
    *health = (struct health){
        .command = command,
        .every = ns_from_ms(every),
        .timeout = ns_from_ms(timeout),
        .failures_max = failures,
        .is_good = !command,
        .start_at = command ? 0 : NEVER,
        .limit_at = NEVER,
    };
    snprintf(health->reason, sizeof health->reason, "%s", command ? "no check has ended yet" : "");
}

gavel_ns health_wake_at(const struct health *health)
{
    return health->pid ? health->limit_at : health->start_at;
}

bool health_is_good(const struct health *health) { return health->is_good; }

const char *health_reason(const struct health *health) { return health->reason; }

static void count_failure(struct health *health)
{
    if (health->failures < health->failures_max)
        health->failures++;
    if (health->failures == health->failures_max)
        health->is_good = false;
}

/* What every command gets; the caller frees the list, not what it names. NULL: out of memory. */
static char **make_environment(void)
{
    size_t count = 0, kept = 0;
    char **list;

    while (environ[count])
        count++;
    list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (run_environment_is_passed_on(environ[i]))
            list[kept++] = environ[i];
    return list;
}

/* Returns 0 or an errno. */
static int spawn_check(const char *command, pid_t *ret_pid)
{
    const char *const arguments[] = {"sh", "-c", command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, standard;
    char **variables = make_environment();
    int error = variables ? posix_spawn_file_actions_init(&files) : ENOMEM;

    if (error) {
        free(variables);
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&files);
        free(variables);
        return error;
    }
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE); /* we ignore it; a shell counts on it */
    /* None of these four can fail with what it is given. */
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &standard);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes,
                                   POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) /* stdout belongs to the command that is run while leader */
        error = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    if (!error) /* it does not write to its arguments, whatever its type says */
        error = posix_spawn(ret_pid, "/bin/sh", &files, &attributes, (char *const *)(uintptr_t)arguments,
                            variables);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(variables);
    return error;
}

static void start(struct health *health, gavel_ns now)
{
    pid_t pid = 0;
    int error = spawn_check(health->command, &pid);

    health->start_at = now + health->every;
    if (error) {
        snprintf(health->reason, sizeof health->reason, "cannot be started: %s", strerror(error));
        count_failure(health);
        return;
    }
    health->pid = pid;
    health->was_killed = false;
    health->limit_at = now + health->timeout;
}

/* Dead already, and only waits to be reaped: we may have been frozen or busy ourselves. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/*
 * The process that leads the group has not been reaped, so the number of the
 * group is still its own. One that cannot die (a file system that hangs) goes
 * on failing as if it had been started again and again.
 */
static void stop_late(struct health *health, gavel_ns now)
{
    char text[DURATION_TEXT_MAX];

    health->limit_at = now + health->every;
    if (has_ended(health->pid))
        return;
    (void)kill(-health->pid, SIGKILL); /* fails only if all of them are dead */
    health->was_killed = true;
    snprintf(health->reason, sizeof health->reason, "took longer than %s",
             duration_exact(ms_from_ns(health->timeout), text));
    count_failure(health);
}

void health_tick(struct health *health, gavel_ns now)
{
    if (now < health_wake_at(health))
        return;
    if (health->pid)
        stop_late(health, now);
    else
        start(health, now);
}

bool health_reaped(struct health *health, pid_t pid, int status, gavel_ns now)
{
    if (pid <= 0 || pid != health->pid)
        return false;
    health->pid = 0;
    health->limit_at = NEVER;
    health->start_at = ns_max(health->start_at, now);
    if (health->was_killed)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        health->failures = 0;
        health->is_good = true;
        health->reason[0] = '\0';
        return true;
    }
    if (WIFSIGNALED(status))
        snprintf(health->reason, sizeof health->reason, "killed by signal %d", WTERMSIG(status));
    else
        snprintf(health->reason, sizeof health->reason, "exit code %d", WEXITSTATUS(status));
    count_failure(health);
    return true;
}

void health_done(struct health *health)
{
    if (health->pid)
        (void)kill(-health->pid, SIGKILL); /* likewise */
    health->pid = 0;                       /* whoever reaps it, its number is nobody's then */
}
