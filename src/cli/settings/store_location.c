/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/settings/store_location.h"

#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SQLITE_SCHEME "sqlite:"

const char *store_location_file(const char *url)
{
    const struct store_capabilities *capabilities = store_capabilities_of(url);

    if (!capabilities || strcmp(capabilities->name, "sqlite") != 0)
        return NULL;
    return strncmp(url, SQLITE_SCHEME, strlen(SQLITE_SCHEME)) == 0 ? url + strlen(SQLITE_SCHEME) : url;
}

static bool is_missing(const char *path) { return access(path, F_OK) && errno == ENOENT; }

static bool directory_is_there(const char *file)
{
    const char *slash = strrchr(file, '/');
    char directory[PATH_MAX];

    if (!slash || slash == file || (size_t)(slash - file) >= sizeof directory)
        return true;
    memcpy(directory, file, (size_t)(slash - file));
    directory[slash - file] = '\0';
    return !is_missing(directory);
}

void store_location_look(const char *url, struct store_location *ret_location)
{
    const char *file = store_location_file(url);
    char directory[PATH_MAX] = "";

    *ret_location = (struct store_location){.has_directory = true};
    if (!file || !*file) {
        (void)snprintf(ret_location->shown, sizeof ret_location->shown, "%s", url);
        return;
    }
    ret_location->is_new = is_missing(file);
    ret_location->has_directory = directory_is_there(file);
    if (*file != '/' && !getcwd(directory, sizeof directory))
        directory[0] = '\0'; /* then the path is told as it was given */
    while (directory[0] && strncmp(file, "./", 2) == 0)
        file += 2;
    (void)snprintf(ret_location->shown, sizeof ret_location->shown, SQLITE_SCHEME "%s%s%s", directory,
                   directory[0] ? "/" : "", file);
}

bool store_location_is_bare_word(const char *url) { return *url && !strpbrk(url, "/.:"); }

bool store_location_has_password(const char *url)
{
    const char *host = strstr(url, "://");
    const char *at = NULL;

    if (!host || strcspn(url, ":/") != (size_t)(host - url)) /* a path */
        return false;
    host += strlen("://");
    for (const char *c = host; *c && !strchr("/?#", *c); c++)
        if (*c == '@')
            at = c;
    return at && memchr(host, ':', (size_t)(at - host)) != NULL;
}
