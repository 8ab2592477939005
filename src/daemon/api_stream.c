/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What all streams of server-sent events have in common: how they begin and
 * end, and what becomes of readers that do not read.
 *
 * What a reader does not take piles up here to a limit only; the rest waits
 * where it comes from (the journal, the history of the table) until it has
 * taken some. A reader that takes nothing at all for API_IDLE_S is cut off.
 *
 * Whoever has given a promise to the reader needs to know how a stream ended:
 * by the reader, who then knows it, or by this node, or by time.
 */
#include "daemon/api_json.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/http_struct.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Of what a client sends on a stream, which nobody reads. */
#define STREAM_READ_MAX 4096

/* The client sees the end of it, and we shall see the client's. If this fails the connection is dead. */
static void close_our_side(const struct api_stream *stream)
{
    (void)shutdown(stream->connection->fd, SHUT_WR);
}

static void on_taken(struct evhttp_connection *http, void *user)
{
    struct api_stream *stream = user;

    (void)http;
    if (stream->is_over)
        close_our_side(stream);
    else
        stream->kind->pump(stream); /* all that was written is out: there may be more */
}

size_t api_stream_waiting(const struct api_stream *stream)
{
    return evbuffer_get_length(bufferevent_get_output(stream->connection->bev));
}

void api_stream_push(struct api_stream *stream, const char *text, size_t length)
{
    struct evbuffer *piece = stream->is_over ? NULL : evbuffer_new();

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
        if (!stream->is_over)
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
        if (stream->is_over) {                                /* it has heard everything */
            evhttp_connection_free(stream->connection->http); /* comes to api_stream_gone() */
            continue;
        }
        if (stream->kind->farewell)
            stream->kind->farewell(stream);
        api_stream_end(stream);
    }
}

void api_stream_hang_up(struct api_stream *stream)
{
    static const char last_chunk[] = "0\r\n\r\n";
    struct evbuffer *output = bufferevent_get_output(stream->connection->bev);

    stream->is_over = true;
    /* evhttp would close as soon as it is written. Without memory for it the client sees the end of the
     * connection. */
    if (stream->http->chunked)
        (void)evbuffer_add(output, last_chunk, sizeof last_chunk - 1);
    if (evbuffer_get_length(output) == 0)
        close_our_side(stream);
}

/*
 * Whether the client itself has closed its side: the kernel has its FIN, or a RST. A connection that the
 * kernel has given up has the same state as after a RST, but bytes that were never acknowledged. Where it
 * cannot be told apart it is not the client.
 */
static bool is_closed_by_client(const struct api_connection *connection)
{
    SSL *tls = bufferevent_openssl_get_ssl(connection->bev);
    struct tcp_info info;
    socklen_t size = sizeof info;
    int unheard = 0;

    if (tls && (SSL_get_shutdown(tls) & SSL_RECEIVED_SHUTDOWN))
        return true;
    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &size))
        return false;
    switch (info.tcpi_state) {
    case TCP_CLOSE_WAIT:
    case TCP_CLOSING:
    case TCP_LAST_ACK:
    case TCP_TIME_WAIT:
        return true;
    case TCP_CLOSE:
        return ioctl(connection->fd, SIOCOUTQ, &unheard) == 0 && unheard == 0;
    default:
        return false;
    }
}

/* evhttp frees the request with the connection, unless it was cut loose from it before. */
void api_stream_gone(struct api_stream *stream)
{
    stream->is_left = is_closed_by_client(stream->connection);
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

bool api_stream_may_open(struct api_call *call)
{
    struct api *api = call->api;

    if (api->is_stopping) {
        api_reply_error(call, 503, GAVEL_ERR_STOPPED, "this node is ending; ask another one");
        return false;
    }
    if (api->stream_count < API_STREAMS_MAX)
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
