/* SPDX-License-Identifier: Apache-2.0 */

/* The program behind `gavel demo`. */
#include "bench/demo/demo.h"
#include "cli/cli.h"
#include "cli/program.h"

/* clang-format off */
const struct command commands[] = {
    {.name = "demo", .arguments = "",
     .summary = "watch three gavel run through hand-over, SIGKILL and SIGSTOP",
     .help = "Runs three gavel run on a SQLite store: hands over, kills the elector, the guard and the command of leaders, freezes one, prints whose command ran when, and says whether two ever ran at once. "
             "Fails if they did.",
     .flags = demo_flags, .run = command_demo},
    {0},
};
/* clang-format on */

int main(int argc, char **argv) { return program_main(argc, argv); }
