/* SPDX-License-Identifier: Apache-2.0 */

#include "config/program.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"
#define HEAD_BYTES 256 /* the kernel reads as much of a script */

enum finding {
    FOUND,
    MISSING,
    HIDDEN, /* in a directory that we may not look into */
    DENIED,
};

/* What is at that path; *ret_reason if it is HIDDEN or DENIED. */
static enum finding look_at(const char *path, const char **ret_reason)
{
    struct stat stat_of;

    if (stat(path, &stat_of)) {
        if (errno == ENOENT || errno == ENOTDIR)
            return MISSING;
        *ret_reason = strerror(errno);
        return errno == EACCES ? HIDDEN : DENIED;
    }
    if (S_ISDIR(stat_of.st_mode))
        *ret_reason = "it is a directory";
    else if (!S_ISREG(stat_of.st_mode))
        *ret_reason = "it is not a file";
    else if (!faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
        return FOUND;
    else
        *ret_reason = stat_of.st_mode & 0111 ? strerror(errno) : "its mode does not allow it; chmod +x would";
    return DENIED;
}

/* The path as the process in that directory will find it, always with a slash, so that nothing is
 * searched. */
static char *path_join(struct arena *arena, const char *directory, const char *entry, size_t entry_length,
                       const char *name)
{
    bool is_absolute = entry_length ? entry[0] == '/' : name[0] == '/';
    bool is_as_given = !directory && entry_length == 0 && strchr(name, '/');
    const char *base = is_absolute ? "" : directory ? directory : ".";

    if (is_as_given)
        return arena_text(arena, "%s", name);
    return arena_text(arena, "%s%s%.*s%s%s", base, is_absolute ? "" : "/", (int)entry_length,
                      entry_length ? entry : "", entry_length ? "/" : "", name);
}

static enum gavel_status no_memory(struct gavel_error *error)
{
    return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
}

static enum gavel_status denied(const char *path, const char *reason, struct gavel_error *error)
{
    return error_set(error, GAVEL_ERR_IO, "cannot execute %.200s: %s", path, reason);
}

/* A name with a slash is a path. */
static enum gavel_status find_path(struct arena *arena, const char *name, const char *directory,
                                   const char **ret_path, struct gavel_error *error)
{
    char *path = path_join(arena, directory, NULL, 0, name);
    const char *reason = "";

    if (!path)
        return no_memory(error);
    switch (look_at(path, &reason)) {
    case FOUND:
        *ret_path = path;
        return GAVEL_OK;
    case MISSING:
        return error_set(error, GAVEL_ERR_NOT_FOUND, "there is no program %.200s; check its path", path);
    default:
        return denied(path, reason, error);
    }
}

/*
 * Any other name is searched for; one that cannot be executed is told of only if there is no other. A
 * directory that we may not look into has nothing for us, as shells see it: PATH may be that of somebody
 * else.
 */
static enum gavel_status find_in(struct arena *arena, const char *name, const char *directory,
                                 const char *search, const char **ret_path, struct gavel_error *error)
{
    const char *denied_path = NULL, *denied_reason = "";

    for (const char *entry = search;; entry++) {
        size_t length = strcspn(entry, ":");
        char *path = path_join(arena, directory, entry, length, name);
        const char *reason = "";
        enum finding finding;

        if (!path)
            return no_memory(error);
        finding = look_at(path, &reason);
        if (finding == FOUND) {
            *ret_path = path;
            return GAVEL_OK;
        }
        if (finding == DENIED && !denied_path) {
            denied_path = path;
            denied_reason = reason;
        }
        entry += length;
        if (!*entry)
            break;
    }
    if (denied_path)
        return denied(denied_path, denied_reason, error);
    return error_set(
        error, GAVEL_ERR_NOT_FOUND,
        "there is no program \"%.100s\" in the directories of PATH (%.200s); give its whole path, or ./%.60s if it is in this directory",
        name, search, name);
}

/* A script whose interpreter is not there fails as if it was not there itself. */
static enum gavel_status check_interpreter(const char *path, const char *head, struct gavel_error *error)
{
    const char *begin = head + 2 + strspn(head + 2, " \t");
    size_t length = strcspn(begin, " \t\r\n");
    char interpreter[HEAD_BYTES + 1];

    if (!begin[length] || begin[0] != '/') /* cut off, or relative: exec will tell */
        return GAVEL_OK;
    memcpy(interpreter, begin, length);
    interpreter[length] = '\0';
    if (begin[length] == '\r')
        return error_set(error, GAVEL_ERR_NOT_FOUND,
                         "cannot execute %.200s: its lines end as on Windows; remove the carriage returns",
                         path);
    if (!access(interpreter, F_OK) || errno != ENOENT)
        return GAVEL_OK;
    return error_set(error, GAVEL_ERR_NOT_FOUND,
                     "cannot execute %.200s: its first line names %.100s, which does not exist", path,
                     interpreter);
}

/* What exec would refuse it for, as far as it can be seen from outside. */
static enum gavel_status look_inside(const char *path, struct gavel_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char head[HEAD_BYTES + 1] = "";
    ssize_t length;

    if (fd < 0) /* it may be one to execute and not to read */
        return GAVEL_OK;
    length = read(fd, head, HEAD_BYTES);
    close(fd);
    return length >= 2 && memcmp(head, "#!", 2) == 0 ? check_interpreter(path, head, error) : GAVEL_OK;
}

enum gavel_status program_find(struct arena *arena, char *const *argv, const char *directory,
                               const char *search, struct guard_command *ret_command,
                               struct gavel_error *error)
{
    const char *path = NULL;
    enum gavel_status status;

    if (!argv[0][0])
        return error_set(error, GAVEL_ERR_NOT_FOUND, "the name of the program is empty");
    if (strchr(argv[0], '/'))
        status = find_path(arena, argv[0], directory, &path, error);
    else
        status = find_in(arena, argv[0], directory, search ? search : USUAL_PATH, &path, error);
    if (status == GAVEL_OK)
        status = look_inside(path, error);
    if (status == GAVEL_OK)
        *ret_command = (struct guard_command){.path = path, .argv = argv};
    return status;
}
