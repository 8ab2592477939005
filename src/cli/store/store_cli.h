/* SPDX-License-Identifier: Apache-2.0 */

/* The actions of `gavel store`, each in a file of its own; each returns the exit code. */
#ifndef CLI_STORE_STORE_CLI_H
#define CLI_STORE_STORE_CLI_H

#include "cli/cli.h"

int store_ping(const struct cli *cli); /* the store of cli->config */
int store_sql(const struct cli *cli, const char *scheme);
int store_list(const struct cli *cli);
int store_migrate_it(const struct cli *cli);
int store_backup_to(const struct cli *cli, const char *path);

#endif
