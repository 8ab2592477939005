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
    struct cluster *cluster = memory;
    const struct raft_referee_counts *found = raft_referee_counts(cluster->referee);
    struct profile profile;
    struct prng prng;

    prng_seed(&prng, options->seed * UINT64_C(0x9e3779b97f4a7c15) + 3);
    cluster_profile_draw(&profile, &prng, options->sizes[0], options->duration, options->without);
    cluster->trace = options->trace;
    cluster->watch = (struct cluster_watch){0};
    raft_referee_ignore(cluster->referee, options->only_promises ? ~raft_invariants_promised : 0);
    cluster_begin(cluster, &profile, options->seed);
    if (cluster->trace)
        cluster_trace_profile(cluster, options->seed);
    chaos_begin(cluster);
    (void)cluster_advance(cluster, NEVER); /* the result is read below */
    *ret_result = (struct run_result){
        .ended_at = cluster->now,
        .events = cluster->events,
        .hash = cluster->hash,
        .faults = profile.faults,
        .sizes = {profile.nodes},
        .counts = {cluster->counts.faults, found->elections_won, found->claims, found->committed,
                   cluster->healed != 0},
    };
    memcpy(ret_result->sights, cluster->counts.seen, sizeof cluster->counts.seen);
    if (cluster->broken == RAFT_INVARIANT_NONE)
        return;
    ret_result->broken = raft_invariants[cluster->broken].name;
    ret_result->sentence = raft_invariants[cluster->broken].what;
    memcpy(ret_result->what, cluster->what, sizeof ret_result->what);
}

static void *begin(void) { return cluster_new(); }
static void end(void *memory) { cluster_free(memory); }

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
    .fault = cluster_fault_row,
    .counts = {"faults", "elections", "claims", "entries committed", "healed"},
    .sight_count = SIGHT_COUNT,
    .sight = cluster_sight_name,
    .measures = {{"failover", "how long nobody leads after a fault", 1000, failover_measure},
                 {"bench-step", "nanoseconds per step of the core", 0, bench_step}},
    .begin = begin,
    .end = end,
    .run = run,
};
