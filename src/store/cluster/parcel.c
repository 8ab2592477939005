/* SPDX-License-Identifier: Apache-2.0 */

/* Parcels: how the thread sends them, and what comes of them. The lock is held, but where the link calls. */
#include "store/cluster/cluster.h"

#include "base/assert.h"
#include "store/driver.h"

#include <stdlib.h>
#include <string.h>

struct gavel_parcel *gavel_parcel_new(size_t most)
{
    struct gavel_parcel *parcel = calloc(1, sizeof *parcel + most * sizeof *parcel->indexes);

    return parcel;
}

void gavel_parcel_enqueue(struct gavel_store *gavel, struct gavel_visit *visit, struct gavel_parcel *parcel)
{
    parcel->store = gavel;
    parcel->visit = visit;
    parcel->is_queued = true;
    LIST_INSERT_HEAD(&visit->parcels, parcel, in_visit);
    TAILQ_INSERT_TAIL(&gavel->queue, parcel, in_store);
}

void gavel_parcel_done(struct gavel_parcel *parcel)
{
    struct gavel_store *gavel = parcel->store;

    TAILQ_REMOVE(parcel->is_queued ? &gavel->queue : &gavel->sent, parcel, in_store);
    if (parcel->withdrawal)
        LIST_REMOVE(parcel, in_withdrawal);
    if (parcel->visit) {
        LIST_REMOVE(parcel, in_visit);
        pthread_cond_broadcast(&gavel->push.changed);
    }
    free(parcel->said);
    free(parcel);
}

void gavel_parcel_fail(struct gavel_parcel *parcel, uint32_t status, const char *message)
{
    const struct gavel_store *gavel = parcel->store;

    for (size_t i = 0; parcel->visit && i < parcel->count; i++) {
        struct store_reply *reply = &parcel->visit->replies[parcel->indexes[i]];

        if (status == GAVEL_ERR_TIMEOUT) /* by whoever has given up first */
            reply_fail(reply, GAVEL_ERR_TIMEOUT, STORE_SILENT_CLUSTER, gavel->where,
                       gavel->trouble[0] ? gavel->trouble : STORE_SILENT_CLUSTER_CAUSE);
        else
            gavel_take_failure(status, message, reply);
    }
}

static void fail_refused(struct gavel_parcel *parcel)
{
    const struct gavel_store *gavel = parcel->store;

    for (size_t i = 0; i < parcel->count; i++)
        reply_fail(&parcel->visit->replies[parcel->indexes[i]], GAVEL_ERR_STORE_DENIED, "%.60s: %.180s",
                   gavel->where, gavel->trouble);
}

/* What was sent may still be carried out, as after a time-out. */
void gavel_refuse_waiting(struct gavel_store *gavel)
{
    struct gavel_parcel *parcel;

    TAILQ_FOREACH(parcel, &gavel->sent, in_store) {
        if (!parcel->visit)
            continue;
        fail_refused(parcel);
        LIST_REMOVE(parcel, in_visit);
        parcel->visit = NULL;
    }
    while ((parcel = TAILQ_FIRST(&gavel->queue))) {
        fail_refused(parcel);
        gavel_parcel_done(parcel);
    }
    pthread_cond_broadcast(&gavel->push.changed);
}

static void take_one(struct gavel_parcel *parcel, size_t which, const Gavel__OpResult *result)
{
    struct gavel_store *gavel = parcel->store;
    const struct store_request *request = &parcel->visit->requests[parcel->indexes[which]];
    struct store_reply *reply = &parcel->visit->replies[parcel->indexes[which]];
    struct gavel_own own = gavel_own(gavel);

    if (gavel->has_session) {
        gavel_take_session_result(request, result, &gavel->self, &own, reply);
    } else {
        gavel_take_result(request, result, &gavel->self, reply);
        gavel_note_own(gavel, request, reply);
    }
}

static void take_results(void *user, enum gavel_status status, const char *message,
                         const Gavel__OpResult *const *results, size_t count)
{
    static const char partly[] = "the cluster has answered only a part of what was asked";
    struct gavel_parcel *parcel = user;
    struct gavel_store *gavel = parcel->store;

    pthread_mutex_lock(&gavel->push.lock);
    if (status == GAVEL_OK && count < parcel->count) {
        status = GAVEL_ERR_IO;
        message = partly;
    }
    if (status != GAVEL_OK)
        gavel_parcel_fail(parcel, status, message);
    for (size_t i = 0; i < parcel->count; i++) {
        if (status == GAVEL_OK && parcel->visit)
            take_one(parcel, i, results[i]);
        if (parcel->said)
            gavel_campaign_done(parcel, i, status, status == GAVEL_OK ? results[i] : NULL);
    }
    gavel_parcel_done(parcel);
    pthread_mutex_unlock(&gavel->push.lock);
}

/* Whether there are more pages, and the next one was asked for. */
static bool ask_next_page(struct gavel_parcel *parcel, const Gavel__Answer *answer,
                          const struct store_reply *reply)
{
    if (parcel->visit->requests[parcel->indexes[0]].op != STORE_GROUPS || reply->status != GAVEL_OK ||
        !answer->has_more || answer->n_groups == 0 || reply->has_more)
        return false;
    name_copy(parcel->after, sizeof parcel->after, answer->groups[answer->n_groups - 1]->name);
    gavel_parcel_send(parcel);
    return true;
}

static void take_answer(void *user, enum gavel_status status, const char *message,
                        const Gavel__Answer *answer)
{
    struct gavel_parcel *parcel = user;
    struct gavel_store *gavel = parcel->store;
    bool goes_on = false;

    pthread_mutex_lock(&gavel->push.lock);
    if (parcel->visit && status == GAVEL_OK && answer) {
        const struct store_request *request = &parcel->visit->requests[parcel->indexes[0]];
        struct store_reply *reply = &parcel->visit->replies[parcel->indexes[0]];
        struct gavel_own own = gavel_own(gavel);

        gavel_take_answer(request, answer, &gavel->self, parcel->visit->lists_dead, reply);
        if (gavel->has_session && request->op == STORE_READ)
            gavel_show_session(answer->n_groups > 0 ? answer->groups[0] : NULL, answer->revision, &own,
                               reply);
        goes_on = ask_next_page(parcel, answer, reply);
    } else {
        gavel_parcel_fail(parcel, status == GAVEL_OK ? GAVEL_ERR_IO : status, message);
    }
    if (!goes_on)
        gavel_parcel_done(parcel);
    pthread_mutex_unlock(&gavel->push.lock);
}

static void send_ask(struct gavel_parcel *parcel)
{
    Gavel__Ask ask;

    gavel_draft_ask(&parcel->visit->requests[parcel->indexes[0]], parcel->after, &ask);
    cluster_link_ask(parcel->store->link, &ask, parcel->give_up_at, take_answer, parcel);
}

static void draft(const struct gavel_parcel *parcel, size_t which, struct gavel_draft *ret_draft)
{
    const struct store_request *request = &parcel->visit->requests[parcel->indexes[which]];

    if (parcel->kind == GAVEL_PARCEL_CAMPAIGNS)
        gavel_draft_campaign(request, !parcel->is_without_renewal, ret_draft);
    else
        gavel_draft_op(request, ret_draft);
}

static void send_submit(struct gavel_parcel *parcel)
{
    struct gavel_draft *drafts = calloc(parcel->count, sizeof *drafts);
    const Gavel__Op **ops = calloc(parcel->count, sizeof *ops);

    if (!drafts || !ops) {
        gavel_parcel_fail(parcel, GAVEL_ERR_NO_MEMORY, "out of memory");
        for (size_t i = 0; parcel->said && i < parcel->count; i++)
            gavel_campaign_done(parcel, i, GAVEL_ERR_NO_MEMORY, NULL);
        gavel_parcel_done(parcel);
    } else {
        for (size_t i = 0; i < parcel->count; i++) {
            draft(parcel, i, &drafts[i]);
            ops[i] = &drafts[i].op;
        }
        cluster_link_submit(parcel->store->link, ops, parcel->count, parcel->give_up_at, take_results,
                            parcel);
    }
    free(ops);
    free(drafts);
}

/* Those that mean a session which is not the one that is open: nobody is asked. One that waits for its turn
 * at the link ends with the session by itself. */
static void drop_of_other_sessions(struct gavel_parcel *parcel)
{
    uint64_t number = gavel_own(parcel->store).number;
    size_t kept = 0;

    for (size_t i = 0; i < parcel->count; i++) {
        size_t index = parcel->indexes[i];
        const struct store_request *request = &parcel->visit->requests[index];
        bool may_be_any =
            request->op == STORE_HEARTBEAT || request->op == STORE_ASK || request->op == STORE_REOPEN;

        if (request->session == 0 ? may_be_any : request->session == number)
            parcel->indexes[kept++] = index;
        else
            reply_fail(&parcel->visit->replies[index], GAVEL_ERR_SESSION_GONE,
                       "the session that was meant is over, and nothing was done in it");
    }
    parcel->count = kept;
}

void gavel_parcel_send(struct gavel_parcel *parcel)
{
    struct gavel_store *gavel = parcel->store;

    ASSERT(parcel->visit != NULL); /* one that is given up leaves the queue */
    if (cluster_link_is_refused(gavel->link)) {
        fail_refused(parcel);
        gavel_parcel_done(parcel);
        return;
    }
    if (parcel->kind == GAVEL_PARCEL_ASK) {
        send_ask(parcel);
        return;
    }
    gavel_session_begin(gavel);
    if (gavel->has_session)
        drop_of_other_sessions(parcel);
    if (parcel->kind == GAVEL_PARCEL_CAMPAIGNS)
        gavel_campaigns_check(parcel);
    if (parcel->count == 0)
        gavel_parcel_done(parcel);
    else if (parcel->kind == GAVEL_PARCEL_WITHDRAWAL)
        gavel_withdrawal_send(parcel);
    else
        send_submit(parcel);
}
