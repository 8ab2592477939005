/* SPDX-License-Identifier: Apache-2.0 */

/* The command line for candidates. */
#ifndef SIM_CANDIDATE_COMMAND_H
#define SIM_CANDIDATE_COMMAND_H

#include <stdio.h>

/* argv[0] is not looked at. Returns the exit code: 0 nothing is broken, 1 something is, 2 wrong usage. */
int candidate_command(int argc, char **argv);

void candidate_usage(FILE *stream);

#endif
