/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /events: the journal as server-sent events, from any place in it on. A
 * reader that comes back names the last event it has seen and misses nothing
 * that is still kept; if something is lost it is told so ("missed").
 *
 * What a reader does not take piles up here to a limit only; the rest waits in
 * the journal until it has taken some. A reader that takes nothing at all for
 * API_IDLE_S is cut off.
 */
#include "daemon/api_json.h"

#include "os/clock.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of what a client sends on a stream, which nobody reads. */
#define STREAM_READ_MAX 4096

struct api_stream {
    LIST_ENTRY(api_stream) next;
    struct evhttp_request *http;
    struct api_connection *connection;
    uint64_t after;  /* the last event that was sent */
    uint64_t wanted; /* a bit for each kind of event */
};

#define EVENT_COUNT_ONE(name, text) +1
#define EVENT_COUNT (0 JOURNAL_EVENT_MAP(EVENT_COUNT_ONE))
_Static_assert(EVENT_COUNT < 64, "a bit for each kind of event");

/* What the query and the headers ask for. */
struct wish {
    uint64_t after;
    uint64_t wanted;
};

/* False: the call has been answered. */
static bool read_id(struct api_call *call, const char *text, uint64_t *ret_id)
{
    char *end;
    uint64_t id;

    errno = 0;
    id = strtoull(text, &end, 10);
    if (errno || *end != '\0' || text[0] < '0' || text[0] > '9') {
        api_reply_error(call, 400, GAVEL_ERR_INVALID,
                        "\"%.32s\" is no id of an event; they are whole numbers", text);
        return false;
    }
    *ret_id = id;
    return true;
}

/* False: the call has been answered. */
static bool read_names(struct api_call *call, const char *list, uint64_t *ret_wanted)
{
    uint64_t wanted = 0;

    while (*list) {
        size_t length = strcspn(list, ",");
        int found = -1;

        for (int i = 0; i < EVENT_COUNT; i++) {
            const char *name = journal_event_name((enum journal_event)i);

            if (strlen(name) == length && memcmp(name, list, length) == 0)
                found = i;
        }
        if (found < 0) {
            api_reply_error(call, 400, GAVEL_ERR_INVALID, "there is no event \"%.*s\"; the names are in %s",
                            (int)(length > 64 ? 64 : length), list, "/openapi.json");
            return false;
        }
        wanted |= UINT64_C(1) << found;
        list += length;
        list += *list == ',';
    }
    if (wanted)
        *ret_wanted = wanted;
    return true;
}

/* False: the call has been answered. */
static bool read_query(struct api_call *call, const struct evkeyvalq *pairs, struct wish *ret_wish)
{
    const char *seen = evhttp_find_header(evhttp_request_get_input_headers(call->http), "Last-Event-ID");
    const char *after = evhttp_find_header(pairs, "after");
    const char *names = evhttp_find_header(pairs, "names");

    if (seen || after) /* the header is what a browser sends when it comes back: it is newer */
        if (!read_id(call, seen ? seen : after, &ret_wish->after))
            return false;
    return !names || read_names(call, names, &ret_wish->wanted);
}

static bool read_wish(struct api_call *call, struct wish *ret_wish)
{
    const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(call->http));
    struct evkeyvalq pairs;
    bool is_good = false;

    TAILQ_INIT(&pairs);
    if (query && evhttp_parse_query_str(query, &pairs))
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "what follows the ? is not key=value");
    else
        is_good = read_query(call, &pairs, ret_wish);
    evhttp_clear_headers(&pairs);
    return is_good;
}

static void on_taken(struct evhttp_connection *http, void *user);

static size_t waiting(const struct api_stream *stream)
{
    return evbuffer_get_length(bufferevent_get_output(stream->connection->bev));
}

static void push(struct api_stream *stream, const char *text, size_t length)
{
    struct evbuffer *piece = evbuffer_new();

    if (piece && evbuffer_add(piece, text, length) == 0) /* no memory: it is lost, and the next id shows it */
        evhttp_send_reply_chunk_with_cb(stream->http, piece, on_taken, stream);
    if (piece)
        evbuffer_free(piece);
}

static json_t *entry_json(const struct journal_entry *entry, const char *name)
{
    char id[24];

    (void)snprintf(id, sizeof id, "%" PRIu64, entry->id);
    return json_pack("{s:s,s:s,s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "id", id, "event", name, "at",
                     json_wall(entry->wall_ms), "at_ns", (json_int_t)entry->at, "term", json_u64(entry->term),
                     "node", json_text(entry->node), "previous", json_text(entry->previous), "text",
                     json_words(entry->text), "index", json_u64(entry->index), "lease_epoch",
                     json_u64(entry->lease_epoch));
}

static void push_entry(struct api_stream *stream, const struct journal_entry *entry, const char *name,
                       bool has_id)
{
    json_t *data = entry_json(entry, name);
    char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;
    char frame[4096];
    int length;

    json_decref(data);
    if (!text)
        return; /* no memory: this one is lost, and the next one's id shows it */
    if (has_id)
        length =
            snprintf(frame, sizeof frame, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", entry->id, name, text);
    else
        length = snprintf(frame, sizeof frame, "event: %s\ndata: %s\n\n", name, text);
    if (length > 0 && (size_t)length < sizeof frame)
        push(stream, frame, (size_t)length);
    free(text);
}

static void push_missed(struct api_stream *stream, uint64_t after)
{
    struct journal_entry entry = {.id = after, .wall_ms = clock_wall_ms(), .at = clock_now()};

    (void)snprintf(entry.text, sizeof entry.text,
                   "events after this id are not kept any more; look at /status");
    push_entry(stream, &entry, "missed", false);
}

static void pump(struct api_stream *stream, struct journal *journal)
{
    struct journal_entry entry;
    bool has_missed = false;

    while (waiting(stream) < API_STREAM_BYTES_MAX &&
           journal_next(journal, stream->after, &entry, &has_missed)) {
        if (has_missed)
            push_missed(stream, stream->after);
        stream->after = entry.id;
        if (stream->wanted >> entry.event & 1)
            push_entry(stream, &entry, journal_event_name(entry.event), true);
    }
}

/* All that was written is out: there may be more. */
static void on_taken(struct evhttp_connection *http, void *user)
{
    struct api_stream *stream = user;

    (void)http;
    pump(stream, stream->connection->api->desk->journal);
}

void api_streams_pump(struct api *api)
{
    struct api_stream *stream;

    for (stream = LIST_FIRST(&api->streams); stream; stream = LIST_NEXT(stream, next))
        pump(stream, api->desk->journal);
}

void api_streams_heartbeat(struct api *api)
{
    static const char comment[] = ": still here\n\n";
    struct api_stream *stream;

    for (stream = LIST_FIRST(&api->streams); stream; stream = LIST_NEXT(stream, next))
        if (waiting(stream) == 0)
            push(stream, comment, sizeof comment - 1);
}

void api_streams_end(struct api *api)
{
    struct api_stream *stream;
    struct api_stream *next;

    for (stream = LIST_FIRST(&api->streams); stream; stream = next) {
        struct evhttp_request *http = stream->http;

        next = LIST_NEXT(stream, next);
        stream->connection->stream = NULL; /* nothing of the list is looked at when the connection goes */
        free(stream);
        evhttp_send_reply_end(http);
    }
    LIST_INIT(&api->streams);
    api->stream_count = 0;
}

/* The connection goes. evhttp frees the request with it, unless it was cut loose from it before. */
void api_stream_gone(struct api_stream *stream)
{
    if (!evhttp_request_get_connection(stream->http))
        evhttp_request_free(stream->http);
    stream->connection->api->stream_count--;
    stream->connection->stream = NULL;
    LIST_REMOVE(stream, next);
    free(stream);
}

static void open_stream(struct api_call *call, struct api_stream *stream)
{
    static const char hello[] = "retry: 1000\n: events of this node follow\n\n";
    struct evkeyvalq *headers = evhttp_request_get_output_headers(call->http);
    struct timeval patience = {.tv_sec = API_IDLE_S};

    api_count(call->api, call->route, 200);
    /* Without memory for a header the stream works, and a proxy may hold it up. */
    (void)evhttp_add_header(headers, "Content-Type", "text/event-stream");
    (void)evhttp_add_header(headers, "Cache-Control", "no-store");
    (void)evhttp_add_header(headers, "X-Accel-Buffering", "no");
    LIST_INSERT_HEAD(&call->api->streams, stream, next);
    call->api->stream_count++;
    call->connection->stream = stream;
    /* Silence from the client is normal now; that it takes nothing is not. */
    (void)bufferevent_set_timeouts(call->connection->bev, NULL, &patience);
    bufferevent_setwatermark(call->connection->bev, EV_READ, 0, STREAM_READ_MAX);
    evhttp_send_reply_start(call->http, 200, "OK");
    push(stream, hello, sizeof hello - 1);
    if (stream->after >
        journal_newest(call->api->desk->journal)) { /* an id of another node: ours are not after it */
        push_missed(stream, stream->after);
        stream->after = journal_newest(call->api->desk->journal);
    }
    pump(stream, call->api->desk->journal);
}

void api_get_events(struct api_call *call)
{
    struct wish wish = {.after = journal_newest(call->api->desk->journal), .wanted = UINT64_MAX};
    struct api_stream *stream;

    if (!read_wish(call, &wish))
        return;
    if (call->api->stream_count >= API_STREAMS_MAX || call->api->is_stopping) {
        api_reply_error(call, 503, GAVEL_ERR_STATE, "this node serves %zu streams already; ask another one",
                        call->api->stream_count);
        return;
    }
    stream = calloc(1, sizeof *stream);
    if (!stream) {
        api_reply_json(call, 500, NULL);
        return;
    }
    *stream = (struct api_stream){
        .http = call->http, .connection = call->connection, .after = wish.after, .wanted = wish.wanted};
    open_stream(call, stream);
}
