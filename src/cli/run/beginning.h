/* SPDX-License-Identifier: Apache-2.0 */

/* The first log lines of a candidate: where it takes part, in enough detail to reveal a mistyped path. */
#ifndef CLI_RUN_BEGINNING_H
#define CLI_RUN_BEGINNING_H

#include "cli/cli.h"
#include "cli/settings/store_location.h"

/* Its store. Without an election nothing is stored, so it works even where there is no store yet. */
const char *beginning_store(const struct config *config);

/* `location` was taken before the store was opened. */
void beginning_log(const struct cli *cli, const char *id, const struct store_location *location);

#endif
