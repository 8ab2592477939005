/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process beside a test that starts its servers, and ends them with it. It is
 * a subreaper: every process it started, however deep, becomes its own child
 * when the parent ends, so none can escape.
 *
 * It takes commands, one per line, and answers each with "good" or "bad":
 *
 *     up                     runs the command that starts the servers, and waits for its end
 *     signal NAME SIGNAL     KILL, TERM, STOP or CONT to the process in DIRECTORY/NAME.pid;
 *                            one that is to die is gone before the answer
 *
 * When its input ends or its parent dies, it kills all, removes the directory and
 * ends. What commands have to say goes to standard error.
 */
#ifndef TESTS_SERVERS_SERVER_OWNER_H
#define TESTS_SERVERS_SERVER_OWNER_H

struct server_owner {
    const char *directory;      /* removed at the end */
    const char *const *command; /* ends with NULL */
    int in_fd;
    int out_fd;
};

/* To be called in a child of the test, which ends with the exit code that this returns. */
int server_owner_run(const struct server_owner *server_owner);

#endif
