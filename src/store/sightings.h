/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long others have been silent, for stores that have no clock: for each
 * registration when this process saw it change last, on its own clock. What is
 * seen for the first time counts as changed now.
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
 * The registration stands there with this instance and these beats. Returns
 * how long it has been so, 0 if it is new; 0 also when out of memory.
 */
gavel_ms sightings_age(struct sightings *sightings, const char *group,
                       const struct registration *registration, gavel_ns now);

/* It is not there any more. */
void sightings_forget(struct sightings *sightings, const char *group, const char *id);

/* Drops those that were not asked about since that instant. */
void sightings_prune(struct sightings *sightings, gavel_ns before);

#endif
