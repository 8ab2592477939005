/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The identity of a process, and proof that it is dead.
 *
 *   another boot id, both in the first pid namespace      dead: it ran on an earlier boot
 *   another boot id or pid namespace otherwise            unseen
 *   no process of that pid                                dead
 *   a pidfd of that pid is readable                       dead: exited, perhaps a zombie
 *   /proc/<pid>/stat has another start time               dead: the pid was reused
 *   else                                                  alive
 *
 * A boot id alone proves nothing in a container: systemd-nspawn shows each
 * container one of its own, while the machine never rebooted. Programs in the
 * first pid namespace see the true one.
 */
#include "os/process.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reads a small file of /proc as a string; false with errno set if it cannot. */
static bool read_small(const char *path, char *buffer, size_t size)
{
    size_t used = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    while (used < size - 1) {
        ssize_t got = read(fd, buffer + used, size - 1 - used);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int saved = errno;

            (void)close(fd); /* only read from */
            errno = saved;
            return false;
        }
        if (got == 0)
            break;
        used += (size_t)got;
    }
    (void)close(fd); /* only read from */
    buffer[used] = '\0';
    return true;
}

/* What we read of a stat file. */
struct proc_stat {
    char state;
    long threads; /* the first one counts even if it has ended before the others */
    uint64_t start_ticks;
};

/* The name in field 2 may hold spaces and brackets, so fields are counted from the last bracket. */
static bool read_stat(const char *path, struct proc_stat *ret_stat)
{
    char text[1024];
    const char *at;
    unsigned long long ticks;

    if (!read_small(path, text, sizeof text))
        return false;
    at = strrchr(text, ')');
    /* Fields 3, 20 and 22. */
    if (!at ||
        sscanf(at + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %llu",
               &ret_stat->state, &ret_stat->threads, &ticks) != 3) {
        errno = EIO;
        return false;
    }
    ret_stat->start_ticks = ticks;
    return true;
}

/* Whether /proc numbers processes as getpid() does; it may be mounted for another pid namespace. */
static bool proc_is_ours(void)
{
    char target[32];
    ssize_t length = readlink("/proc/self", target, sizeof target - 1);

    if (length < 0)
        return false;
    target[length] = '\0';
    return strtol(target, NULL, 10) == (long)getpid();
}

enum gavel_status process_self(struct process_id *ret_id)
{
    struct process_id id = {0};
    struct stat namespace;
    struct proc_stat own;
    char boot[sizeof id.boot_id + 1];

    if (!read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot))
        return GAVEL_ERR_IO;
    boot[strcspn(boot, "\n")] = '\0';
    if (strlen(boot) >= sizeof id.boot_id)
        return GAVEL_ERR_IO;
    memcpy(id.boot_id, boot, strlen(boot) + 1);
    if (stat("/proc/self/ns/pid", &namespace) < 0)
        return GAVEL_ERR_IO;
    id.pid_ns = (uint64_t) namespace.st_ino;
    if (!read_stat("/proc/self/stat", &own))
        return GAVEL_ERR_IO;
    id.start_ticks = own.start_ticks;
    /* Where others could not check what we say we had better not say it: then the lease decides. */
    id.pid = proc_is_ours() && clock_is_shared() ? (int32_t)getpid() : 0;
    *ret_id = id;
    return GAVEL_OK;
}

static bool is_readable(int fd)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};

    return poll(&item, 1, 0) > 0 && (item.revents & POLLIN);
}

static bool read_stat_of(int32_t pid, struct proc_stat *ret_stat)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid); /* always fits */
    return read_stat(path, ret_stat);
}

/*
 * Without a pidfd (a seccomp filter, an old kernel, no descriptors left, or
 * the pid is that of a thread by now) there is only /proc. A zombie is dead
 * if it is not just the first of several threads that has ended.
 */
static enum process_fate look_without_pidfd(const struct process_id *id, bool wants_pidfd)
{
    struct proc_stat stat;

    if (kill(id->pid, 0) < 0 && errno == ESRCH)
        return PROCESS_DEAD;
    if (!read_stat_of(id->pid, &stat))
        return PROCESS_UNSEEN;
    if (stat.start_ticks != id->start_ticks || (stat.state == 'Z' && stat.threads <= 1))
        return PROCESS_DEAD;
    return wants_pidfd ? PROCESS_UNSEEN : PROCESS_ALIVE;
}

enum process_fate process_look(const struct process_id *id, const struct process_id *self, int *ret_pidfd)
{
    enum process_fate fate;
    struct proc_stat stat;
    bool is_known;
    int fd;

    if (id->pid <= 0 || self->pid <= 0)
        return PROCESS_UNSEEN;
    if (strncmp(id->boot_id, self->boot_id, sizeof id->boot_id) != 0)
        return process_has_true_boot_id(id) && process_has_true_boot_id(self) ? PROCESS_DEAD : PROCESS_UNSEEN;
    if (id->pid_ns != self->pid_ns)
        return PROCESS_UNSEEN;

    fd = (int)syscall(SYS_pidfd_open, id->pid, 0);
    if (fd < 0)
        return errno == ESRCH ? PROCESS_DEAD : look_without_pidfd(id, ret_pidfd != NULL);
    /*
     * The order matters: if the process of the pidfd still lives after /proc
     * was read, then /proc told of that very process. If it does not, then
     * whoever had this pid at or before that is gone.
     */
    is_known = read_stat_of(id->pid, &stat);
    if ((is_known && stat.start_ticks != id->start_ticks) || is_readable(fd))
        fate = PROCESS_DEAD;
    else
        fate = is_known ? PROCESS_ALIVE : PROCESS_UNSEEN; /* /proc may hide the processes of other users */
    if (fate == PROCESS_ALIVE && ret_pidfd)
        *ret_pidfd = fd;
    else
        (void)close(fd); /* a pidfd holds nothing that could be lost */
    return fate;
}

bool process_look_at(pid_t pid, struct process_glance *ret_glance)
{
    struct process_glance glance = {0};
    char path[64];
    char text[1024];
    const char *name;
    const char *end;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid); /* always fits */
    if (!proc_is_ours() || !read_small(path, text, sizeof text))
        return false;
    name = strchr(text, '(');
    end = strrchr(text, ')'); /* the name may hold brackets itself */
    if (!name || !end || end < name || end[1] != ' ')
        return false;
    name++;
    for (size_t i = 0; name + i < end && i < sizeof glance.name - 1; i++) {
        glance.name[i] = name[i];
        if (name[i] < ' ' || name[i] > '~')
            glance.name[i] = '?';
    }
    glance.is_stopped = end[2] == 'T' || end[2] == 't';
    *ret_glance = glance;
    return true;
}
