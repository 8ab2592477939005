/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/command.h"

void quorum_usage(FILE *stream) { (void)fputs("usage: gavel-sim raft --seed N\n", stream); }

int quorum_command(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    quorum_usage(stderr);
    return 2;
}
