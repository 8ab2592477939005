/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything that can be set from outside, after flags, environment, YAML
 * file and preset have been put together (settings_table.h says how).
 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "base/log.h"

#include <gavel/settings.h>

#include <limits.h>
#include <stdbool.h>

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Strings are borrowed from argv, the environment or the struct setting_values; they live as long as the
 * program. */
struct config {
    const char *file;      /* the YAML file that was read, "" if none */
    const char *store;     /* URL; never NULL where the command uses a store */
    const char *group;     /* never NULL */
    const char *candidate; /* id; NULL: the library's choice */
    const char *preset;    /* the one that settings began with */
    const char *doorbell;  /* as in struct gavel_options */
    bool enabled;
    bool eligible;
    int priority;
    struct gavel_settings settings;
    bool json;
    enum color_mode color;
    enum log_format log_format;
    enum log_level log_level;
    char default_store[PATH_MAX + 16]; /* holds `store` when none is named */
};

#endif
