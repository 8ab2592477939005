/* SPDX-License-Identifier: Apache-2.0 */

#include "helper.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT (120 * NS_PER_S) /* beyond those of the helpers themselves, which say what is wrong */
#define HELPER_FD 3
#define LOCK_FD 4

/* In the child: only what the helper needs stays open. */
static void keep_open(int fd, int lock_fd)
{
    int high_fd = fcntl(fd, F_DUPFD_CLOEXEC, 10); /* beyond the numbers that it gets */
    int high_lock_fd = fcntl(lock_fd, F_DUPFD_CLOEXEC, 10);

    if (high_fd < 0 || high_lock_fd < 0 || dup3(high_fd, HELPER_FD, O_CLOEXEC) < 0 ||
        dup3(high_lock_fd, LOCK_FD, O_CLOEXEC) < 0 || close_range(LOCK_FD + 1, ~0U, 0))
        _exit(1);
}

void test_helper_start(struct test_helper *helper, int (*run)(const void *argument, int fd),
                       const void *argument, int lock_fd)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    helper->pid = fork();
    assert_true(helper->pid >= 0);
    if (helper->pid == 0) {
        keep_open(fds[1], lock_fd);
        _exit(run(argument, HELPER_FD));
    }
    (void)close(fds[1]);
    helper->fd = fds[0];
}

/* Reads one line. */
static void take_answer(struct test_helper *helper, const char *command, char *line, size_t size)
{
    gavel_ns limit = clock_now() + LIMIT;
    size_t length = 0;

    line[0] = '\0';
    while (!strchr(line, '\n')) {
        struct pollfd fd = {.fd = helper->fd, .events = POLLIN};
        ssize_t count;

        if (clock_now() >= limit)
            fail_msg("no answer to: %s", command);
        if (poll(&fd, 1, 1000) <= 0)
            continue;
        count = recv(helper->fd, line + length, size - 1 - length, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            fail_msg("there is nobody to answer to: %s", command);
        length += (size_t)count;
        line[length] = '\0';
    }
    *strchr(line, '\n') = '\0';
}

/* Reads the answer to a command. */
static void check_answer(struct test_helper *helper, const char *command, char *rest, size_t size)
{
    char line[256];

    take_answer(helper, command, line, sizeof line);
    if (strncmp(line, "good", 4) != 0)
        fail_msg("failed: %s", command);
    if (rest)
        (void)snprintf(rest, size, "%s", line + 4);
}

void test_helper_order(struct test_helper *helper, const char *command, char *rest, size_t size)
{
    char line[256];
    int length = snprintf(line, sizeof line, "%s\n", command);

    assert_true(length > 0 && length < (int)sizeof line);
    if (send(helper->fd, line, (size_t)length, MSG_NOSIGNAL) != length)
        fail_msg("there is nobody to do: %s", command);
    check_answer(helper, command, rest, size);
}

void test_helper_await(struct test_helper *helper) { check_answer(helper, "start", NULL, 0); }

void test_helper_stop(struct test_helper *helper)
{
    int status;

    if (helper->pid == 0)
        return;
    (void)close(helper->fd); /* enough, unless a forked child has it, too */
    (void)kill(helper->pid, SIGTERM);
    assert_int_equal(waitpid(helper->pid, &status, 0), helper->pid);
    *helper = (struct test_helper){0};
    assert_true((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
}
