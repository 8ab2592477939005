/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/cluster_cli.h"

#include "base/error.h"
#include "cli/cluster/addresses.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RETRY_MS 50
#define HOPS_MAX 5
#define PATIENCE_NS (1000 * NS_PER_MS) /* then a person wants to know why nothing happens */

enum gavel_status cluster_open(const struct cli *cli, struct cluster_client *ret_client,
                               struct gavel_error *error)
{
    struct cluster_options options = {.urls = cli->config.cluster,
                                      .ca = cli->config.cluster_ca,
                                      .revoked = cli->config.cluster_revoked,
                                      .token_file = cli->config.token_file,
                                      .timeout_ms = cli->config.cluster_timeout_ms};
    struct api_addresses addresses = {0};
    enum gavel_status status = GAVEL_OK;

    *ret_client = (struct cluster_client){0};
    if (!options.urls || !*options.urls)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "no cluster is named; give --cluster HOST:PORT,… or set GAVEL_CLUSTER, or a GAVEL_STORE that is gavel://… (`gavel cluster demo` starts one to try)");
    if (addresses_are_of_store(options.urls)) {
        status = api_addresses_ask(options.urls, options.timeout_ms, &addresses, error);
        options.urls = addresses.urls;
        if (!options.ca && addresses.target.ca[0])
            options.ca = addresses.target.ca;
        if (!options.revoked && addresses.target.revoked[0])
            options.revoked = addresses.target.revoked;
    }
    if (status == GAVEL_OK)
        status = cluster_client_init(&options, ret_client, error);
    api_addresses_done(&addresses);
    return status;
}

/* Whether the node has certainly not begun, and another or a later try may do better. */
static bool may_retry(const struct cluster_call *call)
{
    if (call->code == 0)
        return !call->may_have_arrived && call->status == GAVEL_ERR_STORE_UNAVAILABLE;
    return call->status == GAVEL_ERR_NO_LEADER || call->status == GAVEL_ERR_NOT_LEADER;
}

/* Asks one node, and then the one that it names as the leader. */
static void ask_and_follow(struct cluster_client *client, const char *path, const json_t *body,
                           gavel_ns until, struct cluster_call *call)
{
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        char next[CLUSTER_URL_MAX];
        gavel_ms left_ms = (until - clock_now()) / NS_PER_MS;

        /* What was asked at all is given the time for an answer. */
        cluster_post(client, path, body, left_ms > client->timeout_ms ? left_ms : client->timeout_ms, call);
        if (call->code != 307 || !*call->location)
            return;
        /* The token goes along, so it must not leave TLS. */
        if (strncmp(call->url, "https:", 6) == 0 && strncmp(call->location, "https:", 6) != 0)
            return;
        strcpy(next, call->location);
        cluster_calls_done(call, 1);
        strcpy(call->url, next);
    }
}

bool cluster_choose(struct cluster_client *client, gavel_ms limit_ms, char ret_url[static CLUSTER_URL_MAX],
                    struct gavel_error *error)
{
    struct cluster_view view;
    const struct cluster_node *node;
    bool is_found = cluster_find_within(client, "", limit_ms, &view, error) == GAVEL_OK;

    if (is_found) {
        node = cluster_view_leader(&view);
        if (!node || !node->has_answered)
            node = &view.nodes[view.believed];
        strcpy(ret_url, node->url);
    }
    cluster_view_done(&view);
    return is_found;
}

static enum gavel_status say(const struct cluster_call *call, struct gavel_error *error)
{
    if (call->status == GAVEL_OK)
        return GAVEL_OK;
    if (call->may_have_arrived)
        return error_set(error, call->status,
                         "%s: %s; it is unknown whether it was done: see `gavel status --cluster %s`",
                         cluster_url_host(call->url), call->reason, cluster_url_host(call->url));
    return error_set(error, call->status, "%s: %s", cluster_url_host(call->url), call->reason);
}

enum gavel_status cluster_ask_leader(struct cluster_client *client, const char *path, const json_t *body,
                                     gavel_ms timeout_ms, struct cluster_call *ret_call,
                                     struct gavel_error *error)
{
    gavel_ns begun = clock_now(), until = begun + ns_from_ms(timeout_ms);
    bool has_told = false;

    for (gavel_ms limit_ms = CLUSTER_FIRST_MS;;
         limit_ms = limit_ms < client->timeout_ms ? 2 * limit_ms : limit_ms) {
        struct cluster_call call = {0};

        if (cluster_choose(client, limit_ms, call.url, error)) {
            ask_and_follow(client, path, body, until, &call);
            if (!may_retry(&call) || clock_now() >= until) {
                enum gavel_status status = say(&call, error);

                *ret_call = call;
                return status;
            }
            if (!has_told && call.status == GAVEL_ERR_NO_LEADER && clock_now() - begun > PATIENCE_NS) {
                fprintf(stderr, "Nobody leads at the moment; waiting for an election …\n");
                has_told = true;
            }
            cluster_calls_done(&call, 1);
        } else if (clock_now() >= until || error->status != GAVEL_ERR_STORE_UNAVAILABLE) {
            *ret_call = (struct cluster_call){.status = error->status};
            return error->status;
        }
        (void)usleep(RETRY_MS * 1000); /* an election takes about that long */
    }
}
