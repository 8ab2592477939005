/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file of the database: its directory, its file system, which files they
 * are, and whether they still are.
 *
 * Nothing here opens the database file by itself: closing any descriptor of a
 * file drops all locks that this process holds on it (POSIX), also those of
 * another store object that is open on the same file.
 */
#include "base/error.h"
#include "os/clock.h"
#include "os/filesystem.h"
#include "os/process.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static enum gavel_status denied(const struct sqlite_store *sqlite, const char *doing, const char *path,
                                struct gavel_error *error)
{
    int reason = errno;
    enum gavel_status status = sqlite_status(SQLITE_CANTOPEN, reason);

    return error_set(error, status, "cannot %s \"%.200s\" for the store %s: %s; %s", doing, path,
                     sqlite->shown, strerror(reason), sqlite_next_step(status, reason));
}

/* Makes the entry of a new file or directory survive a power loss. */
static void sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;      /* not readable by us: then there is nothing that we could do */
    (void)fsync(fd); /* a file system that cannot sync directories keeps them by itself */
    (void)close(fd);
}

/* The same for what has just come into being at this path, which is changed meanwhile and restored. */
static void sync_parent(char *path)
{
    char *slash = strrchr(path, '/');

    *slash = '\0';
    sync_directory(*path ? path : "/");
    *slash = '/';
}

/* Creates the directory of a file, and what is missing above it. `path` is changed while it works, and
 * restored. */
static enum gavel_status make_directories(const struct sqlite_store *sqlite, char *path,
                                          struct gavel_error *error)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        enum gavel_status status = GAVEL_OK;
        struct stat info;

        *slash = '\0';
        if (stat(path, &info) < 0) {
            if (mkdir(path, 0700) < 0 && errno != EEXIST)
                status = denied(sqlite, "create the directory", path, error);
            else
                sync_parent(path); /* a store lost with its directory would give out its epochs again */
        } else if (!S_ISDIR(info.st_mode)) {
            errno = ENOTDIR;
            status = denied(sqlite, "use the directory", path, error);
        }
        *slash = '/';
        if (status != GAVEL_OK)
            return status;
    }
    return GAVEL_OK;
}

/*
 * Creates the file readable by its owner only, before SQLite does with wider
 * permissions. mknod() does so without opening it.
 */
static enum gavel_status make_file(const struct sqlite_store *sqlite, char *path, struct gavel_error *error)
{
    struct stat info;

    if (stat(path, &info) == 0) {
        if (S_ISREG(info.st_mode))
            return GAVEL_OK;
        if (S_ISDIR(info.st_mode))
            return error_set(
                error, GAVEL_ERR_STORE_DENIED,
                "the store %s is not a file but a directory; name a file in it, such as %s/gavel.db",
                sqlite->shown, sqlite->shown);
        return error_set(error, GAVEL_ERR_STORE_DENIED,
                         "the store %s is not a file but a device or the like; name a file", sqlite->shown);
    }
    /* If it exists now, another process was faster, or it is a link to a file that SQLite will make. */
    if (mknod(path, S_IFREG | 0600, 0) < 0 && errno != EEXIST)
        return denied(sqlite, "create", path, error);
    sync_parent(path);
    return GAVEL_OK;
}

/*
 * SQLite keeps its log and the locks of it beside the file, by the name that
 * it was opened with. By a second name of the same file there would be a
 * second log, which no lock ties to the first: two leaders with one epoch.
 * Symbolic links and mounted directories give no second log: SQLite follows the
 * former to the one name, and the latter show the same log.
 */
static enum gavel_status refuse_second_name(const struct sqlite_store *sqlite, struct gavel_error *error)
{
    return error_set(
        error, GAVEL_ERR_STORE_UNSUPPORTED,
        "the store %s has a second name (a hard link) with another log and another leader; remove that name, and share the directory or a symbolic link instead",
        sqlite->shown);
}

/* A hard link, or a file that is mounted by itself, as container engines do if they are given a file. */
static enum gavel_status check_only_name(const struct sqlite_store *sqlite, const char *path,
                                         struct gavel_error *error)
{
    struct statx info;

    if (statx(AT_FDCWD, path, 0, STATX_NLINK, &info) < 0)
        return denied(sqlite, "look at", path, error);
    if (info.stx_nlink > 1)
        return refuse_second_name(sqlite, error);
    /* A kernel before 5.8 does not tell, and leaves the bit clear. */
    if (info.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return error_set(
            error, GAVEL_ERR_STORE_UNSUPPORTED,
            "the store %s is mounted as a single file, so that it has another log here than elsewhere, and another leader; mount its directory instead",
            sqlite->shown);
    return GAVEL_OK;
}

static enum gavel_status check_directory(const struct sqlite_store *sqlite, const char *path,
                                         struct gavel_error *error)
{
    struct statfs info;
    const char *name;

    if (statfs(path, &info) < 0)
        return denied(sqlite, "look at the file system of", path, error);
    name = filesystem_refused((uint32_t)info.f_type);
    if (name)
        return error_set(
            error, GAVEL_ERR_STORE_UNSUPPORTED,
            "the store %s is on %s, where the locks of SQLite are not reliable; use a file on a local disk, or a store for many hosts",
            sqlite->shown, name);
    if (!clock_is_shared())
        return error_set(
            error, GAVEL_ERR_STORE_UNSUPPORTED,
            "this process is in a time namespace with a shifted clock, so the leases in %s would mean nothing to the others; run it without one",
            sqlite->shown);
    return check_only_name(sqlite, path, error);
}

static enum gavel_status absolute(const char *path, char **ret_path, struct gavel_error *error)
{
    char directory[PATH_MAX] = "";
    char *result;

    if (!*path || strcmp(path, ":memory:") == 0 || path[strlen(path) - 1] == '/')
        return error_set(
            error, GAVEL_ERR_INVALID,
            "\"%.200s\" does not name the file of a sqlite store; write sqlite:/path/to/gavel.db, or memory:name for one that is not kept",
            path);
    if (*path != '/' && !getcwd(directory, sizeof directory))
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                         "the current directory is unknown: %s; give the store by its whole path",
                         strerror(errno));
    if (asprintf(&result, "%s%s%s", directory, *path == '/' ? "" : "/", path) < 0)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening a sqlite store");
    if (strlen(result) > PATH_MAX - 16) {
        free(result);
        return error_set(error, GAVEL_ERR_INVALID,
                         "the path of the sqlite store is too long; choose a shorter one");
    }
    *ret_path = result;
    return GAVEL_OK;
}

static enum gavel_status gone(const struct sqlite_store *sqlite, struct gavel_error *error)
{
    return error_set(
        error, GAVEL_ERR_STORE_DAMAGED,
        "the store %s was deleted or replaced while in use; put it back, or stop all that use it before any of them starts again",
        sqlite->shown);
}

/*
 * Looks at one of the files. Only one that is not there has gone; that we may
 * not look, or that the disk fails, says nothing about it.
 */
static enum gavel_status look(const struct sqlite_store *sqlite, const struct sqlite_file_identity *file,
                              struct stat *ret_info, struct gavel_error *error)
{
    enum gavel_status status;
    int reason;

    if (stat(file->path, ret_info) == 0)
        return GAVEL_OK;
    reason = errno;
    if (reason == ENOENT || reason == ENOTDIR)
        return gone(sqlite, error);
    status = sqlite_status(SQLITE_CANTOPEN, reason);
    return error_set(error, status, "cannot look at the store %s: %s; %s", sqlite->shown, strerror(reason),
                     sqlite_next_step(status, reason));
}

enum gavel_status sqlite_check_files(const struct sqlite_store *sqlite, struct gavel_error *error)
{
    for (int i = 0; i < SQLITE_FILE_COUNT; i++) {
        const struct sqlite_file_identity *file = &sqlite->files[i];
        struct stat now;
        enum gavel_status status = look(sqlite, file, &now, error);

        if (status != GAVEL_OK)
            return status;
        if (now.st_ino != file->inode || now.st_dev != file->device)
            return gone(sqlite, error);
        if (i == SQLITE_FILE_MAIN && now.st_nlink > 1)
            return refuse_second_name(sqlite, error);
    }
    return GAVEL_OK;
}

/* Takes down which files are open. The main one is looked up by the name we were given: it may be a link. */
static enum gavel_status note_files(struct sqlite_store *sqlite, struct gavel_error *error)
{
    const char *real = sqlite3_db_filename(sqlite->db, "main");
    enum gavel_status status = GAVEL_OK;
    int has_moved = 0;

    if (asprintf(&sqlite->files[SQLITE_FILE_WAL].path, "%s-wal", real) < 0 ||
        asprintf(&sqlite->files[SQLITE_FILE_SHM].path, "%s-shm", real) < 0)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening the store %s",
                         sqlite->shown);
    for (int i = 0; i < SQLITE_FILE_COUNT && status == GAVEL_OK; i++) {
        struct stat info = {0};

        status = look(sqlite, &sqlite->files[i], &info, error);
        sqlite->files[i].device = info.st_dev;
        sqlite->files[i].inode = info.st_ino;
    }
    if (status == GAVEL_OK && sqlite3_file_control(sqlite->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved))
        has_moved = true;
    if (status == GAVEL_OK && !has_moved) /* a second name may have come since we looked for one */
        status = sqlite_check_files(sqlite, error);
    if (has_moved || status == GAVEL_ERR_STORE_DAMAGED)
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                         "the store %s was deleted or replaced while it was opened; try again",
                         sqlite->shown);
    return status;
}

enum gavel_status sqlite_open_file(struct sqlite_store *sqlite, const char *path, struct gavel_error *error)
{
    char *given = NULL;
    size_t length;
    enum gavel_status status = absolute(path, &given, error);

    if (status != GAVEL_OK)
        return status;
    sqlite->files[SQLITE_FILE_MAIN].path = given;
    length = strlen(given);
    if (length < sizeof sqlite->shown)
        memcpy(sqlite->shown, given, length + 1);
    else
        (void)snprintf(sqlite->shown, sizeof sqlite->shown, "…%s",
                       given + length - (sizeof sqlite->shown - 8));
    sqlite->opened_by = getpid();
    status = process_self(&sqlite->self);
    if (status != GAVEL_OK)
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE, "cannot tell who this process is; mount /proc");
    status = make_directories(sqlite, given, error);
    if (status == GAVEL_OK)
        status = make_file(sqlite, given, error);
    if (status == GAVEL_OK)
        status = check_directory(sqlite, given, error);
    if (status == GAVEL_OK)
        status = sqlite_open_database(sqlite, error);
    if (status == GAVEL_OK)
        status = note_files(sqlite, error);
    return status;
}
