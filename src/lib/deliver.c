/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/deliver.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "os/clock.h"

#include <stdlib.h>

#define WORK_INTERVAL_DEFAULT_MS 1000

struct subscription *subscription_new(const struct gavel_subscriber *subscriber, uint64_t id)
{
    struct subscription *subscription = calloc(1, sizeof *subscription);

    if (!subscription)
        return NULL;
    subscription->id = id;
    subscription->subscriber = *subscriber;
    if (subscription->subscriber.work_interval_ms == 0)
        subscription->subscriber.work_interval_ms = WORK_INTERVAL_DEFAULT_MS;
    subscription->work_at = NEVER;
    return subscription;
}

void subscriptions_init(struct subscriptions *subscriptions)
{
    *subscriptions = (struct subscriptions){0};
    pthread_mutex_init(&subscriptions->mutex, NULL);
}

void subscriptions_done(struct subscriptions *subscriptions)
{
    while (subscriptions->first) {
        struct subscription *subscription = subscriptions->first;

        subscriptions->first = subscription->next;
        free(subscription);
    }
    pthread_mutex_destroy(&subscriptions->mutex);
}

static void walk_begin(struct subscriptions *subscriptions) { subscriptions->walks++; }

/* The outermost walk frees what was removed: nobody holds a pointer into the list any more. */
static void walk_end(struct subscriptions *subscriptions)
{
    struct subscription *subscription = subscriptions->first;

    if (--subscriptions->walks > 0 || !subscriptions->has_removed)
        return;
    subscriptions->has_removed = false;
    pthread_mutex_lock(&subscriptions->mutex);
    while (subscription) {
        struct subscription *next = subscription->next;

        if (subscription->is_removed) {
            if (subscription->previous)
                subscription->previous->next = next;
            else
                subscriptions->first = next;
            if (next)
                next->previous = subscription->previous;
            else
                subscriptions->last = subscription->previous;
            free(subscription);
        }
        subscription = next;
    }
    pthread_mutex_unlock(&subscriptions->mutex);
}

static void tell_elected(struct gavel_candidate *candidate, struct subscription *subscription)
{
    worker_flush(candidate->gavel);
    if (!published_holds(candidate->published))
        return;
    subscription->is_told = true;
    if (subscription->subscriber.on_work)
        subscription->work_at = clock_now();
    if (!subscription->subscriber.on_elected)
        return;
    subscription->subscriber.on_elected(candidate, candidate->work_epoch, subscription->subscriber.user);
}

static void tell_demoted(struct gavel_candidate *candidate, struct subscription *subscription,
                         enum gavel_reason reason)
{
    subscription->is_told = false;
    subscription->work_at = NEVER;
    if (!subscription->subscriber.on_demoted)
        return;
    worker_flush(candidate->gavel);
    subscription->subscriber.on_demoted(candidate, reason, subscription->subscriber.user);
}

void deliver_subscribe(struct gavel_candidate *candidate, struct subscription *subscription)
{
    struct subscriptions *subscriptions = &candidate->subscriptions;

    pthread_mutex_lock(&subscriptions->mutex);
    subscription->previous = subscriptions->last;
    subscription->next = NULL;
    if (subscriptions->last)
        subscriptions->last->next = subscription;
    else
        subscriptions->first = subscription;
    subscriptions->last = subscription;
    pthread_mutex_unlock(&subscriptions->mutex);
    walk_begin(subscriptions);
    if (candidate->work_runs)
        tell_elected(candidate, subscription);
    walk_end(subscriptions);
}

enum gavel_status deliver_unsubscribe(struct gavel_candidate *candidate, uint64_t id)
{
    struct subscriptions *subscriptions = &candidate->subscriptions;
    struct subscription *subscription = subscriptions->first;

    while (subscription && (subscription->id != id || subscription->is_removed))
        subscription = subscription->next;
    if (!subscription)
        return GAVEL_ERR_NOT_FOUND;
    walk_begin(subscriptions);
    if (subscription->is_told)
        tell_demoted(candidate, subscription, GAVEL_REASON_STOPPED);
    pthread_mutex_lock(&subscriptions->mutex);
    subscription->is_removed = true;
    pthread_mutex_unlock(&subscriptions->mutex);
    subscriptions->has_removed = true;
    watchdog_wait_for_report(&candidate->gavel->watchdog, &candidate->watchdog_entry);
    walk_end(subscriptions);
    return GAVEL_OK;
}

void deliver_elected(struct gavel_candidate *candidate)
{
    walk_begin(&candidate->subscriptions);
    for (struct subscription *s = candidate->subscriptions.first; s; s = s->next)
        if (!s->is_removed && !s->is_told)
            tell_elected(candidate, s);
    walk_end(&candidate->subscriptions);
}

void deliver_demoted(struct gavel_candidate *candidate, enum gavel_reason reason)
{
    walk_begin(&candidate->subscriptions);
    for (struct subscription *s = candidate->subscriptions.last; s; s = s->previous)
        if (!s->is_removed && s->is_told)
            tell_demoted(candidate, s, reason);
    walk_end(&candidate->subscriptions);
}

void deliver_event(struct gavel_candidate *candidate, const struct gavel_event *event)
{
    /* Who subscribes inside a callback hears of what comes after, not of this event. */
    const struct subscription *last = candidate->subscriptions.last;

    walk_begin(&candidate->subscriptions);
    for (struct subscription *s = candidate->subscriptions.first; s; s = s->next) {
        if (!s->is_removed && s->subscriber.on_event)
            s->subscriber.on_event(candidate, event, s->subscriber.user);
        if (s == last)
            break;
    }
    walk_end(&candidate->subscriptions);
}

struct gavel_event deliver_blank_event(const struct gavel_candidate *candidate, enum gavel_event_kind kind)
{
    return (struct gavel_event){
        .kind = kind,
        .at_ns = clock_now(),
        .group = candidate->group,
        .candidate = candidate->id,
        .leader = "",
        .previous = "",
        .message = "",
        .phase = GAVEL_PHASE_READY,
        .previous_phase = GAVEL_PHASE_READY,
    };
}

/*
 * The subscriber that comes after this one, copied, since the loop may remove
 * it at any time; false if there is none. After means by number: a pointer
 * into the list would not survive the callback in between.
 */
static bool next_after(struct subscriptions *subscriptions, uint64_t *id, struct gavel_subscriber *ret_copy)
{
    const struct subscription *next = NULL;

    pthread_mutex_lock(&subscriptions->mutex);
    for (const struct subscription *s = subscriptions->first; s; s = s->next)
        if (!s->is_removed && s->id > *id && (!next || s->id < next->id))
            next = s;
    if (next) {
        *id = next->id;
        *ret_copy = next->subscriber;
    }
    pthread_mutex_unlock(&subscriptions->mutex);
    return next != NULL;
}

void deliver_overrun(struct gavel_candidate *candidate, uint64_t epoch)
{
    struct gavel_event event = deliver_blank_event(candidate, GAVEL_EVENT_OVERRUN);
    struct gavel_subscriber subscriber;
    uint64_t id = 0;

    event.epoch = epoch;
    while (next_after(&candidate->subscriptions, &id, &subscriber))
        if (subscriber.on_event)
            subscriber.on_event(candidate, &event, subscriber.user);
}

void deliver_work(struct gavel_candidate *candidate)
{
    walk_begin(&candidate->subscriptions);
    for (struct subscription *s = candidate->subscriptions.first; s; s = s->next) {
        gavel_ns now = clock_now();

        if (s->is_removed || s->work_at > now)
            continue;
        /* Counted from now: after a long call the next one is not due at once. */
        s->work_at = now + ns_from_ms(s->subscriber.work_interval_ms);
        worker_flush(candidate->gavel);
        if (!published_holds(candidate->published))
            continue;
        s->subscriber.on_work(candidate, candidate->work_epoch, s->subscriber.user);
    }
    walk_end(&candidate->subscriptions);
}

gavel_ns deliver_work_at(const struct gavel_candidate *candidate)
{
    gavel_ns at = NEVER;

    for (const struct subscription *s = candidate->subscriptions.first; s; s = s->next)
        if (!s->is_removed)
            at = ns_min(at, s->work_at);
    return at;
}
