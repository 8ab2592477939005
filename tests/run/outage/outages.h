/* SPDX-License-Identifier: Apache-2.0 */

/* What can happen to a store on a server, its leader, and the network between them. */
#ifndef RUN_OUTAGES_H
#define RUN_OUTAGES_H

#include "base/prng.h"
#include "election.h"
#include "site.h"

/* The lease of all candidates here; outage.c has the other times. */
#define OUTAGE_LEASE (2 * NS_PER_S)

struct scene {
    struct site *site;
    struct election *election;
    struct leader *leader;
    struct prng *prng;
};

enum outage_outcome {
    OUTAGE_NEXT,  /* another leads before it is over */
    OUTAGE_AFTER, /* some candidate works again when it is over */
    OUTAGE_SAME,  /* nothing may change */
};

struct outage {
    const char *name;
    enum outage_outcome outcome;
    bool ends_leader; /* the leader's `gavel run` ends by it */
    bool is_for_tame; /* without elector and guard what a wild command has started may get away */
    gavel_ns least;   /* how long it lasts; for OUTAGE_NEXT, after the other has begun */
    gavel_ns most;
    bool (*is_for)(const struct site *site); /* NULL: for all */
    /* False with a note if it could not be done. */
    bool (*begin)(struct scene *scene);
    void (*end)(struct scene *scene); /* NULL: nothing to mend */
};

extern const struct outage outages[];
extern const size_t outage_count;

#endif
