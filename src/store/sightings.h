/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long others have been silent, for stores without a clock: when this
 * process last saw each registration change, on its own clock. One that is seen
 * for the first time counts as changed now.
 */
#ifndef STORE_SIGHTINGS_H
#define STORE_SIGHTINGS_H

#include "base/record.h"

struct sighting;
struct sightings {
    struct sighting **slots; /* a table by group and id */
    size_t count;
    size_t capacity;
};

void sightings_done(struct sightings *sightings);

/*
 * The registration has this instance and these beats. Returns for how long; 0
 * if it is new, and also when out of memory.
 */
gavel_ms sightings_age(struct sightings *sightings, const char *group,
                       const struct registration *registration, gavel_ns now);

/* It no longer exists. */
void sightings_forget(struct sightings *sightings, const char *group, const char *id);

/* Drops those not asked about since `before`. */
void sightings_prune(struct sightings *sightings, gavel_ns before);

#endif
