/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls the subscribers. Each subscription records whether it was told that the
 * candidate leads, so on_elected and on_demoted strictly alternate, however
 * subscribing, unsubscribing and the election interleave, also from inside
 * callbacks. Loop only, except for deliver_overrun().
 */
#ifndef LIB_DELIVER_H
#define LIB_DELIVER_H

#include "base/time.h"

#include <gavel/gavel.h>

#include <pthread.h>

struct subscription {
    struct subscription *next;
    struct subscription *previous;
    uint64_t id;
    struct gavel_subscriber subscriber;
    bool is_told;     /* between on_elected and on_demoted */
    bool is_removed;  /* freed when no list walk is under way */
    gavel_ns work_at; /* the next on_work; NEVER if there is none */
};

struct subscriptions {
    /* Held by the loop to change the list or is_removed, and by other threads to read them. */
    pthread_mutex_t mutex;
    struct subscription *first;
    struct subscription *last;
    int walks; /* nested list walks under way */
    bool has_removed;
};

/* A subscription of a copied subscriber, or NULL. */
struct subscription *subscription_new(const struct gavel_subscriber *subscriber, uint64_t id);

void subscriptions_init(struct subscriptions *subscriptions);

/* Frees all without calling them. */
void subscriptions_done(struct subscriptions *subscriptions);

/* Takes over and adds one; calls on_elected if the work runs and the mandate holds. */
void deliver_subscribe(struct gavel_candidate *candidate, struct subscription *subscription);

/* Removes one, after its on_demoted if it was told of the election. ERR_NOT_FOUND. */
enum gavel_status deliver_unsubscribe(struct gavel_candidate *candidate, uint64_t id);

/*
 * Calls each, unless the mandate is over by then: earlier callbacks may have
 * taken long. Those not told of the election are not told of the demotion
 * either.
 */
void deliver_elected(struct gavel_candidate *candidate);
void deliver_demoted(struct gavel_candidate *candidate, enum gavel_reason reason);
void deliver_event(struct gavel_candidate *candidate, const struct gavel_event *event);

/* An event of this candidate with nothing filled in yet. */
struct gavel_event deliver_blank_event(const struct gavel_candidate *candidate, enum gavel_event_kind kind);

/* Reports an overrun from another thread, since the loop may be inside the very callback that overruns. */
void deliver_overrun(struct gavel_candidate *candidate, uint64_t epoch);

/* Calls every on_work that is due while the mandate holds. */
void deliver_work(struct gavel_candidate *candidate);

/* When deliver_work() has something to do; NEVER if it has nothing. */
gavel_ns deliver_work_at(const struct gavel_candidate *candidate);

#endif
