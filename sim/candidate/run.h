/* SPDX-License-Identifier: Apache-2.0 */

/* One run of one seed, from the first start to the end of the quiet phase or to a violation. */
#ifndef SIM_CANDIDATE_RUN_H
#define SIM_CANDIDATE_RUN_H

#include "sim/candidate/referee.h"
#include "sim/candidate/trace.h"

#include <stdint.h>

#define DURATION_DEFAULT (60 * NS_PER_S)

struct run_options {
    uint64_t seed;
    unsigned candidates; /* 0: drawn from the seed */
    gavel_ns duration;   /* virtual time, at least */
    unsigned without;    /* bit set of faults that do not happen */
    struct trace *trace; /* NULL: none */
};

struct run_result {
    enum invariant broken; /* INVARIANT_NONE: all is well */
    char what[256];
    gavel_ns ended_at; /* virtual time */
    uint64_t events;
    uint64_t hash;   /* equal hashes: equal runs */
    uint64_t grants; /* mandates given */
    uint64_t writes;
    uint64_t rejected_writes;
    unsigned faults; /* kinds that could happen */
    unsigned candidates;
};

/* The world is only memory that runs share; allocate it zeroed, end it with world_done(). */
void run(struct world *world, const struct run_options *options, struct run_result *ret_result);

#endif
