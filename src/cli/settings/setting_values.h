/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Values of settings and where they come from. The first source wins, so the
 * sources are read in order of rank:
 *
 *     flags  >  GAVEL_* environment  >  YAML file  >  preset
 *
 * A value is kept as text together with its source until all are in; only then
 * is it parsed, so that an error can say where the wrong value comes from.
 */
#ifndef CLI_SETTINGS_SETTING_VALUES_H
#define CLI_SETTINGS_SETTING_VALUES_H

#include "cli/settings/settings_table.h"
#include "config/run_file.h"

enum value_source { SOURCE_NONE, SOURCE_FLAG, SOURCE_ENVIRONMENT, SOURCE_FILE };

struct setting_value {
    enum value_source source;
    const char *text;
    int line; /* SOURCE_FILE */
};

struct setting_values {
    struct setting_value items[SETTINGS_MAX]; /* by position in settings_table */
    const char *file;                         /* name of the YAML file */
    char *file_texts[SETTINGS_MAX];           /* owned; items of SOURCE_FILE point to them */
    struct run_file children;                 /* of the YAML file; owned */
    bool wants_cluster;                       /* --cluster without a value: the one set elsewhere */
};

/* Frees what the values own; a struct config made from them must no longer be used. */
void setting_values_done(struct setting_values *values);

/* Notes a value unless there is one from a source of higher or the same rank; a later flag replaces an
 * earlier one. */
void setting_values_note(struct setting_values *values, const struct setting *setting,
                         enum value_source source, const char *text, int line);

/* Reads the environment for the options that the command takes; an empty variable counts as not set. */
void setting_values_from_environment(struct setting_values *values, unsigned groups);

/* The text noted for a flag; NULL if there is none. */
const char *setting_values_text(const struct setting_values *values, const char *flag);

/*
 * Reads the texts into *ret_config: defaults, then the preset, then each value.
 * Everything in the file is checked, whether or not the command uses it.
 * ERR_INVALID; *error names the flag, the variable or the line.
 */
GAVEL_CHECKED enum gavel_status setting_values_resolve(const struct setting_values *values, unsigned groups,
                                                       struct config *ret_config, struct gavel_error *error);

/*
 * Parses one value. ERR_INVALID if the text does not fit its kind; *error does
 * not say where it comes from.
 */
GAVEL_CHECKED enum gavel_status setting_read(const struct setting *setting, const char *text,
                                             struct config *config, struct gavel_error *error);

/* The value of a duration, number, policy or boolean setting as text, for `gavel check`. Returns buffer. */
const char *setting_text(const struct setting *setting, const struct config *config, char *buffer,
                         size_t size);

#endif
