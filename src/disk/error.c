/* SPDX-License-Identifier: Apache-2.0 */

/* What LMDB and the system say, translated once. */
#include "disk/internal.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum gavel_status disk_status_of(int code)
{
    switch (code) {
    case 0:
        return GAVEL_OK;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
        return GAVEL_ERR_STORE_FULL;
    case ENOMEM:
        return GAVEL_ERR_NO_MEMORY;
    case EACCES:
    case EPERM:
    case EROFS:
        return GAVEL_ERR_STORE_DENIED;
    case MDB_NOTFOUND: /* what must be there is not */
    case MDB_KEYEXIST:
    case MDB_PAGE_NOTFOUND:
    case MDB_CORRUPTED:
    case MDB_VERSION_MISMATCH:
    case MDB_INVALID:
    case MDB_CURSOR_FULL:
    case MDB_PAGE_FULL:
    case MDB_INCOMPATIBLE:
    case MDB_BAD_VALSIZE:
    case MDB_MAP_RESIZED:
        return GAVEL_ERR_STORE_DAMAGED;
    case ENOENT: /* of the directory, and what is above it */
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return GAVEL_ERR_INVALID;
    default:
        return GAVEL_ERR_IO;
    }
}

enum gavel_status disk_damaged(const struct disk *disk, struct gavel_error *error, const char *format, ...)
{
    char reason[200];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args); /* cut off rather than not said */
    va_end(args);
    return error_set(
        error, GAVEL_ERR_STORE_DAMAGED,
        "the data directory %.120s is damaged: %s; a node that has forgotten something must not vote, so do not repair it and do not restore an old copy: set it aside, remove this node from the members, and let it join with an empty directory",
        disk->data_dir, reason);
}

enum gavel_status disk_error(const struct disk *disk, int code, const char *what, struct gavel_error *error)
{
    enum gavel_status status = disk_status_of(code);
    const char *why = mdb_strerror(code);

    switch (status) {
    case GAVEL_ERR_STORE_DAMAGED:
        return disk_damaged(disk, error, "%s: %s", what, why);
    case GAVEL_ERR_STORE_FULL:
        if (code == MDB_MAP_FULL || code == MDB_TXN_FULL)
            return error_set(error, status,
                             "the data directory %.200s may not grow beyond %zu bytes (%s); raise data_max",
                             disk->data_dir, disk->bytes_max, what);
        return error_set(
            error, status,
            "there is no space left for the data directory %.200s (%s: %s); free some space on its file system",
            disk->data_dir, what, why);
    case GAVEL_ERR_NO_MEMORY:
        return error_set(error, status, "out of memory for the data directory %.200s (%s)", disk->data_dir,
                         what);
    case GAVEL_ERR_STORE_DENIED:
        return error_set(
            error, status,
            "the data directory %.200s cannot be used (%s: %s); it must be on a file system that can be written, and belong to the user that runs the node",
            disk->data_dir, what, why);
    case GAVEL_ERR_INVALID:
        return error_set(error, status,
                         "the data directory %.200s is not possible (%s: %s); name another one",
                         disk->data_dir, what, why);
    default:
        return error_set(
            error, GAVEL_ERR_IO,
            "the data directory %.200s failed (%s: %s); the state on disk is unknown, so the node must stop: check the disk and the kernel's log, then start it again",
            disk->data_dir, what, why);
    }
}
