/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One process at a time. The lock is a record lock of POSIX: it belongs to the
 * process, so that it ends with it however it dies, and children that were
 * forked do not keep it, as they would a flock() or an open-file lock. Its
 * drawback, that closing any descriptor of the file gives it up, cannot bite:
 * nobody else opens this file. It does not tell two users in one process
 * apart; a node opens its directory once.
 *
 * Who holds it is asked of the kernel. The number is also written into the
 * file, for people.
 */
#include "disk/internal.h"

#include "base/error.h"
#include "os/retry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct flock whole_file(void) { return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}; }

static enum gavel_status taken(const struct disk *disk, struct gavel_error *error)
{
    struct flock lock = whole_file();
    char holder[48] = "another process";

    /* Free again, or in a pid namespace that we do not see: then it has no number for us. */
    if (fcntl(disk->lock_fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0)
        (void)snprintf(holder, sizeof holder, "process %ld", (long)lock.l_pid);
    return error_set(
        error, GAVEL_ERR_STATE,
        "%s uses the data directory %.200s; every node needs one of its own, so stop that process or give this one another directory",
        holder, disk->data_dir);
}

enum gavel_status disk_lock(struct disk *disk, struct gavel_error *error)
{
    char path[DISK_PATH_BYTES];
    char pid[24];
    struct flock lock = whole_file();
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    struct retry retry = {0};
    bool is_ours;

    disk_path(disk, DISK_LOCK_FILE, path);
    disk->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (disk->lock_fd < 0)
        return disk_error(disk, errno, "opening its lock", error);
    do
        is_ours = fcntl(disk->lock_fd, F_SETLK, &lock) == 0;
    while (!is_ours && (errno == EACCES || errno == EAGAIN) && retry_wait(&retry));
    if (!is_ours)
        return errno == EACCES || errno == EAGAIN ? taken(disk, error)
                                                  : disk_error(disk, errno, "locking it", error);
    /* For people only: a full disk is no reason to stop here. */
    if (ftruncate(disk->lock_fd, 0) == 0)
        (void)!pwrite(disk->lock_fd, pid, (size_t)length, 0);
    return GAVEL_OK;
}
