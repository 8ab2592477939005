/* SPDX-License-Identifier: Apache-2.0 */

/* What a simulator does, by its command line. */
#ifndef SIM_COMMON_COMMAND_H
#define SIM_COMMON_COMMAND_H

#include "sim/common/simulator.h"

/* argv[0] is how the program is called in what it says. Returns the exit code: 0 nothing is broken, 1
 * something is, 2 wrong usage. */
int command_run(const struct simulator *simulator, int argc, char **argv);

#endif
