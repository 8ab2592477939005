/* SPDX-License-Identifier: Apache-2.0 */

/* The program behind `gavel demo`. */
#include "bench/demo/demo.h"
#include "cli/cli.h"
#include "cli/program.h"

const struct command commands[] = {
    {"demo", "", 0, "watch three gavel run through hand-over, SIGKILL and SIGSTOP",
     "Runs three gavel run on a SQLite store: hands over, kills the elector, the guard and the command of "
     "leaders, freezes one, prints whose command ran when, and says whether two ever ran at once. Fails if "
     "they did.",
     0, demo_flags, command_demo},
    {0},
};

int main(int argc, char **argv) { return program_main(argc, argv); }
