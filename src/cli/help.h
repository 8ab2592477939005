/* SPDX-License-Identifier: Apache-2.0 */

/* --help, for the program and for each command, made from the tables. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

#include <stdio.h>

void help_program(const struct cli *cli, FILE *file);
void help_command(const struct cli *cli, const struct command *command, FILE *file);

#endif
