/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What all streams of server-sent events have in common: how they begin and end,
 * and how slow readers are handled.
 *
 * Output that a reader does not take piles up here only to a limit. The rest waits
 * at its source (the journal, the history of the table) until the reader has taken
 * some. A reader that takes nothing at all for API_IDLE_S is cut off.
 */
#include "daemon/api/json.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of what a client sends on a stream, which nobody reads. */
#define STREAM_READ_MAX 4096

static void on_taken(struct evhttp_connection *http, void *user)
{
    struct api_stream *stream = user;

    (void)http;
    stream->kind->pump(stream); /* all that was written is out: there may be more */
}

size_t api_stream_waiting(const struct api_stream *stream)
{
    return evbuffer_get_length(bufferevent_get_output(stream->connection->bev));
}

void api_stream_push(struct api_stream *stream, const char *text, size_t length)
{
    struct evbuffer *piece = evbuffer_new();

    if (piece && evbuffer_add(piece, text, length) == 0) /* no memory: it is lost, and the next id shows it */
        evhttp_send_reply_chunk_with_cb(stream->http, piece, on_taken, stream);
    if (piece)
        evbuffer_free(piece);
}

void api_stream_tell(struct api_stream *stream, const char *id, const char *event, json_t *data)
{
    char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;
    char *frame = NULL;
    int length = -1;

    json_decref(data);
    if (text)
        length = asprintf(&frame, "%s%s%sevent: %s\ndata: %s\n\n", id ? "id: " : "", id ? id : "",
                          id ? "\n" : "", event, text);
    if (length > 0) { /* no memory: this one is lost, and the next one's id shows it */
        api_stream_push(stream, frame, (size_t)length);
        free(frame);
    }
    free(text);
}

void api_streams_pump(struct api *api)
{
    struct api_stream *stream;
    struct api_stream *next;

    for (stream = LIST_FIRST(&api->streams); stream; stream = next) {
        next = LIST_NEXT(stream, next); /* it may end */
        stream->kind->pump(stream);
    }
}

void api_streams_heartbeat(struct api *api)
{
    static const char comment[] = ": still here\n\n";
    struct api_stream *stream;

    for (stream = LIST_FIRST(&api->streams); stream; stream = LIST_NEXT(stream, next))
        if (api_stream_waiting(stream) == 0)
            api_stream_push(stream, comment, sizeof comment - 1);
}

void api_streams_look(struct api *api)
{
    bool is_blind = atomic_load(&api->shared->is_blind);
    struct api_stream *stream;
    struct api_stream *next;

    if (is_blind == api->is_blind)
        return;
    api->is_blind = is_blind;
    for (stream = LIST_FIRST(&api->streams); stream; stream = next) {
        next = LIST_NEXT(stream, next); /* it may end */
        if (stream->kind->blinded)
            stream->kind->blinded(stream);
    }
}

/* Nothing of it is looked at any more when the connection goes. */
static void detach(struct api_stream *stream)
{
    stream->connection->api->stream_count--;
    stream->connection->stream = NULL;
    LIST_REMOVE(stream, next);
}

void api_stream_end(struct api_stream *stream)
{
    struct evhttp_request *http = stream->http;

    detach(stream);
    stream->kind->gone(stream);
    evhttp_send_reply_end(http);
}

void api_streams_end(struct api *api)
{
    struct api_stream *stream;

    while ((stream = LIST_FIRST(&api->streams))) {
        if (stream->kind->farewell)
            stream->kind->farewell(stream);
        api_stream_end(stream);
    }
}

/* evhttp frees the request with the connection, unless it was cut loose from it before. */
void api_stream_gone(struct api_stream *stream)
{
    if (!evhttp_request_get_connection(stream->http))
        evhttp_request_free(stream->http);
    detach(stream);
    stream->kind->gone(stream);
}

void api_stream_cut(struct api_stream *stream)
{
    struct api_connection *connection = stream->connection;

    connection->api->counts.cut++;
    evhttp_connection_free(connection->http); /* comes to api_stream_gone() */
}

/* What is spare is lent to those who ask and go. A connection keeps its descriptor, also if another went to
 * make room for it: streams would creep into what the node needs for itself, one by one. */
static bool is_lent(const struct api *api, int fd)
{
    int spare = api->fd_limit / 2 < API_SPARE_FDS ? api->fd_limit / 2 : API_SPARE_FDS;

    return fd >= api->fd_limit - spare;
}

bool api_stream_may_open(struct api_call *call)
{
    struct api *api = call->api;

    if (api->is_stopping) {
        api_reply_error(call, 503, GAVEL_ERR_STOPPED, "this node is stopping; ask another one");
        return false;
    }
    if (api->stream_count < API_STREAMS_MAX && !is_lent(api, call->connection->fd))
        return true;
    api_reply_error(call, 503, GAVEL_ERR_STATE, "this node serves %zu streams already; ask another one",
                    api->stream_count);
    return false;
}

void api_stream_open(struct api_call *call, struct api_stream *stream, const struct api_stream_kind *kind)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(call->http);
    struct timeval patience = {.tv_sec = API_IDLE_S};

    *stream = (struct api_stream){.http = call->http, .connection = call->connection, .kind = kind};
    api_count(call->api, call->route, 200);
    /* Without memory for a header the stream works, and a proxy may hold it up. */
    (void)evhttp_add_header(headers, "Content-Type", "text/event-stream");
    (void)evhttp_add_header(headers, "Cache-Control", "no-store");
    (void)evhttp_add_header(headers, "X-Accel-Buffering", "no");
    (void)evhttp_add_header(headers, "Connection", "close"); /* its time-outs fit no other call */
    LIST_INSERT_HEAD(&call->api->streams, stream, next);
    call->api->stream_count++;
    call->connection->stream = stream;
    /* Silence from the client is normal now; that it takes nothing is not. */
    (void)bufferevent_set_timeouts(call->connection->bev, NULL, &patience);
    bufferevent_setwatermark(call->connection->bev, EV_READ, 0, STREAM_READ_MAX);
    evhttp_send_reply_start(call->http, 200, "OK");
}
