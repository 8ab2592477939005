/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/seeds.h"

#include "sim/common/pool.h"
#include "sim/common/report.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define BENCH_SECONDS 5

/* What the processes of the pool add up. */
enum { COUNT_MS, COUNT_EVENTS, COUNT_COUNTS, COUNT_SIGHTS = COUNT_COUNTS + COUNTS_MAX };

static_assert(COUNT_SIGHTS + SIGHTS_MAX <= POOL_COUNTS, "all counts fit");

struct job {
    const struct simulator *simulator;
    struct run_options options;
    bool has_progress;
};

static void *begin(const void *context) { return ((const struct job *)context)->simulator->begin(); }
static void end(const void *context, void *memory) { ((const struct job *)context)->simulator->end(memory); }

/*
 * At once, and by the process that ran it: so every seed is named, however many fail, and also if the whole
 * is ended before its time. Below a line of progress, if there is one.
 */
static void name_failure(const struct job *job, uint64_t seed, const char *broken)
{
    (void)printf("%sseed %" PRIu64 ": %s\n", job->has_progress && isatty(STDOUT_FILENO) ? "\n" : "", seed,
                 broken);
    (void)fflush(stdout);
}

static bool run_seed(void *memory, const void *context, uint64_t seed, uint64_t counts[POOL_COUNTS])
{
    const struct job *job = context;
    struct run_options one = job->options;
    struct run_result result;

    one.seed = seed;
    job->simulator->run(memory, &one, &result);
    counts[COUNT_MS] = (uint64_t)(result.ended_at / NS_PER_MS);
    counts[COUNT_EVENTS] = result.events;
    memcpy(counts + COUNT_COUNTS, result.counts, sizeof result.counts);
    memcpy(counts + COUNT_SIGHTS, result.sights, sizeof result.sights);
    if (result.broken)
        name_failure(job, seed, result.broken);
    return result.broken != NULL;
}

static double hours(const uint64_t counts[POOL_COUNTS]) { return (double)counts[COUNT_MS] / 3.6e6; }

/* Returns how many things were never seen. */
static unsigned print_sights(const struct simulator *simulator, const uint64_t counts[POOL_COUNTS])
{
    unsigned missing = 0;

    for (unsigned i = 0; i < simulator->sight_count; i++) {
        missing += counts[COUNT_SIGHTS + i] == 0;
        (void)printf("%s %" PRIu64 " %s", i > 0 ? "," : "seen:", counts[COUNT_SIGHTS + i],
                     simulator->sight(i));
    }
    if (simulator->sight_count > 0)
        (void)printf("\n");
    return missing;
}

static void print_progress(const struct pool_work *work, uint64_t done, uint64_t failed,
                           const uint64_t counts[POOL_COUNTS], double seconds)
{
    const struct job *job = work->context;

    (void)printf("%s%" PRIu64 " seeds, %.0f/s, %.1f h simulated", isatty(STDOUT_FILENO) ? "\r" : "", done,
                 (double)done / seconds, hours(counts));
    report_counts(job->simulator, counts + COUNT_COUNTS);
    (void)printf(", %" PRIu64 " failed%s", failed, isatty(STDOUT_FILENO) ? "  " : "\n");
    (void)fflush(stdout); /* a line of progress that comes late is none */
}

/* One story is enough to read at a time: that of the lowest seed, however many processes there were. */
static void tell_of_one(const struct job *job, uint64_t seed)
{
    void *memory = job->simulator->begin();
    struct run_options one = job->options;

    one.seed = seed;
    report_failure(job->simulator, memory, &one);
    job->simulator->end(memory);
}

uint64_t seeds_run(const struct simulator *simulator, const struct run_options *options, uint64_t count,
                   unsigned jobs, bool wants_all_seen)
{
    const struct job job = {
        .simulator = simulator, .options = *options, .has_progress = count == POOL_ENDLESS};
    const struct pool_work work = {.begin = begin,
                                   .run = run_seed,
                                   .end = end,
                                   .context = &job,
                                   .progress = job.has_progress ? print_progress : NULL};
    struct pool_result all;

    pool_run(&work, options->seed, count, jobs, &all);
    if (work.progress)
        (void)printf("\n");
    if (all.lowest_failed != UINT64_MAX)
        tell_of_one(&job, all.lowest_failed);
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64
                 " failed; %.1f s, %.1f h of virtual time, %" PRIu64 " events",
                 all.done, options->seed, all.failed, all.seconds, hours(all.counts),
                 all.counts[COUNT_EVENTS]);
    report_counts(simulator, all.counts + COUNT_COUNTS);
    (void)printf("\n");
    if (print_sights(simulator, all.counts) > 0 && wants_all_seen) {
        (void)printf("FAILED: some things were never seen, so that nothing is proven about them\n");
        return all.failed + 1;
    }
    if (count != POOL_ENDLESS && all.done < count && all.failed == 0) {
        (void)printf("FAILED: only %" PRIu64 " of %" PRIu64 " seeds were run\n", all.done, count);
        return 1;
    }
    return all.failed;
}

void seeds_bench(const struct simulator *simulator, const struct run_options *options)
{
    void *memory = simulator->begin();
    struct run_options one = *options;
    struct run_result result;
    double began = pool_seconds_now();
    double took = 0;
    double virtual = 0;
    uint64_t runs = 0;
    uint64_t events = 0;

    for (int i = 0; i < SIZES_MAX; i++)
        if (one.sizes[i] == 0)
            one.sizes[i] = simulator->sizes[i].bench;
    while (took < BENCH_SECONDS) {
        simulator->run(memory, &one, &result);
        one.seed++;
        runs++;
        events += result.events;
        virtual += (double)result.ended_at / (double)NS_PER_S;
        took = pool_seconds_now() - began;
    }
    (void)printf(
        "%" PRIu64
        " runs in %.1f s on one core: %.0f runs/s, %.1f virtual seconds each, %.0f runs of %u virtual seconds/s, %.0f events/s\n",
        runs, took, (double)runs / took, virtual / (double)runs, virtual / simulator->seconds / took,
        simulator->seconds, (double)events / took);
    simulator->end(memory);
}
