/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/command.h"

#include "sim/common/args.h"
#include "sim/common/planted.h"
#include "sim/common/pool.h"
#include "sim/session/report.h"
#include "sim/session/seeds.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

void hall_usage(FILE *stream)
{
    (void)fputs("usage: gavel-sim session --seed N [--trace | --minimize]      one run\n"
                "       gavel-sim session --seeds COUNT [--from N] [--jobs J]  many runs; fails if one does\n"
                "       gavel-sim session --soak [--from N] [--jobs J]         runs until Ctrl-C\n"
                "       gavel-sim session --planted-all [--limit COUNT]        fails if a planted bug is not "
                "caught\n"
                "       gavel-sim session --bench                              runs per second\n"
                "       gavel-sim session --list-planted | --list-faults\n"
                "\n"
                "  --all-seen          --seeds fails, too, if one of the things it counts never happened\n"
                "  --planted NAME      switch a planted bug on\n"
                "  --without A,B,…     switch kinds of faults off\n"
                "  --nodes N           1 to 9; drawn from the seed otherwise\n"
                "  --programs N        1 to 8, with sessions; drawn from the seed otherwise\n"
                "  --seconds N         virtual time of a run, at least (8)\n",
                stream);
}

enum command { COMMAND_NONE, COMMAND_SEED, COMMAND_SEEDS, COMMAND_PLANTED, COMMAND_BENCH, COMMAND_DONE };

struct arguments {
    enum command command;
    struct hall_options options;
    uint64_t count;
    uint64_t limit;
    unsigned jobs;
    bool traces;
    bool minimizes;
    bool wants_all;
};

enum {
    OPT_SEED,
    OPT_TRACE,
    OPT_MINIMIZE,
    OPT_SEEDS,
    OPT_SOAK,
    OPT_FROM,
    OPT_JOBS,
    OPT_ALL_SEEN,
    OPT_PLANTED,
    OPT_PLANTED_ALL,
    OPT_LIMIT,
    OPT_LIST_PLANTED,
    OPT_LIST_FAULTS,
    OPT_WITHOUT,
    OPT_NODES,
    OPT_PROGRAMS,
    OPT_SECONDS,
    OPT_BENCH,
    OPT_HELP = ARGS_HELP
};

static const struct option options[] = {
    {"seed", required_argument, NULL, OPT_SEED},
    {"trace", no_argument, NULL, OPT_TRACE},
    {"minimize", no_argument, NULL, OPT_MINIMIZE},
    {"seeds", required_argument, NULL, OPT_SEEDS},
    {"soak", no_argument, NULL, OPT_SOAK},
    {"from", required_argument, NULL, OPT_FROM},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"all-seen", no_argument, NULL, OPT_ALL_SEEN},
    {"planted", required_argument, NULL, OPT_PLANTED},
    {"planted-all", no_argument, NULL, OPT_PLANTED_ALL},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"list-planted", no_argument, NULL, OPT_LIST_PLANTED},
    {"list-faults", no_argument, NULL, OPT_LIST_FAULTS},
    {"without", required_argument, NULL, OPT_WITHOUT},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"programs", required_argument, NULL, OPT_PROGRAMS},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"bench", no_argument, NULL, OPT_BENCH},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

#define MODES                                                                                                \
    (ARGS_BIT(OPT_SEED) | ARGS_BIT(OPT_SEEDS) | ARGS_BIT(OPT_SOAK) | ARGS_BIT(OPT_PLANTED_ALL) |             \
     ARGS_BIT(OPT_BENCH))
#define MODES_MANY (ARGS_BIT(OPT_SEEDS) | ARGS_BIT(OPT_SOAK))

static const struct args_rule rules[] = {
    {OPT_TRACE, ARGS_BIT(OPT_SEED)},
    {OPT_MINIMIZE, ARGS_BIT(OPT_SEED)},
    {OPT_FROM, MODES & ~ARGS_BIT(OPT_SEED)},
    {OPT_JOBS, MODES_MANY},
    {OPT_ALL_SEEN, MODES_MANY},
    {OPT_PLANTED, MODES & ~ARGS_BIT(OPT_PLANTED_ALL)},
    {OPT_LIMIT, ARGS_BIT(OPT_PLANTED_ALL)},
    {OPT_WITHOUT, MODES},
    {OPT_NODES, MODES},
    {OPT_PROGRAMS, MODES},
    {OPT_SECONDS, MODES},
};

/* What needs no value; false if it is none of these. */
static bool take_flag(struct arguments *a, int option)
{
    switch (option) {
    case OPT_SOAK:
        a->command = COMMAND_SEEDS;
        a->count = POOL_ENDLESS;
        return true;
    case OPT_TRACE:
        a->traces = true;
        return true;
    case OPT_ALL_SEEN:
        a->wants_all = true;
        return true;
    case OPT_MINIMIZE:
        a->minimizes = true;
        return true;
    case OPT_PLANTED_ALL:
        a->command = COMMAND_PLANTED;
        return true;
    case OPT_BENCH:
        a->command = COMMAND_BENCH;
        return true;
    default:
        return false;
    }
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
        a->jobs = (unsigned)args_number(1, POOL_JOBS_MAX);
        break;
    case OPT_PLANTED:
        if (!planted_find(PLANTED_KIND_SESSION, optarg, &planted_bug))
            args_refuse("--list-planted", "no planted bug of sessions is called \"%s\"", optarg);
        break;
    case OPT_LIMIT:
        a->limit = args_number(1, UINT32_MAX);
        break;
    case OPT_WITHOUT:
        if (!hall_faults_parse(optarg, &a->options.without))
            args_refuse("--list-faults", "not all of these are faults: \"%s\"", optarg);
        break;
    case OPT_NODES:
        a->options.nodes = (unsigned)args_number(1, NODES_MAX);
        break;
    case OPT_PROGRAMS:
        a->options.programs = (unsigned)args_number(1, PROGRAMS_MAX);
        break;
    case OPT_SECONDS:
        a->options.duration = (gavel_ns)args_number(1, 86400) * NS_PER_S;
        break;
    default:
        args_refuse("--help", "cannot make sense of the arguments");
    }
}

static void list_faults(void)
{
    for (unsigned i = 0; i < HALL_FAULTS_ALL; i++)
        (void)printf("%-14s %s\n", hall_fault_name(i), hall_fault_what(i));
}

/* What only prints something; false if it is none of these. */
static bool take_list(struct arguments *a, int option)
{
    switch (option) {
    case OPT_HELP:
        hall_usage(stdout);
        break;
    case OPT_LIST_PLANTED:
        planted_list(PLANTED_KIND_SESSION);
        break;
    case OPT_LIST_FAULTS:
        list_faults();
        break;
    default:
        return false;
    }
    a->command = COMMAND_DONE;
    return true;
}

static void parse(struct arguments *a, int argc, char **argv)
{
    for (;;) {
        int option = args_next(argc, argv, options);

        if (option < 0)
            break;
        if (take_list(a, option))
            return;
        if (!take_flag(a, option))
            take_option(a, option);
    }
    if (!args_check(options, MODES, rules, sizeof rules / sizeof *rules)) {
        hall_usage(stderr);
        exit(2);
    }
    if (a->traces && a->minimizes)
        args_refuse("--help", "--trace and --minimize do not go together: --minimize tells its own story");
}

static int run_one(struct arguments *a)
{
    struct hall *hall = hall_new();
    struct trace trace = {.stream = stdout};
    struct hall_result result;
    int code = 1;

    if (a->minimizes) {
        if (hall_report_minimize(hall, &a->options)) {
            hall_report_failure(hall, &a->options);
        } else {
            (void)printf("seed %" PRIu64 " breaks nothing\n", a->options.seed);
            code = 0;
        }
        hall_free(hall);
        return code;
    }
    if (a->traces)
        a->options.trace = &trace;
    hall_run(hall, &a->options, &result);
    a->options.trace = NULL;
    if (result.is_broken) {
        hall_report_failure(hall, &a->options);
    } else {
        (void)printf(
            "seed %" PRIu64 ": nothing is broken; %u nodes, %u programs, %.1f s of virtual time, %" PRIu64
            " events, %" PRIu64 " faults, %" PRIu64 " elections of the quorum, %" PRIu64 " sessions, %" PRIu64
            " mandates, hash %016" PRIx64 "\n",
            a->options.seed, result.nodes, result.programs, (double)result.ended_at / (double)NS_PER_S,
            result.events, result.fault_count, result.elections, result.seen[HALL_SIGHT_SESSIONS],
            result.seen[HALL_SIGHT_GRANTS] + result.seen[HALL_SIGHT_CLAIMS], result.hash);
        code = 0;
    }
    hall_free(hall);
    return code;
}

/* What a planted bug breaks with one seed. */
struct hunt {
    struct hall *hall;
    struct hall_options options;
};

static const char *hunt_seed(void *context, uint64_t seed)
{
    struct hunt *hunt = context;
    struct hall_result result;

    hunt->options.seed = seed;
    hall_run(hunt->hall, &hunt->options, &result);
    return result.is_broken ? result.name : NULL;
}

static int hunt_all(const struct arguments *a)
{
    struct hunt hunt = {.hall = hall_new(), .options = a->options};
    unsigned missed = planted_try_all(PLANTED_KIND_SESSION, hunt_seed, &hunt, a->options.seed, a->limit);

    hall_free(hunt.hall);
    return missed > 0;
}

int hall_command(int argc, char **argv)
{
    struct arguments a = {.options = {.seed = 1, .duration = HALL_DURATION_DEFAULT}, .limit = 500, .jobs = 1};

    parse(&a, argc, argv);
    switch (a.command) {
    case COMMAND_SEED:
        return run_one(&a);
    case COMMAND_SEEDS:
        return hall_seeds_run(&a.options, a.count, a.jobs, a.wants_all) > 0;
    case COMMAND_PLANTED:
        return hunt_all(&a);
    case COMMAND_BENCH:
        hall_seeds_bench(&a.options, 5 * NS_PER_S);
        return 0;
    case COMMAND_NONE:
    case COMMAND_DONE:
        break;
    }
    return 0;
}
