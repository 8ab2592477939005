/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/companion.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool companion_find(const char *name, char ret_path[static PATH_MAX])
{
    /* From the directory of this program: bin, libexec/gavel, src/cli or bench of a build. */
    static const char *const directories[] = {".",           "../daemon", "../src/cli", "../src/daemon",
                                              "../../bench", "../sim",    "../../sim",  "../libexec/gavel",
                                              "../sbin",     "../../bin", "../../sbin"};
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    int written;

    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && i < sizeof directories / sizeof directories[0]; i++) {
        written = snprintf(ret_path, PATH_MAX, "%s/%s/%s", own, directories[i], name);
        if (written > 0 && written < PATH_MAX && is_program(ret_path))
            return true;
    }
    written = snprintf(ret_path, PATH_MAX, "%s/%s", LIBEXEC_DIRECTORY, name);
    return written > 0 && written < PATH_MAX && is_program(ret_path);
}
