/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the nodes tell on /events, heard on three connections at once. A node
 * that was killed is dialled again until it is there, and goes on after the
 * last event that was heard of it. Asked in HTTP/1.0, the stream has no
 * chunks: it is lines.
 */
#include "bench/cluster/cluster.h"

#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIAL_AGAIN_NS (10 * NS_PER_MS)

static void hang_up(struct bench_cluster_stream *stream)
{
    if (stream->fd >= 0)
        (void)close(stream->fd); /* only read from */
    stream->fd = -1;
    stream->have = 0;
}

static void dial(struct bench_cluster_stream *stream, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    char request[128];

    stream->tried_at = clock_now();
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    stream->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (stream->fd < 0)
        return;
    int length = snprintf(request, sizeof request, "GET /events?after=%s HTTP/1.0\r\n\r\n",
                          stream->last_id[0] ? stream->last_id : "0");
    if (connect(stream->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        send(stream->fd, request, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) != length)
        hang_up(stream);
}

static void copy(char *to, size_t size, const json_t *value)
{
    const char *text = json_string_value(value);

    (void)snprintf(to, size, "%s", text ? text : "");
}

/* The data of one event, in one line. */
static void take_event(struct cluster *cluster, size_t node, const char *text)
{
    struct bench_cluster_stream *stream = &cluster->streams[node];
    json_t *root = json_loads(text, 0, NULL);
    struct bench_cluster_event event = {.node = node};

    if (!root)
        return; /* cut off with its node */
    event.at = (gavel_ns)json_integer_value(json_object_get(root, "at_ns"));
    event.term = (uint64_t)json_integer_value(json_object_get(root, "term"));
    copy(event.name, sizeof event.name, json_object_get(root, "event"));
    copy(event.whom, sizeof event.whom, json_object_get(root, "node"));
    copy(event.text, sizeof event.text, json_object_get(root, "text"));
    copy(stream->last_id, sizeof stream->last_id, json_object_get(root, "id"));
    json_decref(root);
    if (cluster->event_count == CLUSTER_EVENTS_MAX) {
        /* The older half is of no use to a trial that has told so much. */
        cluster->event_count /= 2;
        memmove(cluster->events, cluster->events + cluster->event_count,
                cluster->event_count * sizeof cluster->events[0]);
    }
    cluster->events[cluster->event_count++] = event;
}

static void take_lines(struct cluster *cluster, size_t node)
{
    static const char field[] = "data:";
    struct bench_cluster_stream *stream = &cluster->streams[node];
    char *begin = stream->buffer, *end;

    while ((end = memchr(begin, '\n', stream->have - (size_t)(begin - stream->buffer)))) {
        *end = '\0';
        if (strncmp(begin, field, strlen(field)) == 0)
            take_event(cluster, node, begin + strlen(field));
        begin = end + 1;
    }
    stream->have -= (size_t)(begin - stream->buffer);
    memmove(stream->buffer, begin, stream->have);
    if (stream->have == sizeof stream->buffer)
        hang_up(stream); /* no event is so long */
}

static void hear(struct cluster *cluster, size_t node)
{
    struct bench_cluster_stream *stream = &cluster->streams[node];
    ssize_t got =
        recv(stream->fd, stream->buffer + stream->have, sizeof stream->buffer - stream->have, MSG_DONTWAIT);

    if (got > 0) {
        stream->have += (size_t)got;
        take_lines(cluster, node);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        hang_up(stream);
    }
}

void bench_cluster_listen(struct cluster *cluster, gavel_ns until)
{
    struct pollfd news[CLUSTER_NODES];
    gavel_ns now = clock_now(), wake_at = ns_min(until, now + BENCH_LOOK_NS);

    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        struct bench_cluster_stream *stream = &cluster->streams[i];
        if (stream->fd < 0 && now - stream->tried_at >= DIAL_AGAIN_NS)
            dial(stream, local_cluster_node(&cluster->cluster, i)->api_port);
        if (stream->fd < 0)
            wake_at = ns_min(wake_at, stream->tried_at + DIAL_AGAIN_NS);
        news[i] = (struct pollfd){.fd = stream->fd, .events = POLLIN}; /* poll(2) ignores -1 */
    }
    gavel_ns left = ns_max(wake_at - clock_now(), 0);
    struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    if (ppoll(news, CLUSTER_NODES, &timeout, NULL) <= 0)
        return;
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        if (news[i].revents)
            hear(cluster, i);
}

void bench_cluster_forget(struct cluster *cluster) { cluster->event_count = 0; }

enum gavel_status bench_cluster_expect(struct cluster *cluster, const char *name, gavel_ns since,
                                       gavel_ns until, struct bench_cluster_event *ret_event)
{
    for (;;) {
        for (size_t i = 0; i < cluster->event_count; i++)
            if (cluster->events[i].at >= since && strcmp(cluster->events[i].name, name) == 0) {
                *ret_event = cluster->events[i];
                return GAVEL_OK;
            }
        if (rig_is_interrupted())
            return GAVEL_ERR_STOPPED;
        if (clock_now() >= until)
            return GAVEL_ERR_TIMEOUT;
        bench_cluster_listen(cluster, until);
    }
}

gavel_ns bench_cluster_first(const struct cluster *cluster, const char *name, const char *text,
                             gavel_ns since)
{
    gavel_ns first = NEVER;

    for (size_t i = 0; i < cluster->event_count; i++) {
        const struct bench_cluster_event *event = &cluster->events[i];
        if (event->at >= since && strcmp(event->name, name) == 0 && (!text || strcmp(event->text, text) == 0))
            first = ns_min(first, event->at);
    }
    return first;
}
