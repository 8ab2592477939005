/* SPDX-License-Identifier: Apache-2.0 */

/* gavel-sim: the command line of the simulator. */

#include "base/assert.h"
#include "sim/planted.h"
#include "sim/report.h"
#include "sim/run.h"
#include "sim/seeds.h"
#include "sim/world.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: gavel-sim --seed N [--trace | --minimize]        one run\n"
    "       gavel-sim --seeds COUNT [--from N] [--jobs J]    many runs; fails if one does\n"
    "       gavel-sim --planted-all [--limit COUNT]          fails if a planted bug is not caught\n"
    "       gavel-sim --bench                                runs per second, 5 candidates, 60 virtual "
    "seconds\n"
    "       gavel-sim --list-planted | --list-faults\n"
    "\n"
    "  --planted NAME      switch a planted bug on\n"
    "  --without A,B,…     switch kinds of faults off\n"
    "  --candidates N      2 to 9; drawn from the seed otherwise\n"
    "  --seconds N         virtual time of a run, at least (60); --minutes N likewise\n"
    "\n"
    "exit: 0 nothing is broken, 1 something is, 2 wrong usage\n";

enum command { COMMAND_NONE, COMMAND_SEED, COMMAND_SEEDS, COMMAND_PLANTED, COMMAND_BENCH, COMMAND_DONE };

struct arguments {
    enum command command;
    struct run_options options;
    uint64_t count;
    uint64_t limit;
    unsigned jobs;
    bool traces;
    bool minimizes;
};

enum {
    OPT_SEED,
    OPT_TRACE,
    OPT_MINIMIZE,
    OPT_SEEDS,
    OPT_FROM,
    OPT_JOBS,
    OPT_PLANTED,
    OPT_PLANTED_ALL,
    OPT_LIMIT,
    OPT_LIST_PLANTED,
    OPT_LIST_FAULTS,
    OPT_WITHOUT,
    OPT_CANDIDATES,
    OPT_SECONDS,
    OPT_MINUTES,
    OPT_BENCH,
    OPT_HELP
};

static const struct option options[] = {
    {"seed", required_argument, NULL, OPT_SEED},
    {"trace", no_argument, NULL, OPT_TRACE},
    {"minimize", no_argument, NULL, OPT_MINIMIZE},
    {"seeds", required_argument, NULL, OPT_SEEDS},
    {"from", required_argument, NULL, OPT_FROM},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"planted", required_argument, NULL, OPT_PLANTED},
    {"planted-all", no_argument, NULL, OPT_PLANTED_ALL},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"list-planted", no_argument, NULL, OPT_LIST_PLANTED},
    {"list-faults", no_argument, NULL, OPT_LIST_FAULTS},
    {"without", required_argument, NULL, OPT_WITHOUT},
    {"candidates", required_argument, NULL, OPT_CANDIDATES},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"minutes", required_argument, NULL, OPT_MINUTES},
    {"bench", no_argument, NULL, OPT_BENCH},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

_Noreturn static void refuse(const char *what, const char *value)
{
    (void)fprintf(stderr, "gavel-sim: %s \"%s\"; see gavel-sim --help\n", what, value);
    exit(2);
}

static uint64_t number(const char *text, uint64_t low, uint64_t high)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < low || value > high)
        refuse("not a number that fits here:", text);
    return value;
}

static void list_faults(void)
{
    for (unsigned i = 0; i < FAULT_COUNT; i++)
        (void)printf("%-10s %s\n", fault_name((enum fault)i), fault_what((enum fault)i));
}

static void take_option(struct arguments *a, int option)
{
    switch (option) {
    case OPT_SEED:
        a->command = COMMAND_SEED;
        a->options.seed = number(optarg, 0, UINT64_MAX);
        break;
    case OPT_SEEDS:
        a->command = COMMAND_SEEDS;
        a->count = number(optarg, 1, UINT32_MAX);
        break;
    case OPT_FROM:
        a->options.seed = number(optarg, 1, UINT64_MAX);
        break;
    case OPT_JOBS:
        a->jobs = (unsigned)number(optarg, 1, 64);
        break;
    case OPT_TRACE:
        a->traces = true;
        break;
    case OPT_MINIMIZE:
        a->minimizes = true;
        break;
    case OPT_PLANTED:
        if (!planted_find(optarg, &planted_bug))
            refuse("no planted bug is called", optarg);
        break;
    case OPT_PLANTED_ALL:
        a->command = COMMAND_PLANTED;
        break;
    case OPT_LIMIT:
        a->limit = number(optarg, 1, UINT32_MAX);
        break;
    case OPT_WITHOUT:
        if (!faults_parse(optarg, &a->options.without))
            refuse("not all of these are faults:", optarg);
        break;
    case OPT_CANDIDATES:
        a->options.candidates = (unsigned)number(optarg, CANDIDATES_MIN, CANDIDATES_MAX);
        break;
    case OPT_SECONDS:
        a->options.duration = (gavel_ns)number(optarg, 1, 86400) * NS_PER_S;
        break;
    case OPT_MINUTES:
        a->options.duration = (gavel_ns)number(optarg, 1, 1440) * 60 * NS_PER_S;
        break;
    case OPT_BENCH:
        a->command = COMMAND_BENCH;
        break;
    default:
        refuse("cannot make sense of", "the arguments");
    }
}

static void parse(struct arguments *a, int argc, char **argv)
{
    for (;;) {
        int option = getopt_long(argc, argv, "", options, NULL);

        if (option < 0)
            break;
        if (option == '?')
            exit(2); /* getopt has said why */
        if (option == OPT_HELP || option == OPT_LIST_PLANTED || option == OPT_LIST_FAULTS) {
            a->command = COMMAND_DONE;
            if (option == OPT_HELP)
                (void)fputs(usage, stdout);
            else if (option == OPT_LIST_PLANTED)
                planted_list();
            else
                list_faults();
            return;
        }
        take_option(a, option);
    }
    if (optind < argc)
        refuse("cannot make sense of", argv[optind]);
    if (a->command == COMMAND_NONE) {
        (void)fputs(usage, stderr);
        exit(2);
    }
}

static int run_one(struct arguments *a, struct world *world)
{
    struct trace trace = {.stream = stdout};
    struct run_result result;

    if (a->minimizes) {
        if (!report_minimize(world, &a->options)) {
            (void)printf("seed %" PRIu64 " breaks nothing\n", a->options.seed);
            return 0;
        }
        report_failure(world, &a->options);
        return 1;
    }
    if (a->traces)
        a->options.trace = &trace;
    run(world, &a->options, &result);
    a->options.trace = NULL;
    if (result.broken != INVARIANT_NONE) {
        report_failure(world, &a->options);
        return 1;
    }
    (void)printf("seed %" PRIu64 ": nothing is broken; %u candidates, %.1f s of virtual time, %" PRIu64
                 " events, %" PRIu64 " mandates, hash %016" PRIx64 "\n",
                 a->options.seed, result.candidates, (double)result.ended_at / (double)NS_PER_S,
                 result.events, result.grants, result.hash);
    return 0;
}

int main(int argc, char **argv)
{
    struct arguments a = {.options = {.seed = 1, .duration = DURATION_DEFAULT}, .limit = 2000, .jobs = 1};
    struct world *world;
    int code = 0;

    parse(&a, argc, argv);
    world = calloc(1, sizeof *world);
    ASSERT(world);
    switch (a.command) {
    case COMMAND_SEED:
        code = run_one(&a, world);
        break;
    case COMMAND_SEEDS:
        code = seeds_run(&a.options, a.count, a.jobs) > 0;
        break;
    case COMMAND_PLANTED:
        code = planted_try_all(world, &a.options, a.limit) > 0;
        break;
    case COMMAND_BENCH:
        a.options.candidates = 5;
        seeds_bench(&a.options, 5 * NS_PER_S);
        break;
    case COMMAND_NONE:
    case COMMAND_DONE:
        break;
    }
    world_done(world);
    free(world);
    return code;
}
