/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/command.h"

#include "base/assert.h"
#include "sim/candidate/report.h"
#include "sim/candidate/run.h"
#include "sim/candidate/seeds.h"
#include "sim/candidate/world.h"
#include "sim/common/args.h"
#include "sim/common/planted.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void candidate_usage(FILE *stream)
{
    (void)fputs(
        "usage: gavel-sim [candidate] --seed N [--trace | --minimize]        one run\n"
        "       gavel-sim [candidate] --seeds COUNT [--from N] [--jobs J]    many runs; fails if one does\n"
        "       gavel-sim [candidate] --planted-all [--limit COUNT]          fails if a planted bug is not "
        "caught\n"
        "       gavel-sim [candidate] --bench            runs per second, 5 candidates, 60 virtual seconds\n"
        "       gavel-sim [candidate] --list-planted | --list-faults\n"
        "\n"
        "  --planted NAME      switch a planted bug on\n"
        "  --without A,B,…     switch kinds of faults off\n"
        "  --candidates N      2 to 9; drawn from the seed otherwise\n"
        "  --seconds N         virtual time of a run, at least (60); --minutes N likewise\n",
        stream);
}

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
    OPT_HELP = ARGS_HELP
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

#define MODES (ARGS_BIT(OPT_SEED) | ARGS_BIT(OPT_SEEDS) | ARGS_BIT(OPT_PLANTED_ALL) | ARGS_BIT(OPT_BENCH))

static const struct args_rule rules[] = {
    {OPT_TRACE, ARGS_BIT(OPT_SEED)},
    {OPT_MINIMIZE, ARGS_BIT(OPT_SEED)},
    {OPT_FROM, MODES & ~ARGS_BIT(OPT_SEED)},
    {OPT_JOBS, ARGS_BIT(OPT_SEEDS)},
    {OPT_LIMIT, ARGS_BIT(OPT_PLANTED_ALL)},
    {OPT_PLANTED, MODES & ~ARGS_BIT(OPT_PLANTED_ALL)},
    {OPT_CANDIDATES, MODES & ~ARGS_BIT(OPT_BENCH)},
};

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
        a->options.seed = args_number(0, UINT64_MAX);
        break;
    case OPT_SEEDS:
        a->command = COMMAND_SEEDS;
        a->count = args_number(1, UINT32_MAX);
        break;
    case OPT_FROM:
        a->options.seed = args_number(1, UINT64_MAX);
        break;
    case OPT_JOBS:
        a->jobs = (unsigned)args_number(1, 64);
        break;
    case OPT_TRACE:
        a->traces = true;
        break;
    case OPT_MINIMIZE:
        a->minimizes = true;
        break;
    case OPT_PLANTED:
        if (!planted_find(PLANTED_KIND_CANDIDATE, optarg, &planted_bug))
            args_refuse("--list-planted", "no planted bug of candidates is called \"%s\"", optarg);
        break;
    case OPT_PLANTED_ALL:
        a->command = COMMAND_PLANTED;
        break;
    case OPT_LIMIT:
        a->limit = args_number(1, UINT32_MAX);
        break;
    case OPT_WITHOUT:
        if (!faults_parse(optarg, &a->options.without))
            args_refuse("--list-faults", "not all of these are faults: \"%s\"", optarg);
        break;
    case OPT_CANDIDATES:
        a->options.candidates = (unsigned)args_number(CANDIDATES_MIN, CANDIDATES_MAX);
        break;
    case OPT_SECONDS:
        a->options.duration = (gavel_ns)args_number(1, 86400) * NS_PER_S;
        break;
    case OPT_MINUTES:
        a->options.duration = (gavel_ns)args_number(1, 1440) * 60 * NS_PER_S;
        break;
    case OPT_BENCH:
        a->command = COMMAND_BENCH;
        break;
    default:
        args_refuse("--help", "cannot make sense of the arguments");
    }
}

static void parse(struct arguments *a, int argc, char **argv)
{
    for (;;) {
        int option = args_next(argc, argv, options);

        if (option < 0)
            break;
        if (option == OPT_HELP || option == OPT_LIST_PLANTED || option == OPT_LIST_FAULTS) {
            a->command = COMMAND_DONE;
            if (option == OPT_HELP)
                candidate_usage(stdout);
            else if (option == OPT_LIST_PLANTED)
                planted_list(PLANTED_KIND_CANDIDATE);
            else
                list_faults();
            return;
        }
        take_option(a, option);
    }
    if (!args_check(options, MODES, rules, sizeof rules / sizeof *rules)) {
        candidate_usage(stderr);
        exit(2);
    }
    if (a->traces && a->minimizes)
        args_refuse("--help", "--trace and --minimize do not go together: --minimize tells its own story");
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

/* What a planted bug breaks with one seed. */
struct hunt {
    struct world *world;
    struct run_options options;
};

static const char *hunt_seed(void *context, uint64_t seed)
{
    struct hunt *hunt = context;
    struct run_result result;

    hunt->options.seed = seed;
    run(hunt->world, &hunt->options, &result);
    return result.broken == INVARIANT_NONE ? NULL : invariant_name(result.broken);
}

int candidate_command(int argc, char **argv)
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
        code = planted_try_all(PLANTED_KIND_CANDIDATE, hunt_seed,
                               &(struct hunt){.world = world, .options = a.options}, a.options.seed,
                               a.limit) > 0;
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
