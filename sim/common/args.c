/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/args.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *program;
    const char *option; /* that came last */
    uint32_t given;
    uint32_t repeated;
} line = {.program = "gavel-sim"};

_Noreturn void args_refuse(const char *see, const char *format, ...)
{
    va_list list;

    (void)fprintf(stderr, "%s: ", line.program);
    va_start(list, format);
    (void)vfprintf(stderr, format, list);
    va_end(list);
    (void)fprintf(stderr, "; see %s %s\n", line.program, see);
    exit(2);
}

int args_next(int argc, char **argv, const struct option *options)
{
    int index = 0;
    int option;

    line.program = argv[0];
    option = getopt_long(argc, argv, "h", options, &index);
    if (option == '?') { /* getopt has said why */
        (void)fprintf(stderr, "see %s --help\n", line.program);
        exit(2);
    }
    if (option < 0 && optind < argc)
        args_refuse("--help", "cannot make sense of \"%s\"", argv[optind]);
    if (option >= 0 && option < ARGS_OPTIONS_MAX) {
        line.option = options[index].name;
        line.repeated |= line.given & ARGS_BIT(option);
        line.given |= ARGS_BIT(option);
    }
    return option;
}

uint64_t args_number(uint64_t low, uint64_t high)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(optarg, &end, 10);
    if (errno || !isdigit((unsigned char)*optarg) || *end || value < low || value > high)
        args_refuse("--help", "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not \"%s\"",
                    line.option, low, high, optarg);
    return value;
}

/* The options of a set as "--a, --b"; the text is cut off where it does not fit. */
static void join(const struct option *options, uint32_t set, char *ret_text, size_t size)
{
    size_t used = 0;

    ret_text[0] = '\0';
    for (; options->name; options++) {
        if (options->val >= ARGS_OPTIONS_MAX || !(set & ARGS_BIT(options->val)) || used >= size)
            continue;
        used += (size_t)snprintf(ret_text + used, size - used, "%s--%s", used ? ", " : "", options->name);
    }
}

bool args_check(const struct option *options, uint32_t modes, const struct args_rule *rules, size_t count)
{
    uint32_t mode = line.given & modes;
    char names[256];
    char others[256];

    if (mode == 0) {
        join(options, modes, names, sizeof names);
        (void)fprintf(stderr, "%s: say what to do: one of %s\n\n", line.program, names);
        return false;
    }
    join(options, mode, names, sizeof names);
    if (mode & (mode - 1))
        args_refuse("--help", "only one of these at a time: %s", names);
    if (line.repeated & mode)
        args_refuse("--help", "%s is given twice", names);
    for (size_t i = 0; i < count; i++) {
        if (!(line.given & ARGS_BIT(rules[i].option)) || (mode & rules[i].modes))
            continue;
        join(options, ARGS_BIT(rules[i].option), names, sizeof names);
        join(options, rules[i].modes, others, sizeof others);
        args_refuse("--help", "%s means something only with %s", names, others);
    }
    return true;
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
