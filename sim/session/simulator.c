/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/simulator.h"

#include "sim/session/world.h"

#include <assert.h>

#include <string.h>

static_assert(HALL_SIGHT_COUNT <= SIGHTS_MAX, "all sights fit");

static void run(void *memory, const struct run_options *options, struct run_result *ret_result)
{
    struct hall *hall = memory;
    const struct quorum *quorum = hall->quorum;
    const struct raft_referee_counts *found = raft_referee_counts(quorum->referee);
    struct hall_profile profile;

    hall_profile_draw(&profile, options->seed, options->sizes[0], options->sizes[1], options->duration,
                      options->without);
    hall_play(hall, &profile, options->seed, options->trace);
    *ret_result = (struct run_result){
        .ended_at = quorum->now,
        .events = quorum->events,
        .hash = quorum->hash,
        .faults = profile.faults,
        .sizes = {profile.quorum.nodes, profile.programs},
        .counts = {quorum->counts.faults, found->elections_won, found->committed,
                   hall->seen[HALL_SIGHT_SESSIONS],
                   hall->seen[HALL_SIGHT_GRANTS] + hall->seen[HALL_SIGHT_CLAIMS], hall->is_healed},
    };
    memcpy(ret_result->sights, hall->seen, sizeof hall->seen);
    if (quorum->broken == RAFT_INVARIANT_NONE)
        return;
    if (quorum->broken == RAFT_INVARIANT_GUEST) {
        ret_result->broken = hall_invariant_name(hall->broken);
        ret_result->sentence = hall_invariant_what(hall->broken);
        memcpy(ret_result->what, hall->what, sizeof ret_result->what);
    } else {
        ret_result->broken = raft_invariant_name(quorum->broken);
        ret_result->sentence = raft_invariant_what(quorum->broken);
        memcpy(ret_result->what, quorum->what, sizeof ret_result->what);
    }
}

static void *begin(void) { return hall_new(); }
static void end(void *memory) { hall_free(memory); }

const struct simulator session_simulator = {
    .name = "session",
    .command = "gavel-sim session",
    .what = "programs with sessions on a cluster",
    .planted = PLANTED_KIND_SESSION,
    .sizes = {{"nodes", 1, NODES_MAX, .bench = 0}, {"programs", 1, PROGRAMS_MAX, .bench = 0}},
    .seconds = 8,
    .limit = 500,
    .fault_count = HALL_FAULTS_ALL,
    .fault = hall_fault_row,
    .counts = {"faults", "elections", "entries committed", "sessions", "mandates", "healed"},
    .sight_count = HALL_SIGHT_COUNT,
    .sight = hall_sight_name,
    .begin = begin,
    .end = end,
    .run = run,
};
