/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/report.h"

#include "sim/common/args.h"
#include "sim/common/sim_version.h"

#include <inttypes.h>
#include <string.h>

static double seconds(gavel_ns ns) { return (double)ns / (double)NS_PER_S; }

void report_counts(const struct simulator *simulator, const uint64_t counts[COUNTS_MAX])
{
    for (int i = 0; i < COUNTS_MAX && simulator->counts[i]; i++)
        (void)printf(", %" PRIu64 " %s", counts[i], simulator->counts[i]);
}

static void print_sizes(const struct simulator *simulator, const struct run_result *result)
{
    for (int i = 0; i < SIZES_MAX && simulator->sizes[i].name; i++)
        (void)printf(", %u %s", result->sizes[i], simulator->sizes[i].name);
}

void report_success(const struct simulator *simulator, const struct run_options *options,
                    const struct run_result *result)
{
    (void)printf("seed %" PRIu64 ": nothing is broken", options->seed);
    print_sizes(simulator, result);
    (void)printf(", %.1f s of virtual time, %" PRIu64 " events", seconds(result->ended_at), result->events);
    report_counts(simulator, result->counts);
    (void)printf(", hash %016" PRIx64 "\n", result->hash);
}

void report_failure(const struct simulator *simulator, void *memory, const struct run_options *options)
{
    struct run_options again = *options;
    struct run_result result;
    struct trace trace = {0};

    again.trace = &trace;
    simulator->run(memory, &again, &result);
    if (!result.broken) {
        (void)printf("FAILED: seed %" PRIu64
                     " failed once and not again: the simulator is not deterministic\n",
                     options->seed);
        return;
    }
    (void)printf("\nFAILED: seed %" PRIu64 " breaks %s (%s)\n  %s\n  at %.6f s of virtual time",
                 options->seed, result.broken, result.sentence, result.what, seconds(result.ended_at));
    print_sizes(simulator, &result);
    (void)printf(", commit %s\n  replay:  ", SIM_VERSION);
    args_print(simulator, options);
    (void)printf(" --trace\n  shorten: ");
    args_print(simulator, options);
    (void)printf(" --minimize\n\n");
    story_print(&trace, stdout);
    (void)printf("\n");
}

/* Takes the smaller options if they break the same. */
static bool shrink(const struct simulator *simulator, void *memory, const struct run_options *smaller,
                   const char *broken, struct run_options *options)
{
    struct run_result result;

    simulator->run(memory, smaller, &result);
    if (!result.broken || strcmp(result.broken, broken) != 0)
        return false;
    *options = *smaller;
    return true;
}

bool report_minimize(const struct simulator *simulator, void *memory, struct run_options *options)
{
    struct run_options smaller;
    struct run_result result;

    simulator->run(memory, options, &result);
    if (!result.broken)
        return false;
    for (unsigned i = 0; i < simulator->fault_count; i++) {
        smaller = *options;
        smaller.without |= UINT64_C(1) << i;
        if (result.faults & UINT64_C(1) << i)
            (void)shrink(simulator, memory, &smaller, result.broken, options);
    }
    for (int i = 0; i < SIZES_MAX && simulator->sizes[i].name; i++) {
        smaller = *options;
        for (unsigned size = simulator->sizes[i].min; size < result.sizes[i]; size++) {
            smaller.sizes[i] = size;
            if (shrink(simulator, memory, &smaller, result.broken, options))
                break;
        }
    }
    smaller = *options;
    for (gavel_ns duration = NS_PER_S; duration < options->duration; duration += NS_PER_S) {
        smaller.duration = duration;
        if (shrink(simulator, memory, &smaller, result.broken, options))
            break;
    }
    return true;
}
