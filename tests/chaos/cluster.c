/* SPDX-License-Identifier: Apache-2.0 */

/* Processes and directories of a cluster; what is asked of the nodes is in cluster_look.c. */
#include "cluster.h"

#include "cluster_files.h"
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

void cluster_tell(struct cluster *cluster, const char *format, ...)
{
    char text[256];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(cluster->deeds, "msg=\"%s\" at_ns=%lld\n", text, (long long)now_ns());
    fflush(cluster->deeds);
    if (cluster->is_verbose)
        printf("# %s\n", text);
}

static void write_deed(struct cluster *cluster, const char *what, int node)
{
    fprintf(cluster->deeds, "msg=%s node=%s at_ns=%lld\n", what, cluster->nodes[node].name,
            (long long)now_ns());
    fflush(cluster->deeds);
}

bool cluster_make(struct cluster *cluster, int count, int founders, const char *gavel, const char *gaveld,
                  const char *beat, char *why, size_t size)
{
    char path[PATH_MAX + 64];

    memset(cluster, 0, sizeof *cluster);
    cluster->count = count;
    cluster->founders = founders;
    cluster->witness = -1;
    if (!realpath(gavel, cluster->gavel) || !realpath(gaveld, cluster->gaveld) ||
        (beat && !realpath(beat, cluster->beat)))
        die("chaos: a program that is not there");
    snprintf(cluster->directory, sizeof cluster->directory, "%s/gavel-chaos-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!net_make(&cluster->net, count, why, size))
        return false;
    if (!mkdtemp(cluster->directory))
        die("chaos: mkdtemp");
    snprintf(path, sizeof path, "%s/deeds", cluster->directory);
    cluster->deeds = fopen(path, "we");
    if (!cluster->deeds)
        die(path);
    for (int i = 0; i < count; i++) {
        struct cluster_node *m = &cluster->nodes[i];

        snprintf(m->name, sizeof m->name, "n%d", i + 1);
        snprintf(path, sizeof path, "%s/%s.log", cluster->directory, m->name);
        m->log = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
        if (m->log < 0)
            die(path);
        m->is_founder = i < founders;
    }
    /* A guard that is killed leaves its node to us, so that its death can be awaited. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L))
        die("chaos: prctl");
    cluster_write_files(cluster);
    snprintf(path, sizeof path, "%s/naps", cluster->directory);
    naps_start(&cluster->naps, path);
    return true;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *position)
{
    (void)info;
    (void)kind;
    (void)position;
    return remove(path);
}

void cluster_done(struct cluster *cluster, bool is_kept)
{
    for (int i = 0; i < cluster->count; i++) {
        if (cluster->nodes[i].guard)
            cluster_kill_both(cluster, i);
        close(cluster->nodes[i].log);
    }
    naps_stop(&cluster->naps);
    if (cluster->deeds)
        fclose(cluster->deeds);
    if (is_kept)
        printf("# logs are kept in %s\n", cluster->directory);
    else
        (void)nftw(cluster->directory, remove_one, 16,
                   FTW_DEPTH | FTW_PHYS); /* what is left in /tmp harms nobody */
    net_done(&cluster->net);
}

void cluster_start(struct cluster *cluster, int node)
{
    struct cluster_node *m = &cluster->nodes[node];
    char config[PATH_MAX + 64];
    pid_t pid = fork();

    if (pid < 0)
        die("chaos: fork");
    if (pid > 0) {
        m->guard = pid;
        m->is_paused = false;
        cluster_tell(cluster, "%s is started", m->name);
        return;
    }
    /* Nothing outlives the test. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() == 1 || !net_enter(&cluster->net, node))
        _exit(126);
    snprintf(config, sizeof config, "%s/%s.yaml", cluster->directory, m->name);
    dup2(m->log, STDERR_FILENO);
    dup2(m->log, STDOUT_FILENO);
    execl(cluster->gaveld, "gaveld", "--config", config, m->is_founder ? "--bootstrap" : "--join",
          (char *)NULL);
    perror(cluster->gaveld);
    _exit(126);
}

pid_t cluster_node_pid(const struct cluster *cluster, int node)
{
    pid_t guard = cluster->nodes[node].guard;
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
static void reap_orphans(struct cluster *cluster)
{
    siginfo_t info;

    while (info.si_pid = 0, waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
        for (int i = 0; i < cluster->count; i++)
            if (cluster->nodes[i].guard == info.si_pid)
                return;
        (void)waitpid(info.si_pid, NULL, 0); /* nobody asks how it ended */
    }
}

void cluster_kill_node(struct cluster *cluster, int node)
{
    pid_t pid = cluster_node_pid(cluster, node);

    cluster_tell(cluster, "the node of %s is killed", cluster->nodes[node].name);
    if (pid && kill(pid, SIGKILL) == 0) /* the guard tells when it is dead */
        write_deed(cluster, "struck", node);
    if (cluster->nodes[node].is_paused) {
        cluster->nodes[node].is_paused = false;
        write_deed(cluster, "resumed", node);
    }
}

void cluster_kill_both(struct cluster *cluster, int node)
{
    struct cluster_node *m = &cluster->nodes[node];
    pid_t pid = cluster_node_pid(cluster, node);
    int pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

    cluster_tell(cluster, "%s is killed", m->name);
    (void)kill(m->guard, SIGKILL); /* is our child until we have waited for it */
    (void)waitpid(m->guard, NULL, 0);
    m->guard = 0;
    m->is_paused = false;
    if (pidfd >= 0) {
        await_death(pidfd);
        close(pidfd);
    }
    reap_orphans(cluster);
    write_deed(cluster, "killed", node);
}

void cluster_pause(struct cluster *cluster, int node)
{
    pid_t pid = cluster_node_pid(cluster, node);

    if (!pid || cluster->nodes[node].is_paused)
        return;
    cluster_tell(cluster, "%s is frozen", cluster->nodes[node].name);
    write_deed(cluster, "paused", node);
    (void)kill(pid, SIGSTOP); /* it may have died by itself; the guard tells */
    cluster->nodes[node].is_paused = true;
}

void cluster_resume(struct cluster *cluster, int node)
{
    pid_t pid = cluster_node_pid(cluster, node);

    if (!cluster->nodes[node].is_paused)
        return;
    cluster_tell(cluster, "%s goes on", cluster->nodes[node].name);
    write_deed(cluster, "resumed", node);
    if (pid)
        (void)kill(pid, SIGCONT);
    cluster->nodes[node].is_paused = false;
}

bool cluster_has_ended(struct cluster *cluster, int node, int *ret_status)
{
    pid_t pid = cluster->nodes[node].guard;

    if (!pid || waitpid(pid, ret_status, WNOHANG) != pid)
        return false;
    cluster->nodes[node].guard = 0;
    write_deed(cluster, "killed", node); /* its guard, and so its node, is dead */
    return true;
}

int cluster_stop(struct cluster *cluster, int node, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;
    int status = 0;

    cluster_tell(cluster, "%s is asked to end", cluster->nodes[node].name);
    cluster_resume(cluster, node);
    (void)kill(cluster->nodes[node].guard, SIGTERM);
    while (!cluster_has_ended(cluster, node, &status)) {
        if (now_ms() > deadline)
            return -1;
        (void)poll(NULL, 0, 2);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

unsigned cluster_alive(const struct cluster *cluster)
{
    unsigned set = 0;

    for (int i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].guard && !cluster->nodes[i].is_paused)
            set |= 1u << i;
    return set;
}

bool cluster_referee(struct cluster *cluster, size_t claims_min)
{
    struct referee *referee = referee_new();
    char path[PATH_MAX + 64];
    bool is_good;

    fflush(cluster->deeds);
    snprintf(path, sizeof path, "%s/deeds", cluster->directory);
    if (!referee_read_deeds(referee, path))
        die(path);
    snprintf(path, sizeof path, "%s/naps", cluster->directory);
    if (!referee_read_deeds(referee, path))
        die(path);
    for (int i = 0; i < cluster->count; i++) {
        snprintf(path, sizeof path, "%s/%s.log", cluster->directory, cluster->nodes[i].name);
        if (!referee_read_log(referee, cluster->nodes[i].name, path))
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

bool cluster_is_sane(const struct cluster *cluster)
{
    char path[PATH_MAX + 64], *line = NULL;
    size_t size = 0;
    bool is_sane = true;

    for (int i = 0; i < cluster->count; i++) {
        FILE *file;

        snprintf(path, sizeof path, "%s/%s.log", cluster->directory, cluster->nodes[i].name);
        file = fopen(path, "re");
        if (!file)
            die(path);
        while (getline(&line, &size, file) > 0) {
            for (size_t k = 0; k < sizeof insane / sizeof *insane; k++) {
                if (strstr(line, insane[k])) {
                    printf("# failed: %s: %s", cluster->nodes[i].name, line);
                    is_sane = false;
                }
            }
        }
        fclose(file);
    }
    free(line);
    return is_sane;
}
