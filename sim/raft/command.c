/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/command.h"

#include "sim/common/args.h"
#include "sim/common/planted.h"
#include "sim/common/pool.h"
#include "sim/raft/measure/bench_step.h"
#include "sim/raft/measure/failover.h"
#include "sim/raft/report.h"
#include "sim/raft/run.h"
#include "sim/raft/seeds.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

void quorum_usage(FILE *stream)
{
    (void)fputs("usage: gavel-sim raft --seed N [--trace | --minimize]        one run\n"
                "       gavel-sim raft --seeds COUNT [--from N] [--jobs J]    many runs; fails if one does\n"
                "       gavel-sim raft --soak [--from N] [--jobs J]           runs until Ctrl-C\n"
                "       gavel-sim raft --planted-all [--limit COUNT]          fails if a planted bug is not "
                "caught\n"
                "       gavel-sim raft --failover [--trials COUNT]            how long nobody leads after a "
                "fault\n"
                "       gavel-sim raft --bench            runs per second, 5 nodes, 10 virtual seconds\n"
                "       gavel-sim raft --bench-step       nanoseconds per step of the core\n"
                "       gavel-sim raft --list-planted | --list-faults\n"
                "\n"
                "  --all-seen          --seeds fails, too, if one of the things it counts never happened\n"
                "  --promises          judge only what is promised, not the rules that keep it\n"
                "  --planted NAME      switch a planted bug on\n"
                "  --without A,B,…     switch kinds of faults off\n"
                "  --nodes N           1 to 9; drawn from the seed otherwise\n"
                "  --seconds N         virtual time of a run, at least (10)\n",
                stream);
}

enum command {
    COMMAND_NONE,
    COMMAND_SEED,
    COMMAND_SEEDS,
    COMMAND_PLANTED,
    COMMAND_BENCH,
    COMMAND_BENCH_STEP,
    COMMAND_FAILOVER,
    COMMAND_DONE
};

struct arguments {
    enum command command;
    struct run_options options;
    uint64_t count;
    uint64_t limit;
    uint64_t trials;
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
    OPT_PROMISES,
    OPT_PLANTED,
    OPT_PLANTED_ALL,
    OPT_LIMIT,
    OPT_LIST_PLANTED,
    OPT_LIST_FAULTS,
    OPT_WITHOUT,
    OPT_NODES,
    OPT_SECONDS,
    OPT_BENCH,
    OPT_BENCH_STEP,
    OPT_FAILOVER,
    OPT_TRIALS,
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
    {"promises", no_argument, NULL, OPT_PROMISES},
    {"planted", required_argument, NULL, OPT_PLANTED},
    {"planted-all", no_argument, NULL, OPT_PLANTED_ALL},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"list-planted", no_argument, NULL, OPT_LIST_PLANTED},
    {"list-faults", no_argument, NULL, OPT_LIST_FAULTS},
    {"without", required_argument, NULL, OPT_WITHOUT},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"bench", no_argument, NULL, OPT_BENCH},
    {"bench-step", no_argument, NULL, OPT_BENCH_STEP},
    {"failover", no_argument, NULL, OPT_FAILOVER},
    {"trials", required_argument, NULL, OPT_TRIALS},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

/* Those that run seeds as --seed does, and all. */
#define MODES_SEEDS                                                                                          \
    (ARGS_BIT(OPT_SEED) | ARGS_BIT(OPT_SEEDS) | ARGS_BIT(OPT_SOAK) | ARGS_BIT(OPT_PLANTED_ALL) |             \
     ARGS_BIT(OPT_BENCH))
#define MODES (MODES_SEEDS | ARGS_BIT(OPT_BENCH_STEP) | ARGS_BIT(OPT_FAILOVER))
#define MODES_MANY (ARGS_BIT(OPT_SEEDS) | ARGS_BIT(OPT_SOAK))

static const struct args_rule rules[] = {
    {OPT_TRACE, ARGS_BIT(OPT_SEED)},
    {OPT_MINIMIZE, ARGS_BIT(OPT_SEED)},
    {OPT_FROM, (MODES_SEEDS & ~ARGS_BIT(OPT_SEED)) | ARGS_BIT(OPT_FAILOVER)},
    {OPT_JOBS, MODES_MANY | ARGS_BIT(OPT_FAILOVER)},
    {OPT_ALL_SEEN, MODES_MANY},
    {OPT_PROMISES, MODES_SEEDS},
    {OPT_PLANTED, (MODES_SEEDS & ~ARGS_BIT(OPT_PLANTED_ALL)) | ARGS_BIT(OPT_FAILOVER)},
    {OPT_LIMIT, ARGS_BIT(OPT_PLANTED_ALL)},
    {OPT_WITHOUT, MODES_SEEDS},
    {OPT_NODES, MODES_SEEDS & ~ARGS_BIT(OPT_BENCH)},
    {OPT_SECONDS, MODES_SEEDS},
    {OPT_TRIALS, ARGS_BIT(OPT_FAILOVER)},
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
    case OPT_PROMISES:
        a->options.ignores = ~raft_invariants_promised;
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
    case OPT_BENCH_STEP:
        a->command = COMMAND_BENCH_STEP;
        return true;
    case OPT_FAILOVER:
        a->command = COMMAND_FAILOVER;
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
        if (!planted_find(PLANTED_KIND_RAFT, optarg, &planted_bug))
            args_refuse("--list-planted", "no planted bug of the quorum is called \"%s\"", optarg);
        break;
    case OPT_LIMIT:
        a->limit = args_number(1, UINT32_MAX);
        break;
    case OPT_TRIALS:
        a->trials = args_number(1, FAILOVER_TRIALS_MAX);
        break;
    case OPT_WITHOUT:
        if (!quorum_faults_parse(optarg, &a->options.without))
            args_refuse("--list-faults", "not all of these are faults: \"%s\"", optarg);
        break;
    case OPT_NODES:
        a->options.nodes = (unsigned)args_number(1, NODES_MAX);
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
    for (unsigned i = 0; i < FAULT_COUNT; i++)
        (void)printf("%-12s %s\n", quorum_fault_name((enum fault)i), quorum_fault_what((enum fault)i));
}

/* What only prints something; false if it is none of these. */
static bool take_list(struct arguments *a, int option)
{
    switch (option) {
    case OPT_HELP:
        quorum_usage(stdout);
        break;
    case OPT_LIST_PLANTED:
        planted_list(PLANTED_KIND_RAFT);
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
        quorum_usage(stderr);
        exit(2);
    }
    if (a->traces && a->minimizes)
        args_refuse("--help", "--trace and --minimize do not go together: --minimize tells its own story");
}

static int run_one(struct arguments *a)
{
    struct quorum *quorum = quorum_new();
    struct trace trace = {.stream = stdout};
    struct run_result result;
    int code = 1;

    if (a->minimizes) {
        if (quorum_report_minimize(quorum, &a->options)) {
            quorum_report_failure(quorum, &a->options);
        } else {
            (void)printf("seed %" PRIu64 " breaks nothing\n", a->options.seed);
            code = 0;
        }
        quorum_free(quorum);
        return code;
    }
    if (a->traces)
        a->options.trace = &trace;
    quorum_run(quorum, &a->options, &result);
    a->options.trace = NULL;
    if (result.broken != RAFT_INVARIANT_NONE) {
        quorum_report_failure(quorum, &a->options);
    } else {
        (void)printf("seed %" PRIu64 ": nothing is broken; %u nodes, %.1f s of virtual time, %" PRIu64
                     " events, %" PRIu64 " faults, %" PRIu64 " elections, %" PRIu64 " claims, %" PRIu64
                     " entries committed, hash %016" PRIx64 "\n",
                     a->options.seed, result.nodes, (double)result.ended_at / (double)NS_PER_S, result.events,
                     result.counts.faults, result.found.elections_won, result.found.claims,
                     result.found.committed, result.hash);
        code = 0;
    }
    quorum_free(quorum);
    return code;
}

/* What a planted bug breaks with one seed. */
struct hunt {
    struct quorum *quorum;
    struct run_options options;
};

static const char *hunt_seed(void *context, uint64_t seed)
{
    struct hunt *hunt = context;
    struct run_result result;

    hunt->options.seed = seed;
    quorum_run(hunt->quorum, &hunt->options, &result);
    return result.broken == RAFT_INVARIANT_NONE ? NULL : raft_invariant_name(result.broken);
}

static int hunt_all(const struct arguments *a)
{
    struct hunt hunt = {.quorum = quorum_new(), .options = a->options};
    unsigned missed = planted_try_all(PLANTED_KIND_RAFT, hunt_seed, &hunt, a->options.seed, a->limit);

    quorum_free(hunt.quorum);
    return missed > 0;
}

int quorum_command(int argc, char **argv)
{
    struct arguments a = {.options = {.seed = 1, .duration = DURATION_DEFAULT},
                          .limit = 2000,
                          .trials = FAILOVER_TRIALS_DEFAULT,
                          .jobs = 1};

    parse(&a, argc, argv);
    switch (a.command) {
    case COMMAND_SEED:
        return run_one(&a);
    case COMMAND_SEEDS:
        return quorum_seeds_run(&a.options, a.count, a.jobs, a.wants_all) > 0;
    case COMMAND_PLANTED:
        return hunt_all(&a);
    case COMMAND_BENCH:
        a.options.nodes = 5;
        quorum_seeds_bench(&a.options, 5 * NS_PER_S);
        return 0;
    case COMMAND_BENCH_STEP:
        return bench_step();
    case COMMAND_FAILOVER:
        return failover_measure(a.trials, a.options.seed, a.jobs);
    case COMMAND_NONE:
    case COMMAND_DONE:
        break;
    }
    return 0;
}
