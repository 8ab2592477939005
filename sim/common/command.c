/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/args.h"
#include "sim/common/report.h"
#include "sim/common/seeds.h"

#include <inttypes.h>

static int minimize(const struct simulator *simulator, void *memory, struct run_options *options)
{
    if (report_minimize(simulator, memory, options)) {
        report_failure(simulator, memory, options);
        return 1;
    }
    (void)printf("seed %" PRIu64 " breaks nothing\n", options->seed);
    return 0;
}

static int run_one(const struct simulator *simulator, void *memory, const struct run_options *options,
                   bool traces)
{
    struct trace trace = {.stream = stdout};
    struct run_options traced = *options;
    struct run_result result;

    traced.trace = traces ? &trace : NULL;
    simulator->run(memory, &traced, &result);
    if (result.broken)
        report_failure(simulator, memory, options);
    else
        report_success(simulator, options, &result);
    return result.broken != NULL;
}

/* What the planted bug breaks with one seed. */
struct hunt {
    const struct simulator *simulator;
    void *memory;
    struct run_options options;
};

static const char *hunt_seed(void *context, uint64_t seed)
{
    struct hunt *hunt = context;
    struct run_result result;

    hunt->options.seed = seed;
    hunt->simulator->run(hunt->memory, &hunt->options, &result);
    return result.broken;
}

int command_run(const struct simulator *simulator, int argc, char **argv)
{
    const struct simulator_measure *measure;
    struct arguments a;
    struct hunt hunt;
    void *memory;
    int code = 0;

    args_parse(simulator, argc, argv, &a);
    switch (a.mode) {
    case MODE_SEED:
        memory = simulator->begin();
        code = a.minimizes ? minimize(simulator, memory, &a.options)
                           : run_one(simulator, memory, &a.options, a.traces);
        simulator->end(memory);
        break;
    case MODE_SEEDS:
    case MODE_SOAK:
        code = seeds_run(simulator, &a.options, a.count, (unsigned)a.jobs, a.wants_all_seen) > 0;
        break;
    case MODE_PLANTED_ALL:
        hunt = (struct hunt){simulator, simulator->begin(), a.options};
        code = planted_try_all(simulator->planted, hunt_seed, &hunt, a.options.seed, a.limit) > 0;
        simulator->end(hunt.memory);
        break;
    case MODE_BENCH:
        seeds_bench(simulator, &a.options);
        break;
    case MODE_NONE:
        break;
    default:
        measure = &simulator->measures[a.mode - MODE_MEASURE];
        code = measure->run(a.trials ? a.trials : measure->trials, a.options.seed, (unsigned)a.jobs);
        break;
    }
    return code;
}
