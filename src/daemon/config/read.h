/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Putting a configuration together. Whoever comes first wins:
 *
 *     flags  >  GAVELD_* environment  >  YAML file  >  defaults
 *
 * Whatever is wrong with any of it is told with where it stands, and nothing has
 * been started then.
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

/* What need not stop anybody, but should be known. */
#define CONFIG_WARNINGS_MAX 16
struct config_warnings {
    size_t count;
    char texts[CONFIG_WARNINGS_MAX][512];
};

/*
 * ERR_INVALID, ERR_BUDGET, ERR_IO, ERR_NOT_FOUND, with what is wrong, where it stands and what to do.
 * *ret_config is untouched then; otherwise it is to be given to config_done().
 */
GAVEL_CHECKED enum gavel_status config_read(const struct config_input *input,
                                            struct daemon_config *ret_config,
                                            struct config_warnings *ret_warnings, struct gavel_error *error);

/* Gives everything back. Safe on a zeroed struct. */
void config_done(struct daemon_config *config);

/* For --check-config: what it is and what follows from it, as people read it. */
void config_print(const struct daemon_config *config, FILE *out);

#endif
