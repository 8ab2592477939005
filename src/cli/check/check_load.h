/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The load that an idle group puts on its store, as `gavel check` reports it:
 * calls per minute, and what they amount to on the server, in its own units.
 */
#ifndef CLI_CHECK_CHECK_LOAD_H
#define CLI_CHECK_CHECK_LOAD_H

#include "cli/check/check_cost.h"
#include "cli/cli.h"
#include "store/store.h"

#include <jansson.h>

/*
 * For one leader and candidates - 1 standbys, with the settings of cli->config, which have been checked.
 * keep_every_ms: between two keep-alives, where the store has sessions; else 0.
 */
void check_load_print(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                      gavel_ms keep_every_ms, const struct load_prices *prices);
json_t *check_load_json(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                        gavel_ms keep_every_ms, const struct load_prices *prices);

#endif
