/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void args_refuse(const char *what, const char *value)
{
    (void)fprintf(stderr, "gavel-sim: %s \"%s\"; see gavel-sim --help\n", what, value);
    exit(2);
}

uint64_t args_number(const char *text, uint64_t low, uint64_t high)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < low || value > high)
        args_refuse("not a number that fits here:", text);
    return value;
}
