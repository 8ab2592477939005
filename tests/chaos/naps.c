/* SPDX-License-Identifier: Apache-2.0 */

#include "naps.h"

#include "ask.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS 2000000
#define NAP_NS 20000000

struct naps_shared {
    _Atomic int count;
};

static _Noreturn void watch(struct naps_shared *shared, FILE *file)
{
    const struct sched_param before_all = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
    int64_t last;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sched_setscheduler(0, SCHED_FIFO, &before_all); /* where it is not permitted, like everybody */
    for (last = now_ns();; last = now_ns()) {
        const struct timespec pause = {.tv_nsec = EVERY_NS};
        int64_t now;

        (void)nanosleep(&pause, NULL); /* waking early does no harm */
        now = now_ns();
        if (now - last < NAP_NS)
            continue;
        atomic_fetch_add(&shared->count, 1);
        fprintf(file, "msg=slept at_ns=%lld until_ns=%lld\n", (long long)last, (long long)now);
        fflush(file);
    }
}

void naps_start(struct naps *naps, const char *path)
{
    FILE *file = fopen(path, "we");

    naps->shared =
        mmap(NULL, sizeof *naps->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!file || naps->shared == MAP_FAILED) {
        perror("chaos: the watcher of naps");
        abort();
    }
    naps->pid = fork();
    if (naps->pid == 0)
        watch(naps->shared, file);
    fclose(file);
}

void naps_stop(struct naps *naps)
{
    if (naps->pid <= 0)
        return;
    (void)kill(naps->pid, SIGKILL); /* a child of ours that is not waited for */
    (void)waitpid(naps->pid, NULL, 0);
    (void)munmap(naps->shared, sizeof *naps->shared);
    naps->pid = 0;
}

int naps_count(const struct naps *naps) { return atomic_load(&naps->shared->count); }
