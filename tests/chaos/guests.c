/* SPDX-License-Identifier: Apache-2.0 */

#include "guests.h"

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

static void log_path(const struct guests *guests, int group, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s/beats-g%d", guests->crew->folder, group + 1);
}

/* In the child. */
static void become(const struct guests *guests, int number)
{
    const struct guest *guest = &guests->list[number];
    char store[sizeof guests->place + 16], group[32], id[32], member[32], log[PATH_MAX + 64],
        said[PATH_MAX + 64];
    int fd;

    snprintf(store, sizeof store, "gavel://%s", guests->place);
    snprintf(group, sizeof group, "g%d", guest->group + 1);
    snprintf(id, sizeof id, "guest%d", number + 1);
    snprintf(member, sizeof member, "%d", number + 1);
    snprintf(said, sizeof said, "%s/%s.guest", guests->crew->folder, id);
    log_path(guests, guest->group, log, sizeof log);
    fd = open(said, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    /* Nothing outlives the test. */
    if (fd < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() == 1 ||
        !net_enter(&guests->crew->net, guest->node) || setenv("BEAT_MEMBER", member, 1))
        _exit(126);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    if (guest->is_camper)
        execl(guests->camper, "camper", store, log, member, group, (char *)NULL);
    else
        execl(guests->crew->gavel, "gavel", "run", "--store", store, "--group", group, "--id", id, "--lease",
              "2s", "--heartbeat", "300ms", "--heartbeat-jitter", "20ms", "--call-timeout", "200ms",
              "--grace", "800ms", "--stop-margin", "100ms", "--election-interval", "200ms", "--stagger",
              "20ms", "--candidate-timeout", "4s", "--breaker-reset", "300ms", "--on-exit", "restart", "--",
              guests->beat, log, "--every", "2000", (char *)NULL);
    _exit(126);
}

static void start(struct guests *guests, int number)
{
    struct guest *guest = &guests->list[number];

    fflush(stdout);
    guest->is_paused = false;
    guest->pid = fork();
    if (guest->pid == 0)
        become(guests, number);
    if (guest->pid < 0) {
        perror("chaos: fork");
        abort();
    }
}

void guests_start(struct guests *guests, struct crew *crew, const char *beat, const char *camper)
{
    size_t used = 0;

    *guests = (struct guests){.crew = crew};
    if (!realpath(beat, guests->beat) || !realpath(camper, guests->camper)) {
        perror("chaos: a program that is not there");
        abort();
    }
    for (int i = 0; i < crew->founders; i++) {
        char address[32];

        net_address(i, address, sizeof address);
        used += (size_t)snprintf(guests->place + used, sizeof guests->place - used, "%s%s:7600", i ? "," : "",
                                 address);
    }
    snprintf(guests->place + used, sizeof guests->place - used,
             "?ca=%s/ca.crt&cert=%s/guest.crt&key=%s/guest.key", crew->folder, crew->folder, crew->folder);
    for (int i = 0; i < GUESTS; i++) {
        guests->list[i] = (struct guest){.node = i % crew->founders,
                                         .group = i / GUESTS_PER_GROUP,
                                         .is_camper = i % GUESTS_PER_GROUP == GUESTS_PER_GROUP - 1};
        start(guests, i);
    }
}

/* Others may have reaped it: then it is not our child any more. */
static bool has_ended(struct guest *guest)
{
    if (guest->pid != 0 && waitpid(guest->pid, NULL, WNOHANG) == 0)
        return false;
    guest->pid = 0;
    return true;
}

static void go_on(struct guests *guests)
{
    for (int i = 0; i < GUESTS; i++) {
        struct guest *guest = &guests->list[i];

        if (has_ended(guest)) {
            guests->ended++;
            start(guests, i);
        } else if (guest->is_paused) {
            (void)kill(guest->pid, SIGCONT); /* it is our child */
            guest->is_paused = false;
        }
    }
}

void guests_disturb(struct guests *guests, uint32_t random)
{
    int number = (int)(random / 16 % GUESTS);
    struct guest *guest = &guests->list[number];

    go_on(guests);
    switch (random % 16) {
    case 0:
    case 1:
        crew_tell(guests->crew, "guest %d is killed", number + 1);
        (void)kill(guest->pid, SIGKILL);
        break;
    case 2:
        crew_tell(guests->crew, "guest %d is asked to end", number + 1);
        (void)kill(guest->pid, SIGTERM);
        break;
    case 3:
    case 4:
        /* Between a look at the clock and a beat a camper would be late, and not to blame: only what has a
         * guard can be frozen without harm. */
        if (guest->is_camper)
            break;
        crew_tell(guests->crew, "guest %d is frozen", number + 1);
        (void)kill(guest->pid, SIGSTOP);
        guest->is_paused = true;
        break;
    default:
        break;
    }
}

static off_t log_size(const struct guests *guests, int group)
{
    char path[PATH_MAX + 64];
    struct stat status;

    log_path(guests, group, path, sizeof path);
    return stat(path, &status) == 0 ? status.st_size : 0;
}

const struct guest *guests_worker(const struct guests *guests, int group)
{
    char path[PATH_MAX + 64];
    struct beat last = {0};
    int fd;

    log_path(guests, group, path, sizeof path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (lseek(fd, -(off_t)sizeof last, SEEK_END) < 0 || read(fd, &last, sizeof last) != (ssize_t)sizeof last)
        last.member = 0;
    close(fd);
    return last.member >= 1 && last.member <= GUESTS ? &guests->list[last.member - 1] : NULL;
}

bool guests_are_led(struct guests *guests, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;
    off_t before[GUEST_GROUPS];
    bool are_led = true;

    go_on(guests);
    for (int i = 0; i < GUEST_GROUPS; i++)
        before[i] = log_size(guests, i);
    for (int i = 0; i < GUEST_GROUPS; i++) {
        while (log_size(guests, i) == before[i] && now_ms() < deadline) {
            go_on(guests);
            (void)poll(NULL, 0, 5);
        }
        if (log_size(guests, i) == before[i]) {
            printf("# failed: nobody works for group g%d after %d ms\n", i + 1, limit_ms);
            are_led = false;
        }
    }
    return are_led;
}

bool guests_stop(struct guests *guests, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;
    bool is_good = true;

    for (int i = 0; i < GUESTS; i++) {
        struct guest *guest = &guests->list[i];

        if (has_ended(guest))
            continue;
        (void)kill(guest->pid, SIGCONT);
        (void)kill(guest->pid, SIGTERM);
    }
    for (int i = 0; i < GUESTS; i++) {
        struct guest *guest = &guests->list[i];

        while (!has_ended(guest) && now_ms() < deadline)
            (void)poll(NULL, 0, 5);
        if (guest->pid == 0)
            continue;
        printf("# failed: guest %d does not end\n", i + 1);
        is_good = false;
        (void)kill(guest->pid, SIGKILL);
        (void)waitpid(guest->pid, NULL, 0);
        guest->pid = 0;
    }
    return is_good;
}

bool guests_judge(const struct guests *guests, const char *judge)
{
    bool is_good = true;

    for (int i = 0; i < GUEST_GROUPS; i++) {
        char path[PATH_MAX + 64];
        int status;
        pid_t pid;

        log_path(guests, i, path, sizeof path);
        printf("# group g%d, guests ended %d times in all:\n", i + 1, guests->ended);
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
            execl(judge, "judge", path, (char *)NULL);
            _exit(127);
        }
        is_good = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && is_good;
    }
    return is_good;
}
