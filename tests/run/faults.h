/* SPDX-License-Identifier: Apache-2.0 */

/* What random_faults does to a leader. */
#ifndef RUN_FAULTS_H
#define RUN_FAULTS_H

#include "election.h"

#include "base/prng.h"

enum fault_outcome {
    OUTCOME_NEXT, /* another epoch begins */
    OUTCOME_SAME, /* nothing may change */
};

struct fault {
    const char *name;
    unsigned share; /* of the faults in a run, against those of the others */
    enum fault_outcome outcome;
    /*
     * When elector and guard both stop running at once, only the command
     * itself is promised to die in time; what it started may get away.
     */
    bool is_for_tame_only;
    bool counts_from_mending; /* no candidate can lead before */
    /* False with a note if it could not be done. */
    bool (*inject)(struct election *election, struct leader *leader, struct prng *prng);
    /* Afterwards, or for OUTCOME_SAME before anything is awaited. May be NULL. */
    bool (*mend)(struct election *election, struct leader *leader, struct prng *prng);
};

extern const struct fault faults[];
extern const size_t fault_count;

#endif
