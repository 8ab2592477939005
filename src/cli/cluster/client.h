/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Talks HTTP with the nodes of a gaveld cluster. Reads ask all nodes at once
 * and wait no longer than the time limit, so that one that hangs costs that
 * much and no more; what several say is put together by view.h.
 * Changes go to the leader: a node that does not lead names it, and it is
 * asked instead.
 *
 * A call is one question to one node. It never fails as a whole: what went
 * wrong is in the call, in words that name the reason and the next step.
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
    const char *ca;         /* NULL: those of the system */
    const char *revoked;    /* a list of certificates that are not taken (net/revoked.h); NULL: none */
    const char *token_file; /* NULL: none */
    gavel_ms timeout_ms;    /* of reads */
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
    bool is_over;               /* false: it was not waited for */
    long code;                  /* of HTTP; 0: there was no answer */
    bool may_have_arrived;      /* no answer, but the node may have begun with what was asked */
    json_t *body;               /* NULL if there is none */
    int64_t certificate_ends_s; /* when that of its API does, since 1970; 0: it has none */
    char location[CLUSTER_URL_MAX]; /* of a 307: the node to ask, without the path; "" if none */
};

/*
 * Reads the URLs and the token. ERR_INVALID, ERR_IO with what is wrong;
 * *ret_client is to be given to cluster_client_done(), also after a failure.
 */
GAVEL_CHECKED enum gavel_status cluster_client_init(const struct cluster_options *options,
                                                    struct cluster_client *ret_client,
                                                    struct gavel_error *error);
void cluster_client_done(struct cluster_client *client);

/* "127.0.0.1:7500" or a URL, as somebody wrote it, to the form of client->urls. ERR_INVALID. */
GAVEL_CHECKED enum gavel_status cluster_url_read(const char *text, size_t length, const char *scheme,
                                                 char ret_url[static CLUSTER_URL_MAX],
                                                 struct gavel_error *error);

/* The URL without its scheme, for people. */
const char *cluster_url_host(const char *url);

/* Whether those that have answered so far (is_over) say all that is wanted. */
typedef bool (*cluster_enough_cb)(const struct cluster_call *calls, size_t count, void *user);

/*
 * GET of the path at each of the calls' URLs, all at once; waits for all of
 * them, or until `enough` (NULL: never) says so. Fills in the calls;
 * cluster_calls_done() frees.
 */
void cluster_get(struct cluster_client *client, const char *path, struct cluster_call *calls, size_t count,
                 cluster_enough_cb enough, void *user);

/* POST of the body at one URL, with a time limit of its own. The body is borrowed. */
void cluster_post(struct cluster_client *client, const char *path, const json_t *body, gavel_ms timeout_ms,
                  struct cluster_call *call);

void cluster_calls_done(struct cluster_call *calls, size_t count);

/* A handle with everything set that all questions have in common; the caller frees it. NULL: no memory. */
CURL *cluster_handle(const struct cluster_client *client, const char *url, const char *path);

/* What a node refused, in its own words; code and body of the call are there. */
void cluster_read_refusal(struct cluster_call *call);

/* Why a transfer failed, for people; timeout_ms is the limit it had. Returns the status that it means. */
enum gavel_status cluster_reason(CURL *handle, CURLcode result, const char *detail, gavel_ms timeout_ms,
                                 char *ret_reason, size_t size);

#endif
