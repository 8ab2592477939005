/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/report.h"

#include "sim/candidate/profile.h"
#include "sim/common/planted.h"
#include "sim/common/sim_version.h"

#include <inttypes.h>
#include <stdio.h>

static void print_command(const struct run_options *options)
{
    bool is_first = true;

    (void)printf("gavel-sim --seed %" PRIu64, options->seed);
    if (options->candidates)
        (void)printf(" --candidates %u", options->candidates);
    if (options->duration != DURATION_DEFAULT)
        (void)printf(" --seconds %" PRId64, options->duration / NS_PER_S);
    if (planted_bug != PLANTED_BUG_NONE)
        (void)printf(" --planted %s", planted_name(planted_bug));
    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        if (!(options->without & FAULT_BIT(fault)))
            continue;
        (void)printf("%s%s", is_first ? " --without " : ",", fault_name((enum fault)fault));
        is_first = false;
    }
}

void report_failure(struct world *world, const struct run_options *options)
{
    struct run_options again = *options;
    struct run_result result;
    struct trace trace = {0};

    again.trace = &trace;
    run(world, &again, &result);
    if (result.broken == INVARIANT_NONE) {
        (void)printf("seed %" PRIu64 " failed once and not again: the simulator is not deterministic\n",
                     options->seed);
        return;
    }
    (void)printf("\nFAILED: seed %" PRIu64 " breaks %s (%s)\n", options->seed, invariant_name(result.broken),
                 invariant_what(result.broken));
    (void)printf("  %s\n", result.what);
    (void)printf("  at %.6f s of virtual time, %u candidates, commit %s\n",
                 (double)result.ended_at / (double)NS_PER_S, result.candidates, SIM_VERSION);
    (void)printf("  replay:  ");
    print_command(options);
    (void)printf(" --trace\n  shorten: ");
    print_command(options);
    (void)printf(" --minimize\n\n");
    story_print(&trace, stdout);
    (void)printf("\n");
}

static bool still_fails(struct world *world, const struct run_options *options, enum invariant broken)
{
    struct run_result result;

    run(world, options, &result);
    return result.broken == broken;
}

bool report_minimize(struct world *world, struct run_options *options)
{
    struct run_options smaller = *options;
    struct run_result result;

    smaller.trace = NULL;
    run(world, &smaller, &result);
    if (result.broken == INVARIANT_NONE)
        return false;
    *options = smaller;
    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        if (!(result.faults & FAULT_BIT(fault)))
            continue;
        smaller = *options;
        smaller.without |= FAULT_BIT(fault);
        if (still_fails(world, &smaller, result.broken))
            *options = smaller;
    }
    for (unsigned candidates = CANDIDATES_MIN; candidates < result.candidates; candidates++) {
        smaller = *options;
        smaller.candidates = candidates;
        if (still_fails(world, &smaller, result.broken)) {
            *options = smaller;
            break;
        }
    }
    for (gavel_ns duration = NS_PER_S; duration < options->duration; duration *= 2) {
        smaller = *options;
        smaller.duration = duration;
        if (still_fails(world, &smaller, result.broken)) {
            *options = smaller;
            break;
        }
    }
    return true;
}
