/* SPDX-License-Identifier: Apache-2.0 */

/* The rounds (chaos.c) and what may happen in one (chaos_faults.c). */
#ifndef CHAOS_CHAOS_H
#define CHAOS_CHAOS_H

#include "candidates.h"
#include "cluster.h"

#define FOUNDERS 5
#define FOUNDERS_SET 0x1fu
#define NEWCOMER 5 /* joins, votes for a while, leaves */
#define NODES 6
#define FAULTS_MAX 32

struct chaos_options {
    uint64_t seed;
    int rounds;
    int64_t limit_s;
    bool may_end_early; /* the limit is how long it runs, not how long it may take */
    bool has_witness;
    const char *beat;
    const char *beat_referee;
    const char *candidate_beat; /* what candidates run; NULL: there are none */
    const char *session_candidate;
    bool is_kept;
    bool is_verbose;
};

struct chaos {
    struct cluster cluster;
    struct candidates candidates;
    bool has_candidates;
    uint64_t random;
    bool may_vote; /* the newcomer: it may have become a voter, and is not known to have been demoted again */
    int done[FAULTS_MAX];
    int64_t wait_sum_ms;
    int64_t wait_max_ms;
};

struct chaos_fault {
    const char *name;
    int weight;
    /* The victim is a founder, most often the leader; the leader may be -1. */
    void (*run)(struct chaos *chaos, int victim, int leader);
};

extern const struct chaos_fault chaos_faults[];
extern const size_t chaos_fault_count;

const struct chaos_fault *chaos_pick(struct chaos *chaos);
uint32_t chaos_random(struct chaos *chaos, uint32_t below);

#endif
