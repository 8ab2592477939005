/* SPDX-License-Identifier: Apache-2.0 */

/* What is allowed for the file of a store, and unwise. */
#include "os/filesystem.h"
#include "store/sqlite/sqlite.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

/* The file system of what is there already, at the path or above it. */
static bool look(const char *path, struct statfs *ret_info)
{
    char above[PATH_MAX];
    char *slash;

    if (!*path || strlen(path) >= sizeof above)
        return false;
    memcpy(above, path, strlen(path) + 1);
    while (statfs(above, ret_info) < 0) {
        slash = strrchr(above, '/');
        if (!slash)
            return statfs(".", ret_info) == 0;
        if (slash == above)
            return statfs("/", ret_info) == 0;
        *slash = '\0';
    }
    return true;
}

void sqlite_caution(const char *path, char *ret_text, size_t size)
{
    struct statfs info;
    const char *name = look(path, &info) ? filesystem_in_memory((uint32_t)info.f_type) : NULL;

    if (name)
        (void)snprintf(
            ret_text, size,
            "the store is on %s, which is empty after a restart of this machine: epochs then begin again at 1, and whatever is fenced by them refuses the new leader; use a file on a disk",
            name);
}
