/* SPDX-License-Identifier: Apache-2.0 */

#include "api_listener.h"

#include "os/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000

/* Takes what is there; false if nothing came in time. */
static bool hear(struct listener *listener, gavel_ns limit)
{
    struct pollfd poll_fd = {.fd = listener->fd, .events = POLLIN};
    gavel_ns now = clock_now();
    ssize_t n;

    if (listener->is_closed || now >= limit || poll(&poll_fd, 1, (int)ms_from_ns(limit - now) + 1) <= 0)
        return false;
    assert_true(listener->length < sizeof listener->text - 1);
    n = recv(listener->fd, listener->text + listener->length, sizeof listener->text - 1 - listener->length,
             MSG_DONTWAIT);
    if (n <= 0)
        listener->is_closed = true;
    else
        listener->length += (size_t)n;
    listener->text[listener->length] = '\0';
    return true;
}

static struct listener *begin(struct api_frontend *frontend, const char *request)
{
    struct listener *listener = calloc(1, sizeof *listener);
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);

    assert_non_null(listener);
    listener->fd = raw_open(frontend);
    raw_say(listener->fd, request);
    while (!strstr(listener->text, "\r\n\r\n"))
        if (!hear(listener, limit))
            fail_msg("no answer to %.60s: %s", request, listener->text);
    if (!strstr(listener->text, "text/event-stream"))
        fail_msg("no stream after %.60s: %s", request, listener->text);
    return listener;
}

struct listener *listener_post(struct api_frontend *frontend, const char *path, const char *body)
{
    char request[4096];

    (void)snprintf(request, sizeof request, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%s",
                   path, strlen(body), body);
    return begin(frontend, request);
}

struct listener *listener_get(struct api_frontend *frontend, const char *path, const char *header)
{
    char request[4096];

    (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: h\r\n%s\r\n", path, header);
    return begin(frontend, request);
}

void listener_leave(struct listener *listener)
{
    (void)close(listener->fd);
    free(listener);
}

json_t *listener_next(struct listener *listener, const char *event)
{
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    char line[64];

    (void)snprintf(line, sizeof line, "event: %s\n", event);
    for (;;) {
        const char *at = strstr(listener->text + listener->heard, line);
        const char *end = at ? strstr(at, "\n\n") : NULL;

        if (end) {
            json_error_t error;
            json_t *json = json_loads(strstr(at, "data: ") + 6, JSON_DISABLE_EOF_CHECK, &error);

            assert_non_null(json);
            listener->heard = (size_t)(end - listener->text);
            return json;
        }
        if (!hear(listener, limit))
            fail_msg("no event %s%s: %s", event, listener->is_closed ? ", and it is closed" : "",
                     listener->text + listener->heard);
    }
}

void listener_expect(struct listener *listener, const char *event, const char *key, const char *text)
{
    json_t *json = listener_next(listener, event);
    const char *value = json_string_value(json_object_get(json, key));

    if (strcmp(value ? value : "", text) != 0)
        fail_msg("%s of %s is %s, not %s", key, event, value ? value : "null", text);
    json_decref(json);
}

void listener_wait_end(struct listener *listener)
{
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);

    while (!listener->is_closed)
        if (!hear(listener, limit))
            fail_msg("it is still open: %s", listener->text);
}

struct listener *listener_campaign(struct api_frontend *frontend, const char *group, const char *candidate,
                                   const char *more)
{
    char path[1024];
    char body[2048];

    (void)snprintf(path, sizeof path, "/groups/%s/campaign", group);
    (void)snprintf(body, sizeof body, "{\"candidate\":\"%s\"%s%s}", candidate,
                   strstr(more, "\"keepalive\"") ? "" : ",\"keepalive\":\"stream\"", more);
    return listener_post(frontend, path, body);
}

void listener_resign(struct api_frontend *frontend, struct listener *listener, const char *group)
{
    const char *session = strstr(listener->text, "\"session\":\"");
    char path[1024];
    char body[64];

    assert_non_null(session);
    (void)snprintf(path, sizeof path, "/groups/%s/resign", group);
    (void)snprintf(body, sizeof body, "{\"session\":\"%.16s\"}", session + strlen("\"session\":\""));
    assert_int_equal(http_ask(frontend, path, body, "")->code, 200);
    listener_leave(listener);
}

void listener_session(struct listener *listener, char session[17])
{
    json_t *json = listener_next(listener, "session");

    (void)snprintf(session, 17, "%s", json_string_value(json_object_get(json, "session")));
    json_decref(json);
}

uint64_t listener_elected(struct listener *listener)
{
    json_t *json = listener_next(listener, "elected");
    uint64_t epoch = (uint64_t)json_integer_value(json_object_get(json, "epoch"));

    assert_true(epoch > 0);
    json_decref(json);
    return epoch;
}
