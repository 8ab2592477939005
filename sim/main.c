/* SPDX-License-Identifier: Apache-2.0 */

/* gavel-sim: chooses between the kinds of worlds; each has its own command line. */

#include "sim/candidate/command.h"
#include "sim/raft/command.h"
#include "sim/session/command.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    /* As which the command lines speak of themselves. */
    static char plain[] = "gavel-sim";
    static char raft[] = "gavel-sim raft";
    static char session[] = "gavel-sim session";
    static char candidate[] = "gavel-sim candidate";

    if (argc > 1 && strcmp(argv[1], "raft") == 0) {
        argv[1] = raft;
        return quorum_command(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "session") == 0) {
        argv[1] = session;
        return hall_command(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "candidate") == 0) {
        argv[1] = candidate;
        return candidate_command(argc - 1, argv + 1);
    }
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        (void)fputs(
            "gavel-sim simulates candidates of one group, with the word raft the nodes of a quorum, or with "
            "the word session the clients of one.\n\n",
            stdout);
        candidate_usage(stdout);
        (void)fputs("\n", stdout);
        quorum_usage(stdout);
        (void)fputs("\n", stdout);
        hall_usage(stdout);
        (void)fputs("\nexit: 0 nothing is broken, 1 something is, 2 wrong usage\n", stdout);
        return 0;
    }
    if (argc > 0)
        argv[0] = plain;
    return candidate_command(argc, argv);
}
