/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/seeds.h"

#include "base/assert.h"
#include "sim/report.h"
#include "sim/world.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 64
#define FAILURES_KEPT 20

/* What the processes tell each other, in shared memory. */
struct board {
    _Atomic uint64_t next; /* seed to run, counted from 0 */
    _Atomic uint64_t done;
    _Atomic uint64_t failed;
    _Atomic uint64_t events;
    _Atomic uint64_t grants;
    _Atomic uint64_t writes;
    _Atomic uint64_t rejected_writes;
    uint64_t failures[FAILURES_KEPT];
    uint64_t current[JOBS_MAX]; /* the seed that each process works on */
};

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail; only for people to read */
    return (double)now.tv_sec + (double)now.tv_nsec / (double)NS_PER_S;
}

static void work_through(struct board *board, const struct run_options *options, uint64_t count, unsigned job)
{
    struct world *world = calloc(1, sizeof *world);
    struct run_options one = *options;
    struct run_result result;

    ASSERT(world);
    for (uint64_t i = atomic_fetch_add(&board->next, 1); i < count; i = atomic_fetch_add(&board->next, 1)) {
        one.seed = board->current[job] = options->seed + i;
        run(world, &one, &result);
        atomic_fetch_add(&board->done, 1);
        atomic_fetch_add(&board->events, result.events);
        atomic_fetch_add(&board->grants, result.grants);
        atomic_fetch_add(&board->writes, result.writes);
        atomic_fetch_add(&board->rejected_writes, result.rejected_writes);
        if (result.broken != INVARIANT_NONE) {
            uint64_t n = atomic_fetch_add(&board->failed, 1);

            if (n < FAILURES_KEPT)
                board->failures[n] = one.seed;
        }
    }
    world_done(world);
    free(world);
}

/* Waits for all; a process that did not end by itself is a failure of the seed it worked on. */
static void gather(struct board *board, const pid_t *children, unsigned jobs)
{
    for (unsigned i = 0; i < jobs; i++) {
        int status = 0;

        if (waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        (void)printf("FAILED: the process that ran seed %" PRIu64
                     " ended with status 0x%x; see its message above\n",
                     board->current[i], (unsigned)status);
        atomic_fetch_add(&board->failed, 1);
    }
}

static void report(struct board *board, const struct run_options *options)
{
    struct world *world = calloc(1, sizeof *world);
    uint64_t failed = atomic_load(&board->failed);
    struct run_options one = *options;
    struct run_result result;

    ASSERT(world);
    for (uint64_t i = 0; i < failed && i < FAILURES_KEPT; i++) {
        if (board->failures[i] == 0)
            continue;
        one.seed = board->failures[i];
        if (i == 0) {
            report_failure(world, &one); /* one story is enough to read at a time */
            continue;
        }
        run(world, &one, &result);
        (void)printf("FAILED: seed %" PRIu64 " breaks %s: %s\n", one.seed, invariant_name(result.broken),
                     result.what);
    }
    world_done(world);
    free(world);
}

uint64_t seeds_run(const struct run_options *options, uint64_t count, unsigned jobs)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[JOBS_MAX];
    double began = seconds_now();
    uint64_t failed;

    ASSERT(board != MAP_FAILED);
    if (jobs > JOBS_MAX)
        jobs = JOBS_MAX;
    (void)fflush(NULL); /* or the children would print it again */
    for (unsigned job = 0; job < jobs; job++) {
        children[job] = fork();
        ASSERT(children[job] >= 0);
        if (children[job] == 0) {
            work_through(board, options, count, job);
            _exit(0);
        }
    }
    gather(board, children, jobs);
    report(board, options);
    failed = atomic_load(&board->failed);
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " failed; %.1f s, %" PRIu64
                 " events, %" PRIu64 " mandates, %" PRIu64 " writes and %" PRIu64 " rejected\n",
                 atomic_load(&board->done), options->seed, failed, seconds_now() - began,
                 atomic_load(&board->events), atomic_load(&board->grants), atomic_load(&board->writes),
                 atomic_load(&board->rejected_writes));
    if (atomic_load(&board->done) < count && failed == 0) {
        (void)printf("FAILED: only %" PRIu64 " of %" PRIu64 " seeds were run\n", atomic_load(&board->done),
                     count);
        failed = 1;
    }
    (void)munmap(board, sizeof *board); /* the process ends soon anyway */
    return failed;
}

void seeds_bench(const struct run_options *options, gavel_ns length)
{
    struct world *world = calloc(1, sizeof *world);
    double until = seconds_now() + (double)length / (double)NS_PER_S;
    double began = seconds_now();
    struct run_options one = *options;
    struct run_result result;
    uint64_t runs = 0;
    uint64_t events = 0;
    double virtual = 0;

    ASSERT(world);
    while (seconds_now() < until) {
        run(world, &one, &result);
        one.seed++;
        runs++;
        events += result.events;
        virtual += (double)result.ended_at / (double)NS_PER_S;
    }
    until = seconds_now() - began;
    (void)printf("%" PRIu64
                 " runs in %.1f s on one core: %.0f runs/s, %.1f virtual seconds each, %.0f events/s\n",
                 runs, until, (double)runs / until, virtual / (double)runs, (double)events / until);
    world_done(world);
    free(world);
}
