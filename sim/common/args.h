/* SPDX-License-Identifier: Apache-2.0 */

/* The command line of a simulator. There is one command line in a process. */
#ifndef SIM_COMMON_ARGS_H
#define SIM_COMMON_ARGS_H

#include "sim/common/simulator.h"

/* What a command line asks for: exactly one. */
enum mode {
    MODE_SEED,
    MODE_SEEDS,
    MODE_SOAK,
    MODE_PLANTED_ALL,
    MODE_BENCH,
    MODE_MEASURE, /* the first of the simulator's own */
    MODE_NONE = MODE_MEASURE + MEASURES_MAX,
};

struct arguments {
    struct run_options options;
    unsigned mode;             /* MODE_NONE: what was asked for has been printed */
    uint64_t count;            /* of seeds */
    uint64_t limit;            /* of seeds per planted bug */
    uint64_t trials;           /* of a measure; 0: its own default */
    uint64_t jobs;             /* processes */
    uint64_t seconds;          /* as in the options */
    uint64_t sizes[SIZES_MAX]; /* likewise */
    bool traces;
    bool minimizes;
    bool wants_all_seen;
};

/*
 * argv[0] is the name of the program in messages. Wrong usage ends the process
 * with exit code 2 and a message.
 */
void args_parse(const struct simulator *simulator, int argc, char **argv, struct arguments *ret_arguments);

void args_usage(const struct simulator *simulator, FILE *stream);

/* A list such as "loss,delay" as a bit set; false if a word is not a fault. */
bool args_faults(const struct simulator *simulator, const char *list, uint64_t *ret_faults);

/* "gavel-sim raft --seed 4 --nodes 3 …": the command that repeats this run. */
void args_print(const struct simulator *simulator, const struct run_options *options);

#endif
