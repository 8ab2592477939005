/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/cgroup.h"

#include "base/error.h"
#include "guard/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The whole text of a file of /proc, to be freed; NULL with errno. */
static char *read_text(const char *path)
{
    size_t size = 0;
    char *text = NULL;
    FILE *file = fopen(path, "re");

    if (!file)
        return NULL;
    if (getdelim(&text, &size, '\0', file) < 0) { /* there is no zero byte in it, so this is all */
        free(text);
        text = NULL;
    }
    (void)fclose(file); /* only read from */
    return text;
}

/* The kernel writes spaces and the like in names as \040. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* "0::/path" of /proc/self/cgroup. */
static bool find_own_path(const char *cgroups, char *ret_path, size_t size)
{
    for (const char *line = cgroups; line && *line;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        size_t length;

        if (strncmp(line, "0::/", 4) != 0)
            continue;
        length = strcspn(line + 3, "\n");
        if (length >= size || strncmp(line + 3, "/..", 3) == 0) /* outside of what we can see */
            return false;
        memcpy(ret_path, line + 3, length);
        ret_path[length] = '\0';
        return true;
    }
    return false;
}

/* What is left of `path` below the root of a mount; NULL if it is not below. */
static const char *below_root(const char *path, const char *root)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return strcmp(path + length, "/") == 0 ? "" : path + length;
}

/* One line of mountinfo: 36 35 0:30 /top /where options … - type source options */
static bool read_mount(char *line, const char *path, char *ret_directory, size_t size)
{
    const char *type = strstr(line, " - cgroup2 ");
    const char *below;
    char *fields[5];
    char *rest = line;

    if (!type)
        return false;
    for (size_t i = 0; i < 5; i++) {
        fields[i] = strsep(&rest, " ");
        if (!fields[i])
            return false;
    }
    unescape(fields[3]);
    unescape(fields[4]);
    below = below_root(path, fields[3]);
    return below && (size_t)snprintf(ret_directory, size, "%s%s", fields[4], below) < size;
}

bool cgroup_find(const char *cgroups, const char *mounts, char *ret_directory, size_t size)
{
    char path[512];
    bool is_found = false;
    char *copy = strdup(mounts);
    char *rest = copy;
    char *line;

    if (!copy || !find_own_path(cgroups, path, sizeof path)) {
        free(copy);
        return false;
    }
    while (!is_found && (line = strsep(&rest, "\n")) != NULL)
        is_found = read_mount(line, path, ret_directory, size);
    free(copy);
    return is_found;
}

static bool has_mark(const char *directory, const char *name)
{
    char value[8];
    ssize_t size = getxattr(directory, name, value, sizeof value);

    return size >= 1 && value[0] == '1';
}

/* Root can write everywhere, so for it only the mark says that nobody else looks after this directory. */
static bool is_delegated(const char *directory)
{
    char procs[600];

    if (has_mark(directory, "user.delegate") || has_mark(directory, "trusted.delegate"))
        return true;
    if (geteuid() == 0)
        return false;
    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", directory); /* directories are shorter */
    return access(directory, W_OK | X_OK) == 0 && access(procs, W_OK) == 0;
}

#define NEXT_STEP "put Delegate=yes into the systemd unit, or use --contain=walk"

static enum gavel_status find_directory(bool forced, char *ret_directory, size_t size,
                                        struct gavel_error *error)
{
    char *cgroups = read_text("/proc/self/cgroup");
    char *mounts = read_text("/proc/self/mountinfo");
    enum gavel_status status = GAVEL_OK;

    if (!cgroups || !mounts || !cgroup_find(cgroups, mounts, ret_directory, size))
        status =
            error_set(error, GAVEL_ERR_STATE, "this system shows no cgroup v2 for gavel; use --contain=walk");
    else if (!forced && !is_delegated(ret_directory))
        status = error_set(error, GAVEL_ERR_STATE, "the cgroup %s is not delegated to gavel; " NEXT_STEP,
                           ret_directory);
    free(cgroups);
    free(mounts);
    return status;
}

static enum gavel_status make_directory(struct tree *tree, const char *parent, struct gavel_error *error)
{
    struct proc_stat self;

    if (!proc_read_stat(tree, getpid(), &self))
        return error_set(error, GAVEL_ERR_IO, "cannot read /proc/self/stat: %s; is /proc mounted?",
                         strerror(errno));
    if ((size_t)snprintf(tree->cgroup, sizeof tree->cgroup, "%s/gavel-%d-%llu", parent, (int)getpid(),
                         (unsigned long long)self.start_ticks) >= sizeof tree->cgroup) {
        tree->cgroup[0] = '\0';
        return error_set(error, GAVEL_ERR_STATE, "the name of the cgroup %s is too long; use --contain=walk",
                         parent);
    }
    if (mkdir(tree->cgroup, 0755) < 0 && errno != EEXIST) { /* the start time makes an older one ours */
        enum gavel_status status =
            error_set(error, GAVEL_ERR_STATE, "cannot create the cgroup %s: %s; " NEXT_STEP, tree->cgroup,
                      strerror(errno));

        tree->cgroup[0] = '\0';
        return status;
    }
    return GAVEL_OK;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing is buffered in it */
    *fd = -1;
}

static void close_files(struct tree *tree)
{
    close_fd(&tree->procs_fd);
    close_fd(&tree->kill_fd);
    close_fd(&tree->events_fd);
    close_fd(&tree->cgroup_fd);
}

/* False with errno. */
static bool open_files(struct tree *tree)
{
    tree->cgroup_fd = open(tree->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree->cgroup_fd < 0)
        return false;
    tree->procs_fd = openat(tree->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    tree->events_fd = openat(tree->cgroup_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    tree->kill_fd = openat(tree->cgroup_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    return tree->procs_fd >= 0 && tree->events_fd >= 0 && tree->kill_fd >= 0;
}

pid_t cgroup_fork(const struct tree *tree)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};

    args.cgroup = (uint64_t)tree->cgroup_fd;
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* Tried once: a filter may forbid clone3(2), and a kernel may kill what is born in there (see
 * cgroup_renew()). */
static bool can_clone(const struct tree *tree)
{
    int status = -1;
    pid_t pid = cgroup_fork(tree);

    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

enum gavel_status cgroup_open(struct tree *tree, bool forced, struct gavel_error *error)
{
    char parent[sizeof tree->cgroup];
    enum gavel_status status = find_directory(forced, parent, sizeof parent, error);

    if (status == GAVEL_OK)
        status = make_directory(tree, parent, error);
    if (status != GAVEL_OK)
        return status;
    if (!open_files(tree)) {
        status = error_set(error, GAVEL_ERR_STATE,
                           "cannot use the cgroup %s: %s; it needs Linux 5.14, else use --contain=walk",
                           tree->cgroup, strerror(errno));
        cgroup_close(tree);
        return status;
    }
    tree->has_cgroup = true;
    tree->can_clone = can_clone(tree);
    return GAVEL_OK;
}

void cgroup_kill(struct tree *tree)
{
    if (tree->has_cgroup && write(tree->kill_fd, "1", 1) == 1)
        tree->is_spent = true;
}

bool cgroup_renew(struct tree *tree)
{
    if (!tree->is_spent)
        return true;
    if (rmdir(tree->cgroup) < 0 && errno != ENOENT)
        return false; /* somebody is in it */
    close_files(tree);
    if (mkdir(tree->cgroup, 0755) < 0 || !open_files(tree)) {
        close_files(tree); /* nobody can enter it now, and the next attempt begins here again */
        return false;
    }
    tree->is_spent = false;
    return true;
}

void cgroup_close(struct tree *tree)
{
    close_files(tree);
    if (tree->cgroup[0])
        (void)rmdir(tree->cgroup); /* it stays while somebody is in it, and may be removed already */
    tree->cgroup[0] = '\0';
    tree->has_cgroup = false;
}

bool cgroup_is_populated(const struct tree *tree)
{
    char text[256];
    ssize_t size;

    if (!tree->has_cgroup)
        return false;
    size = pread(tree->events_fd, text, sizeof text - 1, 0);
    if (size <= 0)
        return false; /* the directory was removed, which only an empty one can be */
    text[size] = '\0';
    return strstr(text, "populated 1") != NULL;
}
