/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a store lies, told before it is opened: a mistyped path starts an
 * election of its own without an error, so whoever takes part is told which
 * file it is and whether it was there before.
 */
#ifndef CLI_SETTINGS_STORE_LOCATION_H
#define CLI_SETTINGS_STORE_LOCATION_H

#include <limits.h>
#include <stdbool.h>

struct store_location {
    char shown[PATH_MAX + 64]; /* the URL with the whole path of its file */
    bool is_new;               /* the file is not there yet */
    bool has_folder;           /* the folder of the file is there */
};

/* The file of a store that is one, a part of `url`; NULL for others. */
const char *store_location_file(const char *url);

/* What is there now. Nothing is created; what cannot be looked at counts as there. */
void store_location_look(const char *url, struct store_location *ret_location);

/* A word that is neither a path nor a URL, and so most likely a mistake: "sqlit". */
bool store_location_is_bare_word(const char *url);

/* Whether there is a password before the host of a URL: it would be told to everybody who looks. */
bool store_location_has_password(const char *url);

#endif
