/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A library to preload into gaveld, so that its disk hangs: no error, no
 * answer. No test may freeze a file system of the machine.
 *
 *     LD_PRELOAD=hang_disk.so HANG_DISK_FILE=FILE gaveld …
 *
 * While FILE exists, whoever writes to a file, or waits for one to be on disk,
 * waits; as in the kernel, only that thread. What LMDB writes with is covered;
 * log lines and sockets are not.
 */
#undef _FILE_OFFSET_BITS /* or pwrite() would be pwrite64(), and both are wanted */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *file;

__attribute__((constructor)) static void find_file(void) { file = getenv("HANG_DISK_FILE"); }

/* Asks the kernel itself: the functions of the C library may be watched by a sanitizer. */
static void wait_while_it_hangs(void)
{
    int before = errno;

    while (file && syscall(SYS_access, file, F_OK) == 0) {
        const struct timespec moment = {.tv_nsec = 5000000};

        (void)nanosleep(&moment, NULL); /* a signal only makes it look sooner */
    }
    errno = before;
}

/* What comes next under the same name; a pointer to data, says dlsym(), whatever it is. */
#define HANGING(result, name, parameters, arguments)                                                         \
    result name parameters                                                                                   \
    {                                                                                                        \
        static result(*next) parameters;                                                                     \
                                                                                                             \
        if (!next)                                                                                           \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                                       \
        wait_while_it_hangs();                                                                               \
        return next arguments;                                                                               \
    }

HANGING(int, fdatasync, (int fd), (fd))
HANGING(int, fsync, (int fd), (fd))
HANGING(int, msync, (void *address, size_t size, int flags), (address, size, flags))
HANGING(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t offset), (fd, data, size, offset))
HANGING(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t offset), (fd, data, size, offset))
HANGING(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t offset),
        (fd, parts, count, offset))
HANGING(ssize_t, pwritev64, (int fd, const struct iovec *parts, int count, off64_t offset),
        (fd, parts, count, offset))
