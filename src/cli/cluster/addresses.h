/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the API addresses of the nodes by asking the nodes. The URL of a store,
 * gavel://…, names the ports for clients; a node answers a hello with those of
 * the API.
 */
#ifndef CLI_CLUSTER_ADDRESSES_H
#define CLI_CLUSTER_ADDRESSES_H

#include "client/cluster.h"

#include <stdbool.h>

struct api_addresses {
    char *urls;                        /* "https://h1:7500,https://h2:7500"; owned */
    struct cluster_link_target target; /* what the URL of the store says */
};

/* Whether it is the URL of a store on a cluster. */
bool addresses_are_of_store(const char *url);

/*
 * Asks the nodes of gavel://… and takes the first answer. ERR_INVALID (the
 * URL), ERR_STORE_UNAVAILABLE (no node answers in time), ERR_STORE_DENIED,
 * ERR_STORE_UNSUPPORTED (the node is older than 0.7.0). The caller calls
 * api_addresses_done(), also after a failure.
 */
GAVEL_CHECKED enum gavel_status api_addresses_ask(const char *url, gavel_ms timeout_ms,
                                                  struct api_addresses *ret_addresses,
                                                  struct gavel_error *error);
void api_addresses_done(struct api_addresses *addresses);

#endif
