/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HEARTBEATs in the caller's session: who takes part in which group, and what
 * came of it. member.h has the picture.
 */
#include "store/cluster/cluster.h"

#include "base/assert.h"
#include "store/driver.h"

#include <stdlib.h>
#include <string.h>

static void refuse_second(const struct gavel_member *member, struct store_reply *reply)
{
    reply_fail(reply, GAVEL_ERR_ID_IN_USE,
               "\"%.80s\" of this session is in group \"%.80s\" still; join again when it has left",
               member->id, member->group);
    reply->other_instance = member->instance;
}

/* The candidate that says so; NULL if it may not, and the reply says why. */
static struct gavel_member *enter(struct gavel_store *gavel, const struct store_request *request,
                                  struct store_reply *reply)
{
    const struct registration *registration = &request->registration;
    struct gavel_member *member = gavel_member_find(gavel, request->group);

    if (member && (member->instance != registration->instance || strcmp(member->id, registration->id) != 0)) {
        refuse_second(member, reply);
        return NULL;
    }
    if (!member)
        member = gavel_member_new(gavel, request->group, registration->id, registration->instance);
    if (!member)
        reply_fail(reply, GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
    else
        gavel_withdrawals_overtake(member);
    return member;
}

void gavel_campaigns_check(struct gavel_parcel *parcel)
{
    size_t kept = 0;

    ASSERT(parcel->kind == GAVEL_PARCEL_CAMPAIGNS);
    ASSERT(!parcel->said);
    parcel->said = calloc(parcel->count > 0 ? parcel->count : 1, sizeof *parcel->said);
    for (size_t i = 0; i < parcel->count; i++) {
        size_t index = parcel->indexes[i];
        const struct store_request *request = &parcel->visit->requests[index];
        struct store_reply *reply = &parcel->visit->replies[index];
        struct gavel_member *member = NULL;

        if (parcel->said)
            member = enter(parcel->store, request, reply);
        else
            reply_fail(reply, GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
        if (!member)
            continue;
        member->campaigns++;
        parcel->said[kept] =
            (struct gavel_said){.member = member,
                                .is_of_any_session = request->session == 0,
                                .renews = request->campaign.renews_epoch != 0 && !parcel->is_without_renewal};
        parcel->indexes[kept++] = index;
    }
    parcel->count = kept;
}

/* An older leader does not know how to go on under a new epoch, and refuses all that was said with it. */
static bool say_without_renewal(struct gavel_parcel *parcel, size_t which)
{
    struct gavel_parcel *again = gavel_parcel_new(1);

    if (!again)
        return false;
    again->kind = GAVEL_PARCEL_CAMPAIGNS;
    again->is_without_renewal = true;
    again->give_up_at = parcel->give_up_at;
    again->count = 1;
    again->indexes[0] = parcel->indexes[which];
    store_reply_done(&parcel->visit->replies[again->indexes[0]]);
    gavel_parcel_enqueue(parcel->store, parcel->visit, again);
    gavel_thread_wake(parcel->store);
    return true;
}

/*
 * If its caller has given up, and saw no session when it asked, it may have left since without telling
 * anybody. One that saw the session says that it leaves, and for one that ends before it is told of this
 * answer the library does (lib/loop/worker.h).
 */
static void joined(struct gavel_parcel *parcel, size_t which)
{
    const struct gavel_said *said = &parcel->said[which];
    struct gavel_member *member = said->member;

    if (!parcel->visit && said->is_of_any_session && !member->is_joined) {
        member->is_in_doubt = parcel->store->has_doubt = true;
        if (member->campaigns == 0)
            gavel_withdraw_member(member);
        return;
    }
    member->is_joined = true;
    member->is_in_doubt = false;
}

void gavel_campaign_done(struct gavel_parcel *parcel, size_t which, enum gavel_status status,
                         const Gavel__OpResult *result)
{
    struct gavel_store *gavel = parcel->store;
    const struct gavel_said *said = &parcel->said[which];
    struct gavel_member *member = said->member;

    ASSERT(member->campaigns > 0);
    member->campaigns--;
    if (result && result->status == GAVEL_OK) {
        joined(parcel, which);
    } else if (result && result->status == GAVEL_ERR_STORE_UNSUPPORTED && said->renews && parcel->visit) {
        (void)say_without_renewal(parcel, which); /* without memory the refusal stands */
    } else if (!result && status == GAVEL_ERR_TIMEOUT && gavel_own(gavel).number == 0) {
        /* It may have gone with an opening. In a session that is open, what is given up was not sent. */
        member->is_in_doubt = gavel->has_doubt = true;
    }
    gavel_member_settle(member);
}

void gavel_withdraw_doubtful(struct gavel_store *gavel)
{
    struct gavel_member *next;

    if (!gavel->has_doubt)
        return;
    gavel->has_doubt = false;
    for (struct gavel_member *member = gavel_member_first(gavel); member; member = next) {
        next = gavel_member_next(member);
        if (!member->is_in_doubt)
            continue;
        gavel->has_doubt = true;
        if (member->campaigns == 0)
            gavel_withdraw_member(member);
    }
}

void gavel_members_lost(struct gavel_store *gavel)
{
    struct gavel_member *next;

    gavel->has_doubt = false;
    for (struct gavel_member *member = gavel_member_first(gavel); member; member = next) {
        next = gavel_member_next(member);
        member->is_joined = member->is_in_doubt = false;
        gavel_member_settle(member);
    }
}
