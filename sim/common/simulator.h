/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What makes a simulator: a name, tables of what it can vary and counts, and a
 * function that runs one seed. Everything else is the same for all of them:
 * the command line (args, command), many seeds (seeds, pool), the report of a
 * failure (report) and the hunt for planted bugs (planted).
 */
#ifndef SIM_COMMON_SIMULATOR_H
#define SIM_COMMON_SIMULATOR_H

#include "base/time.h"
#include "sim/common/planted.h"
#include "sim/common/profile.h"
#include "sim/common/story.h"

#include <stdbool.h>
#include <stdint.h>

#define SIZES_MAX 2
#define COUNTS_MAX 6
#define SIGHTS_MAX 40
#define MEASURES_MAX 2

struct run_options {
    uint64_t seed;
    unsigned sizes[SIZES_MAX]; /* as simulator.sizes; 0: drawn from the seed */
    gavel_ns duration;         /* virtual time, at least */
    uint64_t without;          /* bit set of faults that do not happen */
    bool only_promises;        /* checks the promises, not the rules that keep them */
    struct trace *trace;       /* NULL: none */
};

struct run_result {
    const char *broken;   /* name of the invariant; NULL: none */
    const char *sentence; /* what the invariant says */
    char what[256];       /* what broke it */
    gavel_ns ended_at;    /* virtual time */
    uint64_t events;
    uint64_t hash;   /* equal hashes: equal runs */
    uint64_t faults; /* kinds that could happen */
    unsigned sizes[SIZES_MAX];
    uint64_t counts[COUNTS_MAX];
    uint64_t sights[SIGHTS_MAX];
};

/* Something that a run has a number of: --candidates, --nodes, --programs. */
struct simulator_size {
    const char *name; /* NULL: there is none */
    unsigned min, max;
    unsigned bench; /* with --bench; 0: drawn */
};

/* A mode of one simulator alone, which measures something. */
struct simulator_measure {
    const char *name; /* NULL: there is none */
    const char *what;
    /* Unless --trials says otherwise; 0: it knows no --trials, --from, --jobs or --planted. */
    unsigned trials;
    int (*run)(uint64_t trials, uint64_t first_seed, unsigned jobs); /* returns the exit code */
};

struct simulator {
    const char *name;
    const char *command; /* that starts it */
    const char *what;
    enum planted_kind planted;
    struct simulator_size sizes[SIZES_MAX];
    unsigned seconds;    /* virtual time of a run, unless --seconds says otherwise */
    unsigned limit;      /* seeds per planted bug, unless --limit says otherwise */
    bool tells_promises; /* knows --promises */
    unsigned fault_count;
    const struct named *(*fault)(unsigned fault);
    const char *counts[COUNTS_MAX]; /* each a plural; NULL after the last */
    unsigned sight_count;           /* what must have happened for a clean run to mean something */
    const char *(*sight)(unsigned sight);
    struct simulator_measure measures[MEASURES_MAX];
    /* Memory that the runs of one process share. */
    void *(*begin)(void);
    void (*end)(void *memory);
    void (*run)(void *memory, const struct run_options *options, struct run_result *ret_result);
};

/*
 * Does what the command line asks for. argv[0] is the name of the program in
 * messages. Returns the exit code: 0 nothing is broken, 1 something is, 2 wrong
 * usage.
 */
int command_run(const struct simulator *simulator, int argc, char **argv);

#endif
