/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a file with a secret without being held up by it: whoever names a FIFO
 * by mistake, or lets somebody put one there, gets a refusal instead of a
 * thread that waits for ever, perhaps with a lock in its hand.
 */
#include "store/secret.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Up to the size of the buffer; -1: errno says why. */
static ssize_t read_whole(int fd, char *buffer, size_t size)
{
    size_t used = 0;

    while (used < size) {
        ssize_t more = read(fd, buffer + used, size - used);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        used += (size_t)more;
    }
    return (ssize_t)used;
}

/* NULL: it is good, else what is wrong with it. */
static const char *fill(int fd, struct secret *secret)
{
    struct stat about;
    ssize_t used;

    if (fstat(fd, &about))
        return strerror(errno);
    if (S_ISDIR(about.st_mode))
        return strerror(EISDIR);
    if (!S_ISREG(about.st_mode))
        return "it is a pipe or a device, not a file";
    if (about.st_size > (off_t)SECRET_FILE_MAX)
        return "it is larger than 256 KiB";
    secret->size = SECRET_FILE_MAX + 2; /* one more byte shows that it has grown meanwhile */
    secret->text = calloc(1, secret->size);
    if (!secret->text)
        return strerror(ENOMEM);
    used = read_whole(fd, secret->text, SECRET_FILE_MAX + 1);
    if (used < 0)
        return strerror(errno);
    if ((size_t)used > SECRET_FILE_MAX)
        return "it is larger than 256 KiB";
    if (memchr(secret->text, '\0', (size_t)used))
        return "it is not text";
    return NULL;
}

enum gavel_status secret_read(const char *path, struct secret *ret_secret, const char **ret_why)
{
    struct secret made = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool is_short;

    *ret_why = fd < 0 ? strerror(errno) : fill(fd, &made);
    if (fd >= 0)
        (void)close(fd); /* it was only read */
    if (!*ret_why) {
        *ret_secret = made;
        return GAVEL_OK;
    }
    is_short = fd >= 0 && made.size > 0 && !made.text;
    secret_done(&made);
    return is_short ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_STORE_DENIED;
}

void secret_caution(const char *path, char *ret_text, size_t size)
{
    struct gavel_error error;
    struct stat about;

    if (!path || !*path || stat(path, &about) || !S_ISREG(about.st_mode) || !(about.st_mode & S_IROTH))
        return;
    (void)!error_set(
        &error, GAVEL_OK,
        "every user of this machine can read %.200s, which holds a secret of the store; chmod 600 it", path);
    (void)snprintf(ret_text, size, "%s", error.message);
}

void secret_done(struct secret *secret)
{
    if (secret->text)
        explicit_bzero(secret->text, secret->size);
    free(secret->text);
    *secret = (struct secret){0};
}

void secret_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}
