/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/group_stream.h"

#include "base/error.h"
#include "cli/cluster/send.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_MS 200
#define SLICE_MS 50
#define LINE_MAX_BYTES (256u * 1024)
#define ID_MAX 48

struct listener {
    const struct group_stream *stream;
    char last_id[ID_MAX]; /* of the newest event; "" none yet */
    char kind[32];        /* of the event that is coming in */
    char *line;           /* what came of the present line */
    size_t length;
    bool is_over; /* the callback has had enough */
};

static void tell(struct listener *listener, const char *text, size_t length)
{
    json_t *json = json_loadb(text, length, 0, NULL);

    if (json && !listener->is_over && !listener->stream->cb(listener->kind, json, listener->stream->user))
        listener->is_over = true;
    json_decref(json); /* NULL: not ours; the next one may be */
}

static void take_line(struct listener *listener)
{
    const char *line = listener->line;
    size_t length = listener->length;

    if (length > 4 && memcmp(line, "id: ", 4) == 0)
        (void)snprintf(listener->last_id, ID_MAX, "%.*s", (int)(length - 4), line + 4);
    else if (length > 7 && memcmp(line, "event: ", 7) == 0)
        (void)snprintf(listener->kind, sizeof listener->kind, "%.*s", (int)(length - 7), line + 7);
    else if (length > 6 && memcmp(line, "data: ", 6) == 0)
        tell(listener, line + 6, length - 6);
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *user)
{
    struct listener *listener = user;

    for (size_t i = 0; i < size * count; i++) {
        if (bytes[i] == '\n') {
            take_line(listener);
            listener->length = 0;
            continue;
        }
        if (listener->length % 1024 == 0) {
            char *longer =
                listener->length < LINE_MAX_BYTES ? realloc(listener->line, listener->length + 1024) : NULL;

            if (!longer)
                return 0; /* ends this connection; the next one goes on after the last event */
            listener->line = longer;
        }
        if (bytes[i] != '\r')
            listener->line[listener->length++] = bytes[i];
    }
    return size * count;
}

static bool has_ended(const struct listener *listener)
{
    return listener->is_over || *listener->stream->stop || clock_now() >= listener->stream->until;
}

/* Lets the connection go on until it ends or is wanted no more. */
static void listen_on(CURLM *multi, const struct listener *listener)
{
    int running = 1;

    while (running && !has_ended(listener))
        if (curl_multi_perform(multi, &running) ||
            (running && curl_multi_poll(multi, NULL, 0, SLICE_MS, NULL)))
            return;
}

/* One connection, to its end. OK: another may follow. */
static enum gavel_status connect_once(struct cluster_client *client, const char *url, const char *path,
                                      struct listener *listener, struct gavel_error *error)
{
    char header[ID_MAX + 24];
    CURL *handle = cluster_handle(client, url, path);
    CURLM *multi = curl_multi_init();
    struct curl_slist *headers = NULL;
    enum gavel_status status = GAVEL_OK;
    long code = 0;

    for (const struct curl_slist *each = client->headers; each; each = each->next)
        headers = curl_slist_append(headers, each->data);
    (void)snprintf(header, sizeof header, "Last-Event-ID: %s", listener->last_id);
    if (*listener->last_id)
        headers = curl_slist_append(headers, header);
    if (!handle || !multi || !headers) {
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
        goto out;
    }
    (void)curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)client->timeout_ms);
    (void)curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
    (void)curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_bytes);
    (void)curl_easy_setopt(handle, CURLOPT_WRITEDATA, listener);
    if (curl_multi_add_handle(multi, handle)) {
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
        goto out;
    }
    listener->length = 0;
    listen_on(multi, listener); /* why it ended does not matter: the next one is asked */
    (void)curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code);
    if (code == 401 || code == 403)
        status = error_set(error, GAVEL_ERR_DENIED, "%s does not let us in; name the token with --token-file",
                           cluster_url_host(url));
    else if (code >= 400 && code < 500)
        status = error_set(error, GAVEL_ERR_INVALID, "%s does not report changes of groups (HTTP %ld)",
                           cluster_url_host(url), code);
    (void)curl_multi_remove_handle(multi, handle);
out:
    curl_easy_cleanup(handle);
    (void)curl_multi_cleanup(multi); /* nothing is in it */
    curl_slist_free_all(headers);
    return status;
}

enum gavel_status group_stream_run(struct cluster_client *client, const struct group_stream *stream,
                                   struct gavel_error *error)
{
    struct listener listener = {.stream = stream};
    char path[CLUSTER_PATH_MAX], url[CLUSTER_URL_MAX];
    enum gavel_status status = cluster_path(path, "/groups/%s/watch", stream->group, NULL, NULL);

    if (status != GAVEL_OK)
        return error_set(error, status, "%s", gavel_status_text(status));
    if (stream->has_after)
        (void)snprintf(listener.last_id, ID_MAX, "%" PRIu64, stream->after);
    while (status == GAVEL_OK && !has_ended(&listener)) {
        if (cluster_choose(client, client->timeout_ms, url, error))
            status = connect_once(client, url, path, &listener, error);
        else if (error->status != GAVEL_ERR_STORE_UNAVAILABLE && error->status != GAVEL_ERR_TIMEOUT)
            status = error->status;
        if (status == GAVEL_OK && !has_ended(&listener))
            (void)usleep(RETRY_MS * 1000); /* whoever is away comes back, or another leads */
    }
    free(listener.line);
    return status;
}
