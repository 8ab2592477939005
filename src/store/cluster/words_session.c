/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a store is asked, and shows, where mandates are granted to the caller's
 * session: words.c has the rest.
 */
#include "store/cluster/cluster.h"

#include "store/rules.h"

#include <string.h>

/* ---- requests ---- */

static Gavel__Policy policy_of(enum gavel_policy policy)
{
    switch (policy) {
    case GAVEL_POLICY_LEXICOGRAPHIC:
        return GAVEL__POLICY__POLICY_LEXICOGRAPHIC;
    case GAVEL_POLICY_PRIORITY:
        return GAVEL__POLICY__POLICY_PRIORITY;
    case GAVEL_POLICY_BALANCED:
        return GAVEL__POLICY__POLICY_BALANCED;
    case GAVEL_POLICY_FIRST:
        break;
    }
    return GAVEL__POLICY__POLICY_FIRST;
}

/* Within what the cluster takes: more would be refused, and means as much. */
static uint32_t within(gavel_ms ms, gavel_ms most) { return (uint32_t)(ms < 0 ? 0 : ms > most ? most : ms); }

void gavel_draft_campaign(const struct store_request *request, bool renews, struct gavel_draft *ret_draft)
{
    const struct registration *registration = &request->registration;
    const struct campaign *said = &request->campaign;
    Gavel__Campaign *campaign = &ret_draft->campaign;

    gavel__op__init(&ret_draft->op);
    gavel__campaign__init(campaign);
    campaign->group = gavel_lend(request->group);
    campaign->id = gavel_lend(registration->id);
    campaign->instance = registration->instance;
    campaign->address = gavel_lend(registration->address);
    campaign->priority = registration->priority;
    campaign->is_ineligible = !said->stands;
    campaign->is_patient = said->is_patient;
    campaign->epoch_at_least = said->epoch_at_least;
    campaign->renews_epoch = renews ? said->renews_epoch : 0;
    campaign->policy = policy_of(said->policy);
    campaign->min_mandate_ms = within(said->min_mandate_ms, TABLE_TTL_MAX_MS);
    campaign->preempts = said->preempts;
    campaign->yields = true;
    campaign->timeout_ms = request->candidate_timeout_ms;
    ret_draft->op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    ret_draft->op.campaign = campaign;
}

void gavel_draft_died(const struct store_request *request, struct gavel_draft *ret_draft)
{
    Gavel__Died *died = &ret_draft->died;

    gavel__died__init(died);
    died->group = gavel_lend(request->group);
    died->epoch = request->record.epoch;
    died->process = gavel_draft_process(&request->record.process, &ret_draft->process);
    ret_draft->op.what_case = GAVEL__OP__WHAT_DIED;
    ret_draft->op.died = died;
}

/* ---- answers ---- */

/*
 * Who holds a mandate is shown to its client by the id of the session, and to
 * others by its number. A number means one session; an id may have been that of
 * a former one, of which whatever is older than ours tells.
 */
static bool is_own(const Gavel__Group *group, uint64_t revision, const struct gavel_own *own)
{
    if (!group || !group->is_held || group->session == 0 || own->number == 0)
        return false;
    return group->session == own->number ||
           (group->session == own->id && (revision >= own->number || own->number > (uint64_t)INT64_MAX));
}

void gavel_show_session(const Gavel__Group *group, uint64_t revision, const struct gavel_own *own,
                        struct store_reply *reply)
{
    reply->session = own->number;
    reply->revision = revision;
    reply->is_ours = is_own(group, revision, own);
}

static bool is_refusal(uint32_t status)
{
    return status == GAVEL_ERR_CONFLICT || status == GAVEL_ERR_NOT_HOLDER;
}

void gavel_take_session_result(const struct store_request *request, const Gavel__OpResult *result,
                               const struct process_id *self, const struct gavel_own *own,
                               struct store_reply *reply)
{
    bool shows = request->op != STORE_LEAVE && request->op != STORE_DIED;

    if (shows)
        gavel_take_group(result->group, self, reply);
    gavel_show_session(result->group, result->revision, own, reply);
    if (result->status == GAVEL_OK)
        reply->status = GAVEL_OK;
    else if (is_refusal(result->status) && request->op != STORE_HEARTBEAT && shows)
        rules_explain(request, (enum gavel_status)result->status, reply);
    else
        gavel_take_failure(result->status, result->message, reply);
    if (request->op == STORE_HEARTBEAT && result->status == GAVEL_ERR_ID_IN_USE) {
        reply->other_instance = result->other_instance;
        reply->other_beats = result->other_beats;
    }
}

/* ---- changes ---- */

static void take_elected(const Gavel__Change *change, struct store_news *news)
{
    news->record.version = change->revision;
    news->record.held = true;
    news->is_ours = change->session != 0;
    name_copy(news->record.address, sizeof news->record.address, change->address);
}

static void take_vacant(const Gavel__Change *change, struct store_news *news)
{
    news->record.version = change->revision;
    news->record.loss = gavel_loss_of(change->why);
    name_copy(news->record.successor, sizeof news->record.successor, change->successor);
}

/* A wish concerns who holds the mandate, and leaves the version as it was: that of the grant, its epoch. */
static void take_wish(const Gavel__Change *change, struct store_news *news)
{
    news->record.version = change->epoch;
    news->record.held = true;
    news->is_ours = true;
    if (change->kind != GAVEL__CHANGE__KIND__WISHED)
        return;
    news->record.wish_epoch = change->epoch;
    news->record.wish_force = change->is_forced;
    name_copy(news->record.wish_successor, sizeof news->record.wish_successor, change->successor);
}

enum gavel_shown gavel_take_change(const Gavel__Change *change, struct store_news *ret_news)
{
    struct store_news *news = ret_news;

    *news = (struct store_news){.kind = STORE_NEWS_RECORD, .is_found = true, .revision = change->revision};
    name_copy(news->group, sizeof news->group, change->group);
    name_copy(news->record.holder, sizeof news->record.holder, change->holder);
    news->record.epoch = change->epoch;
    switch (change->kind) {
    case GAVEL__CHANGE__KIND__ELECTED:
        take_elected(change, news);
        return GAVEL_SHOWN_RECORD;
    case GAVEL__CHANGE__KIND__VACANT:
        take_vacant(change, news);
        return GAVEL_SHOWN_RECORD;
    case GAVEL__CHANGE__KIND__WISHED:
    case GAVEL__CHANGE__KIND__WISH_OVER:
        take_wish(change, news);
        return change->session != 0 ? GAVEL_SHOWN_RECORD : GAVEL_SHOWN_NOTHING;
    case GAVEL__CHANGE__KIND__DONE:
        news->record.version = change->revision;
        news->record.done = true;
        return GAVEL_SHOWN_RECORD;
    case GAVEL__CHANGE__KIND__GROUP_GONE:
        news->is_found = false;
        news->record = (struct record){0};
        return GAVEL_SHOWN_RECORD;
    case GAVEL__CHANGE__KIND__REOPENED:
        return GAVEL_SHOWN_HINT;
    default:
        return GAVEL_SHOWN_NOTHING; /* candidates and notes come and go */
    }
}
