/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the API of the nodes is, asked of the nodes themselves: a URL of a
 * store, gavel://…, names the ports for clients, and a node tells those of
 * the API when it is greeted.
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
 * Asks the nodes of gavel://…, the first that answers. ERR_INVALID (the URL),
 * ERR_STORE_UNAVAILABLE (nobody answers within the time), ERR_STORE_DENIED,
 * ERR_STORE_UNSUPPORTED (a node of before 0.7.0). To be given to
 * api_addresses_done() in any case.
 */
GAVEL_CHECKED enum gavel_status api_addresses_ask(const char *url, gavel_ms timeout_ms,
                                                  struct api_addresses *ret_addresses,
                                                  struct gavel_error *error);
void api_addresses_done(struct api_addresses *addresses);

#endif
