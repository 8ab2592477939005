/* SPDX-License-Identifier: Apache-2.0 */

/* What `gavel check` finds out about settings on a store, and how it tells that. */
#ifndef CLI_CHECK_CHECK_H
#define CLI_CHECK_CHECK_H

#include "cli/check/check_cost.h"
#include "cli/cli.h"
#include "core/candidate/session_bounds.h"
#include "core/supervisor/supervisor.h"
#include "store/store.h"

#include <jansson.h>

/* What is told, once the settings have been found good. */
struct findings {
    const struct store_capabilities *store;
    int64_t candidates;
    struct session_terms session; /* zeroes if the store has no sessions */
    struct gavel_bounds bounds;
    const char *no_bounds; /* why they do not apply; NULL if they do */
    struct child_rule rules[CHILDREN_MAX];
    struct load_prices prices;
};

/*
 * Checks the settings of cli->config and works out the rest of the findings;
 * store, candidates and prices are given. ERR_INVALID, ERR_BUDGET.
 */
GAVEL_CHECKED enum gavel_status check_find(const struct cli *cli, struct findings *findings,
                                           struct gavel_error *error);

void check_print(const struct cli *cli, const struct findings *findings);
json_t *check_json(const struct cli *cli, const struct findings *findings);

/* For settings that run_settings_check() found good. ERR_INVALID: no such session can be had. */
GAVEL_CHECKED enum gavel_status check_session_terms(const char *url, const struct gavel_settings *settings,
                                                    struct session_terms *ret_terms,
                                                    struct gavel_error *error);

void check_session_print(const struct cli *cli, const struct session_terms *terms);

/* What to set so that an answer may take a whole call time-out: "--lease 3s helps". */
#define CHECK_ADVICE_MAX 64
void check_session_advise(const struct gavel_settings *settings, const struct session_terms *terms,
                          char ret_text[static CHECK_ADVICE_MAX]);
json_t *check_session_json(const struct session_terms *terms);

#endif
