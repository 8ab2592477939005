/* SPDX-License-Identifier: Apache-2.0 */

#include "candidates.h"

#include "beat_log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void log_path(const struct candidates *candidates, int group, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s/beats-g%d", candidates->cluster->directory, group + 1);
}

/* In the child. */
static void become(const struct candidates *candidates, int number)
{
    const struct candidate *candidate = &candidates->list[number];
    char store[sizeof candidates->address + 16], group[32], id[32], member[32], log[PATH_MAX + 64],
        said[PATH_MAX + 64];
    int fd;

    snprintf(store, sizeof store, "gavel://%s", candidates->address);
    snprintf(group, sizeof group, "g%d", candidate->group + 1);
    snprintf(id, sizeof id, "candidate%d", number + 1);
    snprintf(member, sizeof member, "%d", number + 1);
    snprintf(said, sizeof said, "%s/%s.candidate", candidates->cluster->directory, id);
    log_path(candidates, candidate->group, log, sizeof log);
    fd = open(said, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    /* Nothing outlives the test. */
    if (fd < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() == 1 ||
        !net_enter(&candidates->cluster->net, candidate->node) || setenv("BEAT_MEMBER", member, 1))
        _exit(126);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    if (candidate->has_session)
        execl(candidates->session_candidate, "session_candidate", store, log, member, group, (char *)NULL);
    else
        execl(candidates->cluster->gavel, "gavel", "run", "--store", store, "--group", group, "--id", id,
              "--lease", "2s", "--heartbeat", "300ms", "--heartbeat-jitter", "20ms", "--call-timeout",
              "200ms", "--grace", "800ms", "--stop-margin", "100ms", "--election-interval", "200ms",
              "--stagger", "20ms", "--candidate-timeout", "4s", "--breaker-reset", "300ms", "--on-exit",
              "restart", "--", candidates->beat, log, "--every", "2000", (char *)NULL);
    _exit(126);
}

static void start(struct candidates *candidates, int number)
{
    struct candidate *candidate = &candidates->list[number];

    fflush(stdout);
    candidate->is_paused = false;
    candidate->pid = fork();
    if (candidate->pid == 0)
        become(candidates, number);
    if (candidate->pid < 0) {
        perror("chaos: fork");
        abort();
    }
}

void candidates_start(struct candidates *candidates, struct cluster *cluster, const char *beat,
                      const char *session_candidate)
{
    size_t used = 0;

    *candidates = (struct candidates){.cluster = cluster};
    if (!realpath(beat, candidates->beat) || !realpath(session_candidate, candidates->session_candidate)) {
        perror("chaos: a program that is not there");
        abort();
    }
    for (int i = 0; i < cluster->founders; i++) {
        char address[32];

        net_address(i, address, sizeof address);
        used += (size_t)snprintf(candidates->address + used, sizeof candidates->address - used, "%s%s:7600",
                                 i ? "," : "", address);
    }
    snprintf(candidates->address + used, sizeof candidates->address - used,
             "?ca=%s/ca.crt&cert=%s/candidate.crt&key=%s/candidate.key", cluster->directory,
             cluster->directory, cluster->directory);
    for (int i = 0; i < CANDIDATES; i++) {
        candidates->list[i] =
            (struct candidate){.node = i % cluster->founders,
                               .group = i / CANDIDATES_PER_GROUP,
                               .has_session = i % CANDIDATES_PER_GROUP == CANDIDATES_PER_GROUP - 1};
        start(candidates, i);
    }
}

/* Others may have reaped it: then it is not our child any more. */
static bool has_ended(struct candidate *candidate)
{
    if (candidate->pid != 0 && waitpid(candidate->pid, NULL, WNOHANG) == 0)
        return false;
    candidate->pid = 0;
    return true;
}

static void go_on(struct candidates *candidates)
{
    for (int i = 0; i < CANDIDATES; i++) {
        struct candidate *candidate = &candidates->list[i];

        if (has_ended(candidate)) {
            candidates->ended++;
            start(candidates, i);
        } else if (candidate->is_paused) {
            (void)kill(candidate->pid, SIGCONT); /* it is our child */
            candidate->is_paused = false;
        }
    }
}

void candidates_disturb(struct candidates *candidates, uint32_t random)
{
    int number = (int)(random / 16 % CANDIDATES);
    struct candidate *candidate = &candidates->list[number];

    go_on(candidates);
    switch (random % 16) {
    case 0:
    case 1:
        cluster_tell(candidates->cluster, "candidate %d is killed", number + 1);
        (void)kill(candidate->pid, SIGKILL);
        break;
    case 2:
        cluster_tell(candidates->cluster, "candidate %d is asked to end", number + 1);
        (void)kill(candidate->pid, SIGTERM);
        break;
    case 3:
    case 4:
        /* Between a look at the clock and a beat one with a session would be late, and not to blame: only
         * what has a guard can be frozen without harm. */
        if (candidate->has_session)
            break;
        cluster_tell(candidates->cluster, "candidate %d is frozen", number + 1);
        (void)kill(candidate->pid, SIGSTOP);
        candidate->is_paused = true;
        break;
    default:
        break;
    }
}

static off_t log_size(const struct candidates *candidates, int group)
{
    char path[PATH_MAX + 64];
    struct stat status;

    log_path(candidates, group, path, sizeof path);
    return stat(path, &status) == 0 ? status.st_size : 0;
}

const struct candidate *candidates_worker(const struct candidates *candidates, int group)
{
    char path[PATH_MAX + 64];
    struct beat last = {0};
    int fd;

    log_path(candidates, group, path, sizeof path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (lseek(fd, -(off_t)sizeof last, SEEK_END) < 0 || read(fd, &last, sizeof last) != (ssize_t)sizeof last)
        last.member = 0;
    close(fd);
    return last.member >= 1 && last.member <= CANDIDATES ? &candidates->list[last.member - 1] : NULL;
}

bool candidates_are_led(struct candidates *candidates, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;
    off_t before[CANDIDATE_GROUPS];
    bool are_led = true;

    go_on(candidates);
    for (int i = 0; i < CANDIDATE_GROUPS; i++)
        before[i] = log_size(candidates, i);
    for (int i = 0; i < CANDIDATE_GROUPS; i++) {
        while (log_size(candidates, i) == before[i] && now_ms() < deadline) {
            go_on(candidates);
            (void)poll(NULL, 0, 5);
        }
        if (log_size(candidates, i) == before[i]) {
            printf("# failed: nobody works for group g%d after %d ms\n", i + 1, limit_ms);
            are_led = false;
        }
    }
    return are_led;
}

bool candidates_stop(struct candidates *candidates, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;
    bool is_good = true;

    for (int i = 0; i < CANDIDATES; i++) {
        struct candidate *candidate = &candidates->list[i];

        if (has_ended(candidate))
            continue;
        (void)kill(candidate->pid, SIGCONT);
        (void)kill(candidate->pid, SIGTERM);
    }
    for (int i = 0; i < CANDIDATES; i++) {
        struct candidate *candidate = &candidates->list[i];

        while (!has_ended(candidate) && now_ms() < deadline)
            (void)poll(NULL, 0, 5);
        if (candidate->pid == 0)
            continue;
        printf("# failed: candidate %d does not end\n", i + 1);
        is_good = false;
        (void)kill(candidate->pid, SIGKILL);
        (void)waitpid(candidate->pid, NULL, 0);
        candidate->pid = 0;
    }
    return is_good;
}

bool candidates_referee(const struct candidates *candidates, const char *beat_referee)
{
    bool is_good = true;

    for (int i = 0; i < CANDIDATE_GROUPS; i++) {
        char path[PATH_MAX + 64];
        int status;
        pid_t pid;

        log_path(candidates, i, path, sizeof path);
        printf("# group g%d, candidates ended %d times in all:\n", i + 1, candidates->ended);
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
            execl(beat_referee, "beat_referee", path, (char *)NULL);
            _exit(127);
        }
        is_good = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && is_good;
    }
    return is_good;
}
