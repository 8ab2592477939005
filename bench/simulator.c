/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs of the simulator per second and core. The simulator is a program of
 * its own that is not installed; it is looked for where this one lies, and in
 * the build directory.
 */
#include "bench/bench.h"
#include "cli/companion.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS "500"
#define RUNS_QUICK "20"

/* Waits for the end of the simulator, or ends it when somebody asks to. The end itself wakes us at once. */
static enum gavel_status await_end(pid_t pid)
{
    struct pollfd death = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    int wait_status = -1;

    while (death.fd >= 0 && !rig_is_interrupted() && poll(&death, 1, BENCH_LOOK_NS / NS_PER_MS) <= 0)
        ;
    if (death.fd >= 0)
        (void)close(death.fd);
    if (rig_is_interrupted())
        (void)kill(pid, SIGKILL); /* it is ours until it is waited for */
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
        if (rig_is_interrupted())
            (void)kill(pid, SIGKILL);
    if (rig_is_interrupted())
        return GAVEL_ERR_STOPPED;
    return wait_status == 0 ? GAVEL_OK : GAVEL_ERR_IO;
}

/* Runs the simulator to its end with its output thrown away. ERR_IO if it does not end with 0. */
static enum gavel_status simulate(char *path, const char *runs)
{
    char seeds[] = "--seeds", count[16], candidates[] = "--candidates", five[] = "5", jobs[] = "--jobs",
         one[] = "1";
    char *const arguments[] = {path, seeds, count, candidates, five, jobs, one, NULL};
    posix_spawn_file_actions_t actions;
    enum gavel_status status = GAVEL_ERR_IO;
    pid_t pid;

    (void)snprintf(count, sizeof count, "%s", runs);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return GAVEL_ERR_NO_MEMORY;
    if (posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn(&pid, path, &actions, NULL, arguments, environ) == 0)
        status = await_end(pid);
    (void)posix_spawn_file_actions_destroy(&actions);
    return status;
}

enum gavel_status bench_simulator(struct bench *bench, struct rig *rig)
{
    const char *runs = bench->is_quick ? RUNS_QUICK : RUNS;
    char path[PATH_MAX];

    (void)rig;
    if (!companion_find("gavel-sim", path)) {
        report_note(&bench->report, "left out: gavel-sim is not beside this program");
        return GAVEL_OK;
    }
    gavel_ns began = clock_now();
    enum gavel_status status = simulate(path, runs);
    double seconds = (double)(clock_now() - began) / NS_PER_S;
    if (status == GAVEL_ERR_STOPPED)
        return status;
    if (status != GAVEL_OK) {
        report_note(&bench->report, "gavel-sim failed: run it by hand, %s --seeds %s --candidates 5", path,
                    runs);
        return status;
    }
    report_value(&bench->report, "runs of 60 s with 5 candidates", strtod(runs, NULL) / seconds,
                 "per s and core", (struct aim){.p50 = 200, .is_rate = true});
    return GAVEL_OK;
}
