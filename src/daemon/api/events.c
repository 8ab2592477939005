/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /events: the journal as server-sent events, from any position. A reader that
 * returns names the last event it has seen and misses nothing that is still kept.
 * If something is lost, it is told so ("missed").
 */
#include "daemon/api/json.h"

#include "os/clock.h"

#include <errno.h>
#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event_stream {
    struct api_stream stream; /* first */
    uint64_t after;           /* the last event that was sent */
    uint64_t wanted;          /* a bit for each kind of event */
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
                        "\"%.32s\" is not the id of an event; ids are whole numbers", text);
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
    struct evkeyvalq pairs;
    bool is_good = api_query_read(call, &pairs) && read_query(call, &pairs, ret_wish);

    evhttp_clear_headers(&pairs);
    return is_good;
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

static void push_entry(struct event_stream *events, const struct journal_entry *entry, const char *name,
                       bool has_id)
{
    char id[24];

    (void)snprintf(id, sizeof id, "%" PRIu64, entry->id);
    api_stream_tell(&events->stream, has_id ? id : NULL, name, entry_json(entry, name));
}

static void push_missed(struct event_stream *events, uint64_t after)
{
    struct journal_entry entry = {.id = after, .wall_ms = clock_wall_ms(), .at = clock_now()};

    (void)snprintf(entry.text, sizeof entry.text, "events after this id are no longer kept; see /status");
    push_entry(events, &entry, "missed", false);
}

static void pump(struct api_stream *stream)
{
    struct event_stream *events = (struct event_stream *)stream;
    struct journal *journal = stream->connection->api->shared->journal;
    struct journal_entry entry;
    bool has_missed = false;

    while (api_stream_waiting(stream) < API_STREAM_BYTES_MAX &&
           journal_next(journal, events->after, &entry, &has_missed)) {
        if (has_missed)
            push_missed(events, events->after);
        events->after = entry.id;
        if (events->wanted >> entry.event & 1)
            push_entry(events, &entry, journal_event_name(entry.event), true);
    }
}

static void gone(struct api_stream *stream) { free(stream); }

static const struct api_stream_kind kind = {.pump = pump, .gone = gone};

void api_get_events(struct api_call *call)
{
    static const char hello[] = "retry: 1000\n: events of this node follow\n\n";
    struct journal *journal = call->api->shared->journal;
    struct wish wish = {.after = journal_newest(journal), .wanted = UINT64_MAX};
    struct event_stream *events;

    if (!read_wish(call, &wish) || !api_stream_may_open(call))
        return;
    events = calloc(1, sizeof *events);
    if (!events) {
        api_reply_json(call, 500, NULL);
        return;
    }
    events->after = wish.after;
    events->wanted = wish.wanted;
    api_stream_open(call, &events->stream, &kind);
    api_stream_push(&events->stream, hello, sizeof hello - 1);
    if (events->after > journal_newest(journal)) { /* an id of another node: ours are not after it */
        push_missed(events, events->after);
        events->after = journal_newest(journal);
    }
    pump(&events->stream);
}
