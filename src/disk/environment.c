/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The environment of LMDB: one file, one database without a name.
 *
 * Durable by LMDB's default: a commit writes the new pages, calls fdatasync(),
 * and only then writes the page that makes them count, synchronously. It
 * never overwrites a page that the last two transactions use, so a crash at
 * any instant leaves one of them whole.
 */
#include "disk/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int open_database(struct disk *disk)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(disk->env, NULL, MDB_RDONLY, &txn);

    if (code != 0)
        return code;
    code = mdb_dbi_open(txn, NULL, 0, &disk->dbi);
    mdb_txn_abort(txn);
    return code;
}

/*
 * A file with holes (a copy, or a file system that compresses) may have less room than its length says:
 * then only what LMDB uses counts.
 */
static int measure(struct disk *disk)
{
    struct stat info;
    MDB_stat stat;
    MDB_envinfo env;
    int code = mdb_env_stat(disk->env, &stat);

    if (code == 0)
        code = mdb_env_info(disk->env, &env);
    if (code != 0)
        return code;
    if (fstat(disk->fd, &info) < 0)
        return errno;
    disk->page_size = stat.ms_psize;
    disk->file_bytes = info.st_size;
    if (info.st_blocks < info.st_size / 512)
        disk->file_bytes = (off_t)((env.me_last_pgno + 1) * stat.ms_psize);
    return 0;
}

enum gavel_status disk_environment_open(struct disk *disk, const char *path, struct gavel_error *error)
{
    int code = mdb_env_create(&disk->env);

    if (code != 0)
        return disk_error(disk, code, "preparing its database", error);
    code = mdb_env_set_mapsize(disk->env, disk->bytes_max);
    if (code == 0)
        code = mdb_env_open(disk->env, path, DISK_ENV_FLAGS, 0600);
    if (code == 0)
        code = mdb_env_get_fd(disk->env, &disk->fd);
    /* LMDB leaves this one open across exec(). */
    if (code == 0 && fcntl(disk->fd, F_SETFD, FD_CLOEXEC) < 0)
        code = errno;
    if (code == 0)
        code = open_database(disk);
    if (code == 0)
        code = measure(disk);
    if (code == 0)
        return GAVEL_OK;
    disk_environment_close(disk);
    return disk_error(disk, code, "opening its database", error);
}

void disk_environment_close(struct disk *disk)
{
    if (disk->env)
        mdb_env_close(disk->env);
    disk->env = NULL;
}
