/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which file data.mdb is.
 *
 * A copy of a directory is older than the original as soon as that one goes
 * on, and nothing inside of it can tell: it holds the same bytes. What differs
 * is the file itself. So the database remembers its inode and when that was
 * born, and a file that came by cp, tar, rsync or a backup is refused, at every
 * start, whether or not there is a peer that would notice.
 *
 * What this cannot see is what keeps the inode: the bytes of a copy written
 * over the file (rsync --inplace), and a snapshot of the whole file system or
 * machine that is put back. There the peers are the only ones who can know.
 */
#include "disk/internal.h"

#include "base/error.h"
#include "os/entropy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define NS_OF_S UINT64_C(1000000000)

uint64_t disk_draw_directory(void) { return entropy_u64() | 1; }

enum gavel_status disk_file_id_read(const struct disk *disk, struct record_file_id *ret_file_id,
                                    struct gavel_error *error)
{
    struct statx info;

    if (statx(disk->fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &info) < 0)
        return disk_error(disk, errno, "looking at " DISK_FILE, error);
    *ret_file_id = (struct record_file_id){.inode = info.stx_ino};
    if (info.stx_mask & STATX_BTIME)
        ret_file_id->born_ns = (uint64_t)info.stx_btime.tv_sec * NS_OF_S + info.stx_btime.tv_nsec;
    return GAVEL_OK;
}

enum gavel_status disk_check_file_id(const struct disk *disk, struct gavel_error *error)
{
    const struct record_file_id *wrote = &disk->file_id;
    struct record_file_id here = {0};
    enum gavel_status status = disk_file_id_read(disk, &here, error);

    if (status != GAVEL_OK || wrote->inode == 0)
        return status;
    if (here.inode == wrote->inode &&
        (here.born_ns == wrote->born_ns || here.born_ns == 0 || wrote->born_ns == 0))
        return GAVEL_OK;
    return error_set(
        error, GAVEL_ERR_INVALID,
        "%s in the data directory %.150s is a copy: a copy may lack votes and entries that the node has promised to keep, so it must not vote. "
        "Use the original; if that is lost, replace the member (gavel member remove, an empty directory, gavel member add, --join); if it was moved here and nothing has run on the original since, start once with --accept-copy",
        DISK_FILE, disk->data_dir);
}

void disk_mark_read(const struct disk *disk, struct disk_mark *ret_mark)
{
    *ret_mark = (struct disk_mark){.directory = disk->contents.state.directory, .txn = disk->contents.txn};
}

bool disk_is_there(const struct disk *disk)
{
    char path[DISK_PATH_BYTES];
    struct stat ours;
    struct stat there;

    disk_path(disk, DISK_FILE, path);
    if (fstat(disk->fd, &ours) < 0)
        return true; /* no proof of anything */
    if (lstat(path, &there) < 0)
        return errno != ENOENT && errno != ENOTDIR;
    return there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}
