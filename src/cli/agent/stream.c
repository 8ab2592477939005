/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /events: what happens, as server-sent events. Each stream begins with
 * `status`, what is so at this moment, so that a reader misses nothing between
 * asking and listening; then come the library's events by their own names, and
 * `alive` each time the mandate was renewed, with the instant of its deadline. A
 * program that was frozen reads all that late, so nothing counts from arrival.
 *
 * A reader that comes back names the last event it has seen (Last-Event-ID)
 * and misses nothing that is still kept; if something is lost it is told so
 * (`missed`). What a reader does not take piles up here to a limit only; one
 * that takes nothing at all for AGENT_IDLE_S is cut off.
 */
#include "cli/agent/agent.h"

#include "cli/run/event_json.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of what a client sends on a stream, which nobody reads. */
#define STREAM_READ_MAX 4096

/* Those that say nothing new each time; whoever wants them asks by name. */
#define DULL (1U << GAVEL_EVENT_HEARTBEAT | 1U << GAVEL_EVENT_ELECTION_CHECK)

struct agent_stream {
    LIST_ENTRY(agent_stream) next;
    struct evhttp_request *http;
    struct agent_connection *connection;
    uint64_t after;  /* the last event that was sent */
    unsigned wanted; /* a bit for each kind of event */
};

static void on_taken(struct evhttp_connection *http, void *user);

static size_t waiting(const struct agent_stream *stream)
{
    struct bufferevent *bev = evhttp_connection_get_bufferevent(stream->connection->http);

    return evbuffer_get_length(bufferevent_get_output(bev));
}

static void push(struct agent_stream *stream, const char *text)
{
    struct evbuffer *piece = evbuffer_new();

    if (piece &&
        evbuffer_add(piece, text, strlen(text)) == 0) /* no memory: it is lost, the next id shows it */
        evhttp_send_reply_chunk_with_cb(stream->http, piece, on_taken, stream);
    if (piece)
        evbuffer_free(piece);
}

/* id 0: it has none, and is not asked for again. */
static void push_event(struct agent_stream *stream, uint64_t id, const char *name, const char *json)
{
    char number[32] = "", *frame = NULL;

    if (id)
        (void)snprintf(number, sizeof number, "id: %" PRIu64 "\n", id);
    if (json && asprintf(&frame, "%sevent: %s\ndata: %s\n\n", number, name, json) >= 0) {
        push(stream, frame);
        free(frame);
    }
}

static void push_status(struct agent_stream *stream, const char *name)
{
    json_t *status = agent_status_json(stream->connection->agent, true);
    char *json = json_dumps(status, JSON_COMPACT);

    push_event(stream, 0, name, json);
    free(json);
    json_decref(status);
}

static void pump(struct agent_stream *stream, struct agent_news *news)
{
    struct agent_news_item item;
    bool has_missed = false;

    while (waiting(stream) < AGENT_STREAM_BYTES_MAX &&
           agent_news_next(news, stream->after, &item, &has_missed)) {
        if (has_missed)
            push_status(stream, "missed");
        stream->after = item.id;
        if (stream->wanted >> item.kind & 1)
            push_event(stream, item.id, gavel_event_name(item.kind), item.json);
        free(item.json);
    }
}

/* All that was written is out: there may be more. */
static void on_taken(struct evhttp_connection *http, void *user)
{
    struct agent_stream *stream = user;

    (void)http;
    pump(stream, &stream->connection->agent->news);
}

void agent_streams_pump(struct agent *agent)
{
    struct agent_stream *stream;

    for (stream = LIST_FIRST(&agent->streams); stream; stream = LIST_NEXT(stream, next))
        pump(stream, &agent->news);
}

void agent_streams_beat(struct agent *agent)
{
    struct agent_stream *stream;

    for (stream = LIST_FIRST(&agent->streams); stream; stream = LIST_NEXT(stream, next))
        if (waiting(stream) == 0)
            push(stream, ": still here\n\n");
}

void agent_streams_renewed(struct agent *agent)
{
    struct agent_stream *stream;

    if (!agent_leads(agent))
        return;
    for (stream = LIST_FIRST(&agent->streams); stream; stream = LIST_NEXT(stream, next))
        if (waiting(stream) == 0) /* who is behind learns from the next one */
            push_status(stream, "alive");
}

void agent_streams_end(struct agent *agent)
{
    struct agent_stream *stream, *next;

    for (stream = LIST_FIRST(&agent->streams); stream; stream = next) {
        struct evhttp_request *http = stream->http;

        next = LIST_NEXT(stream, next);
        stream->connection->stream = NULL; /* nothing of the list is looked at when the connection goes */
        free(stream);
        evhttp_send_reply_end(http);
    }
    LIST_INIT(&agent->streams);
    agent->stream_count = 0;
}

/* The connection goes. evhttp frees the request with it, unless it was cut loose from it before. */
void agent_stream_gone(struct agent_stream *stream)
{
    if (!evhttp_request_get_connection(stream->http))
        evhttp_request_free(stream->http);
    stream->connection->agent->stream_count--;
    stream->connection->stream = NULL;
    LIST_REMOVE(stream, next);
    free(stream);
}

/* False: the call has been answered. */
static bool read_after(struct agent_call *call, const char *text, uint64_t *ret_after)
{
    char *end;
    uint64_t id;

    errno = 0;
    id = strtoull(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9') {
        agent_reply_error(call, 400, GAVEL_ERR_INVALID,
                          "\"%.32s\" is not the id of an event; ids are whole numbers", text);
        return false;
    }
    *ret_after = id;
    return true;
}

/* What the query and the headers ask for. False: the call has been answered. */
static bool read_wish(struct agent_call *call, uint64_t *ret_after, unsigned *ret_wanted)
{
    const char *seen = evhttp_find_header(evhttp_request_get_input_headers(call->http), "Last-Event-ID");
    char *after = agent_query(call, "after"), *names = agent_query(call, "names");
    struct gavel_error error = {0};
    bool is_good = true;

    if (seen || after) /* the header is what a browser sends when it comes back: it is newer */
        is_good = read_after(call, seen ? seen : after, ret_after);
    if (is_good && names && event_set_parse(names, ret_wanted, &error) != GAVEL_OK) {
        agent_reply_error(call, 400, GAVEL_ERR_INVALID, "names: %s", error.message);
        is_good = false;
    }
    free(after);
    free(names);
    return is_good;
}

static void open_stream(struct agent_call *call, struct agent_stream *stream)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(call->http);
    struct bufferevent *bev = evhttp_connection_get_bufferevent(call->connection->http);
    struct timeval patience = {.tv_sec = AGENT_IDLE_S};
    uint64_t newest = agent_news_newest(&call->agent->news);

    /* Without memory for a header the stream works, and a proxy may hold it up. */
    (void)evhttp_add_header(headers, "Content-Type", "text/event-stream");
    (void)evhttp_add_header(headers, "Cache-Control", "no-store");
    (void)evhttp_add_header(headers, "X-Accel-Buffering", "no");
    LIST_INSERT_HEAD(&call->agent->streams, stream, next);
    call->agent->stream_count++;
    call->connection->stream = stream;
    /* Silence from the client is normal now; that it takes nothing is not. */
    (void)bufferevent_set_timeouts(bev, NULL, &patience);
    bufferevent_setwatermark(bev, EV_READ, 0, STREAM_READ_MAX);
    evhttp_send_reply_start(call->http, 200, "OK");
    push(stream, "retry: 1000\n\n");
    if (stream->after >
        newest) { /* an id of another agent, or of one that was restarted: ours are not after it */
        push_status(stream, "missed");
        stream->after = newest;
    }
    push_status(stream, "status");
    pump(stream, &call->agent->news);
}

void agent_get_events(struct agent_call *call)
{
    uint64_t after = agent_news_newest(&call->agent->news);
    unsigned wanted = ~DULL;
    struct agent_stream *stream;

    if (!read_wish(call, &after, &wanted))
        return;
    if (call->agent->stream_count >= AGENT_STREAMS_MAX || call->agent->is_closed) {
        agent_reply_error(call, 503, GAVEL_ERR_STATE, "this agent serves %zu streams already",
                          call->agent->stream_count);
        return;
    }
    stream = calloc(1, sizeof *stream);
    if (!stream) {
        agent_reply(call, 500, NULL);
        return;
    }
    *stream = (struct agent_stream){
        .http = call->http, .connection = call->connection, .after = after, .wanted = wanted};
    open_stream(call, stream);
}
