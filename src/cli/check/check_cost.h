/* SPDX-License-Identifier: Apache-2.0 */

/* What a group on an object store costs, which bills by the request; nothing of any other store. */
#ifndef CLI_CHECK_CHECK_COST_H
#define CLI_CHECK_CHECK_COST_H

#include "cli/cli.h"
#include "store/store.h"

#include <jansson.h>

/* US dollars for a thousand requests. */
struct load_prices {
    double put;
    double get;
    double list;
};

/* The text of --prices, PUT,GET,LIST; NULL: the list prices of one provider. ERR_INVALID. */
GAVEL_CHECKED enum gavel_status load_prices_parse(const char *text, struct load_prices *ret_prices,
                                                  struct gavel_error *error);

/* Prints nothing, and gives null, if the store is no object store. */
void check_cost_print(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                      const struct load_prices *prices);
json_t *check_cost_json(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                        const struct load_prices *prices);

#endif
