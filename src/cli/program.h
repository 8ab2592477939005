/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program with subcommands: gavel, gavel-bench, gavel-demo. Each defines the
 * table `commands` (cli.h); this leads from the command line, the environment
 * and the configuration file to one of them.
 */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include "cli/cli.h"

/* The whole life of the process. Returns its exit code. */
int program_main(int argc, char **argv);

/* Executes the separate program of a command. Returns only on failure, with the exit code. */
int program_start(const struct cli *cli, const struct command *command, char **argv);

#endif
