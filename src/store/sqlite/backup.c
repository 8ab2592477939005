/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A copy of the store as of one moment, while others go on using it: a whole
 * file, without a log, that can be put in the place of the store as it is.
 */
#include "base/error.h"
#include "os/clock.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE (60 * NS_PER_S)

/* By its own words: they are of the copy, not of the store. */
static enum gavel_status explain(sqlite3 *copy, int code, const char *path, struct gavel_error *error)
{
    enum gavel_status status = sqlite_status(code, copy ? sqlite3_system_errno(copy) : 0);

    return error_set(error, status, "the copy \"%.120s\" could not be written: %s", path,
                     sqlite3_errstr(code));
}

static int copy_pages(sqlite3 *from, sqlite3 *to)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int code;

    if (!backup)
        return sqlite3_errcode(to);
    (void)sqlite3_backup_step(backup, -1); /* all of it, in one transaction; the next tells how it went */
    code = sqlite3_backup_finish(backup);
    if (code)
        return code;
    return sqlite3_exec(to, "PRAGMA journal_mode = DELETE; PRAGMA quick_check", NULL, NULL, NULL);
}

/* Makes its entry survive a loss of power; the file itself was synced by SQLite. */
static void sync_directory_of(const char *path)
{
    char *copy = strdup(path);
    char *slash = copy ? strrchr(copy, '/') : NULL;
    int fd;

    if (slash)
        slash[slash == copy] = '\0';
    fd = copy ? open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd); /* a file system that cannot sync directories keeps them by itself */
        (void)close(fd);
    }
    free(copy);
}

enum gavel_status sqlite_backup(struct store *store, const char *path, struct gavel_error *error)
{
    struct sqlite_store *sqlite = (struct sqlite_store *)store;
    enum gavel_status status = sqlite_check_files(sqlite, error);
    sqlite3 *copy = NULL;
    int code;

    if (status != GAVEL_OK)
        return status;
    /* For its owner only, as the store itself is; a file that is there is not written over. */
    if (mknod(path, S_IFREG | 0600, 0) < 0)
        return error_set(error, errno == EEXIST ? GAVEL_ERR_INVALID : sqlite_status(SQLITE_CANTOPEN, errno),
                         "the copy \"%.120s\" cannot be made: %s%s", path, strerror(errno),
                         errno == EEXIST ? "; name a new file" : "; check its directory");
    code = sqlite3_open_v2(path, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                           NULL);
    sqlite->give_up_at = clock_now() + PATIENCE;
    if (!code)
        code = copy_pages(sqlite->db, copy);
    if (code)
        status = explain(copy, code, path, error);
    (void)sqlite3_close(copy); /* nothing is open on it any more */
    if (status != GAVEL_OK)
        (void)unlink(path); /* half of it is of no use */
    else
        sync_directory_of(path);
    return status;
}
