/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a candidate over HTTP does with its session besides reading its stream: it
 * keeps it alive, and resigns. Any node accepts both, even one without the stream.
 *
 * A resignation is a request of the session and needs an id above all earlier ones.
 * This node's table knows the newest, maybe a little late, and others may ask at
 * the same time. So the id skips a random number. One that proves too low is
 * refused (never taken for a repetition) and tried again.
 */
#include "daemon/api/campaign.h"

#include "os/entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TRIES_MAX 8
#define ID_SKIP_BITS 32

struct forwarding_of_session {
    struct api_forwarding forwarding;
    struct api_later later;
    uint64_t session;
    uint64_t session_revision; /* 0: whichever is open */
    uint64_t epoch;
    int64_t stamp;
    bool stays;
    int tries;
};

static void gone(void *user)
{
    struct forwarding_of_session *own = user;

    api_forwarding_drop(&own->forwarding); /* it is carried out all the same */
    free(own);
}

bool api_session_read(struct api_call *call, json_t *body, uint64_t *ret_session)
{
    const char *text = api_body_text(body, "session");
    bool is_good = strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;

    *ret_session = is_good ? strtoull(text, NULL, 16) : 0;
    if (*ret_session == 0)
        api_reply_error(call, 400, GAVEL_ERR_INVALID,
                        "\"session\" must be the 16 digits of the event \"session\" of the campaign");
    return *ret_session != 0;
}

bool api_session_named_read(struct api_call *call, struct api_session_named *ret_named)
{
    static const struct api_key keys[] = {{"session", JSON_STRING, true},
                                          {"session_revision", JSON_INTEGER, false},
                                          {"sent_at", JSON_INTEGER, false}};
    int64_t revision = 0;
    json_t *body;
    bool is_good;

    if (!api_body_read(call, keys, COUNT(keys), &body))
        return false;
    is_good = api_session_read(call, body, &ret_named->id) &&
              api_body_number(call, body, "session_revision", 1, INT64_MAX, &revision) &&
              api_stamp_read(call, body, &ret_named->stamp);
    ret_named->revision = (uint64_t)revision;
    json_decref(body);
    return is_good;
}

bool api_session_was_kept(const Gavel__Kept *kept, uint64_t id, uint64_t revision)
{
    uint64_t open = kept->n_revisions == 1 ? kept->revisions[0] : 0;

    for (size_t i = 0; i < kept->n_gone; i++)
        if (kept->gone[i] == id)
            return false;
    return open == 0 || revision == 0 || open == revision;
}

void api_session_look(struct api *api, uint64_t id, const char *group, struct api_session_sight *ret_sight)
{
    struct table_box *box = &api->shared->table;
    const struct table_session *session;
    const struct table_candidate *candidate;

    *ret_sight = (struct api_session_sight){0};
    table_box_lock(box);
    ret_sight->revision = box->table.revision;
    session = table_session_find(&box->table, id);
    if (session) {
        ret_sight->is_known = true;
        ret_sight->last_id = session->last_id;
        ret_sight->ttl_ms = session->ttl_ms;
        TAILQ_FOREACH(candidate, &session->candidates, in_session) {
            if (strcmp(candidate->group->name, group) == 0) {
                ret_sight->is_candidate = true;
                (void)snprintf(ret_sight->candidate, sizeof ret_sight->candidate, "%s", candidate->id);
            }
        }
    }
    table_box_unlock(box);
}

bool api_session_is_foreign(struct api_call *call, uint64_t session)
{
    struct api_session_sight sight;

    api_session_look(call->api, session, call->names.group, &sight);
    if (!sight.is_known || sight.is_candidate)
        return false;
    api_reply_error(call, 409, GAVEL_ERR_STATE, "this session is not a candidate of \"%s\"",
                    call->names.group);
    return true;
}

/* NULL: the call has been answered. */
static struct forwarding_of_session *make(struct api_call *call, uint64_t session,
                                          void (*answered)(void *user, const Gavel__ClientFrame *frame))
{
    struct forwarding_of_session *own;

    if (api_session_is_foreign(call, session))
        return NULL;
    own = calloc(1, sizeof *own);
    if (!own) {
        api_reply_json(call, 500, NULL);
        return NULL;
    }
    own->session = session;
    api_forwarding_init(&own->forwarding, call->api, answered, own);
    return own;
}

void api_reply_session_gone(struct api_call *call)
{
    api_reply_error(call, 410, GAVEL_ERR_SESSION_GONE,
                    "this session is not open: it was closed, or no keep-alive came in time; campaign again");
}

/* The session holds for valid_ms from when the client sent this keep-alive, which it named sent_at. A table
 * that does not have the session yet cannot tell for how long; its client knows. */
static json_t *kept_json(const struct api *api, const struct forwarding_of_session *own,
                         const struct api_session_sight *sight)
{
    return json_pack("{s:o,s:o,s:o}", "ttl_ms", sight->is_known ? json_u64(sight->ttl_ms) : json_null(),
                     "sent_at", api_stamp_json(own->stamp), "valid_ms",
                     sight->is_known ? api_valid_json(api, sight->ttl_ms) : json_null());
}

static void kept(void *user, const Gavel__ClientFrame *frame)
{
    struct forwarding_of_session *own = user;
    struct api_call call = api_later_end(&own->later);
    const Gavel__Kept *answer = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT ? frame->kept : NULL;
    struct api_session_sight sight;

    if (!answer || answer->status != GAVEL_OK) {
        api_reply_failure(&call, answer ? (enum gavel_status)answer->status : GAVEL_ERR_IO,
                          "the cluster did not answer in time; the session was not kept, ask again");
    } else if (!api_session_was_kept(answer, own->session, own->session_revision)) {
        api_reply_session_gone(&call);
    } else {
        api_session_look(call.api, own->session, call.names.group, &sight);
        api_reply_json(&call, 200, kept_json(call.api, own, &sight));
        api_campaign_kept(call.api, own->session,
                          &(struct api_word){.at = own->forwarding.sent_at, .stamp = own->stamp});
    }
    free(own);
}

void api_post_keepalive(struct api_call *call)
{
    struct forwarding_of_session *own;
    struct api_session_named named = {.stamp = CAMPAIGN_NO_STAMP};

    own = api_session_named_read(call, &named) ? make(call, named.id, kept) : NULL;
    if (!own)
        return;
    own->stamp = named.stamp;
    own->session_revision = named.revision;
    if (!api_forwarding_keep_alive(&own->forwarding, named.id)) {
        free(own);
        api_reply_busy(call);
        return;
    }
    api_later_begin(call, &own->later, gone, own);
}

static bool send_resignation(struct forwarding_of_session *own, char *group)
{
    Gavel__Request request = GAVEL__REQUEST__INIT;
    Gavel__Withdraw withdraw;
    Gavel__Op op = GAVEL__OP__INIT;
    Gavel__Op *ops[] = {&op};
    struct api_session_sight sight;

    gavel__withdraw__init(&withdraw);
    api_session_look(own->forwarding.api, own->session, group, &sight);
    withdraw.group = group;
    withdraw.epoch = own->epoch;
    withdraw.stays = own->stays;
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    request.session = own->session;
    request.id = sight.last_id + 1 + (entropy_u64() >> (64 - ID_SKIP_BITS));
    request.n_ops = 1;
    request.ops = ops;
    own->tries++;
    return api_forwarding_request(&own->forwarding, &request);
}

/* Another request of the session had a higher id. */
static bool is_overtaken(const Gavel__ClientFrame *frame)
{
    return frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY && frame->reply->status == GAVEL_ERR_STATE;
}

static void resigned(void *user, const Gavel__ClientFrame *frame)
{
    struct forwarding_of_session *own = user;
    const Gavel__OpResult *result = NULL;
    enum gavel_status status;
    const char *message;
    struct api_call call;

    if (is_overtaken(frame) && own->tries < TRIES_MAX && send_resignation(own, own->later.names.group))
        return;
    call = api_later_end(&own->later);
    status = api_forwarding_outcome(frame, 0, &result, &message);
    if (status == GAVEL_OK)
        api_reply_json(&call, 200,
                       json_pack("{s:b,s:o,s:o}", "success", 1, "group", json_words(call.names.group),
                                 "revision", json_u64(result->revision)));
    else if (status == GAVEL_ERR_SESSION_GONE)
        api_reply_session_gone(&call);
    else
        api_reply_failure(&call, status, message);
    free(own);
}

void api_post_resign(struct api_call *call)
{
    static const struct api_key keys[] = {
        {"session", JSON_STRING, true}, {"epoch", JSON_INTEGER, false}, {"stay", JSON_TRUE, false}};
    struct forwarding_of_session *own = NULL;
    uint64_t session = 0;
    int64_t epoch = 0;
    json_t *body;
    bool is_good;
    bool stays;

    if (!api_body_read(call, keys, COUNT(keys), &body))
        return;
    stays = api_body_flag(body, "stay");
    is_good =
        api_session_read(call, body, &session) && api_body_number(call, body, "epoch", 1, INT64_MAX, &epoch);
    json_decref(body);
    if (is_good && stays && epoch == 0)
        api_reply_error(
            call, 400, GAVEL_ERR_INVALID,
            "\"stay\" needs the \"epoch\" of the mandate to give up: without it, a call that arrives late would give up the next one");
    else if (is_good)
        own = make(call, session, resigned);
    if (!own)
        return;
    own->epoch = (uint64_t)epoch;
    own->stays = stays;
    if (!send_resignation(own, call->names.group)) {
        free(own);
        api_reply_busy(call);
        return;
    }
    api_later_begin(call, &own->later, gone, own);
}
