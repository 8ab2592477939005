/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/client.h"

#include "base/error.h"
#include "config/duration.h"
#include "net/revoked.h"
#include "os/clock.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define TOKEN_MAX 4096
#define ASK_AGAIN_MS 10 /* whether enough is known */

/* One question under way. */
struct exchange {
    CURL *handle;
    struct cluster_call *call;
    char *body;
    size_t length;
    bool is_too_long;
    char detail[CURL_ERROR_SIZE];
};

const char *cluster_url_host(const char *url)
{
    const char *host = strstr(url, "://");

    return host ? host + 3 : url;
}

/* A part of a URL as libcurl understands it; "" if it has none. The caller frees. */
static char *part_of(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, 0) ? NULL : text;
}

enum gavel_status cluster_url_read(const char *text, size_t length, const char *scheme,
                                   char ret_url[static CLUSTER_URL_MAX], struct gavel_error *error)
{
    char whole[CLUSTER_URL_MAX], url[CLUSTER_URL_MAX];
    char *named = NULL, *host = NULL, *port = NULL, *path = NULL;
    enum gavel_status status = GAVEL_OK;
    CURLU *parts = curl_url();
    int written;

    written =
        snprintf(whole, sizeof whole, "%s%s%.*s", memmem(text, length, "://", 3) ? "" : scheme,
                 memmem(text, length, "://", 3) ? "" : "://", (int)(length < 1024 ? length : 1024), text);
    if (written < 0 || (size_t)written >= sizeof whole || !parts ||
        curl_url_set(parts, CURLUPART_URL, whole, 0)) {
        status = error_set(error, GAVEL_ERR_INVALID,
                           "\"%.*s\" is not the address of a node; write host:port or https://host:port",
                           (int)(length < 80 ? length : 80), text);
        goto out;
    }
    named = part_of(parts, CURLUPART_SCHEME);
    host = part_of(parts, CURLUPART_HOST);
    port = part_of(parts, CURLUPART_PORT);
    path = part_of(parts, CURLUPART_PATH);
    written =
        snprintf(url, sizeof url, "%s://%s:%s", named ? named : "", host ? host : "", port ? port : "7500");
    if (!named || (strcmp(named, "http") != 0 && strcmp(named, "https") != 0))
        status = error_set(error, GAVEL_ERR_INVALID, "\"%s\": use http or https", whole);
    else if (!host || written < 0 || (size_t)written >= sizeof url || (path && strcmp(path, "/") != 0))
        status = error_set(error, GAVEL_ERR_INVALID, "\"%s\": give only the address of a node", whole);
    else
        strcpy(ret_url, url);
out:
    curl_free(named);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_url_cleanup(parts);
    return status;
}

/* The list of URLs; the same one twice counts once. */
static enum gavel_status read_urls(struct cluster_client *client, const struct cluster_options *options,
                                   struct gavel_error *error)
{
    const char *scheme = options->ca && *options->ca ? "https" : "http";

    for (const char *at = options->urls; *at;) {
        size_t length = strcspn(at, ", \t\n"), i = 0;
        char url[CLUSTER_URL_MAX];

        if (length > 0) {
            enum gavel_status status = cluster_url_read(at, length, scheme, url, error);

            if (status != GAVEL_OK)
                return status;
            while (i < client->url_count && strcmp(client->urls[i], url) != 0)
                i++;
            if (i == CLUSTER_URLS_MAX)
                return error_set(error, GAVEL_ERR_INVALID, "a cluster of more than %d nodes; name fewer",
                                 CLUSTER_URLS_MAX);
            strcpy(client->urls[i], url);
            client->url_count += i == client->url_count;
        }
        at += length + (at[length] != '\0');
    }
    if (client->url_count == 0)
        return error_set(error, GAVEL_ERR_INVALID,
                         "no node is named; give --cluster host:port,… or set GAVEL_CLUSTER");
    return GAVEL_OK;
}

static enum gavel_status add_header(struct cluster_client *client, const char *header,
                                    struct gavel_error *error)
{
    struct curl_slist *longer = curl_slist_append(client->headers, header);

    if (!longer)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    client->headers = longer;
    return GAVEL_OK;
}

/* The token is what stands in the file, without spaces and line ends around it. */
static enum gavel_status read_token(struct cluster_client *client, const char *path,
                                    struct gavel_error *error)
{
    char header[TOKEN_MAX + 64] = "Authorization: Bearer ";
    char token[TOKEN_MAX + 1];
    size_t length = 0, begin = 0;
    FILE *file = fopen(path, "re");

    if (file)
        length = fread(token, 1, sizeof token, file);
    if (!file || ferror(file)) {
        enum gavel_status status =
            error_set(error, GAVEL_ERR_IO, "cannot read the token file %s: %s", path, strerror(errno));

        if (file)
            (void)fclose(file); /* it was only read */
        return status;
    }
    (void)fclose(file);
    while (length > 0 && length < sizeof token && isspace((unsigned char)token[length - 1]))
        length--;
    while (begin < length && isspace((unsigned char)token[begin]))
        begin++;
    for (size_t i = begin; i < length; i++)
        if (!isgraph((unsigned char)token[i]))
            return error_set(error, GAVEL_ERR_INVALID,
                             "the token file %s holds more than one word; it must hold the token alone",
                             path);
    if (begin == length || length == sizeof token)
        return error_set(error, GAVEL_ERR_INVALID, "the token file %s is empty, or longer than %d bytes",
                         path, TOKEN_MAX);
    strncat(header, token + begin, length - begin);
    return add_header(client, header, error);
}

enum gavel_status cluster_client_init(const struct cluster_options *options,
                                      struct cluster_client *ret_client, struct gavel_error *error)
{
    enum gavel_status status;

    *ret_client = (struct cluster_client){.timeout_ms = options->timeout_ms};
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "libcurl cannot be used");
    status = read_urls(ret_client, options, error);
    if (status == GAVEL_OK)
        status = add_header(ret_client, "Accept: application/json", error);
    if (status == GAVEL_OK)
        status = add_header(ret_client, "Expect:", error); /* a body of a few bytes need not be announced */
    if (status == GAVEL_OK && options->token_file && *options->token_file)
        status = read_token(ret_client, options->token_file, error);
    if (status != GAVEL_OK)
        return status;
    ret_client->multi = curl_multi_init();
    if (options->ca && *options->ca)
        ret_client->ca = strdup(options->ca);
    if (options->revoked && *options->revoked)
        ret_client->revoked = strdup(options->revoked);
    if (!ret_client->multi || (options->ca && *options->ca && !ret_client->ca) ||
        (options->revoked && *options->revoked && !ret_client->revoked))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    return GAVEL_OK;
}

void cluster_client_done(struct cluster_client *client)
{
    if (client->multi)
        (void)curl_multi_cleanup(client->multi); /* nothing is under way */
    curl_slist_free_all(client->headers);
    free(client->ca);
    free(client->revoked);
    *client = (struct cluster_client){0};
}

/* After OpenSSL's own verdict: the certificate of the node itself, the first of its chain. */
static int judge(int is_good, X509_STORE_CTX *chain)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
    const X509 *cert = X509_STORE_CTX_get_current_cert(chain);

    if (!is_good || X509_STORE_CTX_get_error_depth(chain) != 0 || !ssl || !cert ||
        !revoked_has(SSL_get_SSL_CTX(ssl), cert))
        return is_good;
    X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REVOKED);
    return 0;
}

/* libcurl hands out its context before it connects. A list that cannot be read is no empty one. */
static CURLcode look_into_list(CURL *handle, void *context, void *path)
{
    (void)handle;
    if (revoked_load(path, context, &(struct gavel_error){0}) != GAVEL_OK)
        return CURLE_SSL_CRL_BADFILE;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, judge);
    return CURLE_OK;
}

CURL *cluster_handle(const struct cluster_client *client, const char *url, const char *path)
{
    char whole[CLUSTER_URL_MAX + CLUSTER_PATH_MAX];
    CURL *handle = curl_easy_init();

    if (!handle)
        return NULL;
    (void)snprintf(whole, sizeof whole, "%s%s", url, path);
    (void)curl_easy_setopt(handle, CURLOPT_URL, whole); /* copied; no memory shows when it is performed */
    (void)curl_easy_setopt(handle, CURLOPT_HTTPHEADER, client->headers);
    (void)curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(handle, CURLOPT_NOPROXY, "*"); /* the node itself is to answer */
    (void)curl_easy_setopt(handle, CURLOPT_TCP_NODELAY, 1L);
    (void)curl_easy_setopt(handle, CURLOPT_CERTINFO, 1L);
    if (client->ca)
        (void)curl_easy_setopt(handle, CURLOPT_CAINFO, client->ca);
    if (client->revoked) {
        (void)curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, look_into_list);
        (void)curl_easy_setopt(handle, CURLOPT_SSL_CTX_DATA, client->revoked);
    }
    return handle;
}

static size_t keep_body(char *bytes, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    char *longer;

    if (exchange->length + size * count > CLUSTER_BODY_MAX) {
        exchange->is_too_long = true;
        return 0;
    }
    longer = realloc(exchange->body, exchange->length + size * count + 1);
    if (!longer)
        return 0;
    exchange->body = longer;
    memcpy(exchange->body + exchange->length, bytes, size * count);
    exchange->length += size * count;
    return size * count;
}

/* Why a transfer failed, for people; returns the status that it means. */
static enum gavel_status explain(CURL *handle, CURLcode result, const char *detail, gavel_ms timeout_ms,
                                 char *ret_reason, size_t size)
{
    char text[DURATION_TEXT_MAX], *scheme = NULL;
    long number = 0;

    switch (result) {
    case CURLE_COULDNT_CONNECT:
        (void)curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
        if (number == ECONNREFUSED)
            (void)snprintf(ret_reason, size, "nothing listens there");
        else
            (void)snprintf(ret_reason, size, "cannot be reached: %s",
                           number ? strerror((int)number) : "no connection");
        return GAVEL_ERR_STORE_UNAVAILABLE;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        (void)snprintf(ret_reason, size,
                       "it does not speak HTTP; --cluster takes the addresses of `api:`, usually port 7500");
        return GAVEL_ERR_STORE_UNAVAILABLE;
    case CURLE_OPERATION_TIMEDOUT:
        (void)snprintf(ret_reason, size, "no answer within %s", duration_exact(timeout_ms, text));
        return GAVEL_ERR_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
        (void)snprintf(ret_reason, size, "unknown host");
        return GAVEL_ERR_STORE_UNAVAILABLE;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        (void)curl_easy_getinfo(handle, CURLINFO_SCHEME, &scheme);
        (void)snprintf(ret_reason, size, "it closed the connection; %s",
                       scheme && strcasecmp(scheme, "https") == 0
                           ? "is this the address of its API, or the one for nodes?"
                           : "if its API has TLS, write https:// and --ca");
        return GAVEL_ERR_STORE_UNAVAILABLE;
    case CURLE_SSL_CRL_BADFILE:
        (void)snprintf(ret_reason, size,
                       "the list of --revoked cannot be read, or a line of it is not a SHA-256");
        return GAVEL_ERR_INVALID;
    case CURLE_PEER_FAILED_VERIFICATION:
        if (curl_easy_getinfo(handle, CURLINFO_SSL_VERIFYRESULT, &number) == CURLE_OK &&
            number == X509_V_ERR_CERT_REVOKED) {
            (void)snprintf(ret_reason, size, "its certificate is revoked by the list of --revoked");
            return GAVEL_ERR_DENIED;
        }
        (void)snprintf(ret_reason, size, "its certificate is not trusted (%.120s); name the CA with --ca",
                       detail);
        return GAVEL_ERR_DENIED;
    case CURLE_SSL_CACERT_BADFILE:
        (void)snprintf(ret_reason, size, "the file of --ca cannot be used: %.120s", detail);
        return GAVEL_ERR_INVALID;
    case CURLE_SSL_CONNECT_ERROR:
        (void)snprintf(ret_reason, size, "it does not speak TLS (%.120s); if its API has none, write http://",
                       detail);
        return GAVEL_ERR_STORE_UNAVAILABLE;
    default:
        (void)snprintf(ret_reason, size, "%.200s", *detail ? detail : curl_easy_strerror(result));
        return GAVEL_ERR_STORE_UNAVAILABLE;
    }
}

/* What a node refused, in its own words; code and body of the call are there. */
static void read_refusal(struct cluster_call *call)
{
    const json_t *error = json_object_get(call->body, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    json_int_t code = json_integer_value(json_object_get(error, "code"));

    call->status = code > 0 && code <= 9999 ? (enum gavel_status)code : GAVEL_ERR_STORE_UNAVAILABLE;
    if (call->code == 401 || call->code == 403) {
        call->status = GAVEL_ERR_DENIED;
        (void)snprintf(call->reason, sizeof call->reason, "%.200s%s",
                       message ? message : "it does not let us in",
                       message && strstr(message, "`token:`") ? "" : "; name the token with --token-file");
    } else if (message) {
        (void)snprintf(call->reason, sizeof call->reason, "%.250s", message);
    } else {
        (void)snprintf(call->reason, sizeof call->reason,
                       "it answered with HTTP %ld; is this a node of gaveld?", call->code);
    }
}

/* When the certificate of the node ends, as libcurl tells of the first of its chain. */
static int64_t certificate_end(CURL *handle)
{
    static const char key[] = "Expire date:";
    struct curl_certinfo *chain = NULL;

    if (curl_easy_getinfo(handle, CURLINFO_CERTINFO, &chain) || !chain || chain->num_of_certs < 1)
        return 0;
    for (const struct curl_slist *line = chain->certinfo[0]; line; line = line->next)
        if (strncmp(line->data, key, strlen(key)) == 0) {
            time_t ends = curl_getdate(line->data + strlen(key), NULL);

            return ends > 0 ? ends : 0;
        }
    return 0;
}

void cluster_call_finish(struct cluster_call *call, const struct cluster_transfer *transfer)
{
    bool is_refused;

    call->is_over = true;
    call->reason[0] = '\0';
    if (transfer->is_too_long) {
        call->status = GAVEL_ERR_INVALID;
        (void)snprintf(call->reason, sizeof call->reason,
                       "its answer is too long; is this a node of gaveld?");
        return;
    }
    if (transfer->result != CURLE_OK) {
        long sent = 0;

        (void)curl_easy_getinfo(transfer->handle, CURLINFO_REQUEST_SIZE, &sent);
        call->may_have_arrived = sent > 0;
        call->status = explain(transfer->handle, transfer->result, transfer->detail, transfer->timeout_ms,
                               call->reason, sizeof call->reason);
        return;
    }
    (void)curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &call->code);
    is_refused = call->code < 200 || call->code > 299;
    if (is_refused || !transfer->wants_bytes)
        call->body = json_loadb(transfer->bytes ? transfer->bytes : "", transfer->length,
                                JSON_REJECT_DUPLICATES, NULL);
    if (is_refused) {
        read_refusal(call);
    } else if (!transfer->wants_bytes && !json_is_object(call->body)) {
        call->status = GAVEL_ERR_INVALID;
        (void)snprintf(call->reason, sizeof call->reason,
                       "its answer is not JSON; is this a node of gaveld?");
    } else {
        call->status = GAVEL_OK;
    }
}

static void finish(struct exchange *exchange, CURLcode result, gavel_ms timeout_ms)
{
    struct cluster_call *call = exchange->call;
    char *location = NULL;

    cluster_call_finish(call, &(struct cluster_transfer){.handle = exchange->handle,
                                                         .result = result,
                                                         .detail = exchange->detail,
                                                         .timeout_ms = timeout_ms,
                                                         .is_too_long = exchange->is_too_long,
                                                         .bytes = exchange->body,
                                                         .length = exchange->length});
    if (call->code == 0)
        return;
    (void)curl_easy_getinfo(exchange->handle, CURLINFO_REDIRECT_URL, &location);
    call->certificate_ends_s = certificate_end(exchange->handle);
    if (location && call->code == 307) {
        size_t host = (size_t)(cluster_url_host(location) - location);

        (void)snprintf(call->location, sizeof call->location, "%.*s",
                       (int)(host + strcspn(location + host, "/?")), location);
    }
}

static void begin(struct cluster_client *client, const char *path, gavel_ms timeout_ms,
                  struct exchange *exchange)
{
    struct cluster_call *call = exchange->call;

    call->status = GAVEL_ERR_NO_MEMORY; /* until something better is known */
    (void)snprintf(call->reason, sizeof call->reason, "out of memory");
    exchange->handle = cluster_handle(client, call->url, path);
    if (!exchange->handle)
        return;
    call->status = GAVEL_ERR_TIMEOUT;
    (void)snprintf(call->reason, sizeof call->reason, "its answer was not waited for");
    (void)curl_easy_setopt(exchange->handle, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    (void)curl_easy_setopt(exchange->handle, CURLOPT_WRITEFUNCTION, keep_body);
    (void)curl_easy_setopt(exchange->handle, CURLOPT_WRITEDATA, exchange);
    (void)curl_easy_setopt(exchange->handle, CURLOPT_ERRORBUFFER, exchange->detail);
    (void)curl_easy_setopt(exchange->handle, CURLOPT_PRIVATE, exchange);
}

/* Takes in what has come to its end. */
static void collect(CURLM *multi, gavel_ms timeout_ms)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(multi, &left))) {
        struct exchange *exchange = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
        finish(exchange, message->data.result, timeout_ms);
    }
}

/* What all the questions that are asked at once have in common. */
struct round {
    struct exchange *exchanges;
    size_t count;
    gavel_ms timeout_ms;
    cluster_enough_cb enough; /* NULL: all are waited for */
    void *user;
    const struct cluster_call *calls;
};

/* Lets all of them go on until each has its answer or its time is over, or enough is known. */
static void perform(struct cluster_client *client, const struct round *round)
{
    int running = 0;

    for (size_t i = 0; i < round->count; i++)
        if (round->exchanges[i].handle) /* its time-out ends it at the worst */
            (void)curl_multi_add_handle(client->multi, round->exchanges[i].handle);
    do {
        if (curl_multi_perform(client->multi, &running))
            break;
        collect(client->multi, round->timeout_ms);
        if (running && round->enough && round->enough(round->calls, round->count, round->user))
            break;
    } while (running && !curl_multi_poll(client->multi, NULL, 0, round->enough ? ASK_AGAIN_MS : 1000, NULL));
    for (size_t i = 0; i < round->count; i++) {
        if (!round->exchanges[i].handle)
            continue;
        (void)curl_multi_remove_handle(client->multi, round->exchanges[i].handle);
        curl_easy_cleanup(round->exchanges[i].handle);
        free(round->exchanges[i].body);
    }
}

void cluster_get(struct cluster_client *client, const char *path, struct cluster_call *calls, size_t count,
                 cluster_enough_cb enough, void *user)
{
    struct round round = {.exchanges = calloc(count ? count : 1, sizeof *round.exchanges),
                          .count = count,
                          .timeout_ms = client->timeout_ms,
                          .enough = enough,
                          .user = user,
                          .calls = calls};

    for (size_t i = 0; i < count; i++) {
        calls[i].status = GAVEL_ERR_NO_MEMORY;
        if (!round.exchanges)
            continue;
        round.exchanges[i].call = &calls[i];
        begin(client, path, client->timeout_ms, &round.exchanges[i]);
    }
    if (round.exchanges)
        perform(client, &round);
    free(round.exchanges);
}

void cluster_post(struct cluster_client *client, const char *path, const json_t *body, gavel_ms timeout_ms,
                  struct cluster_call *call)
{
    struct exchange exchange = {.call = call};
    struct curl_slist *headers = NULL;
    char *text = json_dumps(body, JSON_COMPACT);

    begin(client, path, timeout_ms, &exchange);
    for (const struct curl_slist *header = client->headers; header; header = header->next)
        headers = curl_slist_append(headers, header->data);
    headers = curl_slist_append(headers, "Content-Type: application/json");
    if (exchange.handle && text && headers) {
        (void)curl_easy_setopt(exchange.handle, CURLOPT_HTTPHEADER, headers);
        (void)curl_easy_setopt(exchange.handle, CURLOPT_POSTFIELDS, text);
        perform(client, &(struct round){.exchanges = &exchange, .count = 1, .timeout_ms = timeout_ms});
    } else {
        curl_easy_cleanup(exchange.handle);
    }
    curl_slist_free_all(headers);
    free(text);
}

void cluster_calls_done(struct cluster_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_decref(calls[i].body);
        calls[i] = (struct cluster_call){0};
    }
}
