/* SPDX-License-Identifier: Apache-2.0 */

#include "beat_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a over everything before `check`. */
static uint32_t checksum(const struct beat *beat)
{
    unsigned char bytes[offsetof(struct beat, check)];
    uint32_t sum = 2166136261u;

    memcpy(bytes, beat, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

int beat_log_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    int error;

    if (fd < 0)
        return -1;
    while (flock(fd, LOCK_SH) < 0) {
        if (errno == EINTR)
            continue;
        error = errno;
        (void)close(fd); /* nothing was written */
        errno = error;
        return -1;
    }
    return fd;
}

bool beat_log_write(int fd, struct beat *beat)
{
    beat->check = checksum(beat);
    return write(fd, beat, sizeof *beat) == (ssize_t)sizeof *beat;
}

bool beat_reader_open(struct beat_reader *reader, const char *path)
{
    reader->offset = 0;
    reader->fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    return reader->fd >= 0;
}

void beat_reader_close(struct beat_reader *reader)
{
    if (reader->fd >= 0)
        (void)close(reader->fd); /* only read from */
    reader->fd = -1;
}

enum beat_read beat_reader_next(struct beat_reader *reader, struct beat *ret_beat)
{
    struct beat beat;
    ssize_t size = pread(reader->fd, &beat, sizeof beat, reader->offset);

    if (size <= 0)
        return BEAT_NONE;
    reader->offset += size;
    if (size != (ssize_t)sizeof beat || beat.check != checksum(&beat) || beat.role >= BEAT_ROLE_COUNT)
        return BEAT_DAMAGED;
    *ret_beat = beat;
    return BEAT_READ;
}

off_t beat_reader_end(const struct beat_reader *reader)
{
    struct stat info;

    return fstat(reader->fd, &info) == 0 ? info.st_size : 0;
}

bool beat_log_is_abandoned(const struct beat_reader *reader)
{
    if (flock(reader->fd, LOCK_EX | LOCK_NB) < 0)
        return false;
    (void)flock(reader->fd, LOCK_UN); /* of a lock that we have */
    return true;
}
