/* SPDX-License-Identifier: Apache-2.0 */

/* The owner of servers (server_owner.h) as a program, for shell tests: server_owner DIRECTORY COMMAND…; it
 * ends with its input. */
#include "server_owner.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct server_owner server_owner = {.in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO};

    if (argc < 3) {
        (void)fprintf(stderr, "usage: server_owner DIRECTORY COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    server_owner.directory = argv[1];
    server_owner.command = (const char *const *)(argv + 2);
    return server_owner_run(&server_owner);
}
