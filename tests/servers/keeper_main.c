/* SPDX-License-Identifier: Apache-2.0 */

/* The keeper (keeper.h) as a program, for shell tests: keeper FOLDER COMMAND…; it ends with its input. */
#include "keeper.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct keeper keeper = {.in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO};

    if (argc < 3) {
        (void)fprintf(stderr, "usage: keeper FOLDER COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    keeper.folder = argv[1];
    keeper.command = (const char *const *)(argv + 2);
    return keeper_run(&keeper);
}
