/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command line, taken apart:
 *
 *     gavel [options] COMMAND [options] [arguments]
 *
 * Options of settings_table may stand before or after the command, its own
 * flags after it: `--name value`, `--name=value`, `-x value`, `-xvalue`, and
 * `--no-name` for settings that are on or off. `--` ends the options; for a
 * command that takes the user's command line (ARGUMENTS_COMMAND), so does its
 * first word.
 */
#ifndef CLI_SETTINGS_ARGS_H
#define CLI_SETTINGS_ARGS_H

#include "cli/settings/setting_values.h"

struct args {
    const struct command *command; /* NULL if none was named */
    bool wants_help;
    bool wants_version;
    const char *flag_texts[CLI_FLAGS_MAX]; /* by position in command->flags */
    char *lists[CLI_FLAGS_MAX];            /* owned: those of FLAG_LIST that were given more than once */
    int count;                             /* arguments that are not options */
    char **items; /* those, ending with NULL; in the caller's argv, which is reordered */
};

/*
 * Takes argv apart and notes what belongs to the table in *values. Strings
 * are borrowed from argv. ERR_INVALID for anything that is not understood;
 * *error then says what was probably meant, and what was understood so far is
 * in *args.
 */
GAVEL_CHECKED enum gavel_status args_parse(int argc, char **argv, struct setting_values *values,
                                           struct args *args, struct gavel_error *error);

/* Frees what the args own. */
void args_done(struct args *args);

/* The command of that name, or NULL. */
const struct command *command_find(const char *name);

/* "there is no command …; did you mean …?" */
GAVEL_CHECKED enum gavel_status command_unknown(const char *name, struct gavel_error *error);

#endif
