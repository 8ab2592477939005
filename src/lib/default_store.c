/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the store is if nobody names one: a file of the user whose rights the
 * program has. If these are not the rights of whoever started it (set-user-ID
 * and the like), the environment is that of a stranger: it must not choose where
 * a file is made with the program's rights, nor who can write the election.
 */
#include <gavel/gavel.h>

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ENTRY_BYTES 16384 /* of the password database; a longer one counts as none */

static enum gavel_status print(char *buffer, size_t size, const char *directory, const char *below)
{
    int length = snprintf(buffer, size, "sqlite:%s%s/gavel/gavel.db", directory, below);

    return length < 0 || (size_t)length >= size ? GAVEL_ERR_INVALID : GAVEL_OK;
}

enum gavel_status gavel_default_store(char *buffer, size_t size)
{
    const char *state = secure_getenv("XDG_STATE_HOME");
    const char *home = secure_getenv("HOME");
    struct passwd entry, *found = NULL;
    char strings[ENTRY_BYTES];

    if (state && state[0] == '/')
        return print(buffer, size, state, "");
    if (geteuid() == 0)
        return print(buffer, size, "/var/lib", "");
    if (home && home[0] == '/')
        return print(buffer, size, home, "/.local/state");
    if (getpwuid_r(geteuid(), &entry, strings, sizeof strings, &found) != 0 || !found ||
        entry.pw_dir[0] != '/')
        return GAVEL_ERR_INVALID;
    return print(buffer, size, entry.pw_dir, "/.local/state");
}
