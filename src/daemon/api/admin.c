/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls that change something. A body is read here and becomes a request to
 * the consensus thread, which alone knows whether it can be done. The answer comes
 * back as the same message. The client may go away in between: the message is then
 * only freed.
 */
#include "daemon/api/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS_MAX 600000

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* NULL: the call has been answered. */
static struct api_pending *begin(struct api_call *call, enum request_kind kind)
{
    struct api *api = call->api;
    struct api_pending *pending;

    if (api->is_stopping) {
        api_reply_error(call, 503, GAVEL_ERR_STOPPED, "this node is stopping; ask another one");
        return NULL;
    }
    if (api->pending_count >= API_PENDING_MAX) {
        api_reply_error(call, 409, GAVEL_ERR_STATE, "%d calls wait for an answer already; ask again later",
                        API_PENDING_MAX);
        return NULL;
    }
    pending = calloc(1, sizeof *pending);
    if (!pending) {
        api_reply_json(call, 500, NULL);
        return NULL;
    }
    pending->request.kind = kind;
    pending->request.reply_to = &api->replies;
    pending->http = call->http;
    pending->connection = call->connection;
    pending->route = call->route;
    return pending;
}

static void hand_over(struct api_call *call, struct api_pending *pending)
{
    call->connection->pending = pending;
    call->api->pending_count++;
    mailbox_put(&call->api->shared->requests, &pending->request.link);
}

/* False: the call has been answered. */
static bool copy_name(struct api_call *call, json_t *body, const char *key, char name[PEER_NAME_MAX + 1])
{
    const char *text = api_body_text(body, key);

    if (text[0] != '\0' && !peer_name_is_good(text)) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID,
                        "\"%s\": \"%.80s\" is not a valid node name: 1 to %d letters, digits, '.', '-', '_'",
                        key, text, PEER_NAME_MAX);
        return false;
    }
    (void)snprintf(name, PEER_NAME_MAX + 1, "%s", text);
    return true;
}

/* "host:port" with a port from 1 to 65535; what it stands for is found out by whoever dials it. */
static bool copy_address(struct api_call *call, json_t *body, const char *key,
                         char address[PEER_ADDRESS_MAX + 1])
{
    const char *text = api_body_text(body, key);
    const char *colon = strrchr(text, ':');
    const char *digits = colon ? colon + 1 : "";
    bool is_good = colon && colon > text && strlen(text) <= PEER_ADDRESS_MAX && strlen(digits) <= 5 &&
                   digits[0] != '\0' && strspn(digits, "0123456789") == strlen(digits) &&
                   strtol(digits, NULL, 10) >= 1 && strtol(digits, NULL, 10) <= 65535;

    for (const char *p = text; *p; p++)
        is_good = is_good && *p > ' ' && *p <= '~' && !strchr("\"\\/@?#<>", *p);
    if (text[0] != '\0' && !is_good) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID,
                        "\"%s\": \"%.80s\" is not an address; write host:port, such as 10.0.0.4:7400", key,
                        text);
        return false;
    }
    (void)snprintf(address, PEER_ADDRESS_MAX + 1, "%s", text);
    return true;
}

void api_post_transfer(struct api_call *call)
{
    static const struct api_key keys[] = {{"target_leader_id", JSON_STRING, false},
                                          {"timeout_ms", JSON_INTEGER, false},
                                          {"force", JSON_TRUE, false}};
    char target[PEER_NAME_MAX + 1];
    struct api_pending *pending;
    int64_t timeout_ms = 0;
    json_t *body;

    if (!api_body_read(call, keys, COUNT(keys), &body))
        return;
    if (copy_name(call, body, "target_leader_id", target) &&
        api_body_number(call, body, "timeout_ms", 1, TIMEOUT_MS_MAX, &timeout_ms)) {
        pending = begin(call, REQUEST_TRANSFER);
        if (pending) {
            memcpy(pending->request.target, target, sizeof target);
            pending->request.timeout_ms = (uint32_t)timeout_ms;
            pending->request.is_forced = api_body_flag(body, "force");
            hand_over(call, pending);
        }
    }
    json_decref(body);
}

void api_post_stepdown(struct api_call *call)
{
    static const struct api_key keys[] = {{"timeout_ms", JSON_INTEGER, false}};
    struct api_pending *pending;
    int64_t timeout_ms = 0;
    json_t *body;

    if (!api_body_read(call, keys, COUNT(keys), &body))
        return;
    if (api_body_number(call, body, "timeout_ms", 1, TIMEOUT_MS_MAX, &timeout_ms)) {
        pending = begin(call, REQUEST_STEP_DOWN);
        if (pending) {
            pending->request.timeout_ms = (uint32_t)timeout_ms;
            hand_over(call, pending);
        }
    }
    json_decref(body);
}

static const struct {
    const char *name;
    enum request_kind kind;
} actions[] = {{"add", REQUEST_MEMBER_ADD},
               {"remove", REQUEST_MEMBER_REMOVE},
               {"promote", REQUEST_MEMBER_PROMOTE},
               {"demote", REQUEST_MEMBER_DEMOTE}};

/* False: the call has been answered. */
static bool read_action(struct api_call *call, json_t *body, enum request_kind *ret_kind)
{
    const char *text = api_body_text(body, "action");

    for (size_t i = 0; i < COUNT(actions); i++) {
        if (strcmp(actions[i].name, text) == 0) {
            *ret_kind = actions[i].kind;
            return true;
        }
    }
    api_reply_error(call, 400, GAVEL_ERR_INVALID, "\"action\" must be add, remove, promote or demote");
    return false;
}

/* False: the call has been answered. */
static bool read_member(struct api_call *call, json_t *body, struct request *ret_request)
{
    struct request *r = ret_request;
    int64_t priority = 0;
    int64_t timeout_ms = 0;

    if (!read_action(call, body, &r->kind) || !copy_name(call, body, "id", r->target) ||
        !copy_address(call, body, "address", r->address) ||
        !copy_address(call, body, "api_address", r->api) ||
        !api_body_number(call, body, "priority", 0, UINT8_MAX, &priority) ||
        !api_body_number(call, body, "timeout_ms", 1, TIMEOUT_MS_MAX, &timeout_ms))
        return false;
    if (r->target[0] == '\0' || (r->kind == REQUEST_MEMBER_ADD && r->address[0] == '\0')) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "\"%s\" is missing", r->target[0] ? "address" : "id");
        return false;
    }
    r->priority = (uint8_t)priority;
    r->timeout_ms = (uint32_t)timeout_ms;
    r->is_witness = api_body_flag(body, "witness");
    r->is_learner = api_body_flag(body, "learner");
    return true;
}

void api_post_members(struct api_call *call)
{
    static const struct api_key keys[] = {
        {"action", JSON_STRING, true},     {"id", JSON_STRING, true},
        {"address", JSON_STRING, false},   {"api_address", JSON_STRING, false},
        {"priority", JSON_INTEGER, false}, {"witness", JSON_TRUE, false},
        {"learner", JSON_TRUE, false},     {"timeout_ms", JSON_INTEGER, false}};
    struct request request = {0};
    struct api_pending *pending;
    json_t *body;

    if (!api_body_read(call, keys, COUNT(keys), &body))
        return;
    if (read_member(call, body, &request)) {
        pending = begin(call, request.kind);
        if (pending) {
            request.reply_to = pending->request.reply_to;
            pending->request = request;
            hand_over(call, pending);
        }
    }
    json_decref(body);
}

static bool is_of_members(const struct request *request) { return request->kind >= REQUEST_MEMBER_ADD; }

static void answer_success(struct api_call *call, const struct request *request)
{
    if (is_of_members(request))
        api_reply_json(call, 200, json_pack("{s:b,s:s}", "success", 1, "message", request->message));
    else
        api_reply_json(call, 200,
                       json_pack("{s:b,s:s,s:o,s:o}", "success", 1, "message", request->message,
                                 "old_leader_id", json_text(request->old_leader), "new_leader_id",
                                 json_text(request->new_leader)));
}

/* The way to the leader: the same call, there. Its API has TLS if ours has. */
static void add_location(struct api_call *call, const struct request *request)
{
    char location[PEER_ADDRESS_MAX + 32];

    (void)snprintf(location, sizeof location, "%s://%s%s",
                   call->api->shared->config->has_api_tls ? "https" : "http", request->leader_api,
                   api_route_at(call->route)->path);
    (void)evhttp_add_header(evhttp_request_get_output_headers(call->http), "Location", location);
}

static void answer(struct api_call *call, const struct request *request)
{
    const char *message = request->message[0] ? request->message : gavel_status_text(request->status);
    int code = api_http_code(request->status);

    if (request->status == GAVEL_OK) {
        answer_success(call, request);
        return;
    }
    if (request->status == GAVEL_ERR_NOT_LEADER && request->leader_api[0] == '\0')
        code =
            503; /* somebody leads, and nobody knows where its API is: a redirect to nowhere helps nobody */
    else if (request->status == GAVEL_ERR_NOT_LEADER)
        add_location(call, request);
    api_reply_error(call, code, request->status, "%s", message);
}

void api_answer_replies(struct api *api)
{
    struct mail_link *message;

    while ((message = mailbox_take(&api->replies))) {
        struct api_pending *pending = (struct api_pending *)(void *)message;
        struct api_call call = {
            .api = api, .http = pending->http, .connection = pending->connection, .route = pending->route};

        api->pending_count--;
        if (pending->http) {
            pending->connection->pending = NULL;
            answer(&call, &pending->request);
        }
        free(pending);
    }
}

/* evhttp frees the request with its connection, unless it was cut loose from it before. */
void api_pending_gone(struct api_pending *pending)
{
    if (!evhttp_request_get_connection(pending->http))
        evhttp_request_free(pending->http);
    pending->http = NULL;
    pending->connection = NULL;
}
