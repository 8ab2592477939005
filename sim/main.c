/* SPDX-License-Identifier: Apache-2.0 */

/* gavel-sim: chooses the simulator by its first word. */

#include "sim/candidate/simulator.h"
#include "sim/common/args.h"
#include "sim/raft/simulator.h"
#include "sim/session/simulator.h"

#include <string.h>

int main(int argc, char **argv)
{
    static const struct {
        const struct simulator *simulator;
        char program[32]; /* as which it speaks of itself */
    } rows[] = {
        {&candidate_simulator, "gavel-sim candidate"},
        {&raft_simulator, "gavel-sim raft"},
        {&session_simulator, "gavel-sim session"},
    };
    char program[32] = "gavel-sim";

    for (size_t i = 0; i < sizeof rows / sizeof *rows && argc > 1; i++) {
        if (strcmp(argv[1], rows[i].simulator->name) != 0)
            continue;
        memcpy(program, rows[i].program, sizeof program);
        argv[1] = program;
        return command_run(rows[i].simulator, argc - 1, argv + 1);
    }
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            args_usage(rows[i].simulator, stdout);
            (void)fputs(i + 1 < sizeof rows / sizeof *rows ? "\n" : "", stdout);
        }
        return 0;
    }
    if (argc > 0)
        argv[0] = program;
    return command_run(&candidate_simulator, argc, argv);
}
