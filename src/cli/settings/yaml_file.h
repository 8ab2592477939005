/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The configuration file: one YAML mapping from the keys of settings_table to
 * scalars. Values are parsed exactly like flags, so that they mean the same.
 * The file may also have the list `children` of run_file.h.
 */
#ifndef CLI_SETTINGS_YAML_FILE_H
#define CLI_SETTINGS_YAML_FILE_H

#include "cli/settings/setting_values.h"

/*
 * Reads the file and notes its values as SOURCE_FILE. The name is borrowed.
 * An empty file is fine. ERR_INVALID with "file:line: …" for anything that is
 * not such a mapping (unknown or repeated keys included), ERR_IO if the file
 * cannot be read.
 */
GAVEL_CHECKED enum gavel_status yaml_file_load(const char *name, struct setting_values *values,
                                               struct gavel_error *error);

#endif
