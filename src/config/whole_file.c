/* SPDX-License-Identifier: Apache-2.0 */

#include "config/whole_file.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum gavel_status whole_file_read(const char *name, char **ret_bytes, size_t *ret_length,
                                  struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;
    char *bytes = malloc(CONFIG_FILE_MAX + 1);
    FILE *file = fopen(name, "re");
    struct stat about = {0};
    size_t length = 0;

    if (!bytes) {
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
        goto out;
    }
    if (file && fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)) {
        status = error_set(error, GAVEL_ERR_IO, "the configuration file %.200s is a directory", name);
        goto out;
    }
    if (file)
        length = fread(bytes, 1, CONFIG_FILE_MAX + 1, file);
    if (!file || ferror(file)) {
        status = error_set(error, GAVEL_ERR_IO,
                           "cannot read the configuration file %.200s: %s; check its name and mode", name,
                           strerror(errno));
        goto out;
    }
    if (length > CONFIG_FILE_MAX) {
        status = error_set(
            error, GAVEL_ERR_INVALID,
            "the configuration file %.200s is larger than 1 MiB; it cannot be a configuration of gavel",
            name);
        goto out;
    }
    *ret_bytes = bytes;
    *ret_length = length;
    bytes = NULL;
out:
    if (file)
        (void)fclose(file); /* it was only read */
    free(bytes);
    return status;
}
