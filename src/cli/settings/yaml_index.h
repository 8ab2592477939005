/* SPDX-License-Identifier: Apache-2.0 */

/* Which key of the configuration file is on which line, and whether the file has the right shape. */
#ifndef CLI_SETTINGS_YAML_INDEX_H
#define CLI_SETTINGS_YAML_INDEX_H

#include "cli/settings/settings_table.h"

struct yaml_index {
    size_t count;            /* keys of settings in the file */
    int children_line;       /* of the key `children`; 0: not in the file */
    int lines[SETTINGS_MAX]; /* by position in settings_table; 0: not in the file */
};

/*
 * Walks over the file. ERR_INVALID with "name:line: …" if it is not YAML, not
 * one mapping of known keys to scalars, or has a key twice or without a value.
 * For `children`, only checks that it is a list; run_file.h reads it.
 */
GAVEL_CHECKED enum gavel_status yaml_index_make(const char *name, const char *bytes, size_t length,
                                                struct yaml_index *ret_index, struct gavel_error *error);

#endif
