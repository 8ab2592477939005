/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/simulator.h"

#include "sim/raft/chaos.h"
#include "sim/raft/measure/bench_step.h"
#include "sim/raft/measure/failover.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <assert.h>

#include <string.h>

static_assert(SIGHT_COUNT <= SIGHTS_MAX, "all sights fit");

static void run(void *memory, const struct run_options *options, struct run_result *ret_result)
{
    struct quorum *quorum = memory;
    const struct raft_referee_counts *found = raft_referee_counts(quorum->referee);
    struct profile profile;
    struct prng prng;

    prng_seed(&prng, options->seed * UINT64_C(0x9e3779b97f4a7c15) + 3);
    quorum_profile_draw(&profile, &prng, options->sizes[0], options->duration, options->without);
    quorum->trace = options->trace;
    quorum->watch = (struct quorum_watch){0};
    raft_referee_ignore(quorum->referee, options->only_promises ? ~raft_invariants_promised : 0);
    quorum_begin(quorum, &profile, options->seed);
    if (quorum->trace)
        quorum_trace_profile(quorum, options->seed);
    chaos_begin(quorum);
    (void)quorum_advance(quorum, NEVER); /* the result is read below */
    *ret_result = (struct run_result){
        .ended_at = quorum->now,
        .events = quorum->events,
        .hash = quorum->hash,
        .faults = profile.faults,
        .sizes = {profile.nodes},
        .counts = {quorum->counts.faults, found->elections_won, found->claims, found->committed,
                   quorum->healed != 0},
    };
    memcpy(ret_result->sights, quorum->counts.seen, sizeof quorum->counts.seen);
    if (quorum->broken == RAFT_INVARIANT_NONE)
        return;
    ret_result->broken = raft_invariant_name(quorum->broken);
    ret_result->sentence = raft_invariant_what(quorum->broken);
    memcpy(ret_result->what, quorum->what, sizeof ret_result->what);
}

static void *begin(void) { return quorum_new(); }
static void end(void *memory) { quorum_free(memory); }

const struct simulator raft_simulator = {
    .name = "raft",
    .command = "gavel-sim raft",
    .what = "the nodes of a cluster",
    .planted = PLANTED_KIND_RAFT,
    .sizes = {{"nodes", 1, NODES_MAX, .bench = 5}},
    .seconds = 10,
    .limit = 2000,
    .tells_promises = true,
    .fault_count = FAULT_COUNT,
    .fault = quorum_fault_row,
    .counts = {"faults", "elections", "claims", "entries committed", "healed"},
    .sight_count = SIGHT_COUNT,
    .sight = quorum_sight_name,
    .measures = {{"failover", "how long nobody leads after a fault", 1000, failover_measure},
                 {"bench-step", "nanoseconds per step of the core", 0, bench_step}},
    .begin = begin,
    .end = end,
    .run = run,
};
