/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread that has the stream of events: one HTTP call whose answer does not
 * end, a line of JSON for each word. It is on the endpoint that worked last;
 * when that fails, be it here or in a call, the stream is made anew on the next.
 * Whatever happened in between was missed, so after each new beginning every
 * watched group counts as changed.
 */
#include "os/clock.h"
#include "os/thread.h"
#include "store/etcd/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_FIRST (50 * NS_PER_MS) /* after all endpoints have failed; then twice as long each time */
#define PAUSE_LONGEST (2 * NS_PER_S)
#define LIFE_SHORTEST (1 * NS_PER_S) /* a stream that ends sooner has failed, though it began well */
#define GATHER (3 * NS_PER_MS)       /* those who join several groups at once need only one new stream */
#define LINE_MAX_BYTES (4 * 1024 * 1024)

/* A stream under way; of the thread alone. */
struct stream {
    struct etcd_store *etcd;
    size_t questions; /* that are not confirmed yet */
    bool is_live;     /* all were confirmed */
    bool is_refused;  /* by a server that is in order */
    bool wants_token;
    struct text_buffer line; /* that has not ended yet */
};

static void take_event(struct etcd_store *etcd, const json_t *event)
{
    const json_t *json = json_object_get(event, "kv");
    const char *type = json_string_value(json_object_get(event, "type")); /* none: it was put */
    bool is_deleted = type && strcmp(type, "DELETE") == 0;
    char name[NAME_MAX_BYTES + 1];
    struct mandate_row row;
    struct nonce write;
    uint64_t offset;
    struct etcd_kv kv;

    if (etcd_kv_read(json, &kv) == GAVEL_OK) {
        if (etcd_key_read(etcd, ETCD_GROUPS, NULL, kv.key, name))
            etcd_watch_tell(
                etcd, name,
                is_deleted || etcd_row_read(&kv, &row, &write, &offset) != GAVEL_OK ? NULL : &row.record);
        else if (etcd_key_read(etcd, ETCD_WISHES, NULL, kv.key, name))
            etcd_watch_tell_wish(etcd, name);
    }
    etcd_kv_done(&kv);
}

/* False: the stream is of no use any more. */
static bool take_line(struct stream *stream, const char *line, size_t size)
{
    struct etcd_store *etcd = stream->etcd;
    json_t *json = json_loadb(line, size, 0, NULL);
    const json_t *result = json_object_get(json, "result");
    const json_t *event;
    bool is_good = result && !json_is_true(json_object_get(result, "canceled"));
    size_t i;

    pthread_mutex_lock(&etcd->push.lock);
    if (is_good && json_is_true(json_object_get(result, "created")) && stream->questions > 0 &&
        --stream->questions == 0) {
        stream->is_live = true;
        etcd_watch_tell_all(etcd);
    }
    json_array_foreach(json_object_get(result, "events"), i, event) {
        take_event(etcd, event);
    }
    pthread_mutex_unlock(&etcd->push.lock);
    if (!is_good) {
        char *text = json ? json_dumps(json, 0) : NULL;

        stream->is_refused = result;
        stream->wants_token =
            text && (strstr(text, "auth token") || strstr(text, "user name is empty") ||
                     strstr(text, "auth store is old") || strstr(text, "permission denied"));
        free(text);
    }
    json_decref(json); /* safe on NULL */
    return is_good;
}

static bool on_bytes(void *user, const char *bytes, size_t size)
{
    struct stream *stream = user;

    while (size > 0) {
        const char *end = memchr(bytes, '\n', size);
        size_t part = end ? (size_t)(end - bytes) : size;

        if (stream->line.length + part > LINE_MAX_BYTES)
            return false;
        text_buffer_add(&stream->line, bytes, part);
        if (stream->line.is_short)
            return false;
        if (!end)
            break;
        if (stream->line.length > 0 && !take_line(stream, stream->line.bytes, stream->line.length))
            return false;
        stream->line.length = 0;
        bytes += part + 1;
        size -= part + 1;
    }
    return true;
}

static bool take_token_look(struct etcd_call *call)
{
    (void)call; /* the token is there now, or the next stream fails as this one did */
    return false;
}

/* A look whose only use is that it logs in if that is needed. */
static void log_in(struct etcd_store *etcd, struct http *http)
{
    struct etcd_call call = {.give_up_at = clock_now() + 2 * NS_PER_S, .on_answer = take_token_look};
    char first[ETCD_KEY_SIZE];

    etcd_key(etcd, ETCD_GROUPS, NULL, NULL, first);
    etcd_ask(&call, "/v3/kv/range", etcd_body_page(first, "", 1), false);
    etcd_calls_run(etcd, http, &call, 1);
}

/* One stream from its beginning to its end; the lock is held, but not meanwhile. Whether it was of use. */
static bool run_stream(struct etcd_store *etcd)
{
    struct stream stream = {.etcd = etcd};
    struct http_call call = {.method = "POST", .give_up_at = NEVER, .on_bytes = on_bytes, .user = &stream};
    char url[340];
    char *text = NULL;
    struct http *http = NULL;
    size_t endpoint = etcd->current;
    gavel_ns began = clock_now();

    etcd->is_stream_old = false;
    if (etcd_http_new(etcd, &http) != GAVEL_OK || !etcd_watch_questions(etcd, &text, &stream.questions)) {
        free(text);
        http_free(http);
        return false;
    }
    etcd->stream = http;
    etcd->stream_endpoint = endpoint;
    pthread_mutex_unlock(&etcd->push.lock);

    (void)snprintf(url, sizeof url, "%s/v3/watch", etcd->endpoints[endpoint].base);
    call.url = url;
    call.body = text;
    call.body_size = strlen(text);
    call.headers = etcd_headers(etcd, true);
    http_run(http, &call, 1);
    if (call.fate == HTTP_ANSWERED && call.status != 200 && call.answer_size == 0 && stream.line.length > 0)
        (void)take_line(&stream, stream.line.bytes,
                        stream.line.length); /* an error that ended without a line */
    if (stream.wants_token)
        log_in(etcd, http);
    http_call_done(&call);
    curl_slist_free_all(call.headers);
    text_buffer_done(&stream.line);
    free(text);

    pthread_mutex_lock(&etcd->push.lock);
    etcd->stream = NULL;
    http_free(http);
    if (!etcd->is_stream_old && !etcd->is_closing && !stream.is_refused && etcd->current == endpoint)
        etcd->current = (endpoint + 1) % etcd->endpoint_count;
    return stream.is_live && clock_now() - began >= LIFE_SHORTEST;
}

static void *run(void *argument)
{
    struct etcd_store *etcd = argument;
    gavel_ns pause = PAUSE_FIRST;
    size_t failures = 0;

    pthread_mutex_lock(&etcd->push.lock);
    while (!etcd->is_closing) {
        if (etcd->push.watched_count == 0) {
            (void)push_sleep(&etcd->push, NEVER);
            continue;
        }
        if (etcd->is_stream_old)
            (void)push_sleep(&etcd->push, clock_now() + GATHER);
        if (etcd->is_closing || etcd->push.watched_count == 0)
            continue;
        if (run_stream(etcd) || etcd->is_stream_old) {
            failures = 0;
            pause = PAUSE_FIRST;
        } else if (++failures >= etcd->endpoint_count) {
            gavel_ns until = clock_now() + pause;

            while (!etcd->is_closing && push_sleep(&etcd->push, until))
                continue;
            pause = ns_min(2 * pause, PAUSE_LONGEST);
        }
    }
    pthread_mutex_unlock(&etcd->push.lock);
    return NULL;
}

void etcd_stream_renew(struct etcd_store *etcd)
{
    if (!etcd->has_thread) /* without one the caller looks again and again */
        etcd->has_thread = thread_start(&etcd->thread, NULL, "gavel-etcd", run, etcd) == 0;
    if (etcd->push.watched_count > ETCD_STREAM_GROUPS_MAX + 1)
        return; /* it is about all of them */
    etcd->is_stream_old = true;
    if (etcd->stream)
        http_cancel(etcd->stream);
    pthread_cond_broadcast(&etcd->push.changed);
}

void etcd_stream_stop(struct etcd_store *etcd)
{
    pthread_mutex_lock(&etcd->push.lock);
    etcd->is_closing = true;
    if (etcd->stream)
        http_cancel(etcd->stream);
    pthread_cond_broadcast(&etcd->push.changed);
    pthread_mutex_unlock(&etcd->push.lock);
    if (etcd->has_thread)
        (void)pthread_join(etcd->thread, NULL); /* it has no result */
}
