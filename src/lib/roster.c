/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lists of a handle's candidates: all in the order they joined, and by
 * group name for the doorbell. Anyone may add to them under the mutex; only
 * the loop takes out, and only between two passes, so it may walk them
 * without the mutex.
 */
#include "base/hash.h"
#include "lib/handle.h"
#include "lib/member.h"
#include "lib/push.h"

#include <string.h>

/* A flood of doorbells must not cost a comparison with every group. */
static size_t bucket_of(const char *group) { return hash_text(HASH_BEGIN, group) % MEMBER_BUCKETS; }

struct gavel_candidate *member_first_of(struct gavel *gavel, const char *group)
{
    struct gavel_candidate *first;

    pthread_mutex_lock(&gavel->mutex);
    first = gavel->buckets[bucket_of(group)];
    pthread_mutex_unlock(&gavel->mutex);
    return first;
}

/* Members leave the chain only on this thread, and only between passes. */
void member_doorbell_all(struct gavel *gavel, const char *group)
{
    for (struct gavel_candidate *member = member_first_of(gavel, group); member;
         member = member->next_in_bucket)
        if (strcmp(member->group, group) == 0)
            member_doorbell(member);
}

enum gavel_status member_enlist(struct gavel_candidate *member)
{
    struct gavel *gavel = member->gavel;
    struct gavel_candidate **bucket = &gavel->buckets[bucket_of(member->group)];

    for (const struct gavel_candidate *other = *bucket; other; other = other->next_in_bucket)
        if (strcmp(other->group, member->group) == 0 && strcmp(other->id, member->id) == 0)
            return GAVEL_ERR_STATE;
    member->next_in_bucket = *bucket;
    *bucket = member;
    member->previous = gavel->last_member;
    if (gavel->last_member)
        gavel->last_member->next = member;
    else
        gavel->first_member = member;
    gavel->last_member = member;
    gavel->member_count++;
    return GAVEL_OK;
}

/* Mutex held. */
static void strike_out(struct gavel_candidate *member)
{
    struct gavel *gavel = member->gavel;
    struct gavel_candidate **link = &gavel->buckets[bucket_of(member->group)];

    while (*link != member)
        link = &(*link)->next_in_bucket;
    *link = member->next_in_bucket;
    if (member->previous)
        member->previous->next = member->next;
    else
        gavel->first_member = member->next;
    if (member->next)
        member->next->previous = member->previous;
    else
        gavel->last_member = member->previous;
    gavel->member_count--;
}

void member_bury_departed(struct gavel *gavel)
{
    while (gavel->departed) {
        struct gavel_candidate *member = gavel->departed;

        gavel->departed = member->next_departed;
        watch_clear(member);
        push_leave(member);
        timers_set(&gavel->timers, &member->timer, NEVER);
        watchdog_disarm(&gavel->watchdog, &member->watchdog_entry);
        worker_forget(member);
        pthread_mutex_lock(&gavel->mutex);
        strike_out(member);
        command_drop(gavel, member);
        publish_return(&gavel->publish, member->published);
        on_death_give_back(member->on_death_entry);
        /* From here on it belongs to whoever waits for this. */
        member->is_gone = true;
        pthread_mutex_unlock(&gavel->mutex);
    }
}
