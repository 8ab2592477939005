/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/report.h"

#include "sim/common/planted.h"
#include "sim/common/sim_version.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_command(const struct hall_options *options)
{
    bool is_first = true;

    (void)printf("gavel-sim session --seed %" PRIu64, options->seed);
    if (options->nodes)
        (void)printf(" --nodes %u", options->nodes);
    if (options->programs)
        (void)printf(" --programs %u", options->programs);
    if (options->duration != HALL_DURATION_DEFAULT)
        (void)printf(" --seconds %" PRId64, options->duration / NS_PER_S);
    if (planted_bug != PLANTED_BUG_NONE)
        (void)printf(" --planted %s", planted_name(planted_bug));
    for (unsigned fault = 0; fault < HALL_FAULTS_ALL; fault++) {
        if (!(options->without & FAULT_BIT(fault)))
            continue;
        (void)printf("%s%s", is_first ? " --without " : ",", hall_fault_name(fault));
        is_first = false;
    }
}

void hall_report_failure(struct hall *hall, const struct hall_options *options)
{
    struct hall_options again = *options;
    struct hall_result result;
    struct trace trace = {0};

    again.trace = &trace;
    hall_run(hall, &again, &result);
    if (!result.is_broken) {
        (void)printf("FAILED: seed %" PRIu64
                     " failed once and not again: the simulator is not deterministic\n",
                     options->seed);
        return;
    }
    (void)printf("\nFAILED: seed %" PRIu64 " breaks %s (%s)\n", options->seed, result.name, result.sentence);
    (void)printf("  %s\n", result.what);
    (void)printf("  at %.6f s of virtual time, %u nodes, %u programs, commit %s\n",
                 (double)result.ended_at / (double)NS_PER_S, result.nodes, result.programs, SIM_VERSION);
    (void)printf("  replay:  ");
    print_command(options);
    (void)printf(" --trace\n  shorten: ");
    print_command(options);
    (void)printf(" --minimize\n\n");
    story_print(&trace, stdout);
    (void)printf("\n");
}

static bool still_fails(struct hall *hall, const struct hall_options *options, const char *name)
{
    struct hall_result result;

    hall_run(hall, options, &result);
    return result.is_broken && strcmp(result.name, name) == 0;
}

bool hall_report_minimize(struct hall *hall, struct hall_options *options)
{
    struct hall_options smaller = *options;
    struct hall_result result;

    smaller.trace = NULL;
    hall_run(hall, &smaller, &result);
    if (!result.is_broken)
        return false;
    *options = smaller;
    for (unsigned fault = 0; fault < HALL_FAULTS_ALL; fault++) {
        if (!(result.faults & FAULT_BIT(fault)))
            continue;
        smaller = *options;
        smaller.without |= FAULT_BIT(fault);
        if (still_fails(hall, &smaller, result.name))
            *options = smaller;
    }
    for (unsigned programs = 1; programs < result.programs; programs++) {
        smaller = *options;
        smaller.programs = programs;
        if (still_fails(hall, &smaller, result.name)) {
            *options = smaller;
            break;
        }
    }
    for (gavel_ns duration = NS_PER_S; duration < options->duration; duration += NS_PER_S) {
        smaller = *options;
        smaller.duration = duration;
        if (still_fails(hall, &smaller, result.name)) {
            *options = smaller;
            break;
        }
    }
    return true;
}
