/* SPDX-License-Identifier: Apache-2.0 */

/* Reports to the caller what happens, without repeating it a thousand times. */

#include "net/internal.h"

#include "os/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The same of the same stranger is told again after this. */
#define TOLD_FOR (60 * NS_PER_S)

void text_write(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(buffer, size, format, arguments);
    va_end(arguments);
}

bool bucket_take(struct bucket *bucket, gavel_ns now)
{
    gavel_ns due = (now - bucket->filled_at) / bucket->interval;

    if (due > 0) {
        bucket->filled_at += due * bucket->interval;
        bucket->tokens = due >= bucket->most - bucket->tokens ? bucket->most : bucket->tokens + (unsigned)due;
    }
    if (bucket->tokens == 0)
        return false;
    bucket->tokens--;
    return true;
}

void tell(struct transport *transport, enum transport_news news, raft_id peer, const char *text,
          const struct peer_hello *hello)
{
    if (transport->events.news)
        transport->events.news(transport->events.user, news, peer, text, hello);
}

/* Whether this was told of the same host not long ago; if not, it counts as told now. */
static bool is_stale(struct transport *transport, const char *remote, const char *reason, gavel_ns now)
{
    const char *colon = strrchr(remote, ':');
    size_t length = colon ? (size_t)(colon - remote) : strlen(remote); /* the port is another each time */
    struct stranger *stranger;

    for (size_t i = 0; i < STRANGERS_KEPT; i++) {
        stranger = &transport->strangers[i];
        if (strlen(stranger->host) == length && strncmp(stranger->host, remote, length) == 0 &&
            strcmp(stranger->reason, reason) == 0 && now - stranger->told_at < TOLD_FOR)
            return true;
    }
    stranger = &transport->strangers[transport->stranger_count++ % STRANGERS_KEPT];
    text_write(stranger->host, sizeof stranger->host, "%.*s", (int)length, remote);
    text_write(stranger->reason, sizeof stranger->reason, "%s", reason);
    stranger->told_at = now;
    return false;
}

void tell_accepted(struct connection *connection, enum transport_news news, const char *reason,
                   const struct peer_hello *hello)
{
    struct transport *transport = connection->transport;
    raft_id peer = hello ? hello->node : connection->peer;
    const char *name = hello ? hello->name : connection->name;
    struct link *link = peer != 0 ? link_find(transport, peer) : NULL;
    char text[NEWS_TEXT_MAX + 1];
    gavel_ns now = clock_now();

    /* A peer that comes again and again with the same fault is told of once; a stranger now and then. */
    if (link) {
        if (strcmp(link->told_in, reason) == 0)
            return;
        text_write(link->told_in, sizeof link->told_in, "%s", reason);
    } else if (is_stale(transport, connection->remote, reason, now) ||
               !bucket_take(&transport->stranger_news, now)) {
        return;
    }
    text_write(text, sizeof text, "%s%sfrom %s: %s", name, name[0] ? ", " : "", connection->remote, reason);
    tell(transport, news, peer, text, hello);
}
