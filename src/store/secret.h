/* SPDX-License-Identifier: Apache-2.0 */

/* Secrets in memory, and the small files that people keep them in. */
#ifndef STORE_SECRET_H
#define STORE_SECRET_H

#include <gavel/status.h>
#include <stddef.h>

#define SECRET_FILE_MAX ((size_t)256 * 1024) /* bytes */

struct secret {
    char *text; /* ends with a NUL, and has no other until somebody cuts it up */
    size_t size;
};

/*
 * The whole of a file. It never waits: a pipe or a device is refused, for it
 * could not be read again for the next login. Otherwise *ret_why says what is
 * wrong with the file, for the caller's message: ERR_STORE_DENIED, ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status secret_read(const char *path, struct secret *ret_secret,
                                            const char **ret_why);

/* Wipes it, also what was cut up, and frees it. */
void secret_done(struct secret *secret);

/* Likewise of a string; NULL is fine. */
void secret_free(char *text);

#endif
