/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/addresses.h"

#include "base/error.h"
#include "config/duration.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "gavel://"

/* One greeting under way. */
struct greeting {
    struct event_base *base;
    struct cluster_link *link;
    char *urls;
    char program[64]; /* of a node that tells no addresses */
    bool is_refused;  /* by all nodes */
};

bool addresses_are_of_store(const char *url) { return url && strncmp(url, SCHEME, strlen(SCHEME)) == 0; }

static char *joined(const Gavel__ClientWelcome *welcome)
{
    size_t size = 1;
    char *text;

    for (size_t i = 0; i < welcome->n_api_urls; i++)
        size += strlen(welcome->api_urls[i]) + 1;
    text = calloc(1, size);
    for (size_t i = 0; text && i < welcome->n_api_urls; i++) {
        strcat(text, i ? "," : "");
        strcat(text, welcome->api_urls[i]);
    }
    return text;
}

static void on_welcome(void *user, const Gavel__ClientWelcome *welcome)
{
    struct greeting *greeting = user;

    if (greeting->urls)
        return;
    (void)snprintf(greeting->program, sizeof greeting->program, "%s", welcome->program);
    greeting->urls = joined(welcome);
    (void)event_base_loopbreak(greeting->base);
}

static void on_state(void *user, enum client_state state, const char *trouble)
{
    struct greeting *greeting = user;

    (void)state;
    (void)trouble;
    if (!greeting->link || !cluster_link_is_refused(greeting->link))
        return;
    greeting->is_refused = true;
    (void)event_base_loopbreak(greeting->base);
}

static enum gavel_status conclude(const struct greeting *greeting, const char *url, gavel_ms timeout_ms,
                                  struct gavel_error *error)
{
    const char *trouble = cluster_link_trouble(greeting->link);
    char text[DURATION_TEXT_MAX];

    if (greeting->urls && *greeting->urls)
        return GAVEL_OK;
    if (greeting->urls)
        return error_set(
            error, GAVEL_ERR_STORE_UNSUPPORTED,
            "a node of %.100s (%s) does not say where the API of the nodes is; name it with --cluster HOST:PORT,…",
            url, greeting->program);
    return error_set(error, greeting->is_refused ? GAVEL_ERR_STORE_DENIED : GAVEL_ERR_STORE_UNAVAILABLE,
                     "no node of %.100s %s within %s%s%s%s", url,
                     greeting->is_refused ? "lets us in" : "answers", duration_exact(timeout_ms, text),
                     *trouble ? ": " : "", trouble,
                     greeting->is_refused ? "" : "; see whether gaveld runs there");
}

static enum gavel_status greet(struct greeting *greeting, const struct cluster_link_target *target,
                               const char *url, gavel_ms timeout_ms, struct gavel_error *error)
{
    const struct cluster_link_events events = {.state = on_state, .welcomed = on_welcome, .user = greeting};
    const struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    enum gavel_status status;

    greeting->base = event_base_new();
    if (!greeting->base || event_base_loopexit(greeting->base, &limit))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    status = cluster_link_new(greeting->base, target, 0, "gavel", NULL, &events, &greeting->link, error);
    if (status != GAVEL_OK)
        return status;
    (void)event_base_dispatch(greeting->base); /* what has not come of it is told next */
    return conclude(greeting, url, timeout_ms, error);
}

enum gavel_status api_addresses_ask(const char *url, gavel_ms timeout_ms, struct api_addresses *ret_addresses,
                                    struct gavel_error *error)
{
    struct greeting greeting = {0};
    enum gavel_status status;

    *ret_addresses = (struct api_addresses){0};
    status = cluster_link_target_parse(url + strlen(SCHEME), &ret_addresses->target, error);
    if (status != GAVEL_OK)
        return status;
    ret_addresses->target.ttl_ms = 0; /* a greeting needs no session */
    status = greet(&greeting, &ret_addresses->target, url, timeout_ms, error);
    ret_addresses->urls = greeting.urls;
    cluster_link_free(greeting.link);
    if (greeting.base)
        event_base_free(greeting.base);
    return status;
}

void api_addresses_done(struct api_addresses *addresses)
{
    free(addresses->urls);
    *addresses = (struct api_addresses){0};
}
