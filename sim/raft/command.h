/* SPDX-License-Identifier: Apache-2.0 */

/* The command line for the quorum. */
#ifndef SIM_RAFT_COMMAND_H
#define SIM_RAFT_COMMAND_H

#include <stdio.h>

/* argv[0] is not looked at. Returns the exit code: 0 nothing is broken, 1 something is, 2 wrong usage. */
int quorum_command(int argc, char **argv);

void quorum_usage(FILE *stream);

#endif
