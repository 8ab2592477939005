/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of the API, in one table. openapi.json describes each, and a test
 * compares the two. What all calls share is checked here, before a handler runs:
 * the path, the method, the token, the sizes.
 */
#include "daemon/api/internal.h"

#include "os/clock.h"

#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <string.h>

static const struct api_route routes[] = {
    {EVHTTP_REQ_GET, "/leader", "getLeader", true, api_get_leader},
    {EVHTTP_REQ_GET, "/status", "getStatus", true, api_get_status},
    {EVHTTP_REQ_GET, "/members", "getMembers", true, api_get_members},
    {EVHTTP_REQ_POST, "/members", "changeMembers", true, api_post_members},
    {EVHTTP_REQ_GET, "/elections", "getElections", true, api_get_elections},
    {EVHTTP_REQ_GET, "/events", "getEvents", true, api_get_events},
    {EVHTTP_REQ_GET, "/metrics", "getMetrics", true, api_get_metrics},
    {EVHTTP_REQ_GET, "/health", "getHealth", false, api_get_health},
    {EVHTTP_REQ_GET, "/ready", "getReady", false, api_get_ready},
    {EVHTTP_REQ_GET, "/openapi.json", "getOpenapi", true, api_get_openapi},
    {EVHTTP_REQ_POST, "/transfer", "transfer", true, api_post_transfer},
    {EVHTTP_REQ_POST, "/stepdown", "stepDown", true, api_post_stepdown},
    {EVHTTP_REQ_GET, "/groups/{group}/leader", "getGroupLeader", true, api_get_group_leader},
    {EVHTTP_REQ_GET, "/groups/{group}/leader/name", "getGroupLeaderName", true, api_get_group_leader_name},
    {EVHTTP_REQ_GET, "/groups", "getGroups", true, api_get_groups},
    {EVHTTP_REQ_GET, "/groups/{group}", "getGroup", true, api_get_group},
    {EVHTTP_REQ_DELETE, "/groups/{group}", "deleteGroup", true, api_delete_group},
    {EVHTTP_REQ_POST, "/groups/{group}/campaign", "campaign", true, api_post_campaign},
    {EVHTTP_REQ_POST, "/groups/{group}/events", "campaignEvents", true, api_post_own_events},
    {EVHTTP_REQ_POST, "/groups/{group}/keepalive", "keepAlive", true, api_post_keepalive},
    {EVHTTP_REQ_POST, "/groups/{group}/resign", "resign", true, api_post_resign},
    {EVHTTP_REQ_POST, "/groups/{group}/transfer", "transferGroup", true, api_post_group_transfer},
    {EVHTTP_REQ_GET, "/groups/{group}/watch", "watchGroup", true, api_get_group_watch},
    {EVHTTP_REQ_GET, "/groups/{group}/notes", "getNotes", true, api_get_notes},
    {EVHTTP_REQ_GET, "/groups/{group}/notes/{key}", "getNote", true, api_get_note},
    {EVHTTP_REQ_PUT, "/groups/{group}/notes/{key}", "putNote", true, api_put_note},
    {EVHTTP_REQ_DELETE, "/groups/{group}/notes/{key}", "deleteNote", true, api_delete_note},
    {EVHTTP_REQ_GET, "/watch", "watch", true, api_get_watch},
};
#define ROUTE_COUNT (sizeof routes / sizeof *routes)
_Static_assert(ROUTE_COUNT <= API_ROUTES_MAX, "a counter for each");

size_t api_route_count(void) { return ROUTE_COUNT; }
const struct api_route *api_route_at(size_t which) { return &routes[which]; }

const char *api_method_name(enum evhttp_cmd_type method)
{
    switch (method) {
    case EVHTTP_REQ_POST:
        return "POST";
    case EVHTTP_REQ_PUT:
        return "PUT";
    case EVHTTP_REQ_DELETE:
        return "DELETE";
    default:
        return "GET";
    }
}

static bool is_stream(const struct api_route *route)
{
    return route->handle == api_get_events || route->handle == api_get_group_watch ||
           route->handle == api_get_watch;
}

static bool fits(const struct api_route *route, enum evhttp_cmd_type method)
{
    /* HEAD is GET without the body; evhttp leaves it out. A stream is all body. */
    return route->method == method ||
           (method == EVHTTP_REQ_HEAD && route->method == EVHTTP_REQ_GET && !is_stream(route));
}

/* The index of the route; ROUTE_COUNT if there is none. *ret_knows_path: with another method there is. */
static size_t find(const char *path, enum evhttp_cmd_type method, bool *ret_knows_path)
{
    *ret_knows_path = false;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!api_path_fits(routes[i].path, path))
            continue;
        *ret_knows_path = true;
        if (fits(&routes[i], method))
            return i;
    }
    return ROUTE_COUNT;
}

static void reply_not_found(struct api_call *call, const char *path)
{
    char list[512];
    size_t length = 0;

    list[0] = '\0';
    for (size_t i = 0; i < ROUTE_COUNT && length < sizeof list; i++) {
        if (strchr(routes[i].path, '{') || (i > 0 && strcmp(routes[i].path, routes[i - 1].path) == 0))
            continue;
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%s", length ? ", " : "", routes[i].path);
    }
    api_reply_error(
        call, 404, GAVEL_ERR_NOT_FOUND,
        "there is no %.100s here; there are %s; what is below /groups is in /openapi.json, and a slash in a name is %%2F",
        path, list);
}

static void reply_not_allowed(struct api_call *call, const char *path)
{
    char allowed[32] = "";

    for (size_t i = 0; i < ROUTE_COUNT; i++)
        if (api_path_fits(routes[i].path, path))
            (void)snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), "%s%s",
                           allowed[0] ? ", " : "", api_method_name(routes[i].method));
    (void)evhttp_add_header(evhttp_request_get_output_headers(call->http), "Allow", allowed);
    api_reply_error(call, 405, GAVEL_ERR_INVALID, "%.100s takes %s only", path, allowed);
}

static size_t size_of_headers(struct evkeyvalq *headers)
{
    const struct evkeyval *header;
    size_t size = 0;

    for (header = TAILQ_FIRST(headers); header; header = TAILQ_NEXT(header, next))
        size += strlen(header->key) + strlen(header->value) + 4;
    return size;
}

/* False: the call has been answered. */
static bool check_sizes(struct api_call *call)
{
    if (strlen(evhttp_request_get_uri(call->http)) > API_URI_MAX) {
        api_reply_error(call, 414, GAVEL_ERR_INVALID, "the address of the call is longer than %u bytes",
                        API_URI_MAX);
        return false;
    }
    if (size_of_headers(evhttp_request_get_input_headers(call->http)) > API_HEADERS_MAX) {
        api_reply_error(call, 431, GAVEL_ERR_INVALID, "the headers are larger than %u bytes",
                        API_HEADERS_MAX);
        return false;
    }
    if (evbuffer_get_length(evhttp_request_get_input_buffer(call->http)) > API_BODY_MAX) {
        api_reply_error(call, 413, GAVEL_ERR_TOO_LARGE, "the body is larger than %u bytes", API_BODY_MAX);
        return false;
    }
    return true;
}

/* A page of another site that a person has open could otherwise make their browser depose a leader on this
 * machine: browsers name the site in Origin whenever they send anything but a GET. */
static bool comes_from_elsewhere(struct evhttp_request *http)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(http);
    const char *origin = evhttp_find_header(headers, "Origin");
    const char *host = evhttp_find_header(headers, "Host");
    const char *authority = origin ? strstr(origin, "://") : NULL;

    if (!origin)
        return false;
    return !authority || !host || strcmp(authority + 3, host) != 0;
}

/* False: the call has been answered. */
static bool check_caller(struct api_call *call)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(call->http);
    const struct api_route *route = &routes[call->route];

    if (route->needs_token &&
        !api_token_is_shown(&call->api->token, evhttp_find_header(headers, "Authorization"))) {
        (void)evhttp_add_header(evhttp_request_get_output_headers(call->http), "WWW-Authenticate", "Bearer");
        api_reply_error(call, 401, GAVEL_ERR_DENIED,
                        evhttp_find_header(headers, "Authorization")
                            ? "wrong token; see the file that `token:` names on the node"
                            : "this API requires a token: send Authorization: Bearer TOKEN");
        return false;
    }
    if (route->method != EVHTTP_REQ_GET && call->api->is_open && call->api->token.length == 0) {
        /* TLS says who we are, not who the caller is. */
        api_reply_error(
            call, 403, GAVEL_ERR_DENIED,
            "beyond loopback, calls that change something need a token; set `token:` on the nodes");
        return false;
    }
    if (route->method != EVHTTP_REQ_GET && comes_from_elsewhere(call->http)) {
        api_reply_error(call, 403, GAVEL_ERR_DENIED, "this call comes from a web page of another site");
        return false;
    }
    return true;
}

static void on_complete(struct evhttp_request *http, void *user)
{
    struct api_connection *connection = user;

    (void)http;
    connection->is_answering = false;
}

void api_dispatch(struct evhttp_request *http, void *user)
{
    struct api *api = user;
    struct api_call call = {.api = api, .http = http, .now = clock_now(), .route = ROUTE_COUNT};
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(http);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    bool knows_path;

    call.connection = api_connection_of(api, http);
    if (!call.connection) { /* no memory was left when it came */
        evhttp_send_error(http, 503, NULL);
        return;
    }
    api_connection_used(call.connection);
    evhttp_request_set_on_complete_cb(http, on_complete, call.connection);
    if (!path)
        path = "";
    if (!check_sizes(&call))
        return;
    call.route = find(path, evhttp_request_get_command(http), &knows_path);
    if (call.route < ROUTE_COUNT) {
        if (check_caller(&call) && api_path_read(&call, routes[call.route].path, path))
            routes[call.route].handle(&call);
    } else if (knows_path) {
        reply_not_allowed(&call, path);
    } else {
        reply_not_found(&call, path);
    }
}
