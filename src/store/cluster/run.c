/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Carrying out a batch, step by step (plan.c). Only the operations of one step
 * are under way together. The writes of a step are one submit, or few: it has a
 * limit, and all in it have the same. The cluster carries them out in order.
 * Each read is a question.
 */
#include "store/cluster/cluster.h"

#include "os/clock.h"
#include "os/process.h"
#include "store/rules.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Requests whose time is over at about the same instant go together; none is begun after its own. */
#define TOGETHER (50 * NS_PER_MS)

static enum gavel_parcel_kind kind_of(const struct gavel_store *gavel, const struct store_request *request)
{
    if (!request_writes(request))
        return GAVEL_PARCEL_ASK;
    if (gavel->has_session && request->op == STORE_HEARTBEAT)
        return GAVEL_PARCEL_CAMPAIGNS;
    if (gavel->has_session && (request->op == STORE_RELEASE || request->op == STORE_LEAVE))
        return GAVEL_PARCEL_WITHDRAWAL;
    return GAVEL_PARCEL_SUBMIT;
}

/* How many requests go together. Campaigns leave room for the opening of the session, if they go with it. */
static size_t most_of(enum gavel_parcel_kind kind)
{
    switch (kind) {
    case GAVEL_PARCEL_SUBMIT:
        return TABLE_OPS_MAX;
    case GAVEL_PARCEL_CAMPAIGNS:
        return TABLE_OPS_MAX - 1;
    case GAVEL_PARCEL_ASK:
    case GAVEL_PARCEL_WITHDRAWAL:
        break;
    }
    return 1;
}

/* A parcel of the requests of a step from *index on: as many as go together, in their order. */
static struct gavel_parcel *pack(struct gavel_store *gavel, struct gavel_visit *visit,
                                 const struct gavel_plan *plans, size_t count, size_t *index)
{
    const struct store_request *first = &visit->requests[*index];
    enum gavel_parcel_kind kind = kind_of(gavel, first);
    size_t most = most_of(kind);
    struct gavel_parcel *parcel = gavel_parcel_new(most);
    size_t step = plans[*index].step;
    size_t i = *index;

    if (!parcel) {
        reply_fail(&visit->replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
        (*index)++;
        return NULL;
    }
    parcel->kind = kind;
    parcel->give_up_at = first->give_up_at;
    for (; i < count && parcel->count < most; i++) {
        gavel_ns give_up_at = visit->requests[i].give_up_at;

        if (plans[i].is_answered || plans[i].step != step)
            continue;
        if (kind_of(gavel, &visit->requests[i]) != kind ||
            ns_max(give_up_at, parcel->give_up_at) - ns_min(give_up_at, parcel->give_up_at) > TOGETHER)
            break;
        parcel->give_up_at = ns_min(parcel->give_up_at, give_up_at);
        parcel->indexes[parcel->count++] = i;
    }
    *index = i;
    return parcel;
}

/* For the thread to say what is given up: nobody else says it. It says so when it runs. */
#define UNSAID_PATIENCE (5 * NS_PER_S)

static bool has_unsaid(const struct gavel_visit *visit)
{
    const struct gavel_parcel *parcel;

    LIST_FOREACH(parcel, &visit->parcels, in_visit) {
        if (parcel->is_queued && parcel->kind == GAVEL_PARCEL_WITHDRAWAL)
            return true;
    }
    return false;
}

/* Whoever is not answered by now is not waited for; what was begun may still be carried out. */
static void give_up(struct gavel_visit *visit)
{
    struct gavel_parcel *next;

    for (struct gavel_parcel *parcel = LIST_FIRST(&visit->parcels); parcel; parcel = next) {
        gavel_parcel_fail(parcel, GAVEL_ERR_TIMEOUT, "");
        next = LIST_NEXT(parcel, in_visit);
        parcel->visit = NULL;
        if (parcel->is_queued)
            gavel_parcel_done(parcel);
    }
    LIST_INIT(&visit->parcels);
}

static void run_step(struct gavel_store *gavel, struct gavel_visit *visit, const struct gavel_plan *plans,
                     size_t count, size_t step)
{
    gavel_ns until = INT64_MIN;

    pthread_mutex_lock(&gavel->push.lock);
    for (size_t i = 0; i < count;) {
        struct gavel_parcel *parcel;

        if (plans[i].is_answered || plans[i].step != step) {
            i++;
            continue;
        }
        parcel = pack(gavel, visit, plans, count, &i);
        if (!parcel)
            continue;
        for (size_t k = 0; k < parcel->count; k++)
            until = ns_max(until, visit->requests[parcel->indexes[k]].give_up_at);
        gavel_parcel_enqueue(gavel, visit, parcel);
    }
    gavel_thread_wake(gavel);
    while (!LIST_EMPTY(&visit->parcels) && push_sleep(&gavel->push, until))
        continue;
    while (has_unsaid(visit) && push_sleep(&gavel->push, until + UNSAID_PATIENCE))
        continue;
    give_up(visit);
    pthread_mutex_unlock(&gavel->push.lock);
}

/* Whether it was in a session of the caller's. */
static bool run_all(struct gavel_store *gavel, const struct store_request *requests,
                    struct store_reply *replies, size_t count, bool lists_dead)
{
    struct gavel_visit visit = {.requests = requests, .replies = replies, .lists_dead = lists_dead};
    struct gavel_plan *plans = calloc(count, sizeof *plans);
    size_t steps;
    bool has_session;

    if (!plans) {
        for (size_t i = 0; i < count; i++)
            reply_fail(&replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
        return false;
    }
    LIST_INIT(&visit.parcels);
    pthread_mutex_lock(&gavel->push.lock);
    has_session = gavel->has_session;
    pthread_mutex_unlock(&gavel->push.lock);
    steps = gavel_plan(requests, replies, plans, count, has_session);
    for (size_t step = 0; step < steps; step++)
        run_step(gavel, &visit, plans, count, step);
    free(plans);
    return has_session;
}

/*
 * An id that another instance has is free if we can see that its process is dead: quicker than waiting until
 * the cluster has not heard of it for long enough.
 */
static void take_from_the_dead(struct gavel_store *gavel, const struct store_request *request,
                               struct store_reply *reply)
{
    const struct store_request list = {.op = STORE_CANDIDATES,
                                       .group = request->group,
                                       .give_up_at = request->give_up_at,
                                       .candidate_timeout_ms = STORE_DURATION_MAX_MS};
    struct store_request again = *request;
    struct store_reply listed = {0};

    (void)run_all(gavel, &list, &listed, 1, true);
    for (size_t i = 0; listed.status == GAVEL_OK && i < listed.registration_count; i++) {
        const struct registration *other = &listed.registrations[i];

        if (other->instance == reply->other_instance && strcmp(other->id, request->registration.id) == 0 &&
            process_look(&other->process, &gavel->self, NULL) == PROCESS_DEAD)
            again.replaces_instance = other->instance;
    }
    store_reply_done(&listed);
    if (again.replaces_instance == request->replaces_instance)
        return;
    store_reply_done(reply);
    *reply = (struct store_reply){0};
    (void)run_all(gavel, &again, reply, 1, false);
}

void gavel_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count)
{
    struct gavel_store *gavel = (struct gavel_store *)store;

    if (push_is_forked(&gavel->push)) {
        for (size_t i = 0; i < count; i++)
            reply_fail(&replies[i], GAVEL_ERR_STATE,
                       "%s was opened before this process was forked; open it again in the child",
                       gavel->where);
        return;
    }
    if (run_all(gavel, requests, replies, count, false))
        return; /* there the cluster knows who is dead */
    for (size_t i = 0; i < count; i++)
        if (requests[i].op == STORE_HEARTBEAT && replies[i].status == GAVEL_ERR_ID_IN_USE)
            take_from_the_dead(gavel, &requests[i], &replies[i]);
}
