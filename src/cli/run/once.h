/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of `gavel once` share. */
#ifndef CLI_RUN_ONCE_H
#define CLI_RUN_ONCE_H

#include "cli/cli.h"

#define ONCE_PREFIX "once:" /* of the group of a key */

/* once_list.c: shows the keys of the store that begin with `prefix` (NULL: all). Returns the exit code. */
int once_list(const struct cli *cli, const char *prefix);

#endif
