/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/events.h"

#include "cli/json_out.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_NS (60 * NS_PER_MS) /* for what another node tells of an earlier instant */
#define RETRY_NS (200 * NS_PER_MS)
#define WAIT_MS 50
#define LINE_MAX_BYTES 65536
#define HELD_MAX 512
#define ID_MAX 24

struct stream {
    struct cluster_streams *streams;
    char url[CLUSTER_URL_MAX];
    char name[65];
    char last_id[ID_MAX]; /* of the newest event; "" none yet */
    bool wants_all;       /* also what happened before we came */
    CURL *handle;         /* NULL: waits for retry_at */
    gavel_ns retry_at;
    char *line; /* what came of the present line */
    size_t length;
};

/* An event that waits for its turn. */
struct held {
    json_t *json;
    const struct stream *from;
    gavel_ns came_at;
};

struct cluster_streams {
    const struct cluster_client *client;
    cluster_event_cb cb;
    void *user;
    CURLM *multi;
    struct stream *items[CLUSTER_URLS_MAX];
    size_t count;
    struct held held[HELD_MAX];
    size_t held_count;
};

struct cluster_streams *cluster_streams_new(const struct cluster_client *client, cluster_event_cb cb,
                                            void *user)
{
    struct cluster_streams *streams = calloc(1, sizeof *streams);

    if (!streams)
        return NULL;
    streams->client = client;
    streams->cb = cb;
    streams->user = user;
    streams->multi = curl_multi_init();
    if (!streams->multi) {
        free(streams);
        return NULL;
    }
    return streams;
}

static void hang_up(struct stream *stream)
{
    if (!stream->handle)
        return;
    (void)curl_multi_remove_handle(stream->streams->multi, stream->handle);
    curl_easy_cleanup(stream->handle);
    stream->handle = NULL;
    stream->length = 0;
}

void cluster_streams_free(struct cluster_streams *streams)
{
    if (!streams)
        return;
    for (size_t i = 0; i < streams->count; i++) {
        hang_up(streams->items[i]);
        free(streams->items[i]->line);
        free(streams->items[i]);
    }
    for (size_t i = 0; i < streams->held_count; i++)
        json_decref(streams->held[i].json);
    (void)curl_multi_cleanup(streams->multi); /* nothing is in it */
    free(streams);
}

enum gavel_status cluster_streams_add(struct cluster_streams *streams, const char *url, const char *name,
                                      bool from_the_beginning)
{
    struct stream *stream = streams->count < CLUSTER_URLS_MAX ? calloc(1, sizeof *stream) : NULL;

    if (!stream)
        return GAVEL_ERR_NO_MEMORY;
    stream->streams = streams;
    stream->wants_all = from_the_beginning;
    (void)snprintf(stream->url, sizeof stream->url, "%s", url);
    (void)snprintf(stream->name, sizeof stream->name, "%s", name);
    streams->items[streams->count++] = stream;
    return GAVEL_OK;
}

/* In order of time; what one node tells at one instant, in the order it was told. */
static int by_time(const void *left, const void *right)
{
    const struct held *a = left, *b = right;
    int order = strcmp(json_get_text(a->json, "at"), json_get_text(b->json, "at"));

    if (order)
        return order;
    if (a->from == b->from) {
        order = (int)strlen(json_get_text(a->json, "id")) - (int)strlen(json_get_text(b->json, "id"));
        return order ? order : strcmp(json_get_text(a->json, "id"), json_get_text(b->json, "id"));
    }
    return (a->came_at > b->came_at) - (a->came_at < b->came_at);
}

static void tell(struct cluster_streams *streams, const struct held *held)
{
    struct cluster_event event = {.teller = held->from->name,
                                  .name = json_get_text(held->json, "event"),
                                  .at = json_get_text(held->json, "at"),
                                  .node = json_get_text(held->json, "node"),
                                  .previous = json_get_text(held->json, "previous"),
                                  .text = json_get_text(held->json, "text"),
                                  .term = (uint64_t)json_integer_value(json_object_get(held->json, "term")),
                                  .json = held->json};

    streams->cb(&event, streams->user);
    json_decref(held->json);
}

/* Tells what has waited long enough, and everything that is older. */
static void release(struct cluster_streams *streams, gavel_ns now)
{
    size_t ready = 0;

    qsort(streams->held, streams->held_count, sizeof streams->held[0], by_time);
    for (size_t i = 0; i < streams->held_count; i++)
        if (now - streams->held[i].came_at >= HOLD_NS)
            ready = i + 1;
    for (size_t i = 0; i < ready; i++)
        tell(streams, &streams->held[i]);
    streams->held_count -= ready;
    memmove(streams->held, streams->held + ready, streams->held_count * sizeof streams->held[0]);
}

static void take_line(struct stream *stream)
{
    struct cluster_streams *streams = stream->streams;
    json_t *json;

    if (stream->length > 4 && memcmp(stream->line, "id: ", 4) == 0) {
        (void)snprintf(stream->last_id, sizeof stream->last_id, "%.*s", (int)(stream->length - 4),
                       stream->line + 4);
        return;
    }
    if (stream->length <= 6 || memcmp(stream->line, "data: ", 6) != 0)
        return;
    json = json_loadb(stream->line + 6, stream->length - 6, 0, NULL);
    if (!json)
        return; /* not ours; the next one may be */
    if (streams->held_count == HELD_MAX)
        release(streams, NEVER);
    streams->held[streams->held_count++] =
        (struct held){.json = json, .from = stream, .came_at = clock_now()};
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *user)
{
    struct stream *stream = user;
    char *longer;

    for (size_t i = 0; i < size * count; i++) {
        if (bytes[i] == '\n') {
            take_line(stream);
            stream->length = 0;
            continue;
        }
        if (stream->length % 1024 == 0) {
            longer = stream->length < LINE_MAX_BYTES ? realloc(stream->line, stream->length + 1024) : NULL;
            if (!longer)
                return 0; /* ends this connection; the next one goes on after the last event */
            stream->line = longer;
        }
        if (bytes[i] != '\r')
            stream->line[stream->length++] = bytes[i];
    }
    return size * count;
}

static void dial(struct stream *stream)
{
    char path[64] = "/events";

    if (*stream->last_id)
        (void)snprintf(path, sizeof path, "/events?after=%s", stream->last_id);
    else if (stream->wants_all)
        (void)snprintf(path, sizeof path, "/events?after=0");
    stream->handle = cluster_handle(stream->streams->client, stream->url, path);
    if (!stream->handle)
        return;
    (void)curl_easy_setopt(stream->handle, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)stream->streams->client->timeout_ms);
    (void)curl_easy_setopt(stream->handle, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(stream->handle, CURLOPT_FAILONERROR, 1L);
    (void)curl_easy_setopt(stream->handle, CURLOPT_WRITEFUNCTION, take_bytes);
    (void)curl_easy_setopt(stream->handle, CURLOPT_WRITEDATA, stream);
    (void)curl_easy_setopt(stream->handle, CURLOPT_PRIVATE, stream);
    if (curl_multi_add_handle(stream->streams->multi, stream->handle))
        hang_up(stream);
}

static void collect_ends(struct cluster_streams *streams, gavel_ns now)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(streams->multi, &left))) {
        struct stream *stream = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &stream);
        stream->wants_all = true; /* whatever it tells when it is back is new */
        stream->retry_at = now + RETRY_NS;
        hang_up(stream);
    }
}

void cluster_streams_run(struct cluster_streams *streams, gavel_ns until, const volatile sig_atomic_t *stop)
{
    int running;

    while (!*stop) {
        gavel_ns now = clock_now();

        for (size_t i = 0; i < streams->count; i++)
            if (!streams->items[i]->handle && now >= streams->items[i]->retry_at)
                dial(streams->items[i]);
        if (curl_multi_perform(streams->multi, &running))
            return;
        collect_ends(streams, clock_now());
        release(streams, clock_now());
        if (clock_now() >= until || curl_multi_poll(streams->multi, NULL, 0, WAIT_MS, NULL))
            return;
    }
}

/* Events whose words are made of who and why. */
static const struct {
    const char *name;
    const char *words; /* %n whom it is about, %t who tells it, %w what the text says */
} sentences[] = {
    {"started", "%t has started"},
    {"stopping", "%t is stopping"},
    {"role_changed", "%t is %w now"},
    {"became_leader", "%t leads"},
    {"lost_leadership", "%t no longer leads: %w"},
    {"leader_down", "%t has proof that %n is dead"},
    {"election_ended", "%t saw that %w"},
    {"transfer_started", "%t hands over to %n"},
    {"transfer_done", "%t has handed over to %n"},
    {"transfer_failed", "%t could not hand over to %n: %w"},
    {"members_changed", "%t knows of a change of members: %w"},
    {"member_change_failed", "%t could not change the members: %w"},
    {"peer_up", "%t hears %n"},
    {"peer_down", "%t no longer hears %n: %w"},
    {"peer_refused", "%t and %n refuse each other: %w"},
    {"breaker_open", "%t pauses sending to %n: %w"},
    {"directory_refused", "%t: the data directory of %n is refused: %w"},
    {"directory_awaited", "%t waits for %n: %w"},
    {"founding_refused", "%t and %n refuse each other: %w"},
    {"directory_lost", "%t: %w"},
    {"breaker_closed", "%t talks with %n again"},
    {"split_brain", "%t sees two leaders: %w"},
    {"entries_truncated", "%t has dropped entries that were not committed: %w"},
    {"disk_full", "the disk of %t is full: %w"},
    {"disk_room", "the disk of %t has room again"},
    {"disk_hangs", "the disk of %t does not answer: %w"},
    {"disk_answers", "the disk of %t: %w"},
    {"commits_hang", "%t: %w"},
    {"commits_go_on", "%t: %w"},
    {"nobody_near", "%t %w"},
    {"certificate_expires", "%t reports a certificate: %w"},
    {"operator", "%t was told by an operator: %w"},
    {"missed", "%t no longer has all events: %w"},
};

static size_t add(char *buffer, size_t size, size_t used, const char *text)
{
    int written = used < size ? snprintf(buffer + used, size - used, "%s", text) : 0;

    return used + (written > 0 ? (size_t)written : 0);
}

/* "no longer leads: " without a reason ends before the colon. */
static void trim(char *buffer)
{
    size_t length = strlen(buffer);

    while (length > 0 && strchr(" :", buffer[length - 1]))
        buffer[--length] = '\0';
}

const char *cluster_event_words(const struct cluster_event *event, char *buffer, size_t size)
{
    const char *words = "%t reports %e: %w";
    size_t used = 0;

    if (strcmp(event->name, "leader_changed") == 0)
        words = *event->node ? "%t follows %n" : "%t knows no leader";
    if (strcmp(event->name, "leader_changed") == 0 && strcmp(event->node, event->teller) == 0)
        words = "%t has won the election";
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++)
        if (strcmp(sentences[i].name, event->name) == 0)
            words = sentences[i].words;
    buffer[0] = '\0';
    for (; *words; words++) {
        char letter[2] = {*words, '\0'};

        if (*words != '%') {
            used = add(buffer, size, used, letter);
            continue;
        }
        words++;
        used = add(buffer, size, used,
                   *words == 't'   ? event->teller
                   : *words == 'n' ? (*event->node ? event->node : "another")
                   : *words == 'w' ? event->text
                                   : event->name);
    }
    trim(buffer);
    if (event->term && used < size && strcmp(event->name, "became_leader") == 0)
        (void)snprintf(buffer + strlen(buffer), size - strlen(buffer), " in term %" PRIu64, event->term);
    return buffer;
}
