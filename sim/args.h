/* SPDX-License-Identifier: Apache-2.0 */

/* What the command lines of both kinds of worlds need. */
#ifndef SIM_ARGS_H
#define SIM_ARGS_H

#include <stdint.h>

/* Says what is wrong with the value and ends with exit code 2. */
_Noreturn void args_refuse(const char *what, const char *value);

/* A whole number within the limits, or it is refused. */
uint64_t args_number(const char *text, uint64_t low, uint64_t high);

#endif
