/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a store is, found before it is opened. A mistyped path starts an
 * election of its own without an error, so gavel logs which file is used and
 * whether it existed before.
 */
#ifndef CLI_SETTINGS_STORE_LOCATION_H
#define CLI_SETTINGS_STORE_LOCATION_H

#include <limits.h>
#include <stdbool.h>

struct store_location {
    char shown[PATH_MAX + 64]; /* the URL with the whole path of its file */
    bool is_new;               /* the file is not there yet */
    bool has_directory;        /* the directory of the file is there */
};

/* The path of the store's file, a part of `url`; NULL if the store is not a file. */
const char *store_location_file(const char *url);

/* Looks at what exists now. Creates nothing; what cannot be examined counts as existing. */
void store_location_look(const char *url, struct store_location *ret_location);

/* A word that is neither a path nor a URL, and so most likely a mistake: "sqlit". */
bool store_location_is_bare_word(const char *url);

/* Whether a URL has a password before its host: everybody who looks would see it. */
bool store_location_has_password(const char *url);

#endif
