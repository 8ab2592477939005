/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/pool.h"

#include "base/assert.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What the processes tell each other, in shared memory. */
struct board {
    _Atomic uint64_t next; /* seed to run, counted from 0 */
    _Atomic uint64_t done;
    _Atomic uint64_t failed;
    _Atomic uint64_t counts[POOL_COUNTS];
    atomic_bool is_over;             /* no further seed is begun */
    _Atomic uint64_t lowest_failed;  /* seed */
    uint64_t current[POOL_JOBS_MAX]; /* the seed that each process works on */
};

double pool_seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail; only for people to read */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void note_failure(struct board *board, uint64_t seed)
{
    uint64_t lowest = atomic_load(&board->lowest_failed);

    atomic_fetch_add(&board->failed, 1);
    while (seed < lowest && !atomic_compare_exchange_weak(&board->lowest_failed, &lowest, seed))
        ;
}

static void work_through(const struct pool_work *work, struct board *board, uint64_t first, uint64_t count,
                         unsigned job)
{
    void *memory = work->begin(work->context);

    while (!atomic_load(&board->is_over)) {
        uint64_t i = atomic_fetch_add(&board->next, 1);
        uint64_t counts[POOL_COUNTS] = {0};
        bool has_failed;

        if (i >= count)
            break;
        board->current[job] = first + i;
        has_failed = work->run(memory, work->context, first + i, counts);
        atomic_fetch_add(&board->done, 1);
        for (unsigned k = 0; k < POOL_COUNTS; k++)
            atomic_fetch_add(&board->counts[k], counts[k]);
        if (has_failed)
            note_failure(board, first + i);
    }
    work->end(work->context, memory);
}

static void read_counts(struct board *board, uint64_t ret_counts[POOL_COUNTS])
{
    for (unsigned k = 0; k < POOL_COUNTS; k++)
        ret_counts[k] = atomic_load(&board->counts[k]);
}

/* A process that did not end by itself is a failure of the seed it worked on. */
static void check_exit(struct board *board, unsigned job, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    (void)printf("FAILED: the process that ran seed %" PRIu64
                 " ended with status 0x%x; see its message above\n",
                 board->current[job], (unsigned)status);
    atomic_fetch_add(&board->failed, 1);
}

/* Waits for all; meanwhile the progress line, if one is wanted. Returns whether somebody asked to end. */
static bool gather(const struct pool_work *work, struct board *board, const pid_t *children, unsigned jobs,
                   const sigset_t *ends)
{
    double began = pool_seconds_now();
    uint64_t counts[POOL_COUNTS];
    bool is_interrupted = false;
    unsigned left = jobs;
    pid_t alive[POOL_JOBS_MAX];

    for (unsigned i = 0; i < jobs; i++)
        alive[i] = children[i];
    while (left > 0) {
        int status = 0;

        for (unsigned i = 0; i < jobs; i++) {
            if (alive[i] == 0 || waitpid(alive[i], &status, work->progress ? WNOHANG : 0) != alive[i])
                continue;
            check_exit(board, i, status);
            alive[i] = 0;
            left--;
        }
        if (work->progress && left > 0) {
            const struct timespec second = {.tv_sec = 1};
            int signal = sigtimedwait(ends, NULL, &second);

            if (signal == SIGINT || signal == SIGTERM) {
                atomic_store(&board->is_over, true);
                is_interrupted = true;
            }
            read_counts(board, counts);
            work->progress(work, atomic_load(&board->done), atomic_load(&board->failed), counts,
                           pool_seconds_now() - began);
        }
    }
    return is_interrupted;
}

void pool_run(const struct pool_work *work, uint64_t first, uint64_t count, unsigned jobs,
              struct pool_result *ret_result)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double began = pool_seconds_now();
    pid_t children[POOL_JOBS_MAX];
    sigset_t ends;

    ASSERT(board != MAP_FAILED);
    atomic_store(&board->lowest_failed, UINT64_MAX);
    if (jobs > POOL_JOBS_MAX)
        jobs = POOL_JOBS_MAX;
    (void)sigemptyset(&ends);
    if (work->progress) { /* the children have them blocked, too: a Ctrl-C does not cut a seed short */
        (void)sigaddset(&ends, SIGINT);
        (void)sigaddset(&ends, SIGTERM);
        (void)sigaddset(&ends, SIGCHLD);
        (void)sigprocmask(SIG_BLOCK, &ends, NULL);
    }
    (void)fflush(NULL); /* or the children would print it again */
    for (unsigned job = 0; job < jobs; job++) {
        children[job] = fork();
        ASSERT(children[job] >= 0);
        if (children[job] == 0) {
            work_through(work, board, first, count, job);
            _exit(0);
        }
    }
    *ret_result = (struct pool_result){0};
    ret_result->is_interrupted = gather(work, board, children, jobs, &ends);
    ret_result->done = atomic_load(&board->done);
    ret_result->failed = atomic_load(&board->failed);
    read_counts(board, ret_result->counts);
    ret_result->lowest_failed = atomic_load(&board->lowest_failed);
    ret_result->seconds = pool_seconds_now() - began;
    (void)munmap(board, sizeof *board); /* the process ends soon anyway */
}
