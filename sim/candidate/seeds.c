/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/seeds.h"

#include "base/assert.h"
#include "sim/candidate/report.h"
#include "sim/candidate/world.h"
#include "sim/common/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT_EVENTS, COUNT_GRANTS, COUNT_WRITES, COUNT_REJECTED };

static void *begin(void)
{
    struct world *world = calloc(1, sizeof *world);

    ASSERT(world);
    return world;
}

static void end(void *memory)
{
    world_done(memory);
    free(memory);
}

static bool run_seed(void *memory, const void *options, uint64_t seed, uint64_t counts[POOL_COUNTS])
{
    struct run_options one = *(const struct run_options *)options;
    struct run_result result;

    one.seed = seed;
    run(memory, &one, &result);
    counts[COUNT_EVENTS] = result.events;
    counts[COUNT_GRANTS] = result.grants;
    counts[COUNT_WRITES] = result.writes;
    counts[COUNT_REJECTED] = result.rejected_writes;
    return result.broken != INVARIANT_NONE;
}

static void report(const struct pool_result *all, const struct run_options *options)
{
    struct world *world = begin();
    struct run_options one = *options;
    struct run_result result;

    for (uint64_t i = 0; i < all->failed && i < POOL_FAILURES_KEPT; i++) {
        if (all->failures[i] == 0)
            continue;
        one.seed = all->failures[i];
        if (i == 0) {
            report_failure(world, &one); /* one story is enough to read at a time */
            continue;
        }
        run(world, &one, &result);
        (void)printf("FAILED: seed %" PRIu64 " breaks %s: %s\n", one.seed, invariant_name(result.broken),
                     result.what);
    }
    end(world);
}

uint64_t seeds_run(const struct run_options *options, uint64_t count, unsigned jobs)
{
    const struct pool_work work = {.begin = begin, .run = run_seed, .end = end, .options = options};
    struct pool_result all;

    pool_run(&work, options->seed, count, jobs, &all);
    report(&all, options);
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " failed; %.1f s, %" PRIu64
                 " events, %" PRIu64 " mandates, %" PRIu64 " writes and %" PRIu64 " rejected\n",
                 all.done, options->seed, all.failed, all.seconds, all.counts[COUNT_EVENTS],
                 all.counts[COUNT_GRANTS], all.counts[COUNT_WRITES], all.counts[COUNT_REJECTED]);
    if (all.done < count && all.failed == 0) {
        (void)printf("FAILED: only %" PRIu64 " of %" PRIu64 " seeds were run\n", all.done, count);
        return 1;
    }
    return all.failed;
}

void seeds_bench(const struct run_options *options, gavel_ns length)
{
    double began = pool_seconds_now();
    double until = began + (double)length / (double)NS_PER_S;
    struct world *world = begin();
    struct run_options one = *options;
    struct run_result result;
    uint64_t runs = 0;
    uint64_t events = 0;
    double virtual = 0;

    while (pool_seconds_now() < until) {
        run(world, &one, &result);
        one.seed++;
        runs++;
        events += result.events;
        virtual += (double)result.ended_at / (double)NS_PER_S;
    }
    until = pool_seconds_now() - began;
    (void)printf("%" PRIu64
                 " runs in %.1f s on one core: %.0f runs/s, %.1f virtual seconds each, %.0f events/s\n",
                 runs, until, (double)runs / until, virtual / (double)runs, (double)events / until);
    end(world);
}
