/* SPDX-License-Identifier: Apache-2.0 */

/* The cost of a group on an object store, which bills per request. Other stores have no such cost. */
#ifndef CLI_CHECK_CHECK_COST_H
#define CLI_CHECK_CHECK_COST_H

#include "cli/cli.h"
#include "store/store.h"

#include <jansson.h>

/* US dollars per thousand requests. */
struct load_prices {
    double put;
    double get;
    double list;
};

/* The text of --prices, PUT,GET,LIST; NULL: the list prices of one provider. ERR_INVALID. */
GAVEL_CHECKED enum gavel_status load_prices_parse(const char *text, struct load_prices *ret_prices,
                                                  struct gavel_error *error);

/* If the store is not an object store, the first prints nothing and the second returns null. */
void check_cost_print(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                      const struct load_prices *prices);
json_t *check_cost_json(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                        const struct load_prices *prices);

#endif
