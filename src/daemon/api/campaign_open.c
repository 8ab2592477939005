/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /groups/{group}/campaign, from the body to a candidate:
 *
 *     OpenSession and Campaign (request 1 of the session) ──► the stream
 *          │ a leader of before 0.7.0 does not take both
 *          └─► OpenSession (request 2) ──► Campaign (request 3) ──► the stream
 *
 * A failure is answered like any other error; only a success becomes a stream. If
 * anything goes wrong in between, the session is closed again.
 */
#include "daemon/api/campaign.h"

#include "os/clock.h"
#include "os/entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *name;
    Gavel__Policy policy;
} policies[] = {{"", GAVEL__POLICY__POLICY_UNSET},
                {"first", GAVEL__POLICY__POLICY_FIRST},
                {"lexicographic", GAVEL__POLICY__POLICY_LEXICOGRAPHIC},
                {"priority", GAVEL__POLICY__POLICY_PRIORITY},
                {"balanced", GAVEL__POLICY__POLICY_BALANCED}};

void api_campaign_free(struct api_campaign *campaign)
{
    if (!campaign)
        return;
    api_forwarding_drop(&campaign->request);
    for (size_t i = 0; i < CAMPAIGN_KEEP_ALIVES; i++)
        api_forwarding_drop(&campaign->keep_alives[i].forwarding);
    loop_drop(&campaign->timer);
    if (campaign->op)
        gavel__op__free_unpacked(campaign->op, NULL);
    LIST_REMOVE(campaign, in_api);
    (void)atomic_fetch_sub(&campaign->api->campaign_count, 1);
    free(campaign);
}

/* The client is gone. The session may come all the same, and must not stay: its opening is awaited, for an
 * end that overtakes the beginning would end nothing. */
static void gone(void *user)
{
    struct api_campaign *campaign = user;

    campaign->is_abandoned = true;
}

static void refuse(struct api_campaign *campaign, enum gavel_status status, const char *message)
{
    if (!campaign->is_abandoned) {
        struct api_call call = api_later_end(&campaign->later);

        api_reply_failure(&call, status, message);
    }
    api_campaign_close(campaign);
}

static const char too_busy[] = "this node has too many requests under way; ask again later, or another one";

/* `which` is the Campaign among the operations of the request. */
static void join(struct api_campaign *campaign, const Gavel__ClientFrame *frame, size_t which)
{
    const Gavel__OpResult *result = NULL;
    const char *message;
    enum gavel_status status = api_forwarding_outcome(frame, which, &result, &message);
    struct api_call call;

    if (status != GAVEL_OK || campaign->is_abandoned) {
        refuse(campaign, status, message);
        return;
    }
    campaign->revision = result->revision;
    call = api_later_end(&campaign->later);
    if (api_campaign_may_open(&call))
        api_campaign_begin(campaign, &call);
    else
        api_campaign_close(campaign);
}

static void joined(void *user, const Gavel__ClientFrame *frame) { join(user, frame, 0); }

static bool send_ops(struct api_campaign *campaign, uint64_t id, Gavel__Op **ops, size_t count,
                     void (*answered)(void *user, const Gavel__ClientFrame *frame))
{
    Gavel__Request request = GAVEL__REQUEST__INIT;

    request.session = campaign->session;
    request.id = id;
    request.n_ops = count;
    request.ops = ops;
    api_forwarding_init(&campaign->request, campaign->api, answered, campaign);
    return api_forwarding_request(&campaign->request, &request);
}

static void opened(void *user, const Gavel__ClientFrame *frame)
{
    struct api_campaign *campaign = user;
    const Gavel__OpResult *result = NULL;
    const char *message;
    enum gavel_status status = api_forwarding_outcome(frame, 0, &result, &message);

    campaign->kept_at = campaign->word.at = campaign->request.sent_at;
    campaign->session_revision = status == GAVEL_OK ? result->session_revision : 0;
    if (status == GAVEL_OK && !campaign->is_abandoned && !send_ops(campaign, 3, &campaign->op, 1, joined)) {
        status = GAVEL_ERR_STORE_UNAVAILABLE;
        message = too_busy;
    }
    if (status != GAVEL_OK || campaign->is_abandoned)
        refuse(campaign, status, message);
}

/* One after the other, for a leader that does not take both at once. */
static void open_alone(struct api_campaign *campaign)
{
    Gavel__OpenSession open;
    Gavel__Op op = GAVEL__OP__INIT;
    Gavel__Op *ops[] = {&op};

    gavel__open_session__init(&open);
    open.session = campaign->session;
    open.ttl_ms = campaign->ttl_ms;
    open.name = campaign->op->campaign->id;
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &open;
    if (!send_ops(campaign, 2, ops, 1, opened))
        refuse(campaign, GAVEL_ERR_STORE_UNAVAILABLE, too_busy);
}

/*
 * A leader of before 0.7.0 says that there is no such session; or that the id belongs to another request, if
 * another leader has carried it out. A campaign may be done again.
 */
static void began(void *user, const Gavel__ClientFrame *frame)
{
    struct api_campaign *campaign = user;
    const Gavel__OpResult *result = NULL;
    const char *message;
    enum gavel_status status = api_forwarding_outcome(frame, 0, &result, &message);
    bool is_whole = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY && frame->reply->n_results == 0;

    campaign->kept_at = campaign->word.at = campaign->request.sent_at;
    campaign->session_revision = status == GAVEL_OK ? result->session_revision : 0;
    if (is_whole && !campaign->is_abandoned &&
        (status == GAVEL_ERR_SESSION_GONE || status == GAVEL_ERR_STATE))
        open_alone(campaign);
    else if (status != GAVEL_OK)
        refuse(campaign, status, message);
    else
        join(campaign, frame, 1);
}

/* False: the call has been answered. */
static bool read_policy(struct api_call *call, json_t *body, Gavel__Policy *ret_policy)
{
    const char *text = api_body_text(body, "policy");

    for (size_t i = 0; i < COUNT(policies); i++) {
        if (strcmp(policies[i].name, text) == 0) {
            *ret_policy = policies[i].policy;
            return true;
        }
    }
    api_reply_error(call, 400, GAVEL_ERR_INVALID,
                    "\"policy\" must be first, lexicographic, priority or balanced");
    return false;
}

/* False: the call has been answered. Strings are borrowed from the body. */
static bool read_candidate(struct api_call *call, json_t *body, Gavel__Campaign *ret_op)
{
    const json_t *eligible = json_object_get(body, "eligible");
    const json_t *metadata = json_object_get(body, "metadata");
    int64_t min_mandate_ms = 0;
    int64_t priority = 0;

    if (!read_policy(call, body, &ret_op->policy) ||
        !api_body_number(call, body, "priority", INT32_MIN, INT32_MAX, &priority) ||
        !api_body_number(call, body, "min_mandate_ms", 0, INT32_MAX, &min_mandate_ms))
        return false;
    ret_op->group = call->names.group;
    ret_op->id = (char *)(uintptr_t)api_body_text(body, "candidate"); /* protobuf-c has no const strings */
    ret_op->address = (char *)(uintptr_t)api_body_text(body, "address");
    ret_op->metadata.data = (uint8_t *)(uintptr_t)api_body_text(body, "metadata");
    ret_op->metadata.len = json_string_length(metadata);
    ret_op->priority = (int32_t)priority;
    ret_op->min_mandate_ms = (uint32_t)min_mandate_ms;
    ret_op->is_ineligible = json_is_false(eligible);
    ret_op->preempts = api_body_flag(body, "preempt");
    return true;
}

/* False: the call has been answered. */
static bool read_keeping(struct api_call *call, json_t *body, bool *ret_is_by_client)
{
    const char *text = api_body_text(body, "keepalive");

    if (text[0] && strcmp(text, "stream") != 0 && strcmp(text, "client") != 0) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "\"keepalive\" must be stream or client");
        return false;
    }
    *ret_is_by_client = strcmp(text, "stream") != 0;
    return true;
}

struct api_campaign *api_campaign_new(struct api *api, const char *group, const char *candidate)
{
    struct api_campaign *campaign = calloc(1, sizeof *campaign);

    if (!campaign)
        return NULL;
    campaign->api = api;
    campaign->is_kept_by_client = true;
    campaign->word.stamp = CAMPAIGN_NO_STAMP;
    (void)snprintf(campaign->group, sizeof campaign->group, "%s", group);
    (void)snprintf(campaign->candidate, sizeof campaign->candidate, "%s", candidate);
    LIST_INSERT_HEAD(&api->campaigns, campaign, in_api);
    (void)atomic_fetch_add(&api->campaign_count, 1);
    return campaign;
}

/* What the body says of the session's time. */
struct keeping {
    bool is_by_client;
    int64_t stamp;
};

/* Both operations are good. */
static void begin(struct api_call *call, Gavel__Op *session_op, const Gavel__Op *campaign_op,
                  const struct keeping *keeping)
{
    Gavel__OpenSession *open = session_op->open_session;
    Gavel__Op *ops[] = {session_op, NULL};
    struct api_campaign *campaign =
        api_campaign_new(call->api, campaign_op->campaign->group, campaign_op->campaign->id);

    if (campaign)
        campaign->op = client_op_copy(campaign_op);
    if (!campaign || !campaign->op) {
        api_campaign_free(campaign);
        api_reply_json(call, 500, NULL);
        return;
    }
    campaign->ttl_ms = open->ttl_ms;
    campaign->is_kept_by_client = keeping->is_by_client;
    campaign->word.stamp = keeping->stamp;
    while (campaign->session == 0)
        campaign->session = entropy_u64();
    open->session = campaign->session;
    ops[1] = campaign->op;
    if (!send_ops(campaign, 1, ops, 2, began)) {
        api_campaign_free(campaign);
        api_reply_busy(call);
        return;
    }
    api_later_begin(call, &campaign->later, gone, campaign);
}

/* The body is what it should be. */
static void take(struct api_call *call, json_t *body)
{
    Gavel__Campaign campaign;
    Gavel__OpenSession open;
    Gavel__Op campaign_op = GAVEL__OP__INIT;
    Gavel__Op session_op = GAVEL__OP__INIT;
    struct gavel_error error = {0};
    int64_t ttl_ms = CAMPAIGN_TTL_MS;
    struct keeping keeping;

    gavel__campaign__init(&campaign);
    gavel__open_session__init(&open);
    if (!read_candidate(call, body, &campaign) || !read_keeping(call, body, &keeping.is_by_client) ||
        !api_stamp_read(call, body, &keeping.stamp) ||
        !api_body_number(call, body, "ttl_ms", TABLE_TTL_MIN_MS, TABLE_TTL_MAX_MS, &ttl_ms) ||
        !api_campaign_may_open(call))
        return;
    open.ttl_ms = (uint32_t)ttl_ms;
    open.session = 1; /* until there is one */
    open.name = campaign.id;
    session_op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    session_op.open_session = &open;
    campaign_op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    campaign_op.campaign = &campaign;
    if (table_op_check(&campaign_op, true, &error) != GAVEL_OK ||
        table_op_check(&session_op, true, &error) != GAVEL_OK)
        api_reply_failure(call, error.status, error.message);
    else
        begin(call, &session_op, &campaign_op, &keeping);
}

void api_post_campaign(struct api_call *call)
{
    static const struct api_key keys[] = {
        {"candidate", JSON_STRING, true},        {"address", JSON_STRING, false},
        {"priority", JSON_INTEGER, false},       {"eligible", JSON_TRUE, false},
        {"metadata", JSON_STRING, false},        {"policy", JSON_STRING, false},
        {"min_mandate_ms", JSON_INTEGER, false}, {"preempt", JSON_TRUE, false},
        {"ttl_ms", JSON_INTEGER, false},         {"keepalive", JSON_STRING, false},
        {"sent_at", JSON_INTEGER, false}};
    json_t *body;

    if (!api_body_read(call, keys, COUNT(keys), &body))
        return;
    take(call, body);
    json_decref(body);
}
