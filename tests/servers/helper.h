/* SPDX-License-Identifier: Apache-2.0 */

/* A process beside the test that takes commands, one per line, and answers each with "good …" or "bad …". */
#ifndef TESTS_SERVERS_HELPER_H
#define TESTS_SERVERS_HELPER_H

#include <stddef.h>
#include <sys/types.h>

struct test_helper {
    pid_t pid; /* 0: none */
    int fd;
};

/*
 * Starts one: calls run(argument, fd) in a child that has only two open
 * descriptors: fd, for both directions, and lock_fd, so that its lock holds as
 * long as the child lives. Its return value is the exit code.
 */
void test_helper_start(struct test_helper *helper, int (*run)(const void *argument, int fd),
                       const void *argument, int lock_fd);

/* Sends a command (without its line end) and waits for "good"; fails the test otherwise. The rest of the
 * answer is put into `rest` (may be NULL). */
void test_helper_order(struct test_helper *helper, const char *command, char *rest, size_t size);

/* Waits for the "good" of one that says so by itself when it is ready. */
void test_helper_await(struct test_helper *helper);

/* Ends it, and fails the test unless it says that all went well. Safe on a zeroed struct. */
void test_helper_stop(struct test_helper *helper);

#endif
