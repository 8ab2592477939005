/* SPDX-License-Identifier: Apache-2.0 */

/* A configuration file, read in one go. */
#ifndef CONFIG_WHOLE_FILE_H
#define CONFIG_WHOLE_FILE_H

#include <gavel/status.h>

#include <stddef.h>

#define CONFIG_FILE_MAX (1u << 20)

/* The caller frees *ret_bytes. ERR_IO if it cannot be read, ERR_INVALID if it is too large, ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status whole_file_read(const char *name, char **ret_bytes, size_t *ret_length,
                                                struct gavel_error *error);

#endif
