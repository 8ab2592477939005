/* SPDX-License-Identifier: Apache-2.0 */

/*
 * RELEASE and LEAVE in the caller's session. Each is one operation, which is
 * said until it is answered or the session is over, however long its caller
 * waits: nobody else would give up what the cluster takes to be ours. Callers
 * that say the same once more wait for the same answer.
 */
#include "store/cluster/cluster.h"

#include "base/assert.h"
#include "store/driver.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct gavel_withdrawal *withdrawal)
{
    struct gavel_parcel *parcel;

    while ((parcel = LIST_FIRST(&withdrawal->parcels)))
        gavel_parcel_done(parcel);
    LIST_REMOVE(withdrawal, in_member);
    free(withdrawal);
}

void gavel_withdrawals_free(struct gavel_member *member)
{
    struct gavel_withdrawal *withdrawal;

    while ((withdrawal = LIST_FIRST(&member->withdrawals)))
        forget(withdrawal);
}

static void draft(const struct gavel_withdrawal *withdrawal, struct gavel_draft *ret_draft)
{
    Gavel__Withdraw *withdraw = &ret_draft->withdraw;

    gavel__op__init(&ret_draft->op);
    gavel__withdraw__init(withdraw);
    withdraw->group = gavel_lend(withdrawal->member->group);
    withdraw->id = gavel_lend(withdrawal->member->id);
    withdraw->instance = withdrawal->member->instance;
    withdraw->epoch = withdrawal->epoch;
    withdraw->stays = withdrawal->stays;
    withdraw->is_done = withdrawal->is_done;
    withdraw->successor = gavel_lend(withdrawal->successor);
    if (withdrawal->loss == GAVEL_LOSS_KILLED)
        withdraw->ending = GAVEL__ENDING__ENDING_DEAD;
    else if (withdrawal->loss == GAVEL_LOSS_LAPSED)
        withdraw->ending = GAVEL__ENDING__ENDING_LAPSED;
    ret_draft->op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    ret_draft->op.withdraw = withdraw;
}

static void answer(struct gavel_withdrawal *withdrawal, enum gavel_status status, const char *message,
                   const Gavel__OpResult *result)
{
    struct gavel_store *gavel = withdrawal->member->store;
    struct gavel_own own = gavel_own(gavel);
    struct gavel_parcel *parcel;

    LIST_FOREACH(parcel, &withdrawal->parcels, in_withdrawal) {
        const struct store_request *request;
        struct store_reply *reply;

        if (!result)
            gavel_parcel_fail(parcel, status, message);
        if (!result || !parcel->visit)
            continue;
        request = &parcel->visit->requests[parcel->indexes[0]];
        reply = &parcel->visit->replies[parcel->indexes[0]];
        gavel_take_session_result(request, result, &gavel->self, &own, reply);
    }
}

static void done(void *user, enum gavel_status status, const char *message,
                 const Gavel__OpResult *const *results, size_t count)
{
    struct gavel_withdrawal *withdrawal = user;
    struct gavel_member *member = withdrawal->member;
    struct gavel_store *gavel = member->store;
    const Gavel__OpResult *result = status == GAVEL_OK && count == 1 ? results[0] : NULL;
    bool has_left;

    pthread_mutex_lock(&gavel->push.lock);
    answer(withdrawal, status == GAVEL_OK ? GAVEL_ERR_IO : status, message, result);
    has_left = result &&
               ((result->status == GAVEL_OK && !withdrawal->stays) || result->status == GAVEL_ERR_NOT_FOUND);
    if (has_left)
        member->is_joined = member->is_in_doubt = false;
    forget(withdrawal);
    gavel_member_settle(member);
    pthread_mutex_unlock(&gavel->push.lock);
}

/* NULL without memory. */
static struct gavel_withdrawal *say(struct gavel_member *member, const struct gavel_withdrawal *what)
{
    struct gavel_withdrawal *withdrawal = malloc(sizeof *withdrawal);
    struct gavel_draft drafted;
    const Gavel__Op *ops = &drafted.op;

    if (!withdrawal)
        return NULL;
    *withdrawal = *what;
    withdrawal->member = member;
    LIST_INIT(&withdrawal->parcels);
    LIST_INSERT_HEAD(&member->withdrawals, withdrawal, in_member);
    draft(withdrawal, &drafted);
    cluster_link_submit(member->store->link, &ops, 1, NEVER, done, withdrawal);
    return withdrawal;
}

static bool is_same(const struct gavel_withdrawal *a, const struct gavel_withdrawal *b)
{
    return a->epoch == b->epoch && a->stays == b->stays && a->is_done == b->is_done && a->loss == b->loss &&
           strcmp(a->successor, b->successor) == 0;
}

static struct gavel_withdrawal *find(struct gavel_member *member, const struct gavel_withdrawal *what)
{
    struct gavel_withdrawal *withdrawal;

    LIST_FOREACH(withdrawal, &member->withdrawals, in_member) {
        if (!withdrawal->is_overtaken && is_same(withdrawal, what))
            return withdrawal;
    }
    return NULL;
}

void gavel_withdrawals_overtake(struct gavel_member *member)
{
    struct gavel_withdrawal *withdrawal;

    LIST_FOREACH(withdrawal, &member->withdrawals, in_member)
        withdrawal->is_overtaken = true;
}

/* Callers that have given up need not be kept for the answer. */
static void prune(struct gavel_withdrawal *withdrawal)
{
    struct gavel_parcel *parcel, *next;

    for (parcel = LIST_FIRST(&withdrawal->parcels); parcel; parcel = next) {
        next = LIST_NEXT(parcel, in_withdrawal);
        if (!parcel->visit)
            gavel_parcel_done(parcel);
    }
}

void gavel_withdraw_member(struct gavel_member *member)
{
    const struct gavel_withdrawal leave = {0};

    ASSERT(member->is_in_doubt); /* until it is answered */
    if (gavel_own(member->store).number != 0 && !find(member, &leave))
        (void)say(member, &leave); /* without memory it is tried again with the next keep-alive */
}

static void read_request(const struct store_request *request, struct gavel_withdrawal *ret_what)
{
    const struct record *record = &request->record;

    *ret_what = (struct gavel_withdrawal){0};
    if (request->op == STORE_LEAVE)
        return;
    ret_what->epoch = record->epoch;
    ret_what->is_done = record->done;
    ret_what->stays = !record->done && !request->leaves;
    ret_what->loss = record->done ? GAVEL_LOSS_NONE : record->loss;
    name_copy(ret_what->successor, sizeof ret_what->successor, record->successor);
}

/* Whom the request is about; NULL: not the candidate that is in the group, or there is no memory. */
static struct gavel_member *member_of(struct gavel_parcel *parcel, const struct store_request *request)
{
    bool is_leave = request->op == STORE_LEAVE;
    const char *id = is_leave ? request->registration.id : request->record.holder;
    uint64_t instance = is_leave ? request->registration.instance : 0;
    struct gavel_member *member = gavel_member_find(parcel->store, request->group);
    struct store_reply *reply = &parcel->visit->replies[parcel->indexes[0]];
    bool is_other = member && (strcmp(member->id, id) != 0 ||
                               (instance != 0 && member->instance != 0 && member->instance != instance));

    if (is_other) {
        reply_fail(reply, GAVEL_ERR_NOT_FOUND,
                   "\"%.80s\" is not in group \"%.80s\"; another candidate of this session is", id,
                   request->group);
        return NULL;
    }
    if (!member)
        member = gavel_member_new(parcel->store, request->group, id, instance);
    if (!member)
        reply_fail(reply, GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
    return member;
}

void gavel_withdrawal_send(struct gavel_parcel *parcel)
{
    const struct store_request *request = &parcel->visit->requests[parcel->indexes[0]];
    struct gavel_member *member = member_of(parcel, request);
    struct gavel_withdrawal what, *withdrawal;

    ASSERT(parcel->kind == GAVEL_PARCEL_WITHDRAWAL);
    ASSERT(parcel->count == 1);
    if (!member) {
        gavel_parcel_done(parcel);
        return;
    }
    read_request(request, &what);
    withdrawal = find(member, &what);
    if (withdrawal)
        prune(withdrawal);
    else
        withdrawal = say(member, &what);
    if (!withdrawal) {
        gavel_parcel_fail(parcel, GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
        gavel_parcel_done(parcel);
        gavel_member_settle(member);
        return;
    }
    parcel->withdrawal = withdrawal;
    LIST_INSERT_HEAD(&withdrawal->parcels, parcel, in_withdrawal);
}
