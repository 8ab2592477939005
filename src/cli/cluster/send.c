/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/send.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define RETRY_MS 50

struct exchange {
    struct cluster_reply *reply;
    bool is_too_long;
    char detail[CURL_ERROR_SIZE];
};

static size_t keep_body(char *bytes, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    struct cluster_reply *reply = exchange->reply;
    size_t more = size * count;
    char *longer;

    exchange->is_too_long = reply->length + more > CLUSTER_BODY_MAX;
    longer = exchange->is_too_long ? NULL : realloc(reply->bytes, reply->length + more + 1);
    if (!longer)
        return 0;
    reply->bytes = longer;
    memcpy(reply->bytes + reply->length, bytes, more);
    reply->length += more;
    return more;
}

static size_t keep_header(char *bytes, size_t size, size_t count, void *user)
{
    struct cluster_reply *reply = user;
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {{"Revision:", &reply->revision},
                   {"Created-Revision:", &reply->created_revision},
                   {"Epoch:", &reply->epoch}};
    char line[128];

    (void)snprintf(line, sizeof line, "%.*s", (int)(size * count < 127 ? size * count : 127), bytes);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strncasecmp(line, numbers[i].name, strlen(numbers[i].name)) == 0)
            *numbers[i].number = strtoull(line + strlen(numbers[i].name), NULL, 10);
    return size * count;
}

/* One try at the node of reply->call.url. */
static void try_once(struct cluster_client *client, const struct cluster_ask *ask,
                     struct cluster_reply *reply)
{
    gavel_ms timeout_ms = ask->timeout_ms ? ask->timeout_ms : client->timeout_ms;
    CURL *handle = cluster_handle(client, reply->call.url, ask->path);
    struct exchange exchange = {.reply = reply};
    struct curl_slist *headers = NULL;
    CURLcode result;
    char type[128];

    reply->call.status = GAVEL_ERR_NO_MEMORY;
    (void)snprintf(reply->call.reason, sizeof reply->call.reason, "out of memory");
    if (!handle)
        return;
    for (const struct curl_slist *header = client->headers; header; header = header->next)
        headers =
            curl_slist_append(headers, header->data); /* no memory shows below, as fewer headers would */
    for (const char *const *header = ask->headers; *header; header++)
        headers = curl_slist_append(headers, *header);
    if (ask->type) {
        (void)snprintf(type, sizeof type, "Content-Type: %s", ask->type);
        headers = curl_slist_append(headers, type);
    }
    if (headers) {
        (void)curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
        if (ask->body) {
            (void)curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->length);
            (void)curl_easy_setopt(handle, CURLOPT_POSTFIELDS, ask->body);
        }
        if (ask->method)
            (void)curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, ask->method);
        (void)curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
        (void)curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, keep_body);
        (void)curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
        (void)curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, keep_header);
        (void)curl_easy_setopt(handle, CURLOPT_HEADERDATA, reply);
        (void)curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, exchange.detail);
        result = curl_easy_perform(handle);
        cluster_call_finish(&reply->call, &(struct cluster_transfer){.handle = handle,
                                                                     .result = result,
                                                                     .detail = exchange.detail,
                                                                     .timeout_ms = timeout_ms,
                                                                     .is_too_long = exchange.is_too_long,
                                                                     .bytes = reply->bytes,
                                                                     .length = reply->length,
                                                                     .wants_bytes = ask->wants_bytes});
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(handle);
}

void cluster_reply_done(struct cluster_reply *reply)
{
    cluster_calls_done(&reply->call, 1);
    free(reply->bytes);
    *reply = (struct cluster_reply){0};
}

static enum gavel_status say(const struct cluster_ask *ask, const struct cluster_call *call,
                             struct gavel_error *error)
{
    if (call->status == GAVEL_OK)
        return GAVEL_OK;
    return error_set(error, call->status, "%s: %s%s%s", cluster_url_host(call->url), call->reason,
                     call->may_have_arrived && !ask->may_repeat ? "; it is unknown whether it was done" : "",
                     call->code == 0 && call->status == GAVEL_ERR_TIMEOUT
                         ? "; the cluster may have no leader, see `gavel status`"
                         : "");
}

/* No node has answered, and another one may. */
static bool may_retry(const struct cluster_ask *ask, const struct cluster_call *call)
{
    return call->code == 0 && (ask->may_repeat || !call->may_have_arrived) &&
           (call->status == GAVEL_ERR_STORE_UNAVAILABLE || call->status == GAVEL_ERR_TIMEOUT);
}

enum gavel_status cluster_send(struct cluster_client *client, const struct cluster_ask *ask,
                               struct cluster_reply *ret_reply, struct gavel_error *error)
{
    gavel_ns until = clock_now() + ns_from_ms(ask->timeout_ms ? ask->timeout_ms : client->timeout_ms);

    *ret_reply = (struct cluster_reply){0};
    for (;;) {
        if (cluster_choose(client, client->timeout_ms, ret_reply->call.url, error)) {
            try_once(client, ask, ret_reply);
            if (!may_retry(ask, &ret_reply->call) || clock_now() >= until)
                return say(ask, &ret_reply->call, error);
            cluster_reply_done(ret_reply);
        } else if (clock_now() >= until || error->status != GAVEL_ERR_STORE_UNAVAILABLE) {
            ret_reply->call.status = error->status;
            return error->status;
        }
        (void)usleep(RETRY_MS * 1000); /* an election takes about that long */
    }
}

enum gavel_status cluster_path(char ret_path[static CLUSTER_PATH_MAX], const char *format, const char *first,
                               const char *second, const char *third)
{
    const char *names[] = {first, second, third};
    size_t used = 0, next = 0;

    for (; *format; format++) {
        const char *piece = format;
        size_t length = 1;
        char *encoded = NULL;

        if (format[0] == '%' && format[1] == 's') {
            ASSERT(next < sizeof names / sizeof names[0]);
            encoded = curl_easy_escape(NULL, names[next], (int)strlen(names[next]));
            next++;
            format++;
            if (!encoded)
                return GAVEL_ERR_NO_MEMORY;
            piece = encoded;
            length = strlen(encoded);
        }
        if (used + length < CLUSTER_PATH_MAX)
            memcpy(ret_path + used, piece, length);
        used += length;
        curl_free(encoded);
    }
    if (used >= CLUSTER_PATH_MAX)
        return GAVEL_ERR_INVALID;
    ret_path[used] = '\0';
    return GAVEL_OK;
}
