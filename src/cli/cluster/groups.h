/* SPDX-License-Identifier: Apache-2.0 */

/* The list of groups, which `gavel groups` and `gavel status --all` both print. */
#ifndef CLI_CLUSTER_GROUPS_H
#define CLI_CLUSTER_GROUPS_H

#include "cli/cli.h"

/* Prints the groups of the store whose names begin with the prefix; see status.c. Returns the exit code. */
int groups_of_store(const struct cli *cli, const char *prefix);

#endif
