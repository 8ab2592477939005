/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of an agent, in one table, and how they end. What all calls share
 * is checked here, before a handler sees anything: the path, the method, the
 * token, the sizes.
 */
#include "cli/agent/agent.h"

#include "os/clock.h"

#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct route {
    enum evhttp_cmd_type method;
    const char *path;
    bool needs_token;
    void (*handle)(struct agent_call *call);
} routes[] = {
    {EVHTTP_REQ_GET, "/", true, agent_get_sidecar},
    {EVHTTP_REQ_GET, "/leader", true, agent_get_leader},
    {EVHTTP_REQ_GET, "/status", true, agent_get_status},
    {EVHTTP_REQ_GET, "/candidates", true, agent_get_candidates},
    {EVHTTP_REQ_GET, "/events", true, agent_get_events},
    {EVHTTP_REQ_GET, "/metrics", true, agent_get_metrics},
    {EVHTTP_REQ_GET, "/health", false, agent_get_health},
    {EVHTTP_REQ_GET, "/ready", false, agent_get_ready},
    {EVHTTP_REQ_POST, "/alive", true, agent_post_alive},
    {EVHTTP_REQ_POST, "/resign", true, agent_post_resign},
    {EVHTTP_REQ_POST, "/stopped", true, agent_post_stopped},
};
#define ROUTE_COUNT (sizeof routes / sizeof routes[0])

static const struct {
    int code;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {202, "Accepted"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {503, "Service Unavailable"},
};

static const char *reason_of(int code)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].code == code)
            return reasons[i].reason;
    return "Error";
}

void agent_reply_text(struct agent_call *call, int code, const char *type, const char *text, size_t length)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(call->http);

    /* Without memory for a header or the body the answer is poorer, and its length tells. */
    (void)evhttp_add_header(headers, "Content-Type", type);
    (void)evhttp_add_header(headers, "Cache-Control", "no-store");
    if (evhttp_request_get_command(call->http) == EVHTTP_REQ_HEAD) { /* what GET would have sent */
        char size[24];

        (void)snprintf(size, sizeof size, "%zu", length);
        (void)evhttp_add_header(headers, "Content-Length", size);
    }
    if (call->agent->is_closed)
        (void)evhttp_add_header(headers, "Connection", "close");
    (void)evbuffer_add(evhttp_request_get_output_buffer(call->http), text, length);
    evhttp_send_reply(call->http, code, reason_of(code), NULL);
}

void agent_reply(struct agent_call *call, int code, json_t *body)
{
    static const char bare[] =
        "{\"error\":{\"code\":4101,\"name\":\"ERR_NO_MEMORY\",\"message\":\"out of memory\"}}\n";
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    size_t length = text ? strlen(text) : 0;
    char *line = text ? realloc(text, length + 2) : NULL;

    json_decref(body);
    if (!line) {
        free(text);
        agent_reply_text(call, 500, "application/json", bare, sizeof bare - 1);
        return;
    }
    memcpy(line + length, "\n", 2); /* people read it in a terminal */
    agent_reply_text(call, code, "application/json", line, length + 1);
    free(line);
}

void agent_reply_error(struct agent_call *call, int code, enum gavel_status status, const char *format, ...)
{
    char message[768];
    json_t *words;
    va_list list;

    va_start(list, format);
    (void)vsnprintf(message, sizeof message, format, list);
    va_end(list);
    words = json_string(message);
    if (!words) /* what a caller sent stands in it, perhaps cut in the middle of a character */
        words = json_string(gavel_status_text(status));
    agent_reply(call, code,
                json_pack("{s:{s:i,s:s,s:o}}", "error", "code", (int)status, "name",
                          gavel_status_name(status), "message", words));
}

char *agent_query(const struct agent_call *call, const char *key)
{
    const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(call->http));
    struct evkeyvalq pairs;
    const char *value = NULL;
    char *copy = NULL;

    TAILQ_INIT(&pairs);
    if (query && evhttp_parse_query_str(query, &pairs) == 0)
        value = evhttp_find_header(&pairs, key);
    if (value)
        copy = strdup(value);
    evhttp_clear_headers(&pairs);
    return copy;
}

static const char *method_name(enum evhttp_cmd_type method)
{
    return method == EVHTTP_REQ_POST ? "POST" : "GET";
}

/* NULL if there is none. *ret_other: the one of that path, with another method. */
static const struct route *find(const char *path, enum evhttp_cmd_type method, const struct route **ret_other)
{
    *ret_other = NULL;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (strcmp(routes[i].path, path) != 0)
            continue;
        /* HEAD is GET without the body; a stream is all body. */
        if (routes[i].method == method || (method == EVHTTP_REQ_HEAD && routes[i].method == EVHTTP_REQ_GET &&
                                           routes[i].handle != agent_get_events))
            return &routes[i];
        *ret_other = &routes[i];
    }
    return NULL;
}

static void reply_not_found(struct agent_call *call, const char *path)
{
    char list[256] = "";

    for (size_t i = 0; i < ROUTE_COUNT; i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                       routes[i].path);
    agent_reply_error(call, 404, GAVEL_ERR_NOT_FOUND, "there is no %.100s here; there are %s", path, list);
}

static size_t size_of_headers(const struct evkeyvalq *headers)
{
    const struct evkeyval *header;
    size_t size = 0;

    for (header = TAILQ_FIRST(headers); header; header = TAILQ_NEXT(header, next))
        size += strlen(header->key) + strlen(header->value) + 4;
    return size;
}

/* False: the call has been answered. */
static bool check_sizes(struct agent_call *call)
{
    if (strlen(evhttp_request_get_uri(call->http)) > AGENT_URI_MAX)
        agent_reply_error(call, 414, GAVEL_ERR_INVALID, "the address of the call is longer than %u bytes",
                          AGENT_URI_MAX);
    else if (size_of_headers(evhttp_request_get_input_headers(call->http)) > AGENT_HEADERS_MAX)
        agent_reply_error(call, 431, GAVEL_ERR_INVALID, "the headers are larger than %u bytes",
                          AGENT_HEADERS_MAX);
    else if (evbuffer_get_length(evhttp_request_get_input_buffer(call->http)) > AGENT_BODY_MAX)
        agent_reply_error(call, 413, GAVEL_ERR_INVALID, "the body is larger than %u bytes", AGENT_BODY_MAX);
    else
        return true;
    return false;
}

/* A page of another site that a person has open could otherwise make their browser depose a leader on this
 * machine: browsers name the site in Origin whenever they send a POST. */
static bool comes_from_elsewhere(struct evhttp_request *http)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(http);
    const char *origin = evhttp_find_header(headers, "Origin");
    const char *host = evhttp_find_header(headers, "Host");
    const char *authority = origin ? strstr(origin, "://") : NULL;

    return origin && (!authority || !host || strcmp(authority + 3, host) != 0);
}

/* False: the call has been answered. */
static bool check_caller(struct agent_call *call, const struct route *route)
{
    const char *shown = evhttp_find_header(evhttp_request_get_input_headers(call->http), "Authorization");

    if (route->needs_token && !agent_token_is_shown(call->agent->token, shown)) {
        (void)evhttp_add_header(evhttp_request_get_output_headers(call->http), "WWW-Authenticate", "Bearer");
        agent_reply_error(call, 401, GAVEL_ERR_DENIED,
                          shown ? "wrong token; see the file of the agent's --token-file"
                                : "this agent requires a token: send Authorization: Bearer TOKEN");
        return false;
    }
    if (route->method == EVHTTP_REQ_POST && comes_from_elsewhere(call->http)) {
        agent_reply_error(call, 403, GAVEL_ERR_DENIED, "this call comes from a web page of another site");
        return false;
    }
    return true;
}

static void on_complete(struct evhttp_request *http, void *user)
{
    struct agent_connection *connection = user;

    (void)http;
    connection->is_answering = false;
    connection->quiet_since = clock_now();
    /* The quiet ones stand in the order in which they became so. */
    TAILQ_REMOVE(&connection->agent->connections, connection, next);
    TAILQ_INSERT_TAIL(&connection->agent->connections, connection, next);
}

void agent_dispatch(struct evhttp_request *http, void *user)
{
    struct agent *agent = user;
    struct agent_call call = {.agent = agent, .http = http, .connection = agent_connection_of(agent, http)};
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(http);
    const char *path = uri && evhttp_uri_get_path(uri) ? evhttp_uri_get_path(uri) : "";
    const struct route *route, *other;

    agent->requests++;
    if (!call.connection) { /* no memory was left when it came */
        evhttp_send_error(http, 503, NULL);
        return;
    }
    call.connection->is_answering = true;
    evhttp_request_set_on_complete_cb(http, on_complete, call.connection);
    if (!check_sizes(&call))
        return;
    route = find(path, evhttp_request_get_command(http), &other);
    if (route) {
        if (check_caller(&call, route))
            route->handle(&call);
    } else if (other) {
        (void)evhttp_add_header(evhttp_request_get_output_headers(http), "Allow", method_name(other->method));
        agent_reply_error(&call, 405, GAVEL_ERR_INVALID, "%s takes %s only", path,
                          method_name(other->method));
    } else {
        reply_not_found(&call, path);
    }
}
