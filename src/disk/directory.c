/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The directory itself: made if it is missing, on a file system that can be
 * trusted, and not the home of somebody else's files.
 *
 * data.mdb appears in it by being renamed, when it is complete (found.c). So a
 * directory without it is new, and one in which it is empty or cut off has lost
 * something.
 */
#include "disk/internal.h"

#include "base/error.h"
#include "os/filesystem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

void disk_path(const struct disk *disk, const char *file, char ret_path[DISK_PATH_BYTES])
{
    (void)snprintf(ret_path, DISK_PATH_BYTES, "%s/%.10s", disk->data_dir, file); /* it fits */
}

static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = 0;

    if (fd < 0)
        return errno;
    if (fsync(fd) < 0)
        code = errno;
    (void)close(fd); /* nothing was written through it */
    return code;
}

enum gavel_status disk_directory_sync(const struct disk *disk, struct gavel_error *error)
{
    int code = sync_directory(disk->data_dir);

    return code == 0 ? GAVEL_OK : disk_error(disk, code, "making its names durable", error);
}

/* The directory and what is missing above it, each durable in the one above. */
static int make_directories(const char *directory)
{
    char path[PATH_MAX];
    char above[PATH_MAX];
    int code;

    (void)snprintf(path, sizeof path, "%s", directory);
    for (char *slash = path + 1;; slash++) {
        char was = *slash;

        if (was != '/' && was != '\0')
            continue;
        *slash = '\0';
        if (mkdir(path, 0700) == 0) {
            char *name;

            (void)snprintf(above, sizeof above, "%s", path);
            name = strrchr(above, '/');
            if (name)
                name[name == above ? 1 : 0] = '\0';
            code = sync_directory(name ? above : ".");
            /* One above that may be used but not read cannot be synced; then its owner has made it. */
            if (code != 0 && code != EACCES)
                return code;
        } else if (errno != EEXIST && !(was == '/' && (errno == EROFS || errno == EACCES))) {
            return errno;
        }
        *slash = was;
        if (was == '\0')
            return 0;
    }
}

static enum gavel_status check_file_system(const struct disk *disk, struct gavel_error *error)
{
    struct statfs info;
    const char *name;

    if (statfs(disk->data_dir, &info) < 0)
        return disk_error(disk, errno, "looking at its file system", error);
    name = filesystem_refused((uint32_t)info.f_type);
    if (name)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the data directory %.200s is on %s, where LMDB cannot keep data safely; use a directory on a local disk",
            disk->data_dir, name);
    return GAVEL_OK;
}

static bool is_ours(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, DISK_LOCK_FILE) == 0 ||
           strcmp(name, DISK_NEW_FILE) == 0 || strcmp(name, "lost+found") == 0;
}

/* A directory without data.mdb must have nothing else in it: it may be the wrong one. */
static enum gavel_status check_empty(const struct disk *disk, struct gavel_error *error)
{
    DIR *directory = opendir(disk->data_dir);
    struct dirent *item = NULL;
    enum gavel_status status = GAVEL_OK;

    if (!directory)
        return disk_error(disk, errno, "reading it", error);
    do {
        errno = 0;
        item = readdir(directory);
    } while (item && is_ours(item->d_name));
    if (item)
        status = error_set(
            error, GAVEL_ERR_INVALID,
            "the directory %.200s has \"%.60s\" in it and no data of a node (%s): it is not one of ours; name the right directory, or an empty one",
            disk->data_dir, item->d_name, DISK_FILE);
    else if (errno != 0)
        status = disk_error(disk, errno, "reading it", error);
    (void)closedir(directory); /* only read */
    return status;
}

enum gavel_status disk_directory_prepare(struct disk *disk, bool *ret_is_new, struct gavel_error *error)
{
    char path[DISK_PATH_BYTES];
    struct stat info;
    int code = make_directories(disk->data_dir);
    enum gavel_status status;

    if (code != 0)
        return disk_error(disk, code, "making it", error);
    if (stat(disk->data_dir, &info) < 0)
        return disk_error(disk, errno, "looking at it", error);
    if (!S_ISDIR(info.st_mode))
        return error_set(error, GAVEL_ERR_INVALID,
                         "%.200s is not a directory; name one for the data of the node", disk->data_dir);
    status = check_file_system(disk, error);
    if (status != GAVEL_OK)
        return status;
    disk_path(disk, DISK_FILE, path);
    if (lstat(path, &info) == 0) {
        *ret_is_new = false;
        return S_ISREG(info.st_mode) ? GAVEL_OK : disk_damaged(disk, error, "%s is no file", DISK_FILE);
    }
    if (errno != ENOENT)
        return disk_error(disk, errno, "looking for " DISK_FILE, error);
    *ret_is_new = true;
    return check_empty(disk, error);
}
