/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/proc.h"

#include "os/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* So many a guard needs at most, and some more. */
#define DESCRIPTORS 256

uint64_t proc_now_ticks(void) { return (uint64_t)(clock_now() / (NS_PER_S / sysconf(_SC_CLK_TCK))); }

bool proc_raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false;
    if (limit.rlim_cur >= limit.rlim_max && limit.rlim_max < DESCRIPTORS)
        limit.rlim_max = DESCRIPTORS; /* for the privileged only */
    if (limit.rlim_cur >= limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Closes one of the spare descriptors if the lack of one is what went wrong, so that it can be tried
 * again. */
static bool give_up_spare(struct tree *tree)
{
    if (errno != EMFILE && errno != ENFILE)
        return false;
    if (errno == EMFILE && proc_raise_limit())
        return true;
    for (size_t i = 0; i < TREE_SPARE_FDS; i++) {
        if (tree->spare_fds[i] < 0)
            continue;
        (void)close(tree->spare_fds[i]); /* it holds nothing */
        tree->spare_fds[i] = -1;
        return true;
    }
    return false;
}

void proc_refill_spares(struct tree *tree)
{
    for (size_t i = 0; i < TREE_SPARE_FDS; i++)
        if (tree->spare_fds[i] < 0)
            tree->spare_fds[i] = fcntl(tree->proc_fd, F_DUPFD_CLOEXEC, 0);
}

static char *put_text(char *at, const char *text)
{
    size_t length = strlen(text);

    memcpy(at, text, length);
    return at + length;
}

static char *put_number(char *at, pid_t number)
{
    char digits[16];
    size_t length = 0;

    do {
        digits[length++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (length > 0)
        *at++ = digits[--length];
    return at;
}

void proc_path(char path[PROC_PATH_MAX], pid_t pid, const char *middle, pid_t thread, const char *last)
{
    char *at = put_text(put_number(path, pid), middle);

    if (thread > 0)
        at = put_text(put_number(at, thread), last);
    *at = '\0';
}

int proc_open(struct tree *tree, const char *path, int flags)
{
    int fd;

    do
        fd = openat(tree->proc_fd, path, flags | O_RDONLY | O_CLOEXEC);
    while (fd < 0 && give_up_spare(tree));
    return fd;
}

int proc_open_pidfd(struct tree *tree, pid_t pid)
{
    int fd;

    do
        fd = (int)syscall(SYS_pidfd_open, pid, 0);
    while (fd < 0 && give_up_spare(tree));
    return fd;
}

bool proc_signal(int pidfd, int signal_number)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0) == 0 || errno == EPERM;
}

static const char *skip_fields(const char *at, int count)
{
    while (count > 0 && *at) {
        if (*at == ' ')
            count--;
        at++;
    }
    return at;
}

static uint64_t read_number(const char *at)
{
    uint64_t number = 0;

    while (*at >= '0' && *at <= '9')
        number = number * 10 + (uint64_t)(*at++ - '0');
    return number;
}

/* Fields 3, 4, 5, 6, 20, 22 and 24. The name in field 2 may hold anything, so they are counted from the last
 * bracket. */
static bool parse_stat(const char *text, struct proc_stat *ret_stat)
{
    const char *at = strrchr(text, ')');
    struct proc_stat stat;

    if (!at || at[1] != ' ' || !at[2])
        return false;
    at += 2;
    stat.state = *at;
    at = skip_fields(at, 1);
    stat.parent = (pid_t)read_number(at);
    at = skip_fields(at, 1);
    stat.group = (pid_t)read_number(at);
    at = skip_fields(at, 1);
    stat.session = (pid_t)read_number(at);
    at = skip_fields(at, 14);
    stat.threads = (long)read_number(at);
    at = skip_fields(at, 2);
    if (!*at)
        return false;
    stat.start_ticks = read_number(at);
    stat.pages = read_number(skip_fields(at, 2));
    *ret_stat = stat;
    return true;
}

bool proc_read_stat(struct tree *tree, pid_t pid, struct proc_stat *ret_stat)
{
    char path[PROC_PATH_MAX];
    char text[1024]; /* what we need comes early, and the kernel gives a file of this kind in one piece */
    ssize_t size;
    int problem;
    int fd;

    proc_path(path, pid, "/stat", 0, "");
    fd = proc_open(tree, path, 0);
    if (fd < 0)
        return false;
    size = read(fd, text, sizeof text - 1);
    problem = errno;
    (void)close(fd); /* only read from */
    if (size <= 0) {
        errno = size < 0 ? problem : ESRCH;
        return false;
    }
    text[size] = '\0';
    if (parse_stat(text, ret_stat))
        return true;
    errno = EIO;
    return false;
}

bool proc_list(struct tree *tree, const char *path, proc_entry_cb *cb, void *user)
{
    _Alignas(struct dirent64) char buffer[4096];
    ssize_t size;
    int fd = proc_open(tree, path, O_DIRECTORY);

    if (fd < 0)
        return false;
    while ((size = getdents64(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const struct dirent64 *)(buffer + at);

            if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
                cb(user, (pid_t)read_number(entry->d_name));
            at += entry->d_reclen;
        }
    }
    (void)close(fd); /* only read from */
    return size == 0;
}
