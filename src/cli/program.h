/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program with subcommands: gavel, gavel-bench, gavel-demo. Whoever links it
 * defines the table `commands` (cli.h); here is the way from the command line,
 * the environment and the configuration file to one of them.
 */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include "cli/cli.h"

/* The whole life of the process. Returns its exit code. */
int program_main(int argc, char **argv);

/* Becomes the program of a command that is one of its own. Returns the exit code of the failure if that
 * cannot be. */
int program_start(const struct cli *cli, const struct command *command, char **argv);

#endif
