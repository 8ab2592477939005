/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/seeds.h"

#include "sim/common/pool.h"
#include "sim/session/report.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { COUNT_MS, COUNT_EVENTS, COUNT_FAULTS, COUNT_ELECTIONS, COUNT_COMMITTED, COUNT_JUDGED, COUNT_SIGHTS };

static_assert(COUNT_SIGHTS + HALL_SIGHT_COUNT <= POOL_COUNTS, "all counts fit");

static void *begin(void) { return hall_new(); }
static void end(void *memory) { hall_free(memory); }

static bool run_seed(void *memory, const void *options, uint64_t seed, uint64_t counts[POOL_COUNTS])
{
    struct hall_options one = *(const struct hall_options *)options;
    struct hall_result result;

    one.seed = seed;
    hall_run(memory, &one, &result);
    counts[COUNT_MS] = (uint64_t)(result.ended_at / NS_PER_MS);
    counts[COUNT_EVENTS] = result.events;
    counts[COUNT_FAULTS] = result.fault_count;
    counts[COUNT_ELECTIONS] = result.elections;
    counts[COUNT_COMMITTED] = result.committed;
    counts[COUNT_JUDGED] = result.is_judged;
    for (unsigned i = 0; i < HALL_SIGHT_COUNT; i++)
        counts[COUNT_SIGHTS + i] = result.seen[i];
    return result.is_broken;
}

/* Returns how many things were never seen. */
static unsigned print_sights(const uint64_t counts[POOL_COUNTS])
{
    unsigned missing = 0;

    (void)printf("seen:");
    for (unsigned i = 0; i < HALL_SIGHT_COUNT; i++) {
        missing += counts[COUNT_SIGHTS + i] == 0;
        (void)printf("%s %" PRIu64 " %s", i > 0 ? "," : "", counts[COUNT_SIGHTS + i],
                     hall_sight_name((enum hall_sight)i));
    }
    (void)printf("\n");
    return missing;
}

static void print_progress(const struct pool_work *work, uint64_t done, uint64_t failed,
                           const uint64_t counts[POOL_COUNTS], double seconds)
{
    (void)work;
    (void)printf("%s%" PRIu64 " seeds, %.0f/s, %.1f h simulated, %" PRIu64 " faults, %" PRIu64
                 " sessions, %" PRIu64 " failed%s",
                 isatty(STDOUT_FILENO) ? "\r" : "", done, (double)done / seconds,
                 (double)counts[COUNT_MS] / 3.6e6, counts[COUNT_FAULTS],
                 counts[COUNT_SIGHTS + HALL_SIGHT_SESSIONS], failed, isatty(STDOUT_FILENO) ? "  " : "\n");
    (void)fflush(stdout); /* a line of progress that comes late is none */
}

static void report(const struct pool_result *all, const struct hall_options *options)
{
    struct hall *hall = hall_new();
    struct hall_options one = *options;
    struct hall_result result;

    for (uint64_t i = 0; i < all->failed && i < POOL_FAILURES_KEPT; i++) {
        if (all->failures[i] == 0)
            continue;
        one.seed = all->failures[i];
        if (i == 0) {
            hall_report_failure(hall, &one); /* one story is enough to read at a time */
            continue;
        }
        hall_run(hall, &one, &result);
        (void)printf("FAILED: seed %" PRIu64 " breaks %s: %s\n", one.seed, result.name, result.what);
    }
    hall_free(hall);
}

uint64_t hall_seeds_run(const struct hall_options *options, uint64_t count, unsigned jobs, bool wants_all)
{
    const struct pool_work work = {.begin = begin,
                                   .run = run_seed,
                                   .end = end,
                                   .options = options,
                                   .progress = count == POOL_ENDLESS ? print_progress : NULL};
    struct pool_result all;

    pool_run(&work, options->seed, count, jobs, &all);
    if (work.progress)
        (void)printf("\n");
    report(&all, options);
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64
                 " failed; %.1f s, %.1f h of virtual time, %" PRIu64 " events, %" PRIu64
                 " faults injected, %" PRIu64 " elections of the quorum, %" PRIu64
                 " entries committed, %" PRIu64 " healed\n",
                 all.done, options->seed, all.failed, all.seconds, (double)all.counts[COUNT_MS] / 3.6e6,
                 all.counts[COUNT_EVENTS], all.counts[COUNT_FAULTS], all.counts[COUNT_ELECTIONS],
                 all.counts[COUNT_COMMITTED], all.counts[COUNT_JUDGED]);
    if (print_sights(all.counts) > 0 && wants_all) {
        (void)printf("FAILED: some things were never seen, so that nothing is proven about them\n");
        return all.failed + 1;
    }
    if (count != POOL_ENDLESS && all.done < count && all.failed == 0) {
        (void)printf("FAILED: only %" PRIu64 " of %" PRIu64 " seeds were run\n", all.done, count);
        return 1;
    }
    return all.failed;
}

void hall_seeds_bench(const struct hall_options *options, gavel_ns length)
{
    double began = pool_seconds_now();
    double until = began + (double)length / (double)NS_PER_S;
    struct hall *hall = hall_new();
    struct hall_options one = *options;
    struct hall_result result;
    uint64_t runs = 0;
    uint64_t events = 0;
    double virtual = 0;

    while (pool_seconds_now() < until) {
        hall_run(hall, &one, &result);
        one.seed++;
        runs++;
        events += result.events;
        virtual += (double)result.ended_at / (double)NS_PER_S;
    }
    until = pool_seconds_now() - began;
    (void)printf("%" PRIu64
                 " runs in %.1f s on one core: %.0f runs/s, %.1f virtual seconds each, %.0f events/s\n",
                 runs, until, (double)runs / until, virtual / (double)runs, (double)events / until);
    hall_free(hall);
}
