/* SPDX-License-Identifier: Apache-2.0 */

/* The program behind `gavel bench`. */
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/program.h"

const struct command commands[] = {
    {"bench", "", 0, "measure how fast gavel is on this machine",
     "Measures the calls of the library, the store, hand-over and fail-over between real processes, with "
     "the library, with gavel run and with three gaveld.",
     0, bench_flags, command_bench},
    {0},
};

int main(int argc, char **argv) { return program_main(argc, argv); }
