/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Room, made before it is needed.
 *
 * LMDB makes its file longer page by page. Each time the file system must
 * write its journal too, which makes the commit slower, and a disk
 * that fills up in the middle shows as a short write, which LMDB reports like
 * a broken disk. So the file is made longer by whole steps, filled with zeros:
 * a commit then only overwrites blocks that are there, and a full disk is
 * noticed before anything was changed. (Blocks that are reserved but were
 * never written would not do: the first write into each goes through the
 * journal as well.)
 *
 * Within the limit something is kept back from entries, so that a node that is
 * full can still vote, cut off its log and, above all, replace it by a snapshot.
 */
#include "disk/internal.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define STEP_BYTES (1 << 20)

/* What any transaction may need besides its records: the pages on the way to them, and the list of free
 * ones. */
#define PATH_PAGES 64

/* Entries leave so much of the file unused, for the transactions that are not appends. */
#define SLACK_PAGES 64

static int write_zeros(int fd, off_t from, off_t to)
{
    static const size_t size = 1 << 16;
    uint8_t *zeros = calloc(1, size);
    int code = 0;

    if (!zeros)
        return ENOMEM;
    while (from < to && code == 0) {
        size_t rest = (size_t)(to - from);
        ssize_t wrote = pwrite(fd, zeros, rest < size ? rest : size, from);

        if (wrote > 0)
            from += wrote;
        else if (wrote == 0)
            code = ENOSPC;
        else if (errno != EINTR)
            code = errno;
    }
    free(zeros);
    return code;
}

/* The blocks first, since that is all or nothing; where the file system cannot, the zeros will tell. */
static int lengthen(const struct disk *disk, off_t from, off_t to)
{
    int code;

    do {
        code = fallocate(disk->fd, 0, from, to - from) < 0 ? errno : 0;
    } while (code == EINTR);
    if (code != 0 && code != EOPNOTSUPP)
        return code;
    code = write_zeros(disk->fd, from, to);
    if (code == 0 && fdatasync(disk->fd) < 0)
        code = errno;
    return code;
}

static enum gavel_status grow_file(struct disk *disk, off_t used, off_t wanted, struct gavel_error *error)
{
    off_t limit = (off_t)(disk->bytes_max / disk->page_size * disk->page_size);
    off_t from = disk->file_bytes > used ? disk->file_bytes : used;
    off_t to = (wanted + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    int code;

    if (wanted > limit)
        wanted = limit;
    if (to > limit)
        to = limit;
    if (wanted <= from)
        return GAVEL_OK;
    code = lengthen(disk, from, to);
    if (code != 0 && disk_status_of(code) == GAVEL_ERR_STORE_FULL && wanted < to) {
        to = wanted;
        code = lengthen(disk, from, to);
    }
    if (code != 0) {
        enum gavel_status status = disk_error(disk, code, "making its file longer", error);

        if (status == GAVEL_ERR_IO)
            disk->is_failed = true;
        return status;
    }
    disk->file_bytes = to;
    return GAVEL_OK;
}

static enum gavel_status check_limit(const struct disk *disk, const MDB_stat *stat, size_t pages,
                                     struct gavel_error *error)
{
    size_t most = disk->bytes_max / disk->page_size;
    size_t used = stat->ms_branch_pages + stat->ms_leaf_pages + stat->ms_overflow_pages + 2;
    size_t snapshot = disk->contents.snapshot.size / disk->page_size + 2 * (size_t)PATH_PAGES;
    size_t kept = snapshot > most / 8 ? snapshot : most / 8;

    if (used + pages + kept <= most)
        return GAVEL_OK;
    return error_set(
        error, GAVEL_ERR_STORE_FULL,
        "the data directory %.200s has %zu of %zu bytes in use and keeps the rest for snapshots; it takes more once the log is compacted; if that does not help, raise data_max",
        disk->data_dir, used * disk->page_size, disk->bytes_max);
}

enum gavel_status disk_make_room(struct disk *disk, enum disk_need need, size_t bytes, size_t records,
                                 struct gavel_error *error)
{
    MDB_envinfo info;
    MDB_stat stat;
    size_t used;
    size_t pages;
    int code;

    if (disk->is_failed)
        return disk_refuse(disk, error);
    code = mdb_env_info(disk->env, &info);
    if (code == 0)
        code = mdb_env_stat(disk->env, &stat);
    if (code != 0)
        return disk_error(disk, code, "asking for its size", error);
    /* Small records share pages that may be half empty, large ones have pages of their own. */
    pages = 2 * (bytes + 64 * records) / disk->page_size + PATH_PAGES;
    /* The list of free pages is written anew by each transaction, up to eight bytes for each of them. */
    pages += info.me_last_pgno / 256;
    if (need == DISK_NEEDS_APPEND) {
        enum gavel_status status = check_limit(disk, &stat, pages, error);

        if (status != GAVEL_OK)
            return status;
        pages += SLACK_PAGES;
    }
    used = info.me_last_pgno + 1;
    return grow_file(disk, (off_t)(used * disk->page_size), (off_t)((used + pages) * disk->page_size), error);
}
