/* SPDX-License-Identifier: Apache-2.0 */

/* Opening and closing a data directory; disk.h is its manual page. */
#include "disk/disk.h"

#include "base/error.h"
#include "disk/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX_DEFAULT ((size_t)1 << 30)
#define BYTES_MAX_LEAST ((size_t)1 << 20)

static enum gavel_status check_options(const struct disk_options *options, struct gavel_error *error)
{
    size_t length = options->data_dir ? strlen(options->data_dir) : 0;

    if (length == 0 || length > PATH_MAX - 32)
        return error_set(error, GAVEL_ERR_INVALID, "the name of the data directory is %s",
                         length == 0 ? "missing" : "too long");
    if (options->identity.node == 0)
        return error_set(error, GAVEL_ERR_INVALID, "a node needs an id above 0");
    if (options->bytes_max != 0 && options->bytes_max < BYTES_MAX_LEAST)
        return error_set(error, GAVEL_ERR_INVALID,
                         "data_max is %zu bytes, too few for any node; give it %zu or more",
                         options->bytes_max, BYTES_MAX_LEAST);
    return GAVEL_OK;
}

/* data.mdb is there: whether it is whole, and what it holds. */
static enum gavel_status open_old(struct disk *disk, struct gavel_error *error)
{
    char path[DISK_PATH_BYTES];
    enum gavel_status status;

    disk_path(disk, DISK_FILE, path);
    status = disk_check_pages(disk, path, error);
    if (status == GAVEL_OK)
        status = disk_environment_open(disk, path, error);
    if (status == GAVEL_OK)
        status = disk_verify(disk, error);
    if (status == GAVEL_OK && !disk->accepts_copy)
        status = disk_check_file_id(disk, error);
    return status;
}

enum gavel_status disk_open(const struct disk_options *options, struct disk **ret_disk, bool *ret_is_new,
                            struct gavel_error *error)
{
    struct disk *disk;
    bool is_new;
    enum gavel_status status = check_options(options, error);

    if (status != GAVEL_OK)
        return status;
    disk = calloc(1, sizeof *disk);
    if (!disk)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory for the data directory");
    disk->lock_fd = -1;
    memcpy(disk->data_dir, options->data_dir, strlen(options->data_dir));
    disk->identity = options->identity;
    disk->accepts_copy = options->accepts_copy;
    disk->seed = record_seed(&disk->identity);
    disk->bytes_max = options->bytes_max != 0 ? options->bytes_max : BYTES_MAX_DEFAULT;
    status = disk_directory_prepare(disk, &is_new, error);
    if (status == GAVEL_OK)
        status = disk_lock(disk, error);
    /* Once more: whoever had the lock may have founded it meanwhile. */
    if (status == GAVEL_OK)
        status = disk_directory_prepare(disk, &is_new, error);
    if (status == GAVEL_OK && !is_new)
        status = open_old(disk, error);
    if (status != GAVEL_OK) {
        disk_close(disk);
        return status;
    }
    *ret_disk = disk;
    *ret_is_new = is_new;
    return GAVEL_OK;
}

void disk_usage_read(struct disk *disk, struct disk_usage *ret_usage)
{
    struct disk_usage usage = {.bytes_max = disk->bytes_max};
    MDB_stat stat;

    if (disk->env && mdb_env_stat(disk->env, &stat) == 0) {
        usage.bytes_used = (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages + 2) *
                           (uint64_t)stat.ms_psize;
        usage.entries = disk->contents.last - disk->contents.snapshot.index;
    }
    *ret_usage = usage;
}

void disk_close(struct disk *disk)
{
    if (!disk)
        return;
    disk_environment_close(disk);
    if (disk->lock_fd >= 0)
        (void)close(disk->lock_fd); /* gives up the lock; nothing was written that matters */
    free(disk);
}
