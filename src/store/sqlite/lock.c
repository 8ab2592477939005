/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who holds the write lock, for people: a process that is stopped in the
 * middle of a write stops the whole store, and somebody must be told which.
 *
 * The kernel knows. But opening the file to ask it would drop all locks that
 * this process holds on it as soon as that descriptor is closed (POSIX), so
 * the question goes to the descriptor that SQLite has open. SQLite does not
 * hand it out; it is found among those of this process by its inode. Should
 * another thread close it meanwhile, the answer is about another file or
 * there is none: a question changes nothing.
 */
#include "os/process.h"
#include "store/sqlite/sqlite.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The byte of the -shm file that stands for the right to write; part of SQLite's file format. */
#define WRITE_LOCK_BYTE 120

static bool same_file(int fd, const struct stat *wanted)
{
    struct stat info;

    return fstat(fd, &info) == 0 && info.st_ino == wanted->st_ino && info.st_dev == wanted->st_dev;
}

/* The descriptor of this process that is open on that file, -1 if there is none. It stays its owner's. */
static int find_descriptor(const char *path)
{
    struct stat wanted;
    const struct dirent *entry;
    DIR *directory;
    int found = -1;

    if (stat(path, &wanted) < 0)
        return -1;
    directory = opendir("/proc/self/fd");
    if (!directory)
        return -1;
    while (found < 0 && (entry = readdir(directory))) {
        int fd = entry->d_name[0] == '.' ? -1 : (int)strtol(entry->d_name, NULL, 10);

        if (fd >= 0 && fd != dirfd(directory) && same_file(fd, &wanted))
            found = fd;
    }
    (void)closedir(directory); /* only read from */
    return found;
}

/* Whether another process has the lock now. *ret_pid is 0 if it cannot be seen from here. */
static bool find_holder(const struct sqlite_store *sqlite, pid_t *ret_pid)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = WRITE_LOCK_BYTE, .l_len = 1};
    const char *real = sqlite->db ? sqlite3_db_filename(sqlite->db, "main") : NULL;
    char *path;
    int fd;

    if (!real || asprintf(&path, "%s-shm", real) < 0)
        return false;
    fd = find_descriptor(path);
    free(path);
    if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
        return false;
    *ret_pid = lock.l_pid > 0 ? lock.l_pid : 0;
    return true;
}

void sqlite_tell_holder(const struct sqlite_store *sqlite, char *text, size_t size)
{
    struct process_glance glance;
    pid_t pid;

    /* What is cut off is only said less fully. */
    if (!find_holder(sqlite, &pid))
        (void)snprintf(text, size, "another process or thread held its lock; try again");
    else if (pid == 0)
        (void)snprintf(
            text, size,
            "a process that cannot be seen from here holds its lock; look for one that is stopped in another container");
    else if (!process_look_at(pid, &glance))
        (void)snprintf(text, size, "process %d holds its lock; try again, or end it if it hangs", (int)pid);
    else
        (void)snprintf(text, size, "process %d (%s%s) holds its lock; %s", (int)pid, glance.name,
                       glance.is_stopped ? ", stopped" : "",
                       glance.is_stopped ? "continue or end it" : "try again, or end it if it hangs");
}
