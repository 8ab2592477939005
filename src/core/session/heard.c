/* SPDX-License-Identifier: Apache-2.0 */

#include "core/session/heard.h"

#include "base/assert.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_COUNT = 16 };

/* ---- sessions and groups ---- */

static uint32_t larger_than(uint32_t count, uint32_t wanted)
{
    uint32_t larger = count > 0 ? count : FIRST_COUNT;

    while (larger < wanted)
        larger *= 2;
    return larger;
}

enum gavel_status heard_reserve(struct heard *heard, const struct table *table)
{
    uint32_t sessions = table->session_slots.used;
    uint32_t groups = table->group_slots.used;

    if (heard->session_count < sessions) {
        uint32_t count = larger_than(heard->session_count, sessions);
        struct heard_session *grown = realloc(heard->sessions, count * sizeof *grown);

        if (!grown)
            return GAVEL_ERR_NO_MEMORY;
        memset(grown + heard->session_count, 0, (count - heard->session_count) * sizeof *grown);
        heard->sessions = grown;
        heard->session_count = count;
    }
    if (heard->group_count < groups) {
        uint32_t count = larger_than(heard->group_count, groups);
        struct heard_group *grown = realloc(heard->groups, count * sizeof *grown);

        if (!grown)
            return GAVEL_ERR_NO_MEMORY;
        memset(grown + heard->group_count, 0, (count - heard->group_count) * sizeof *grown);
        heard->groups = grown;
        heard->group_count = count;
    }
    return GAVEL_OK;
}

const struct heard_session *heard_session(const struct heard *heard, const struct table_session *session)
{
    const struct heard_session *place =
        session->slot < heard->session_count ? &heard->sessions[session->slot] : NULL;

    return place && place->create_revision == session->create_revision ? place : NULL;
}

struct heard_session *heard_of_session(struct heard *heard, const struct table_session *session)
{
    struct heard_session *place =
        session->slot < heard->session_count ? &heard->sessions[session->slot] : NULL;

    if (place && place->create_revision != session->create_revision)
        *place = (struct heard_session){.create_revision = session->create_revision};
    return place;
}

static bool is_about(const struct heard_group *place, const struct table_group *group)
{
    return place->create_revision == group->create_revision && place->version == group->version;
}

const struct heard_group *heard_group(const struct heard *heard, const struct table_group *group)
{
    const struct heard_group *place = group->slot < heard->group_count ? &heard->groups[group->slot] : NULL;

    return place && is_about(place, group) ? place : NULL;
}

struct heard_group *heard_of_group(struct heard *heard, const struct table_group *group)
{
    struct heard_group *place = group->slot < heard->group_count ? &heard->groups[group->slot] : NULL;

    if (place && !is_about(place, group))
        *place = (struct heard_group){.create_revision = group->create_revision, .version = group->version};
    return place;
}

/* ---- candidates ---- */

/* The finaliser of SplitMix64: each bit of the salt and of the names moves all bits of the hash. */
static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

static uint64_t hash_of(const struct heard *heard, const char *group, const char *id)
{
    uint64_t hash = hash_text(HASH_BEGIN ^ heard->salt, group);

    return mix(hash_text(hash * HASH_PRIME, id));
}

/* Where the pointer to it is, or would be; NULL: there are no buckets. */
static struct heard_candidate **place_of(const struct heard *heard, const char *group, const char *id,
                                         uint64_t hash)
{
    struct heard_candidate **at =
        heard->bucket_count > 0 ? &heard->candidates[hash & (heard->bucket_count - 1)] : NULL;

    while (at && *at &&
           ((*at)->hash != hash || strcmp((*at)->names, group) != 0 ||
            strcmp((*at)->names + (*at)->group_size, id) != 0))
        at = &(*at)->next;
    return at;
}

/* Without memory the chains become longer; false: there is no bucket at all. */
static bool make_room(struct heard *heard)
{
    struct heard larger = {.bucket_count = heard->bucket_count > 0 ? 2 * heard->bucket_count : FIRST_COUNT};

    if (heard->candidate_count < heard->bucket_count)
        return true;
    larger.candidates = calloc(larger.bucket_count, sizeof(struct heard_candidate *));
    if (!larger.candidates)
        return heard->bucket_count > 0;
    for (size_t i = 0; i < heard->bucket_count; i++) {
        struct heard_candidate *candidate, *next;

        for (candidate = heard->candidates[i]; candidate; candidate = next) {
            struct heard_candidate **bucket = &larger.candidates[candidate->hash & (larger.bucket_count - 1)];

            next = candidate->next;
            candidate->next = *bucket;
            *bucket = candidate;
        }
    }
    free(heard->candidates);
    heard->candidates = larger.candidates;
    heard->bucket_count = larger.bucket_count;
    return true;
}

static struct heard_candidate *add(struct heard *heard, const char *group, const char *id, uint64_t hash)
{
    size_t group_size = strlen(group) + 1;
    size_t id_size = strlen(id) + 1;
    struct heard_candidate *candidate;
    struct heard_candidate **place;

    if (!make_room(heard))
        return NULL;
    candidate = calloc(1, sizeof *candidate + group_size + id_size);
    if (!candidate)
        return NULL;
    candidate->hash = hash;
    candidate->group_size = group_size;
    memcpy(candidate->names, group, group_size);
    memcpy(candidate->names + group_size, id, id_size);
    place = place_of(heard, group, id, hash);
    *place = candidate;
    heard->candidate_count++;
    return candidate;
}

const struct heard_candidate *heard_candidate(const struct heard *heard,
                                              const struct table_candidate *candidate)
{
    uint64_t hash = hash_of(heard, candidate->group->name, candidate->id);
    struct heard_candidate **place = place_of(heard, candidate->group->name, candidate->id, hash);

    return place && *place && (*place)->instance == candidate->instance ? *place : NULL;
}

struct heard_candidate *heard_of_candidate(struct heard *heard, const struct table_candidate *candidate)
{
    uint64_t hash = hash_of(heard, candidate->group->name, candidate->id);
    struct heard_candidate **place = place_of(heard, candidate->group->name, candidate->id, hash);
    struct heard_candidate *known =
        place && *place ? *place : add(heard, candidate->group->name, candidate->id, hash);

    ASSERT(!candidate->session); /* a session is kept alive as a whole */
    if (!known || known->instance == candidate->instance)
        return known;
    known->was_displaced = known->displaced != 0 && known->displaced == candidate->instance;
    known->displaced = known->is_called_dead ? known->instance : 0;
    known->is_called_dead = false;
    known->instance = candidate->instance;
    known->beat_at = 0;
    known->beats = 0;
    return known;
}

void heard_leave(struct heard *heard, const char *group, const char *id, uint64_t instance)
{
    struct heard_candidate **place = place_of(heard, group, id, hash_of(heard, group, id));
    struct heard_candidate *candidate = place ? *place : NULL;

    if (!candidate || candidate->instance != instance)
        return;
    *place = candidate->next;
    ASSERT(heard->candidate_count > 0);
    heard->candidate_count--;
    free(candidate);
}

/* By its id: of another instance it is known whose place that has. */
static bool is_gone(const struct table *table, const struct heard_candidate *candidate)
{
    const struct table_group *group = table_group_find(table, candidate->names);

    return !group || !table_candidate_find(group, candidate->names + candidate->group_size);
}

size_t heard_forget(struct heard *heard, const struct table *table, size_t bucket, size_t count)
{
    for (; count > 0 && bucket < heard->bucket_count; count--, bucket++) {
        struct heard_candidate **at = &heard->candidates[bucket];

        while (*at) {
            struct heard_candidate *candidate = *at;

            if (!is_gone(table, candidate)) {
                at = &candidate->next;
                continue;
            }
            *at = candidate->next;
            ASSERT(heard->candidate_count > 0);
            heard->candidate_count--;
            free(candidate);
        }
    }
    return bucket < heard->bucket_count ? bucket : 0;
}

void heard_done(struct heard *heard, uint64_t salt)
{
    for (size_t i = 0; i < heard->bucket_count; i++) {
        struct heard_candidate *candidate;

        while ((candidate = heard->candidates[i])) {
            heard->candidates[i] = candidate->next;
            free(candidate);
        }
    }
    free(heard->candidates);
    free(heard->sessions);
    free(heard->groups);
    *heard = (struct heard){.salt = salt};
}
