/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lists of a handle's candidates: all in the order they joined, and by
 * group name for the doorbell. Anyone may add to them under the mutex; only
 * the loop takes out, and only between two passes, so it may walk them
 * without the mutex.
 */
#include "base/hash.h"
#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/push.h"

#include <string.h>

/* A flood of doorbells must not cost a comparison with every group. */
static size_t bucket_of(const char *group) { return hash_text(HASH_BEGIN, group) % MEMBER_BUCKETS; }

struct gavel_candidate *lib_candidate_first_of(struct gavel *gavel, const char *group)
{
    struct gavel_candidate *first;

    pthread_mutex_lock(&gavel->mutex);
    first = gavel->buckets[bucket_of(group)];
    pthread_mutex_unlock(&gavel->mutex);
    return first;
}

struct gavel_candidate *lib_candidate_after(struct gavel *gavel, const struct gavel_candidate *candidate)
{
    struct gavel_candidate *next;

    pthread_mutex_lock(&gavel->mutex);
    next = candidate ? candidate->next : gavel->first_candidate;
    pthread_mutex_unlock(&gavel->mutex);
    return next;
}

/* Members leave the chain only on this thread, and only between passes. */
void lib_candidate_doorbell_all(struct gavel *gavel, const char *group)
{
    for (struct gavel_candidate *candidate = lib_candidate_first_of(gavel, group); candidate;
         candidate = candidate->next_in_bucket)
        if (strcmp(candidate->group, group) == 0)
            lib_candidate_doorbell(candidate);
}

/* A session takes part in a group once, whatever the candidate is called. */
static bool excludes(const struct gavel_candidate *other, const struct gavel_candidate *candidate)
{
    bool is_one_session = candidate->gavel->capabilities.has_sessions && !candidate->is_single;

    return strcmp(other->group, candidate->group) == 0 &&
           ((is_one_session && !other->is_single) || strcmp(other->id, candidate->id) == 0);
}

enum gavel_status lib_candidate_enlist(struct gavel_candidate *candidate)
{
    struct gavel *gavel = candidate->gavel;
    struct gavel_candidate **bucket = &gavel->buckets[bucket_of(candidate->group)];

    for (const struct gavel_candidate *other = *bucket; other; other = other->next_in_bucket)
        if (excludes(other, candidate))
            return GAVEL_ERR_STATE;
    candidate->next_in_bucket = *bucket;
    *bucket = candidate;
    candidate->previous = gavel->last_candidate;
    if (gavel->last_candidate)
        gavel->last_candidate->next = candidate;
    else
        gavel->first_candidate = candidate;
    gavel->last_candidate = candidate;
    gavel->candidate_count++;
    return GAVEL_OK;
}

/* Mutex held. */
static void strike_out(struct gavel_candidate *candidate)
{
    struct gavel *gavel = candidate->gavel;
    struct gavel_candidate **link = &gavel->buckets[bucket_of(candidate->group)];

    while (*link != candidate)
        link = &(*link)->next_in_bucket;
    *link = candidate->next_in_bucket;
    if (gavel->to_start == candidate)
        gavel->to_start = candidate->next;
    if (gavel->session.to_tell == candidate)
        gavel->session.to_tell = candidate->next;
    if (candidate->previous)
        candidate->previous->next = candidate->next;
    else
        gavel->first_candidate = candidate->next;
    if (candidate->next)
        candidate->next->previous = candidate->previous;
    else
        gavel->last_candidate = candidate->previous;
    gavel->candidate_count--;
}

void lib_candidate_remove_departed(struct gavel *gavel)
{
    while (gavel->departed) {
        struct gavel_candidate *candidate = gavel->departed;

        gavel->departed = candidate->next_departed;
        watch_clear(candidate);
        push_leave(candidate);
        timers_set(&gavel->timers, &candidate->timer, NEVER);
        timers_set(&gavel->session.ends, &candidate->end, NEVER);
        watchdog_disarm(&gavel->watchdog, &candidate->watchdog_entry);
        worker_forget(candidate);
        pthread_mutex_lock(&gavel->mutex);
        strike_out(candidate);
        command_drop(gavel, candidate);
        publish_return(&gavel->publish, candidate->published);
        on_death_give_back(gavel->on_death, candidate->on_death_entry);
        /* From here on it belongs to whoever waits for this. */
        candidate->is_gone = true;
        pthread_mutex_unlock(&gavel->mutex);
    }
}
