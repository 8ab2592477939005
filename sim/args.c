/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

bool args_set(const char *list, unsigned count, const char *(*name)(unsigned bit), uint64_t *ret_set)
{
    uint64_t set = 0;

    while (*list) {
        size_t length = strcspn(list, ",");
        unsigned bit = 0;

        while (bit < count && (strlen(name(bit)) != length || strncmp(name(bit), list, length) != 0))
            bit++;
        if (bit == count)
            return false;
        set |= UINT64_C(1) << bit;
        list += length + (list[length] == ',');
    }
    *ret_set = set;
    return true;
}
