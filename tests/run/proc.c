/* SPDX-License-Identifier: Apache-2.0 */

#include "proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The beginning of a small file of /proc, as a string; false if there is none. */
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0)
        return false;
    length = read(fd, text, size - 1);
    (void)close(fd); /* only read from */
    if (length < 0)
        return false;
    text[length] = '\0';
    return true;
}

char proc_state(pid_t pid, pid_t *ret_parent)
{
    char path[64], text[1024], state;
    const char *rest;
    int parent;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!read_text(path, text, sizeof text))
        return 0;
    rest = strrchr(text, ')'); /* the name before it may have anything in it */
    if (!rest || sscanf(rest + 1, " %c %d", &state, &parent) != 2)
        return 0;
    if (ret_parent)
        *ret_parent = parent;
    return state;
}

static size_t children_of_thread(const char *path, pid_t *pids, size_t room)
{
    char text[65536];
    char *rest = text, *end;
    size_t count = 0;

    if (!read_text(path, text, sizeof text))
        return 0;
    for (;;) {
        long pid = strtol(rest, &end, 10);

        if (end == rest || count == room)
            return count;
        pids[count++] = (pid_t)pid;
        rest = end;
    }
}

size_t proc_children(pid_t pid, pid_t *pids, size_t room)
{
    char path[320];
    const struct dirent *entry;
    DIR *directory;
    size_t count = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    directory = opendir(path);
    if (!directory)
        return 0;
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, entry->d_name);
        count += children_of_thread(path, pids + count, room - count);
    }
    (void)closedir(directory); /* only read from */
    return count;
}

int proc_open(pid_t pid, pid_t parent)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    pid_t found = 0;

    if (pidfd < 0)
        return -1;
    if (proc_state(pid, &found) && found == parent)
        return pidfd;
    (void)close(pidfd); /* a handle has nothing to lose */
    return -1;
}

bool proc_signal(int pidfd, int signal_number)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0) == 0;
}
