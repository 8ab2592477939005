/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one table of everything that can be set. Flags, the environment, the
 * YAML file, --help, the shell completions and `gavel check` are all made
 * from it, so that none of them can forget a setting.
 */
#ifndef CLI_SETTINGS_SETTINGS_TABLE_H
#define CLI_SETTINGS_SETTINGS_TABLE_H

#include "cli/cli.h"

#include <stddef.h>

enum setting_kind {
    SETTING_TEXT,       /* const char * */
    SETTING_SWITCH,     /* bool; a flag without a value, never in the file */
    SETTING_BOOL,       /* bool; --x, --no-x, or a value: true, false, yes, no, on, off, 1, 0 */
    SETTING_DURATION,   /* gavel_ms */
    SETTING_INT,        /* int */
    SETTING_REAL,       /* double */
    SETTING_POLICY,     /* enum gavel_policy */
    SETTING_COLOR,      /* enum color_mode */
    SETTING_LOG_FORMAT, /* enum log_format */
    SETTING_LOG_LEVEL,  /* enum log_level */
    SETTING_ON_EXIT,    /* enum on_exit */
    SETTING_CONTAIN,    /* enum contain */
    SETTING_SIGNAL,     /* int: TERM, SIGTERM, 15 */
};

struct setting {
    const char *flag; /* without dashes */
    char letter;      /* of the short flag; 0 for none */
    enum setting_kind kind;
    unsigned groups;      /* bit set of enum option_group */
    size_t offset;        /* in struct config */
    const char *env;      /* NULL: not from the environment */
    const char *key;      /* in the YAML file; NULL: not from there */
    const char *argument; /* what --help calls the value; NULL if it takes none */
    const char *help;
};

#define SETTINGS_MAX 64

extern const struct setting settings_table[];
extern const size_t settings_count;

/* Another name for a setting: the same value under either name. */
struct other_name {
    const char *flag; /* NULL: only the letter */
    char letter;      /* 0: only the flag */
    const char *env;
    const char *key;
    const char *of; /* the flag it stands for, which --help lists */
};

/* Ending with one that stands for nothing (`of` is NULL). */
extern const struct other_name other_names[];
#define OTHER_NAMES_MAX 4

/* By flag, letter or YAML key, also under its other names; NULL if there is none. */
const struct setting *setting_by_flag(const char *flag);
const struct setting *setting_by_letter(char letter);
const struct setting *setting_by_key(const char *key);

/*
 * The setting whose flag was written in place of its variable or key, which
 * have different names: ID for GAVEL_CANDIDATE, `election` for `enabled`. Case
 * and the kind of dash do not matter. NULL if there is none.
 */
const struct setting *setting_meant(const char *word);

/* Whether this setting requires a value. */
bool setting_takes_value(const struct setting *setting);

/*
 * Whether an empty value can only be a mistake: an empty --doorbell or
 * --healthy means none, but an empty --ca means that a shell variable was not
 * set.
 */
bool setting_needs_words(const struct setting *setting);

#endif
