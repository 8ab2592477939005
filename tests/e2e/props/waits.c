/* SPDX-License-Identifier: Apache-2.0 */

/*
 * waits DIRECTORY: how long the processes of each node wanted a processor and had none.
 *
 * NAME.guard in that directory has the process id of the guard of node NAME. Twenty times a second the kernel
 * is asked for how long each thread of it, and of all processes below it, has waited for a processor so far
 * (/proc/…/schedstat); what was added goes to the output, as a deed for the referee:
 *
 *     msg=waited node=n1 at_ns=… until_ns=… wait_ns=…   at some time from at to until; the sum of all threads
 *     msg=waited at_ns=… until_ns=… wait_ns=…           the watcher itself was late by so much, and so is
 * everybody
 *
 * What was before the first look at a node is not told. So a machine that is busy excuses what it has really
 * delayed, and nothing else. SIGTERM ends it, after a last look.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS INT64_C(50000000)
#define WORTH_TELLING_NS INT64_C(10000000)
#define NODES_MAX 16
#define THREADS_MAX 512 /* of a node; further ones are not looked at */
#define DEPTH_MAX 8

struct thread {
    int id;
    int64_t waited;
    bool is_seen;
};

struct node {
    char name[64];
    struct thread threads[THREADS_MAX];
    int thread_count;
    bool is_known; /* what it had waited before the first look is not told */
    int64_t sum;   /* not told yet */
    int64_t since;
};

static struct node nodes[NODES_MAX];
static int node_count;
static volatile sig_atomic_t is_over;

static void end(int number)
{
    (void)number;
    is_over = 1;
}

static int64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t); /* cannot fail on Linux */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct node *node_of(const char *name, int64_t now)
{
    for (int i = 0; i < node_count; i++)
        if (strcmp(nodes[i].name, name) == 0)
            return &nodes[i];
    if (node_count == NODES_MAX)
        return NULL;
    (void)snprintf(nodes[node_count].name, sizeof nodes->name, "%s", name);
    nodes[node_count].since = now;
    return &nodes[node_count++];
}

/* What a thread has waited for since the last look; all of it if it is new. */
static void look_at_thread(struct node *node, int id, int64_t waited)
{
    struct thread *t = node->threads, *end_of_all = t + node->thread_count;

    while (t < end_of_all && t->id != id)
        t++;
    if (t == end_of_all) {
        if (node->thread_count == THREADS_MAX)
            return;
        *t = (struct thread){.id = id};
        node->thread_count++;
    }
    node->sum += waited >= t->waited ? waited - t->waited : waited; /* less: another one has that id now */
    t->waited = waited;
    t->is_seen = true;
}

static void look_at_process(struct node *node, int pid, int depth)
{
    char path[128];
    DIR *tasks;

    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    tasks = opendir(path);
    if (!tasks)
        return; /* it is gone */
    for (const struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks)) {
        int id = atoi(entry->d_name), child;
        int64_t waited;
        FILE *file;

        if (id <= 0)
            continue;
        (void)snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, id);
        file = fopen(path, "re");
        if (file) {
            if (fscanf(file, "%*d %" SCNd64, &waited) == 1)
                look_at_thread(node, id, waited);
            (void)fclose(file); /* only read */
        }
        (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, id);
        file = depth < DEPTH_MAX ? fopen(path, "re") : NULL;
        if (file) {
            while (fscanf(file, "%d", &child) == 1)
                look_at_process(node, child, depth + 1);
            (void)fclose(file); /* only read */
        }
    }
    (void)closedir(tasks); /* only read */
}

static void forget_the_gone(struct node *node)
{
    int kept = 0;

    for (int i = 0; i < node->thread_count; i++) {
        if (!node->threads[i].is_seen)
            continue;
        node->threads[kept] = node->threads[i];
        node->threads[kept++].is_seen = false;
    }
    node->thread_count = kept;
}

static void look_at_node(struct node *node, int pid, int64_t now)
{
    look_at_process(node, pid, 0);
    forget_the_gone(node);
    if (!node->is_known)
        node->sum = 0;
    node->is_known = true;
    if (node->sum < WORTH_TELLING_NS && !is_over)
        return;
    printf("msg=waited node=%s at_ns=%" PRId64 " until_ns=%" PRId64 " wait_ns=%" PRId64 "\n", node->name,
           node->since, now, node->sum);
    node->sum = 0;
    node->since = now;
}

static bool look(const char *directory)
{
    DIR *files = opendir(directory);
    char path[4096];

    if (!files)
        return false;
    for (const struct dirent *entry = readdir(files); entry; entry = readdir(files)) {
        char name[64];
        size_t length = strlen(entry->d_name);
        int64_t now = now_ns();
        struct node *node;
        FILE *file;
        int pid;

        if (length < 7 || length - 6 >= sizeof name || strcmp(entry->d_name + length - 6, ".guard") != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        (void)snprintf(name, sizeof name, "%.*s", (int)(length - 6), entry->d_name);
        file = fopen(path, "re");
        node = node_of(name, now);
        if (file && node && fscanf(file, "%d", &pid) == 1)
            look_at_node(node, pid, now);
        if (file)
            (void)fclose(file); /* only read */
    }
    (void)closedir(files); /* only read */
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    const struct sigaction ends = {.sa_handler = end};
    int64_t last = now_ns();

    if (argc != 2) {
        fprintf(stderr, "waits: usage: waits DIRECTORY\n");
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)sigaction(SIGTERM, &ends, NULL); /* cannot fail: the signal exists */
    for (bool is_last = false; !is_last;) {
        const struct timespec pause = {.tv_nsec = EVERY_NS};
        int64_t now;

        is_last = is_over;
        if (!look(argv[1])) {
            fprintf(stderr, "waits: %s: %s\n", argv[1], strerror(errno));
            return 2;
        }
        if (!is_last)
            (void)nanosleep(&pause, NULL); /* waking early does no harm */
        now = now_ns();
        if (now - last > EVERY_NS + WORTH_TELLING_NS)
            printf("msg=waited at_ns=%" PRId64 " until_ns=%" PRId64 " wait_ns=%" PRId64 "\n", last, now,
                   now - last - EVERY_NS);
        last = now;
    }
    return fflush(stdout) == 0 ? 0 : 2;
}
