/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/simulator.h"

#include "sim/session/world.h"

#include <assert.h>

#include <string.h>

static_assert(SESSION_SIGHT_COUNT <= SIGHTS_MAX, "all sights fit");

static void run(void *memory, const struct run_options *options, struct run_result *ret_result)
{
    struct testbed *testbed = memory;
    const struct cluster *cluster = testbed->cluster;
    const struct raft_referee_counts *found = raft_referee_counts(cluster->referee);
    struct session_profile profile;

    session_profile_draw(&profile, options->seed, options->sizes[0], options->sizes[1], options->duration,
                         options->without);
    testbed_play(testbed, &profile, options->seed, options->trace);
    *ret_result = (struct run_result){
        .ended_at = cluster->now,
        .events = cluster->events,
        .hash = cluster->hash,
        .faults = profile.faults,
        .sizes = {profile.cluster.nodes, profile.programs},
        .counts = {cluster->counts.faults, found->elections_won, found->committed,
                   testbed->seen[SESSION_SIGHT_SESSIONS],
                   testbed->seen[SESSION_SIGHT_GRANTS] + testbed->seen[SESSION_SIGHT_CLAIMS],
                   testbed->is_healed},
    };
    memcpy(ret_result->sights, testbed->seen, sizeof testbed->seen);
    if (cluster->broken == RAFT_INVARIANT_NONE)
        return;
    if (cluster->broken == RAFT_INVARIANT_SERVICE) {
        ret_result->broken = session_invariants[testbed->broken].name;
        ret_result->sentence = session_invariants[testbed->broken].what;
        memcpy(ret_result->what, testbed->what, sizeof ret_result->what);
    } else {
        ret_result->broken = raft_invariants[cluster->broken].name;
        ret_result->sentence = raft_invariants[cluster->broken].what;
        memcpy(ret_result->what, cluster->what, sizeof ret_result->what);
    }
}

static void *begin(void) { return testbed_new(); }
static void end(void *memory) { testbed_free(memory); }

const struct simulator session_simulator = {
    .name = "session",
    .command = "gavel-sim session",
    .what = "programs with sessions on a cluster",
    .planted = PLANTED_KIND_SESSION,
    .sizes = {{"nodes", 1, NODES_MAX, .bench = 0}, {"programs", 1, PROGRAMS_MAX, .bench = 0}},
    .seconds = 8,
    .limit = 500,
    .fault_count = TESTBED_FAULTS,
    .fault = testbed_fault_row,
    .counts = {"faults", "elections", "entries committed", "sessions", "mandates", "healed"},
    .sight_count = SESSION_SIGHT_COUNT,
    .sight = session_sight_name,
    .begin = begin,
    .end = end,
    .run = run,
};
