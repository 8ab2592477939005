/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each call has an easy handle while it is under way; the multi handle keeps
 * the connections. A handle that is done with is kept for the next call: making
 * one costs more than a request to a server on the same machine.
 */
#include "store/http.h"

#include "base/error.h"
#include "os/clock.h"
#include "store/store.h"
#include "store/text_buffer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define IDLE_MAX 32
#define CONNECTIONS_MAX 32 /* to one server, at a time; further calls wait for one */
#define CONNECT_MS 2000    /* a host that does not answer is given up on, within the call's own time */
#define POLL_LONGEST_MS 1000
#define STREAM_IDLE_S 5L  /* an answer without end: after so much silence the kernel asks whether */
#define STREAM_PROBE_S 2L /* the peer is there, and so often */
#define IDLE_LONGEST (118 * NS_PER_S) /* libcurl itself uses no connection that was idle for longer */

struct http {
    CURLM *multi;
    CURL *idle[IDLE_MAX];
    size_t idle_count;
    char *ca_file;
    char *cert_file;
    char *key_file;
    char *sigv4;
    char *credentials;
    atomic_bool is_cancelled;
    char own_address[STORE_ADDRESS_SIZE];
    gavel_ns silence_at; /* when a call was last not answered; 0: never */
};

/* One call under way. */
struct transfer {
    struct http_call *call;
    CURL *easy;
    char message[CURL_ERROR_SIZE];
    struct text_buffer answer;
    bool is_done;
};

static char *copy(const char *text, bool *is_short)
{
    char *made = text ? strdup(text) : NULL;

    *is_short |= text && !made;
    return made;
}

enum gavel_status http_new(const struct http_settings *settings, struct http **ret_http)
{
    struct http *http = calloc(1, sizeof *http);
    bool is_short = false;

    if (!http)
        return GAVEL_ERR_NO_MEMORY;
    http->multi = curl_multi_init();
    http->ca_file = copy(settings->ca_file, &is_short);
    http->cert_file = copy(settings->cert_file, &is_short);
    http->key_file = copy(settings->key_file, &is_short);
    http->sigv4 = copy(settings->sigv4, &is_short);
    http->credentials = copy(settings->credentials, &is_short);
    if (!http->multi || is_short) {
        http_free(http);
        return GAVEL_ERR_NO_MEMORY;
    }
    (void)curl_multi_setopt(http->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)CONNECTIONS_MAX);
    *ret_http = http;
    return GAVEL_OK;
}

/* Secrets do not stay behind in memory that is given back. */
static void forget(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void http_free(struct http *http)
{
    if (!http)
        return;
    for (size_t i = 0; i < http->idle_count; i++)
        curl_easy_cleanup(http->idle[i]);
    (void)curl_multi_cleanup(http->multi); /* nothing is under way; safe on NULL */
    free(http->ca_file);
    free(http->cert_file);
    free(http->key_file);
    free(http->sigv4);
    forget(http->credentials);
    free(http);
}

enum gavel_status http_set_credentials(struct http *http, const char *credentials)
{
    char *made = strdup(credentials);

    if (!made)
        return GAVEL_ERR_NO_MEMORY;
    forget(http->credentials);
    http->credentials = made;
    return GAVEL_OK;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *user)
{
    struct transfer *transfer = user;
    struct http_call *call = transfer->call;

    (void)one; /* is 1 */
    if (call->on_bytes)
        return call->on_bytes(call->user, bytes, size) ? size : 0;
    if (size > HTTP_ANSWER_MAX - call->answer_size)
        return 0;
    text_buffer_add(&transfer->answer, bytes, size);
    call->answer = transfer->answer.bytes;
    call->answer_size = transfer->answer.length;
    return transfer->answer.is_short ? 0 : size;
}

static size_t on_header(char *bytes, size_t one, size_t size, void *user)
{
    static const char name[] = "etag:";
    struct transfer *transfer = user;
    struct http_call *call = transfer->call;
    size_t length = strlen(name);

    (void)one; /* is 1 */
    if (size > length && strncasecmp(bytes, name, length) == 0) {
        const char *value = bytes + length;
        const char *end = bytes + size;

        while (value < end && (*value == ' ' || *value == '\t'))
            value++;
        while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
            end--;
        if ((size_t)(end - value) < sizeof call->etag)
            (void)snprintf(call->etag, sizeof call->etag, "%.*s", (int)(end - value), value);
    }
    return size;
}

static CURL *take_handle(struct http *http)
{
    return http->idle_count > 0 ? http->idle[--http->idle_count] : curl_easy_init();
}

static void give_back(struct http *http, CURL *easy)
{
    if (http->idle_count == IDLE_MAX) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy); /* keeps nothing of the call */
    http->idle[http->idle_count++] = easy;
}

/*
 * What has silenced one connection (a route, a firewall that forgets) has
 * silenced all that were idle at the time. Each of them would cost a call its
 * whole time, so calls after that use none that was idle before.
 */
static void avoid_silent(const struct http *http, CURL *easy)
{
    gavel_ns since = clock_now() - http->silence_at;

    if (http->silence_at == 0)
        return;
    if (since < 2 * NS_PER_S)
        (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    else if (since < IDLE_LONGEST)
        (void)curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)(since / NS_PER_S - 1));
}

/* An option can only be refused for lack of memory, or by a libcurl without TLS; the call then fails by
 * itself. */
static void set_up(const struct http *http, struct transfer *transfer, gavel_ms left_ms)
{
    const struct http_call *call = transfer->call;
    CURL *easy = transfer->easy;

#define SET(option, value) (void)curl_easy_setopt(easy, CURLOPT_##option, value)
    SET(URL, call->url);
    SET(CUSTOMREQUEST, call->method);
    SET(PROTOCOLS_STR, "http,https");
    SET(NOSIGNAL, 1L);
    SET(QUICK_EXIT, 1L); /* a name server that does not answer must not keep a call beyond its time */
    SET(NOPROXY, "*");   /* what keeps mandates is asked directly */
    SET(PATH_AS_IS, 1L);
    SET(HTTPHEADER, call->headers);
    SET(TIMEOUT_MS, (long)left_ms);
    SET(CONNECTTIMEOUT_MS, (long)(left_ms > 0 && left_ms < CONNECT_MS ? left_ms : CONNECT_MS));
    SET(ERRORBUFFER, transfer->message);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, transfer);
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, transfer);
    SET(PRIVATE, transfer);
    if (strcmp(call->method, "HEAD") == 0)
        SET(NOBODY, 1L);
    if (call->on_bytes) { /* a peer that has gone without a word would never be missed */
        SET(TCP_KEEPALIVE, 1L);
        SET(TCP_KEEPIDLE, STREAM_IDLE_S);
        SET(TCP_KEEPINTVL, STREAM_PROBE_S);
    } else {
        SET(MAXFILESIZE_LARGE, (curl_off_t)HTTP_ANSWER_MAX); /* does not even begin, if the length is told */
    }
    if (call->body) {
        SET(POSTFIELDS, call->body);
        SET(POSTFIELDSIZE_LARGE, (curl_off_t)call->body_size);
    }
    if (http->ca_file)
        SET(CAINFO, http->ca_file);
    if (http->cert_file)
        SET(SSLCERT, http->cert_file);
    if (http->key_file)
        SET(SSLKEY, http->key_file);
    if (http->sigv4) {
        SET(AWS_SIGV4, http->sigv4);
        SET(USERPWD, http->credentials);
    }
#undef SET
    avoid_silent(http, easy);
}

/*
 * Whether the server can have seen the request. A kept connection that breaks before the answer makes libcurl
 * send it once more, on a new one; if that cannot be made, its error says nothing of the first.
 */
static enum http_fate fate_of(CURL *easy, CURLcode code)
{
    long sent = 0;

    if (code == CURLE_OK)
        return HTTP_ANSWERED;
    (void)curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent); /* stays 0 if it is not known */
    return sent == 0 ? HTTP_NOT_SENT : HTTP_UNKNOWN;
}

static void note_own_address(struct http *http, CURL *easy)
{
    const char *address = NULL;

    (void)curl_easy_getinfo(easy, CURLINFO_LOCAL_IP, &address); /* stays NULL */
    if (address && strlen(address) < sizeof http->own_address)
        (void)strcpy(http->own_address, address);
}

static void finish(struct http *http, struct transfer *transfer, CURLcode code)
{
    struct http_call *call = transfer->call;
    long status = 0;

    call->fate = fate_of(transfer->easy, code);
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status); /* stays 0 */
    call->status = (int)status;
    if (call->fate == HTTP_ANSWERED)
        note_own_address(http, transfer->easy);
    if (call->fate == HTTP_UNKNOWN)
        http->silence_at = clock_now();
    if (call->fate != HTTP_ANSWERED)
        (void)snprintf(call->error, sizeof call->error, "%.199s",
                       transfer->message[0] ? transfer->message : curl_easy_strerror(code));
    (void)curl_multi_remove_handle(http->multi, transfer->easy); /* it is in it */
    give_back(http, transfer->easy);
    transfer->easy = NULL;
    transfer->is_done = true;
}

static void fail(struct transfer *transfer, enum http_fate fate, const char *why)
{
    transfer->call->fate = fate;
    (void)snprintf(transfer->call->error, sizeof transfer->call->error, "%s", why);
    transfer->is_done = true;
}

static void begin(struct http *http, struct transfer *transfer)
{
    struct http_call *call = transfer->call;
    gavel_ns left = call->give_up_at == NEVER ? 0 : call->give_up_at - clock_now();

    *transfer = (struct transfer){.call = call};
    call->fate = HTTP_NOT_SENT;
    call->status = 0;
    call->answer = NULL;
    call->answer_size = 0;
    call->etag[0] = call->error[0] = '\0';
    if (call->give_up_at != NEVER && left < NS_PER_MS) { /* to libcurl, no time means no limit */
        fail(transfer, HTTP_NOT_SENT, "its time was over before it was begun");
        return;
    }
    transfer->easy = take_handle(http);
    if (!transfer->easy) {
        fail(transfer, HTTP_NOT_SENT, "out of memory");
        return;
    }
    set_up(http, transfer, ms_from_ns(left));
    if (curl_multi_add_handle(http->multi, transfer->easy) != CURLM_OK) {
        give_back(http, transfer->easy);
        fail(transfer, HTTP_NOT_SENT, "out of memory");
    }
}

/* Begins a call that may be over at once, and what it then wants to ask instead. */
static void begin_until_open(struct http *http, struct transfer *transfer)
{
    do {
        begin(http, transfer);
    } while (transfer->is_done && transfer->call->on_done && transfer->call->on_done(transfer->call));
}

/* Takes in what has ended; returns how many. */
static size_t reap(struct http *http)
{
    CURLMsg *message;
    size_t ended = 0;
    int left;

    while ((message = curl_multi_info_read(http->multi, &left))) {
        struct transfer *transfer = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer); /* was set */
        finish(http, transfer, message->data.result);
        if (transfer->call->on_done && transfer->call->on_done(transfer->call))
            begin_until_open(http, transfer);
        ended += transfer->is_done;
    }
    return ended;
}

void http_run(struct http *http, struct http_call *calls, size_t count)
{
    struct transfer *transfers = count ? calloc(count, sizeof *transfers) : NULL;
    size_t open = 0;
    int running;

    if (!transfers) {
        for (size_t i = 0; i < count; i++)
            fail(&(struct transfer){.call = &calls[i]}, HTTP_NOT_SENT, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        transfers[i].call = &calls[i];
        begin_until_open(http, &transfers[i]);
        open += !transfers[i].is_done;
    }
    while (open > 0 && !atomic_load(&http->is_cancelled)) {
        if (curl_multi_perform(http->multi, &running) != CURLM_OK)
            break;
        open -= reap(http);
        if (open > 0 && curl_multi_poll(http->multi, NULL, 0, POLL_LONGEST_MS, NULL) != CURLM_OK)
            break;
    }
    for (size_t i = 0; i < count; i++)
        if (!transfers[i].is_done)
            finish(http, &transfers[i], CURLE_ABORTED_BY_CALLBACK);
    free(transfers);
}

void http_cancel(struct http *http)
{
    atomic_store(&http->is_cancelled, true);
    (void)curl_multi_wakeup(http->multi); /* only fails for a bad handle */
}

const char *http_own_address(const struct http *http) { return http->own_address; }

void http_call_done(struct http_call *call)
{
    free(call->answer);
    call->answer = NULL;
    call->answer_size = 0;
}
