/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HTTP for the drivers whose server speaks it: any number of calls at once,
 * each with a deadline of its own, over connections that are kept open. libcurl
 * does the work; this determines the outcome of each call, which is what
 * matters to a store: done, certainly not done, or unknown.
 */
#ifndef STORE_HTTP_H
#define STORE_HTTP_H

#include "base/time.h"

#include <curl/curl.h>

#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum http_fate {
    HTTP_ANSWERED, /* see status */
    HTTP_NOT_SENT, /* the server never got it: no connection, no TLS, an unknown name */
    HTTP_UNKNOWN,  /* it may have been carried out, or may still be */
};

#define HTTP_ANSWER_MAX (16 * 1024 * 1024) /* a longer answer counts as none: HTTP_UNKNOWN */

struct http_call {
    /* asked; all borrowed */
    const char *method; /* "GET", "PUT", … */
    const char *url;
    struct curl_slist *headers;
    const void *body; /* NULL: none */
    size_t body_size;
    gavel_ns give_up_at;
    /*
     * NULL: the answer is collected. Otherwise gets it piece by piece, for an
     * answer that has no end; false ends the call.
     */
    bool (*on_bytes)(void *user, const char *bytes, size_t size);
    void *user;
    /*
     * NULL: nothing. Otherwise called once the call is over; true: the call now
     * asks something else and begins again, while the others go on. The
     * previous answer must have been freed.
     */
    bool (*on_done)(struct http_call *call);

    /* answered */
    enum http_fate fate;
    int status;   /* 200 */
    char *answer; /* owned; ends with a NUL that does not count; NULL if there is none */
    size_t answer_size;
    char etag[160];  /* as it came, with its quotes; "" if there is none */
    char error[200]; /* what went wrong, if not answered */
};

struct http_settings {
    const char *ca_file;   /* NULL: the system's */
    const char *cert_file; /* NULL: none */
    const char *key_file;
    const char *sigv4;       /* "aws:amz:REGION:s3"; NULL: not signed */
    const char *credentials; /* "KEY:SECRET" for sigv4 */
};

struct http;

/* The settings are copied. ERR_NO_MEMORY. One thread at a time uses an http. */
GAVEL_CHECKED enum gavel_status http_new(const struct http_settings *settings, struct http **ret_http);
void http_free(struct http *http); /* safe on NULL */

/* Sets other credentials, from the next call on. */
GAVEL_CHECKED enum gavel_status http_set_credentials(struct http *http, const char *credentials);

/* Carries out all of them in parallel, and returns when each is answered or its time is over. */
void http_run(struct http *http, struct http_call *calls, size_t count);

/*
 * From another thread: ends an http_run() that is under way at once, and
 * likewise every later one; its calls are HTTP_UNKNOWN.
 */
void http_cancel(struct http *http);

/* The address of this host on the connection that was used last; "" before the first. */
const char *http_own_address(const struct http *http);

/* To be appended to the error of a call: what to do about it; "" if that is unknown. */
static inline const char *http_advice(const struct http_call *call)
{
    if (strstr(call->error, "certificate problem"))
        return "; if its authority is one of yours, name it with ca=";
    return strstr(call->error, "Couldn't connect") ? "; look whether the server runs, and where" : "";
}

/* Frees the answer. */
void http_call_done(struct http_call *call);

#endif
