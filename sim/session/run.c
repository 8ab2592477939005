/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/run.h"

#include <string.h>

void hall_run(struct hall *hall, const struct hall_options *options, struct hall_result *ret_result)
{
    const struct quorum *quorum = hall->quorum;
    struct hall_profile profile;

    hall_profile_draw(&profile, options->seed, options->nodes, options->programs, options->duration,
                      options->without);
    hall_play(hall, &profile, options->seed, options->trace);
    *ret_result = (struct hall_result){
        .is_broken = quorum->broken != RAFT_INVARIANT_NONE,
        .name = raft_invariant_name(quorum->broken),
        .sentence = raft_invariant_what(quorum->broken),
        .ended_at = quorum->now,
        .events = quorum->events,
        .hash = quorum->hash,
        .is_judged = hall->is_healed,
        .fault_count = quorum->counts.faults,
        .committed = raft_referee_counts(quorum->referee)->committed,
        .elections = raft_referee_counts(quorum->referee)->elections_won,
        .faults = profile.faults,
        .nodes = profile.quorum.nodes,
        .programs = profile.programs,
    };
    memcpy(ret_result->seen, hall->seen, sizeof ret_result->seen);
    memcpy(ret_result->what, quorum->what, sizeof ret_result->what);
    if (quorum->broken == RAFT_INVARIANT_GUEST) {
        ret_result->name = hall_invariant_name(hall->broken);
        ret_result->sentence = hall_invariant_what(hall->broken);
        memcpy(ret_result->what, hall->what, sizeof ret_result->what);
    }
}
