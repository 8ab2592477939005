/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Combines a configuration from its sources. The first that has a value wins:
 *
 *     flags  >  GAVELD_* environment  >  YAML file  >  defaults
 *
 * Every error is reported with its origin, before anything is started.
 */
#ifndef DAEMON_CONFIG_READ_H
#define DAEMON_CONFIG_READ_H

#include "daemon/config/config.h"

#include <gavel/status.h>

#include <stdio.h>

struct config_setting;

#define CONFIG_FLAGS_MAX 64

/* All borrowed. */
struct config_input {
    const char *file;         /* NULL: none */
    char *const *environment; /* ending with NULL */
    size_t flag_count;
    struct {
        const struct config_setting *setting;
        const char *text;
    } flags[CONFIG_FLAGS_MAX];
    bool joins;  /* --join */
    bool forces; /* --force-new-cluster */
    bool is_confirmed;
    bool accepts_copy; /* --accept-copy */
};

/* Problems that need not stop the node but should be known. */
#define CONFIG_WARNINGS_MAX 16
struct config_warnings {
    size_t count;
    char texts[CONFIG_WARNINGS_MAX][512];
};

/*
 * ERR_INVALID, ERR_BUDGET, ERR_IO, ERR_NOT_FOUND, with the mistake, its origin and what to do. *ret_config is
 * then untouched; otherwise pass it to config_done().
 */
GAVEL_CHECKED enum gavel_status config_read(const struct config_input *input,
                                            struct daemon_config *ret_config,
                                            struct config_warnings *ret_warnings, struct gavel_error *error);

/* Frees everything. Safe on a zeroed struct. */
void config_done(struct daemon_config *config);

/* For --check-config: prints the configuration and what follows from it, for people. */
void config_print(const struct daemon_config *config, FILE *out);

#endif
