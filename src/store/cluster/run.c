/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Carrying out a batch. Requests on different groups may go in any order, and
 * a thousand groups that beat at the same time make one batch; so it is cut
 * into steps, writes in the even ones and reads in the odd ones, each request
 * in the first step that is not before the one it must follow:
 *
 *     claim a · read b · heartbeat c · candidates c · read a · release a
 *        0        1          0             1            1         2
 *
 * Only the operations of one step are under way together. The writes of a step
 * are one submit (or few: it has a limit), which the cluster carries out in
 * order; each read is a question.
 */
#include "store/cluster/cluster.h"

#include "base/assert.h"
#include "base/hash.h"
#include "os/clock.h"
#include "os/process.h"
#include "store/rules.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Requests whose time is over at about the same instant go together; none is begun after its own. */
#define TOGETHER (50 * NS_PER_MS)

/* What is done with a request, besides what stands in its reply. */
struct plan {
    uint64_t hash; /* of its group */
    size_t step;
    bool is_answered; /* it need not be asked */
};

/* Most pairs of groups differ in it, and need not be compared. */
static uint64_t hash_of(const struct store_request *request)
{
    return hash_text(HASH_BEGIN, request->op == STORE_GROUPS ? "" : request->group);
}

static bool is_same_group(const struct store_request *a, const struct store_request *b)
{
    if (a->op == STORE_GROUPS || b->op == STORE_GROUPS)
        return true;
    return strcmp(a->group, b->group) == 0;
}

/* The step of a request: behind the last one that concerns its group. */
static size_t step_of(const struct store_request *requests, const struct plan *plans, size_t index)
{
    bool writes = request_writes(&requests[index]);
    bool is_list = requests[index].op == STORE_GROUPS;
    size_t last = 0;

    for (size_t i = index; i-- > 0;) {
        if (plans[i].is_answered || plans[i].step < last)
            continue;
        if (!is_list && requests[i].op != STORE_GROUPS && plans[i].hash != plans[index].hash)
            continue;
        if (!is_same_group(&requests[i], &requests[index]))
            continue;
        last = plans[i].step;
        if (!is_list)
            break; /* the newest of the group is in its highest step */
    }
    return last % 2 == (writes ? 0 : 1) ? last : last + 1;
}

/* Returns the number of steps. */
static size_t plan(const struct store_request *requests, struct store_reply *replies, struct plan *plans,
                   size_t count)
{
    gavel_ns now = clock_now();
    size_t steps = 0;

    for (size_t i = 0; i < count; i++) {
        plans[i] = (struct plan){.is_answered = request_refuse(&requests[i], now, &replies[i])};
        if (plans[i].is_answered)
            continue;
        plans[i].hash = hash_of(&requests[i]);
        plans[i].step = step_of(requests, plans, i);
        if (plans[i].step >= steps)
            steps = plans[i].step + 1;
    }
    return steps;
}

void gavel_parcel_done(struct gavel_parcel *parcel)
{
    struct gavel_store *gavel = parcel->store;

    TAILQ_REMOVE(parcel->is_queued ? &gavel->queue : &gavel->sent, parcel, in_store);
    if (parcel->visit) {
        LIST_REMOVE(parcel, in_visit);
        pthread_cond_broadcast(&gavel->push.changed);
    }
    free(parcel);
}

static void fail_all(struct gavel_parcel *parcel, uint32_t status, const char *message)
{
    const struct gavel_store *gavel = parcel->store;
    const char *trouble = parcel->is_write ? gavel->writes_trouble : gavel->reads_trouble;

    for (size_t i = 0; i < parcel->count; i++) {
        struct store_reply *reply = &parcel->visit->replies[parcel->indexes[i]];

        if (status == GAVEL_ERR_TIMEOUT) /* by whoever has given up first */
            reply_fail(
                reply, GAVEL_ERR_TIMEOUT,
                "%.80s has not answered in time: %.70s; a majority of its nodes must run and reach each other",
                gavel->where, trouble[0] ? trouble : "it has no leader, or is overloaded");
        else
            gavel_take_failure(status, message, reply);
    }
}

static void fail_refused(struct gavel_parcel *parcel)
{
    const struct gavel_store *gavel = parcel->store;

    for (size_t i = 0; i < parcel->count; i++)
        reply_fail(&parcel->visit->replies[parcel->indexes[i]], GAVEL_ERR_STORE_DENIED, "%.60s: %.180s",
                   gavel->where, parcel->is_write ? gavel->writes_trouble : gavel->reads_trouble);
}

/* What was sent may still be carried out, as after a time-out. */
void gavel_refuse_waiting(struct gavel_store *gavel, bool is_write)
{
    struct gavel_parcel *parcel, *next;

    TAILQ_FOREACH(parcel, &gavel->sent, in_store) {
        if (parcel->is_write != is_write || !parcel->visit)
            continue;
        fail_refused(parcel);
        LIST_REMOVE(parcel, in_visit);
        parcel->visit = NULL;
    }
    for (parcel = TAILQ_FIRST(&gavel->queue); parcel; parcel = next) {
        next = TAILQ_NEXT(parcel, in_store);
        if (parcel->is_write != is_write)
            continue;
        fail_refused(parcel);
        gavel_parcel_done(parcel);
    }
    pthread_cond_broadcast(&gavel->push.changed);
}

static void take_results(void *user, enum gavel_status status, const char *message,
                         const Gavel__OpResult *const *results, size_t count)
{
    struct gavel_parcel *parcel = user;
    struct gavel_store *gavel = parcel->store;

    pthread_mutex_lock(&gavel->push.lock);
    for (size_t i = 0; parcel->visit && status == GAVEL_OK && i < parcel->count; i++) {
        const struct store_request *request = &parcel->visit->requests[parcel->indexes[i]];
        struct store_reply *reply = &parcel->visit->replies[parcel->indexes[i]];

        if (i < count)
            gavel_take_result(request, results[i], &gavel->self, reply);
        else
            gavel_take_failure(GAVEL_ERR_IO, "the cluster has answered only a part of what was asked", reply);
        gavel_note_own(gavel, request, reply);
    }
    if (parcel->visit && status != GAVEL_OK)
        fail_all(parcel, status, message);
    gavel_parcel_done(parcel);
    pthread_mutex_unlock(&gavel->push.lock);
}

static void take_answer(void *user, enum gavel_status status, const char *message,
                        const Gavel__Answer *answer)
{
    struct gavel_parcel *parcel = user;
    struct gavel_store *gavel = parcel->store;

    pthread_mutex_lock(&gavel->push.lock);
    if (parcel->visit && status == GAVEL_OK && answer) {
        const struct store_request *request = &parcel->visit->requests[parcel->indexes[0]];
        struct store_reply *reply = &parcel->visit->replies[parcel->indexes[0]];

        gavel_take_answer(request, answer, &gavel->self, parcel->visit->lists_dead, reply);
        if (request->op == STORE_GROUPS && reply->status == GAVEL_OK && answer->has_more &&
            answer->n_groups > 0 && !reply->has_more) {
            name_copy(parcel->after, sizeof parcel->after, answer->groups[answer->n_groups - 1]->name);
            gavel_parcel_send(parcel);
            pthread_mutex_unlock(&gavel->push.lock);
            return;
        }
    } else if (parcel->visit) {
        fail_all(parcel, status == GAVEL_OK ? GAVEL_ERR_IO : status, message);
    }
    gavel_parcel_done(parcel);
    pthread_mutex_unlock(&gavel->push.lock);
}

static void send_ask(struct gavel_parcel *parcel)
{
    Gavel__Ask ask;

    gavel_draft_ask(&parcel->visit->requests[parcel->indexes[0]], parcel->after, &ask);
    cluster_link_ask(parcel->store->reads, &ask, parcel->give_up_at, take_answer, parcel);
}

static void send_submit(struct gavel_parcel *parcel)
{
    struct gavel_draft *drafts = calloc(parcel->count, sizeof *drafts);
    const Gavel__Op **ops = calloc(parcel->count, sizeof *ops);

    if (!parcel->store->writes || !drafts || !ops) {
        fail_all(parcel, parcel->store->writes ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_STORE_UNAVAILABLE,
                 parcel->store->writes ? "out of memory" : parcel->store->writes_trouble);
        gavel_parcel_done(parcel);
    } else {
        for (size_t i = 0; i < parcel->count; i++) {
            gavel_draft_op(&parcel->visit->requests[parcel->indexes[i]], &drafts[i]);
            ops[i] = &drafts[i].op;
        }
        cluster_link_submit(parcel->store->writes, ops, parcel->count, parcel->give_up_at, take_results,
                            parcel);
    }
    free(ops);
    free(drafts);
}

void gavel_parcel_send(struct gavel_parcel *parcel)
{
    const struct cluster_link *cluster = parcel->is_write ? parcel->store->writes : parcel->store->reads;

    ASSERT(parcel->visit != NULL); /* one that is given up leaves the queue */
    if (cluster && cluster_link_is_refused(cluster)) {
        fail_refused(parcel);
        gavel_parcel_done(parcel);
    } else if (parcel->is_write)
        send_submit(parcel);
    else
        send_ask(parcel);
}

static void enqueue(struct gavel_store *gavel, struct gavel_visit *visit, struct gavel_parcel *parcel)
{
    parcel->store = gavel;
    parcel->visit = visit;
    parcel->is_queued = true;
    LIST_INSERT_HEAD(&visit->parcels, parcel, in_visit);
    TAILQ_INSERT_TAIL(&gavel->queue, parcel, in_store);
}

/* A parcel of the requests of a step from *index on: one read, or as many writes as go together. */
static struct gavel_parcel *pack(struct gavel_visit *visit, const struct plan *plans, size_t count,
                                 size_t step, size_t *index)
{
    bool is_write = step % 2 == 0;
    size_t most = is_write ? TABLE_OPS_MAX : 1;
    struct gavel_parcel *parcel = calloc(1, sizeof *parcel + most * sizeof *parcel->indexes);
    size_t i = *index;

    if (!parcel) {
        reply_fail(&visit->replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
        (*index)++;
        return NULL;
    }
    parcel->is_write = is_write;
    parcel->give_up_at = visit->requests[i].give_up_at;
    for (; i < count && parcel->count < most; i++) {
        gavel_ns give_up_at = visit->requests[i].give_up_at;

        if (plans[i].is_answered || plans[i].step != step)
            continue;
        if (ns_max(give_up_at, parcel->give_up_at) - ns_min(give_up_at, parcel->give_up_at) > TOGETHER)
            break;
        parcel->give_up_at = ns_min(parcel->give_up_at, give_up_at);
        parcel->indexes[parcel->count++] = i;
    }
    *index = i;
    return parcel;
}

/* Whoever is not answered by now is not waited for; what was begun may still be carried out. */
static void give_up(struct gavel_visit *visit)
{
    struct gavel_parcel *next;

    for (struct gavel_parcel *parcel = LIST_FIRST(&visit->parcels); parcel; parcel = next) {
        fail_all(parcel, GAVEL_ERR_TIMEOUT, "");
        next = LIST_NEXT(parcel, in_visit);
        parcel->visit = NULL;
        if (parcel->is_queued)
            gavel_parcel_done(parcel);
    }
    LIST_INIT(&visit->parcels);
}

static void run_step(struct gavel_store *gavel, struct gavel_visit *visit, const struct plan *plans,
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
        parcel = pack(visit, plans, count, step, &i);
        if (!parcel)
            continue;
        for (size_t k = 0; k < parcel->count; k++)
            until = ns_max(until, visit->requests[parcel->indexes[k]].give_up_at);
        enqueue(gavel, visit, parcel);
    }
    gavel_thread_wake(gavel);
    while (!LIST_EMPTY(&visit->parcels) && push_sleep(&gavel->push, until))
        continue;
    give_up(visit);
    pthread_mutex_unlock(&gavel->push.lock);
}

static void run_all(struct gavel_store *gavel, const struct store_request *requests,
                    struct store_reply *replies, size_t count, bool lists_dead)
{
    struct gavel_visit visit = {.requests = requests, .replies = replies, .lists_dead = lists_dead};
    struct plan *plans = calloc(count, sizeof *plans);
    size_t steps;

    if (!plans) {
        for (size_t i = 0; i < count; i++)
            reply_fail(&replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
        return;
    }
    LIST_INIT(&visit.parcels);
    steps = plan(requests, replies, plans, count);
    for (size_t step = 0; step < steps; step++)
        run_step(gavel, &visit, plans, count, step);
    free(plans);
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

    run_all(gavel, &list, &listed, 1, true);
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
    run_all(gavel, &again, reply, 1, false);
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
    run_all(gavel, requests, replies, count, false);
    for (size_t i = 0; i < count; i++)
        if (requests[i].op == STORE_HEARTBEAT && replies[i].status == GAVEL_ERR_ID_IN_USE)
            take_from_the_dead(gavel, &requests[i], &replies[i]);
}
