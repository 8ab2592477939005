/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Talks HTTP with the nodes of a gaveld cluster. Reads ask all nodes at once
 * and wait no longer than the time limit, so a node that hangs costs no more
 * than that; view.h combines the answers. Changes go to the leader: a node that
 * does not lead names the leader, which is then asked instead.
 *
 * A call is one question to one node. It never fails as a whole: the call says
 * what went wrong, why, and what to do next.
 */
#ifndef CLI_CLUSTER_CLIENT_H
#define CLI_CLUSTER_CLIENT_H

#include "base/time.h"

#include <gavel/settings.h>
#include <gavel/status.h>

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define CLUSTER_URLS_MAX 32
#define CLUSTER_URL_MAX 288
#define CLUSTER_PATH_MAX 3072 /* names are percent-encoded, and so up to three times as long */
#define CLUSTER_BODY_MAX (4u << 20)

struct cluster_options {
    const char *urls;       /* "host:port,https://host": at least one */
    const char *ca;         /* NULL: the system's */
    const char *revoked;    /* a list of revoked certificates (net/revoked.h); NULL: none */
    const char *token_file; /* NULL: none */
    gavel_ms timeout_ms;    /* for reads */
};

struct cluster_client {
    char urls[CLUSTER_URLS_MAX][CLUSTER_URL_MAX]; /* "http://host:port", without a slash at the end */
    size_t url_count;
    char *ca;
    char *revoked;
    struct curl_slist *headers;
    gavel_ms timeout_ms;
    CURLM *multi;
};

struct cluster_call {
    char url[CLUSTER_URL_MAX];  /* of the node */
    enum gavel_status status;   /* OK: 2xx with JSON. Else what the node said, ERR_TIMEOUT, ERR_DENIED, … */
    char reason[256];           /* why not OK */
    bool is_over;               /* false: its answer was not waited for */
    long code;                  /* of HTTP; 0: there was no answer */
    bool may_have_arrived;      /* no answer, but the node may have begun the request */
    json_t *body;               /* NULL if there is none */
    int64_t certificate_ends_s; /* expiry of its API's certificate, since 1970; 0: it has none */
    char location[CLUSTER_URL_MAX]; /* of a 307: the node to ask, without the path; "" if none */
};

/*
 * Reads the URLs and the token. ERR_INVALID, ERR_IO; *error says what is wrong.
 * The caller calls cluster_client_done(), also after a failure.
 */
GAVEL_CHECKED enum gavel_status cluster_client_init(const struct cluster_options *options,
                                                    struct cluster_client *ret_client,
                                                    struct gavel_error *error);
void cluster_client_done(struct cluster_client *client);

/* Brings "127.0.0.1:7500" or a URL, as a user wrote it, into the form of client->urls. ERR_INVALID. */
GAVEL_CHECKED enum gavel_status cluster_url_read(const char *text, size_t length, const char *scheme,
                                                 char ret_url[static CLUSTER_URL_MAX],
                                                 struct gavel_error *error);

/* The URL without its scheme, for people. */
const char *cluster_url_host(const char *url);

/* Whether the answers so far (is_over) are enough. */
typedef bool (*cluster_enough_cb)(const struct cluster_call *calls, size_t count, void *user);

/*
 * Sends a GET of the path to each of the calls' URLs, all at once. Waits for
 * all of them, or until `enough` (NULL: never) returns true. Fills in the
 * calls; cluster_calls_done() frees.
 */
void cluster_get(struct cluster_client *client, const char *path, struct cluster_call *calls, size_t count,
                 cluster_enough_cb enough, void *user);

/* Sends a POST of the body to one URL, with a time limit of its own. The body is borrowed. */
void cluster_post(struct cluster_client *client, const char *path, const json_t *body, gavel_ms timeout_ms,
                  struct cluster_call *call);

void cluster_calls_done(struct cluster_call *calls, size_t count);

/* A handle with the options that all requests share; the caller frees it. NULL: no memory. */
CURL *cluster_handle(const struct cluster_client *client, const char *url, const char *path);

/* How a question ended, and what came. */
struct cluster_transfer {
    CURL *handle;
    CURLcode result;
    const char *detail; /* of libcurl, about a failure */
    gavel_ms timeout_ms;
    bool is_too_long;
    const char *bytes; /* NULL if there are none */
    size_t length;
    bool wants_bytes; /* what comes with 2xx need not be JSON, and is not read here */
};

/* Fills in the status, the reason, the code and the body of a call. */
void cluster_call_finish(struct cluster_call *call, const struct cluster_transfer *transfer);

#endif
