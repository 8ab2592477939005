/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/run.h"

#include "sim/raft/chaos.h"

#include <string.h>

void quorum_run(struct quorum *quorum, const struct run_options *options, struct run_result *ret_result)
{
    struct profile profile;
    struct prng prng;

    prng_seed(&prng, options->seed * UINT64_C(0x9e3779b97f4a7c15) + 3);
    quorum_profile_draw(&profile, &prng, options->nodes, options->duration, options->without);
    quorum->trace = options->trace;
    quorum->watch = (struct quorum_watch){0};
    raft_referee_ignore(quorum->referee, options->ignores);
    quorum_begin(quorum, &profile, options->seed);
    if (quorum->trace)
        quorum_trace_profile(quorum, options->seed);
    chaos_begin(quorum);
    (void)quorum_advance(quorum, NEVER); /* the result is read below */
    *ret_result = (struct run_result){
        .broken = quorum->broken,
        .ended_at = quorum->now,
        .events = quorum->events,
        .hash = quorum->hash,
        .is_judged = quorum->healed != 0,
        .counts = quorum->counts,
        .found = *raft_referee_counts(quorum->referee),
        .faults = profile.faults,
        .nodes = profile.nodes,
    };
    memcpy(ret_result->what, quorum->what, sizeof ret_result->what);
}
