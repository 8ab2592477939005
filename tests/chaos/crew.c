/* SPDX-License-Identifier: Apache-2.0 */

/* Processes and folders of a crew; what is asked of the nodes is in crew_look.c. */
#include "crew.h"

#include "crew_files.h"
#include "referee.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEATH_LIMIT_MS 60000

static void die(const char *what)
{
    perror(what);
    abort();
}

void crew_tell(struct crew *crew, const char *format, ...)
{
    char text[256];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(crew->deeds, "msg=\"%s\" at_ns=%lld\n", text, (long long)now_ns());
    fflush(crew->deeds);
    if (crew->is_verbose)
        printf("# %s\n", text);
}

static void write_deed(struct crew *crew, const char *what, int node)
{
    fprintf(crew->deeds, "msg=%s node=%s at_ns=%lld\n", what, crew->members[node].name, (long long)now_ns());
    fflush(crew->deeds);
}

bool crew_make(struct crew *crew, int count, int founders, const char *gavel, const char *gaveld,
               const char *beat, char *why, size_t size)
{
    char path[PATH_MAX + 64];

    memset(crew, 0, sizeof *crew);
    crew->count = count;
    crew->founders = founders;
    crew->witness = -1;
    if (!realpath(gavel, crew->gavel) || !realpath(gaveld, crew->gaveld) ||
        (beat && !realpath(beat, crew->beat)))
        die("chaos: a program that is not there");
    snprintf(crew->folder, sizeof crew->folder, "%s/gavel-chaos-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!net_make(&crew->net, count, why, size))
        return false;
    if (!mkdtemp(crew->folder))
        die("chaos: mkdtemp");
    snprintf(path, sizeof path, "%s/deeds", crew->folder);
    crew->deeds = fopen(path, "we");
    if (!crew->deeds)
        die(path);
    for (int i = 0; i < count; i++) {
        struct crew_member *m = &crew->members[i];

        snprintf(m->name, sizeof m->name, "n%d", i + 1);
        snprintf(path, sizeof path, "%s/%s.log", crew->folder, m->name);
        m->log = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
        if (m->log < 0)
            die(path);
        m->is_founder = i < founders;
    }
    /* A guard that is killed leaves its node to us, so that its death can be awaited. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L))
        die("chaos: prctl");
    crew_write_files(crew);
    snprintf(path, sizeof path, "%s/naps", crew->folder);
    naps_start(&crew->naps, path);
    return true;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void crew_done(struct crew *crew, bool is_kept)
{
    for (int i = 0; i < crew->count; i++) {
        if (crew->members[i].guard)
            crew_kill_both(crew, i);
        close(crew->members[i].log);
    }
    naps_stop(&crew->naps);
    if (crew->deeds)
        fclose(crew->deeds);
    if (is_kept)
        printf("# logs are kept in %s\n", crew->folder);
    else
        (void)nftw(crew->folder, remove_one, 16,
                   FTW_DEPTH | FTW_PHYS); /* what is left in /tmp harms nobody */
    net_done(&crew->net);
}

void crew_start(struct crew *crew, int node)
{
    struct crew_member *m = &crew->members[node];
    char config[PATH_MAX + 64];
    pid_t pid = fork();

    if (pid < 0)
        die("chaos: fork");
    if (pid > 0) {
        m->guard = pid;
        m->is_paused = false;
        crew_tell(crew, "%s is started", m->name);
        return;
    }
    /* Nothing outlives the test. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() == 1 || !net_enter(&crew->net, node))
        _exit(126);
    snprintf(config, sizeof config, "%s/%s.yaml", crew->folder, m->name);
    dup2(m->log, STDERR_FILENO);
    dup2(m->log, STDOUT_FILENO);
    execl(crew->gaveld, "gaveld", "--config", config, m->is_founder ? "--bootstrap" : "--join", (char *)NULL);
    perror(crew->gaveld);
    _exit(126);
}

pid_t crew_node_pid(const struct crew *crew, int node)
{
    pid_t guard = crew->members[node].guard;
    char path[64], text[32] = "";
    int fd;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", guard, guard);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* Until a process is dead, by a descriptor that stands for it and no other. */
static void await_death(int pidfd)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};

    if (poll(&wait, 1, DEATH_LIMIT_MS) != 1) {
        fprintf(stderr, "chaos: a process that was killed does not die\n");
        abort();
    }
}

/* Nodes whose guard is gone are children of ours now; the guards are waited for by name. */
static void reap_orphans(struct crew *crew)
{
    siginfo_t info;

    while (info.si_pid = 0, waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
        for (int i = 0; i < crew->count; i++)
            if (crew->members[i].guard == info.si_pid)
                return;
        (void)waitpid(info.si_pid, NULL, 0); /* nobody asks how it ended */
    }
}

void crew_kill_node(struct crew *crew, int node)
{
    pid_t pid = crew_node_pid(crew, node);

    crew_tell(crew, "the node of %s is killed", crew->members[node].name);
    if (pid && kill(pid, SIGKILL) == 0) /* the guard tells when it is dead */
        write_deed(crew, "struck", node);
    if (crew->members[node].is_paused) {
        crew->members[node].is_paused = false;
        write_deed(crew, "resumed", node);
    }
}

void crew_kill_both(struct crew *crew, int node)
{
    struct crew_member *m = &crew->members[node];
    pid_t pid = crew_node_pid(crew, node);
    int pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

    crew_tell(crew, "%s is killed", m->name);
    (void)kill(m->guard, SIGKILL); /* is our child until we have waited for it */
    (void)waitpid(m->guard, NULL, 0);
    m->guard = 0;
    m->is_paused = false;
    if (pidfd >= 0) {
        await_death(pidfd);
        close(pidfd);
    }
    reap_orphans(crew);
    write_deed(crew, "killed", node);
}

void crew_pause(struct crew *crew, int node)
{
    pid_t pid = crew_node_pid(crew, node);

    if (!pid || crew->members[node].is_paused)
        return;
    crew_tell(crew, "%s is frozen", crew->members[node].name);
    write_deed(crew, "paused", node);
    (void)kill(pid, SIGSTOP); /* it may have died by itself; the guard tells */
    crew->members[node].is_paused = true;
}

void crew_resume(struct crew *crew, int node)
{
    pid_t pid = crew_node_pid(crew, node);

    if (!crew->members[node].is_paused)
        return;
    crew_tell(crew, "%s goes on", crew->members[node].name);
    write_deed(crew, "resumed", node);
    if (pid)
        (void)kill(pid, SIGCONT);
    crew->members[node].is_paused = false;
}

bool crew_has_ended(struct crew *crew, int node, int *ret_status)
{
    pid_t pid = crew->members[node].guard;

    if (!pid || waitpid(pid, ret_status, WNOHANG) != pid)
        return false;
    crew->members[node].guard = 0;
    write_deed(crew, "killed", node); /* its guard, and so its node, is dead */
    return true;
}

int crew_stop(struct crew *crew, int node, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;
    int status = 0;

    crew_tell(crew, "%s is asked to end", crew->members[node].name);
    crew_resume(crew, node);
    (void)kill(crew->members[node].guard, SIGTERM);
    while (!crew_has_ended(crew, node, &status)) {
        if (now_ms() > deadline)
            return -1;
        (void)poll(NULL, 0, 2);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

unsigned crew_alive(const struct crew *crew)
{
    unsigned set = 0;

    for (int i = 0; i < crew->count; i++)
        if (crew->members[i].guard && !crew->members[i].is_paused)
            set |= 1u << i;
    return set;
}

bool crew_referee(struct crew *crew, size_t claims_min)
{
    struct referee *referee = referee_new();
    char path[PATH_MAX + 64];
    bool is_good;

    fflush(crew->deeds);
    snprintf(path, sizeof path, "%s/deeds", crew->folder);
    if (!referee_read_deeds(referee, path))
        die(path);
    snprintf(path, sizeof path, "%s/naps", crew->folder);
    if (!referee_read_deeds(referee, path))
        die(path);
    for (int i = 0; i < crew->count; i++) {
        snprintf(path, sizeof path, "%s/%s.log", crew->folder, crew->members[i].name);
        if (!referee_read_log(referee, crew->members[i].name, path))
            die(path);
    }
    referee_judge(referee);
    referee_print(referee, stdout);
    is_good = referee_found_all(referee) == 0 && referee_claims(referee) >= claims_min;
    if (referee_claims(referee) < claims_min)
        printf("# %zu claims are fewer than %zu: this proves nothing\n", referee_claims(referee), claims_min);
    referee_free(referee);
    return is_good;
}

/* Words that no log of a healthy program has. */
static const char *const insane[] = {
    "assertion", "Sanitizer", "runtime error:", "Segmentation", "signal=6", "signal=11"};

bool crew_is_sane(const struct crew *crew)
{
    char path[PATH_MAX + 64], *line = NULL;
    size_t size = 0;
    bool is_sane = true;

    for (int i = 0; i < crew->count; i++) {
        FILE *file;

        snprintf(path, sizeof path, "%s/%s.log", crew->folder, crew->members[i].name);
        file = fopen(path, "re");
        if (!file)
            die(path);
        while (getline(&line, &size, file) > 0) {
            for (size_t k = 0; k < sizeof insane / sizeof *insane; k++) {
                if (strstr(line, insane[k])) {
                    printf("# failed: %s: %s", crew->members[i].name, line);
                    is_sane = false;
                }
            }
        }
        fclose(file);
    }
    free(line);
    return is_sane;
}
