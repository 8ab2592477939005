/* SPDX-License-Identifier: Apache-2.0 */

/* The command line of gavel-sim session. */
#ifndef SIM_SESSION_COMMAND_H
#define SIM_SESSION_COMMAND_H

#include <stdio.h>

int hall_command(int argc, char **argv);
void hall_usage(FILE *stream);

#endif
