/* SPDX-License-Identifier: Apache-2.0 */

/* One run of one seed, from the first start to the last look or to a violation. */
#ifndef SIM_SESSION_RUN_H
#define SIM_SESSION_RUN_H

#include "sim/session/world.h"

#define HALL_DURATION_DEFAULT (8 * NS_PER_S)

struct hall_options {
    uint64_t seed;
    unsigned nodes;      /* 0: drawn from the seed */
    unsigned programs;   /* likewise */
    gavel_ns duration;   /* half of it has faults; the other half lasts as long as it must */
    uint64_t without;    /* bit set of faults that do not happen */
    struct trace *trace; /* NULL: none */
};

struct hall_result {
    bool is_broken;
    const char *name; /* of what is broken, and the sentence */
    const char *sentence;
    char what[256];
    gavel_ns ended_at; /* virtual time */
    uint64_t events;
    uint64_t hash; /* equal hashes: equal runs */
    bool is_judged;
    uint64_t fault_count;
    uint64_t committed;
    uint64_t elections; /* of the quorum */
    uint64_t seen[HALL_SIGHT_COUNT];
    uint64_t faults; /* kinds that could happen */
    unsigned nodes;
    unsigned programs;
};

/* The hall is only memory that runs share. */
void hall_run(struct hall *hall, const struct hall_options *options, struct hall_result *ret_result);

#endif
