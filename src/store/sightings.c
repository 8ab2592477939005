/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hash table with open addressing: a leader of thousands of groups looks up
 * each candidate of each, so a walk over all of them would not do. What is
 * taken out closes the gap behind it, so there are no marks of the deleted.
 */
#include "store/sightings.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 16 /* a power of two, as all that follow */

struct sighting {
    uint64_t hash;
    uint64_t instance;
    uint64_t beats;
    gavel_ns changed_at;
    gavel_ns asked_at;
    size_t group_size; /* with its NUL */
    char names[];      /* the group, the id */
};

/* Over both names, with their ends, so that "a", "bc" and "ab", "c" differ. */
static uint64_t hash_of(const char *group, const char *id)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, group, strlen(group) + 1);

    hash = hash_bytes(hash, id, strlen(id) + 1);
    return hash ^ hash >> 32; /* the low bits pick the slot */
}

static bool is_of(const struct sighting *sighting, uint64_t hash, const char *group, const char *id)
{
    return sighting->hash == hash && strcmp(sighting->names, group) == 0 &&
           strcmp(sighting->names + sighting->group_size, id) == 0;
}

/* Where it is, or where it would go. There is always a free slot. */
static size_t find(const struct sightings *sightings, uint64_t hash, const char *group, const char *id)
{
    size_t mask = sightings->capacity - 1;
    size_t at = hash & mask;

    while (sightings->slots[at] && !is_of(sightings->slots[at], hash, group, id))
        at = (at + 1) & mask;
    return at;
}

/* At most half full, so that searches stay short. */
static bool make_room(struct sightings *sightings)
{
    size_t capacity = sightings->capacity ? 2 * sightings->capacity : CAPACITY_FIRST;
    struct sighting **slots;

    if (2 * (sightings->count + 1) <= sightings->capacity)
        return true;
    slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < sightings->capacity; i++) {
        struct sighting *sighting = sightings->slots[i];
        size_t at;

        if (!sighting)
            continue;
        at = sighting->hash & (capacity - 1);
        while (slots[at])
            at = (at + 1) & (capacity - 1);
        slots[at] = sighting;
    }
    free(sightings->slots);
    sightings->slots = slots;
    sightings->capacity = capacity;
    return true;
}

/* Those behind the gap move up if they may, so that a search does not end too early. */
static void take_out(struct sightings *sightings, size_t gap)
{
    size_t mask = sightings->capacity - 1;

    free(sightings->slots[gap]);
    sightings->slots[gap] = NULL;
    sightings->count--;
    for (size_t at = (gap + 1) & mask; sightings->slots[at]; at = (at + 1) & mask) {
        size_t home = sightings->slots[at]->hash & mask;

        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* its home lies behind the gap */
        sightings->slots[gap] = sightings->slots[at];
        sightings->slots[at] = NULL;
        gap = at;
    }
}

void sightings_done(struct sightings *sightings)
{
    if (!sightings)
        return;
    for (size_t i = 0; i < sightings->capacity; i++)
        free(sightings->slots[i]);
    free(sightings->slots);
    *sightings = (struct sightings){0};
}

static struct sighting *add(struct sightings *sightings, uint64_t hash, const char *group, const char *id)
{
    size_t group_size = strlen(group) + 1;
    size_t id_size = strlen(id) + 1;
    struct sighting *made;

    if (!make_room(sightings))
        return NULL;
    made = calloc(1, sizeof *made + group_size + id_size);
    if (!made)
        return NULL;
    made->hash = hash;
    made->group_size = group_size;
    memcpy(made->names, group, group_size);
    memcpy(made->names + group_size, id, id_size);
    sightings->slots[find(sightings, hash, group, id)] = made;
    sightings->count++;
    return made;
}

gavel_ms sightings_age(struct sightings *sightings, const char *group,
                       const struct registration *registration, gavel_ns now)
{
    uint64_t hash = hash_of(group, registration->id);
    struct sighting *sighting = NULL;
    bool is_changed;

    if (sightings->capacity > 0)
        sighting = sightings->slots[find(sightings, hash, group, registration->id)];
    is_changed =
        !sighting || sighting->instance != registration->instance || sighting->beats != registration->beats;
    if (!sighting)
        sighting = add(sightings, hash, group, registration->id);
    if (!sighting)
        return 0;
    if (is_changed) {
        sighting->instance = registration->instance;
        sighting->beats = registration->beats;
        sighting->changed_at = now;
    }
    sighting->asked_at = now;
    return ms_from_ns(ns_max(now - sighting->changed_at, 0));
}

void sightings_forget(struct sightings *sightings, const char *group, const char *id)
{
    size_t at;

    if (sightings->capacity == 0)
        return;
    at = find(sightings, hash_of(group, id), group, id);
    if (sightings->slots[at])
        take_out(sightings, at);
}

void sightings_prune(struct sightings *sightings, gavel_ns before)
{
    for (size_t i = 0; i < sightings->capacity;) {
        if (sightings->slots[i] && sightings->slots[i]->asked_at < before)
            take_out(sightings, i); /* another may stand here now */
        else
            i++;
    }
}
