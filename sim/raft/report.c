/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/report.h"

#include "sim/common/planted.h"
#include "sim/common/sim_version.h"

#include <inttypes.h>
#include <stdio.h>

static void print_command(const struct run_options *options)
{
    bool is_first = true;

    (void)printf("gavel-sim raft --seed %" PRIu64, options->seed);
    if (options->nodes)
        (void)printf(" --nodes %u", options->nodes);
    if (options->duration != DURATION_DEFAULT)
        (void)printf(" --seconds %" PRId64, options->duration / NS_PER_S);
    if (options->ignores)
        (void)printf(" --promises");
    if (planted_bug != PLANTED_BUG_NONE)
        (void)printf(" --planted %s", planted_name(planted_bug));
    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        if (!(options->without & FAULT_BIT(fault)))
            continue;
        (void)printf("%s%s", is_first ? " --without " : ",", quorum_fault_name((enum fault)fault));
        is_first = false;
    }
}

void quorum_report_failure(struct quorum *quorum, const struct run_options *options)
{
    struct run_options again = *options;
    struct run_result result;
    struct trace trace = {0};

    again.trace = &trace;
    quorum_run(quorum, &again, &result);
    if (result.broken == RAFT_INVARIANT_NONE) {
        (void)printf("FAILED: seed %" PRIu64
                     " failed once and not again: the simulator is not deterministic\n",
                     options->seed);
        return;
    }
    (void)printf("\nFAILED: seed %" PRIu64 " breaks %s (%s)\n", options->seed,
                 raft_invariant_name(result.broken), raft_invariant_what(result.broken));
    (void)printf("  %s\n", result.what);
    (void)printf("  at %.6f s of virtual time, %u nodes, commit %s\n",
                 (double)result.ended_at / (double)NS_PER_S, result.nodes, SIM_VERSION);
    (void)printf("  replay:  ");
    print_command(options);
    (void)printf(" --trace\n  shorten: ");
    print_command(options);
    (void)printf(" --minimize\n\n");
    story_print(&trace, stdout);
    (void)printf("\n");
}

static bool still_fails(struct quorum *quorum, const struct run_options *options, enum raft_invariant broken)
{
    struct run_result result;

    quorum_run(quorum, options, &result);
    return result.broken == broken;
}

bool quorum_report_minimize(struct quorum *quorum, struct run_options *options)
{
    struct run_options smaller = *options;
    struct run_result result;

    smaller.trace = NULL;
    quorum_run(quorum, &smaller, &result);
    if (result.broken == RAFT_INVARIANT_NONE)
        return false;
    *options = smaller;
    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        if (!(result.faults & FAULT_BIT(fault)))
            continue;
        smaller = *options;
        smaller.without |= FAULT_BIT(fault);
        if (still_fails(quorum, &smaller, result.broken))
            *options = smaller;
    }
    for (unsigned nodes = 1; nodes < result.nodes; nodes++) {
        smaller = *options;
        smaller.nodes = nodes;
        if (still_fails(quorum, &smaller, result.broken)) {
            *options = smaller;
            break;
        }
    }
    for (gavel_ns duration = NS_PER_S; duration < options->duration; duration += NS_PER_S) {
        smaller = *options;
        smaller.duration = duration;
        if (still_fails(quorum, &smaller, result.broken)) {
            *options = smaller;
            break;
        }
    }
    return true;
}
