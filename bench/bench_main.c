/* SPDX-License-Identifier: Apache-2.0 */

/* The program behind `gavel bench`. */
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/program.h"

/* clang-format off */
const struct command commands[] = {
    {.name = "bench", .arguments = "",
     .summary = "measure how fast gavel is on this machine",
     .help = "Measures the calls of the library, the store, hand-over and fail-over between real processes, with the library, with gavel run and with three gaveld.",
     .flags = bench_flags, .run = command_bench},
    {0},
};
/* clang-format on */

int main(int argc, char **argv) { return program_main(argc, argv); }
