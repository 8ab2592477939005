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

static _Noreturn void watch(struct naps_shared *shared, int processor, FILE *file)
{
    const struct sched_param before_all = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
    cpu_set_t here;
    int64_t last;

    CPU_ZERO(&here);
    CPU_SET(processor, &here);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sched_setaffinity(0, sizeof here, &here);       /* one that went away meanwhile sleeps no more */
    (void)sched_setscheduler(0, SCHED_FIFO, &before_all); /* where it is not permitted, like everybody */
    for (last = now_ns();; last = now_ns()) {
        const struct timespec pause = {.tv_nsec = EVERY_NS};
        int64_t now;

        (void)nanosleep(&pause, NULL); /* waking early does no harm */
        now = now_ns();
        if (now - last < NAP_NS)
            continue;
        atomic_fetch_add(&shared->count, 1);
        fprintf(file, "msg=slept processor=%d at_ns=%lld until_ns=%lld\n", processor, (long long)last,
                (long long)now);
        fflush(file);
    }
}

void naps_start(struct naps *naps, const char *path)
{
    FILE *file = fopen(path, "ae"); /* by several, a line at a time */
    cpu_set_t all;

    naps->shared =
        mmap(NULL, sizeof *naps->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!file || naps->shared == MAP_FAILED || sched_getaffinity(0, sizeof all, &all) != 0) {
        perror("chaos: the watchers of naps");
        abort();
    }
    naps->count = 0;
    for (int processor = 0; processor < CPU_SETSIZE && naps->count < NAPS_PROCESSORS_MAX; processor++) {
        if (!CPU_ISSET(processor, &all))
            continue;
        naps->pids[naps->count] = fork();
        if (naps->pids[naps->count] == 0)
            watch(naps->shared, processor, file);
        naps->count++;
    }
    fclose(file);
}

void naps_stop(struct naps *naps)
{
    for (size_t i = 0; i < naps->count; i++) {
        if (naps->pids[i] <= 0)
            continue;
        (void)kill(naps->pids[i], SIGKILL); /* a child of ours that is not waited for */
        (void)waitpid(naps->pids[i], NULL, 0);
    }
    if (naps->count > 0)
        (void)munmap(naps->shared, sizeof *naps->shared);
    naps->count = 0;
}

int naps_count(const struct naps *naps) { return atomic_load(&naps->shared->count); }
