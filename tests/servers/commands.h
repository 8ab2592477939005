/* SPDX-License-Identifier: Apache-2.0 */

/* Commands that a helper process is given through a pipe, one a line. */
#ifndef TESTS_SERVERS_COMMANDS_H
#define TESTS_SERVERS_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

struct commands {
    char line[200]; /* what has come of the next one */
    size_t length;
};

/* Carries out one command; the line may be changed. */
typedef void (*command_cb)(void *user, char *line);

/* Reads once, and hands over each whole line. False: who gives the commands is gone, or talks nonsense. */
bool commands_read(struct commands *commands, int fd, command_cb obey, void *user);

#endif
