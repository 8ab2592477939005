/* SPDX-License-Identifier: Apache-2.0 */

/* One run of one seed, from the first start to the end of the liveness phase or to a violation. */
#ifndef SIM_RAFT_RUN_H
#define SIM_RAFT_RUN_H

#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#define DURATION_DEFAULT (10 * NS_PER_S)

struct run_options {
    uint64_t seed;
    unsigned nodes;      /* 0: drawn from the seed */
    gavel_ns duration;   /* virtual time, at least */
    uint64_t without;    /* bit set of faults that do not happen */
    uint64_t ignores;    /* bit set of invariants that are not judged */
    struct trace *trace; /* NULL: none */
};

struct run_result {
    enum raft_invariant broken; /* RAFT_INVARIANT_NONE: all is well */
    char what[256];
    gavel_ns ended_at; /* virtual time */
    uint64_t events;
    uint64_t hash;  /* equal hashes: equal runs */
    bool is_judged; /* a majority healed, and the liveness phase was run */
    struct quorum_counts counts;
    struct raft_referee_counts found;
    uint64_t faults; /* kinds that could happen */
    unsigned nodes;
};

/* The quorum is only memory that runs share. */
void quorum_run(struct quorum *quorum, const struct run_options *options, struct run_result *ret_result);

#endif
