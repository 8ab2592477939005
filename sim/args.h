/* SPDX-License-Identifier: Apache-2.0 */

/* What the command lines of both kinds of worlds need. */
#ifndef SIM_ARGS_H
#define SIM_ARGS_H

#include <stdbool.h>
#include <stdint.h>

/* Says what is wrong with the value and ends with exit code 2. */
_Noreturn void args_refuse(const char *what, const char *value);

/* A whole number within the limits, or it is refused. */
uint64_t args_number(const char *text, uint64_t low, uint64_t high);

/* A list such as "a,b" as a set of bits, by the name of each; false if a word is none of them. */
bool args_set(const char *list, unsigned count, const char *(*name)(unsigned bit), uint64_t *ret_set);

#endif
