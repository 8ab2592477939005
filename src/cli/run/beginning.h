/* SPDX-License-Identifier: Apache-2.0 */

/* The first lines in the log of a candidate: where it takes part, with what a mistyped path would give
 * away. */
#ifndef CLI_RUN_BEGINNING_H
#define CLI_RUN_BEGINNING_H

#include "cli/cli.h"
#include "cli/settings/store_location.h"

/* Its store. Without an election there is nothing to keep, so that it works where there is no store yet. */
const char *beginning_store(const struct config *config);

/* `location` is from before the store was opened. */
void beginning_log(const struct cli *cli, const char *id, const struct store_location *location);

#endif
