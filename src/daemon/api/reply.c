/* SPDX-License-Identifier: Apache-2.0 */

/* How a call ends: a body and a code, or an error. One table maps statuses to HTTP codes. */
#include "daemon/api/internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    enum gavel_status status;
    int code;
} codes_of_statuses[] = {
    {GAVEL_OK, 200},
    {GAVEL_ERR_NO_LEADER, 503},
    {GAVEL_ERR_LEADER_TRANSFER_FAILED, 409},
    {GAVEL_ERR_SPLIT_BRAIN, 409},
    {GAVEL_ERR_TERM_STALE, 409},
    {GAVEL_ERR_INVALID, 400},
    {GAVEL_ERR_STATE, 409},
    {GAVEL_ERR_CONFLICT, 409},
    {GAVEL_ERR_ID_IN_USE, 409},
    {GAVEL_ERR_NOT_FOUND, 404},
    {GAVEL_ERR_TIMEOUT, 504},
    {GAVEL_ERR_STOPPED, 503},
    {GAVEL_ERR_STORE_FULL, 503},
    {GAVEL_ERR_NOT_LEADER, 307},
    {GAVEL_ERR_DENIED, 401},
    {GAVEL_ERR_STORE_UNAVAILABLE, 503},
    {GAVEL_ERR_NOT_HOLDER, 409},
    {GAVEL_ERR_SESSION_GONE, 410},
    {GAVEL_ERR_TOO_LARGE, 413},
};

/* All that the API answers with; the order is that of the counters. */
static const struct {
    int code;
    const char *reason;
} codes[] = {
    {200, "OK"},
    {307, "Temporary Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
};
#define CODE_COUNT (sizeof codes / sizeof *codes)
_Static_assert(CODE_COUNT <= API_CODES_MAX, "a counter for each");

size_t api_code_count(void) { return CODE_COUNT; }
int api_code_at(size_t which) { return codes[which].code; }

int api_http_code(enum gavel_status status)
{
    for (size_t i = 0; i < sizeof codes_of_statuses / sizeof *codes_of_statuses; i++)
        if (codes_of_statuses[i].status == status)
            return codes_of_statuses[i].code;
    return 500;
}

const char *api_code_reason(int code)
{
    for (size_t i = 0; i < CODE_COUNT; i++)
        if (codes[i].code == code)
            return codes[i].reason;
    return "Error";
}

void api_count(struct api *api, size_t route, int code)
{
    if (route >= api_route_count())
        route = API_ROUTES_MAX;
    for (size_t i = 0; i < CODE_COUNT; i++)
        if (codes[i].code == code)
            api->counts.by_code[route][i]++;
}

/* evhttp would format it for each answer. */
static const char *date_of(struct api *api)
{
    time_t now = time(NULL);
    struct tm parts;

    if (now != api->date_at && gmtime_r(&now, &parts)) {
        (void)strftime(api->date, sizeof api->date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
        api->date_at = now;
    }
    return api->date;
}

/*
 * Most answers fit into the socket at once. Written here they save evhttp two changes of what epoll watches
 * and a turn of the loop, which is a good part of what a small answer costs. What does not fit, or fails,
 * goes the usual way; so does all of TLS.
 */
static void write_at_once(struct api_connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    int written;

    if (connection->api->tls)
        return;
    (void)evbuffer_unfreeze(output, 1); /* a bufferevent keeps its output from being taken away */
    written = evbuffer_write(output, connection->fd);
    (void)evbuffer_freeze(output, 1);
    if (written > 0 && evbuffer_get_length(output) == 0)
        bufferevent_trigger(connection->bev, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS); /* evhttp: it is out */
}

static void reply(struct api_call *call, int code, const char *type, const char *body, size_t length,
                  bool needs_newline)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(call->http);

    api_count(call->api, call->route, code);
    /* Without memory for a header or the body the answer is poorer, and what follows is told by its
     * length. */
    (void)evhttp_add_header(headers, "Content-Type", type);
    (void)evhttp_add_header(headers, "Cache-Control", "no-store");
    (void)evhttp_add_header(headers, "Date", date_of(call->api));
    if (evhttp_request_get_command(call->http) == EVHTTP_REQ_HEAD) { /* what GET would have sent */
        char text[24];

        (void)snprintf(text, sizeof text, "%zu", length + needs_newline);
        (void)evhttp_add_header(headers, "Content-Length", text);
    }
    if (call->api->is_stopping)
        (void)evhttp_add_header(headers, "Connection", "close");
    (void)evbuffer_add(evhttp_request_get_output_buffer(call->http), body, length);
    if (needs_newline)
        (void)evbuffer_add(evhttp_request_get_output_buffer(call->http), "\n", 1);
    evhttp_send_reply(call->http, code, api_code_reason(code), NULL);
    write_at_once(call->connection);
}

void api_reply(struct api_call *call, int code, const char *type, const char *body, size_t length)
{
    /* People read it in a terminal. */
    reply(call, code, type, body, length, length > 0 && body[length - 1] != '\n');
}

void api_reply_bytes(struct api_call *call, const uint8_t *bytes, size_t length)
{
    reply(call, 200, "application/octet-stream", (const char *)bytes, length, false);
}

void api_reply_failure(struct api_call *call, enum gavel_status status, const char *message)
{
    /* The forwarder has looked for the leader as long as it could: there is nowhere else to go. */
    int code = status == GAVEL_ERR_NOT_LEADER ? 503 : api_http_code(status);

    if (status == GAVEL_ERR_NOT_LEADER)
        status = GAVEL_ERR_NO_LEADER;
    api_reply_error(call, code, status, "%s", message[0] ? message : gavel_status_text(status));
}

void api_reply_stale(struct api_call *call)
{
    (void)evhttp_add_header(evhttp_request_get_output_headers(call->http), "Gavel-Stale", "true");
}

void api_reply_error(struct api_call *call, int code, enum gavel_status status, const char *format, ...)
{
    static const char bare[] =
        "{\"error\":{\"code\":4101,\"name\":\"ERR_NO_MEMORY\",\"message\":\"out of memory\"}}\n";
    char message[768];
    char *text = NULL;
    json_t *words;
    json_t *body;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    words = json_string(message);
    if (!words) /* what a caller sent stands in it, perhaps cut in the middle of a character */
        words = json_string(gavel_status_text(status));
    body = json_pack("{s:{s:i,s:s,s:o}}", "error", "code", (int)status, "name", gavel_status_name(status),
                     "message", words);
    if (body)
        text = json_dumps(body, JSON_COMPACT);
    if (text)
        api_reply(call, code, "application/json", text, strlen(text));
    else
        api_reply(call, 500, "application/json", bare, sizeof bare - 1);
    free(text);
    json_decref(body);
}
