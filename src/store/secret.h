/* SPDX-License-Identifier: Apache-2.0 */

/* Secrets in memory, and the small files that people keep them in. */
#ifndef STORE_SECRET_H
#define STORE_SECRET_H

#include <gavel/status.h>
#include <stddef.h>

#define SECRET_FILE_MAX ((size_t)256 * 1024) /* bytes */

struct secret {
    char *text; /* ends with a NUL, and has no other until the caller splits it */
    size_t size;
};

/*
 * Reads a whole file. Never waits: a pipe or a device is refused, since it
 * could not be read again for the next login. On failure, ERR_STORE_DENIED or
 * ERR_NO_MEMORY, *ret_why says what is wrong with the file, for the caller's
 * message.
 */
GAVEL_CHECKED enum gavel_status secret_read(const char *path, struct secret *ret_secret,
                                            const char **ret_why);

/* Says, as a driver's caution(), that every user of this machine can read the file; nothing if not, or if
 * path is NULL. */
void secret_caution(const char *path, char *ret_text, size_t size);

/* Wipes it, also if it was split, and frees it. */
void secret_done(struct secret *secret);

/* Likewise of a string; NULL is fine. */
void secret_free(char *text);

#endif
