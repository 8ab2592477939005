/* SPDX-License-Identifier: Apache-2.0 */

/* What the command lines of both kinds of worlds need. There is one command line in a process. */
#ifndef SIM_COMMON_ARGS_H
#define SIM_COMMON_ARGS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of options are below this, but for that of --help: they are bits of sets. */
#define ARGS_OPTIONS_MAX 32
#define ARGS_HELP 'h'
#define ARGS_BIT(option) (UINT32_C(1) << (option))

/* An option that means something only with some of the modes. */
struct args_rule {
    int option;
    uint32_t modes;
};

/* Says what is wrong and which option tells more, and ends with exit code 2. argv[0] is how the program is
 * called in what it says. */
__attribute__((format(printf, 2, 3))) _Noreturn void args_refuse(const char *see, const char *format, ...);

/* The next option, ARGS_HELP for -h, too; -1 after the last. Ends with exit code 2 if there is none such, or
 * if words are left over. */
int args_next(int argc, char **argv, const struct option *options);

/* The value of the option that came last: a whole number within the limits, or it is refused. */
uint64_t args_number(uint64_t low, uint64_t high);

/* Refuses two modes, and options that mean nothing with the mode. False: there is no mode; what is missing
 * has been said. */
bool args_check(const struct option *options, uint32_t modes, const struct args_rule *rules, size_t count);

/* A list such as "a,b" as a set of bits, by the name of each; false if a word is none of them. */
bool args_set(const char *list, unsigned count, const char *(*name)(unsigned bit), uint64_t *ret_set);

#endif
