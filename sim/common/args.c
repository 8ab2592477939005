/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/args.h"

#include "sim/common/pool.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_MAX 1000000

enum {
    OPT_SEED,
    OPT_SEEDS,
    OPT_SOAK,
    OPT_PLANTED_ALL,
    OPT_BENCH,
    OPT_MEASURE,
    OPT_TRACE = OPT_MEASURE + MEASURES_MAX,
    OPT_MINIMIZE,
    OPT_FROM,
    OPT_JOBS,
    OPT_ALL_SEEN,
    OPT_PROMISES,
    OPT_PLANTED,
    OPT_LIMIT,
    OPT_TRIALS,
    OPT_WITHOUT,
    OPT_SECONDS,
    OPT_MINUTES,
    OPT_SIZE,
    OPT_LIST_PLANTED = OPT_SIZE + SIZES_MAX,
    OPT_LIST_FAULTS,
    OPT_COUNT,
    OPT_HELP = 'h'
};

_Static_assert(OPT_COUNT <= 32, "each option has a bit of a set");

#define BIT(option) (UINT32_C(1) << (option))
#define MODES_MANY (BIT(OPT_SEEDS) | BIT(OPT_SOAK))
#define MODES_SEEDS (BIT(OPT_SEED) | MODES_MANY | BIT(OPT_PLANTED_ALL) | BIT(OPT_BENCH))
#define MODES_FROM (MODES_SEEDS & ~BIT(OPT_SEED))
#define MODES (BIT(OPT_TRACE) - 1)

/* Those of every simulator, and with which modes they mean something. */
static const struct row {
    const char *name;
    int value;
    bool has_argument;
    bool has_trials; /* also with a measure that runs trials */
    uint32_t modes;
} rows[] = {
    {"seed", OPT_SEED, true, false, MODES},
    {"seeds", OPT_SEEDS, true, false, MODES},
    {"soak", OPT_SOAK, false, false, MODES},
    {"planted-all", OPT_PLANTED_ALL, false, false, MODES},
    {"bench", OPT_BENCH, false, false, MODES},
    {"trace", OPT_TRACE, false, false, BIT(OPT_SEED)},
    {"minimize", OPT_MINIMIZE, false, false, BIT(OPT_SEED)},
    {"from", OPT_FROM, true, true, MODES_FROM},
    {"jobs", OPT_JOBS, true, true, MODES_MANY},
    {"all-seen", OPT_ALL_SEEN, false, false, MODES_MANY},
    {"promises", OPT_PROMISES, false, false, MODES_SEEDS},
    {"planted", OPT_PLANTED, true, true, MODES_SEEDS & ~BIT(OPT_PLANTED_ALL)},
    {"limit", OPT_LIMIT, true, false, BIT(OPT_PLANTED_ALL)},
    {"trials", OPT_TRIALS, true, true, 0},
    {"without", OPT_WITHOUT, true, false, MODES_SEEDS},
    {"seconds", OPT_SECONDS, true, false, MODES_SEEDS},
    {"minutes", OPT_MINUTES, true, false, MODES_SEEDS},
    {"list-planted", OPT_LIST_PLANTED, false, false, MODES},
    {"list-faults", OPT_LIST_FAULTS, false, false, MODES},
    {"help", OPT_HELP, false, false, MODES},
};

static struct {
    const char *program;
    const struct simulator *simulator;
    struct option options[OPT_COUNT + 2]; /* and --help, and the end */
    uint32_t modes[OPT_COUNT];            /* by option: with which modes it means something */
    size_t count;
    const char *option; /* that came last */
    uint32_t given;
    uint32_t repeated;
} line;

/* Says what is wrong and which option tells more. */
__attribute__((format(printf, 2, 3))) static _Noreturn void refuse(const char *see, const char *format, ...)
{
    va_list list;

    (void)fprintf(stderr, "%s: ", line.program);
    va_start(list, format);
    (void)vfprintf(stderr, format, list);
    va_end(list);
    (void)fprintf(stderr, "; see %s %s\n", line.program, see);
    exit(2);
}

static void add_option(const char *name, int value, bool has_argument, uint32_t modes)
{
    line.options[line.count++] =
        (struct option){name, has_argument ? required_argument : no_argument, NULL, value};
    if (value < OPT_COUNT)
        line.modes[value] = modes;
}

/* The options that this simulator knows. */
static void collect_options(const struct simulator *simulator)
{
    uint32_t with_trials = 0;

    for (int i = 0; i < MEASURES_MAX; i++)
        if (simulator->measures[i].trials > 0)
            with_trials |= BIT(OPT_MEASURE + i);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];

        if ((row->value == OPT_ALL_SEEN && simulator->sight_count == 0) ||
            (row->value == OPT_PROMISES && !simulator->tells_promises) ||
            (row->value == OPT_TRIALS && !with_trials))
            continue;
        add_option(row->name, row->value, row->has_argument,
                   row->modes | (row->has_trials ? with_trials : 0));
    }
    for (int i = 0; i < MEASURES_MAX && simulator->measures[i].name; i++)
        add_option(simulator->measures[i].name, OPT_MEASURE + i, false, MODES);
    for (int i = 0; i < SIZES_MAX && simulator->sizes[i].name; i++)
        add_option(simulator->sizes[i].name, OPT_SIZE + i, true, MODES_SEEDS);
}

/* The value of the option that came last. */
static uint64_t number(uint64_t low, uint64_t high)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(optarg, &end, 10);
    if (errno || !isdigit((unsigned char)*optarg) || *end || value < low || value > high)
        refuse("--help", "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", line.option,
               low, high, optarg);
    return value;
}

bool args_faults(const struct simulator *simulator, const char *list, uint64_t *ret_faults)
{
    uint64_t set = 0;

    while (*list) {
        size_t length = strcspn(list, ",");
        unsigned i = 0;

        while (i < simulator->fault_count && (strlen(simulator->fault(i)->name) != length ||
                                              strncmp(simulator->fault(i)->name, list, length) != 0))
            i++;
        if (i == simulator->fault_count)
            return false;
        set |= UINT64_C(1) << i;
        list += length + (list[length] == ',');
    }
    *ret_faults = set;
    return true;
}

/* What only prints something; false if it is none of these. */
static bool take_list(int option)
{
    const struct simulator *simulator = line.simulator;

    switch (option) {
    case OPT_HELP:
        args_usage(simulator, stdout);
        return true;
    case OPT_LIST_PLANTED:
        planted_list(simulator->planted);
        return true;
    case OPT_LIST_FAULTS:
        for (unsigned i = 0; i < simulator->fault_count; i++)
            (void)printf("%-14s %s\n", simulator->fault(i)->name, simulator->fault(i)->what);
        return true;
    default:
        return false;
    }
}

static void take_mode(struct arguments *a, int option)
{
    switch (option) {
    case OPT_SEED:
        a->mode = MODE_SEED;
        a->options.seed = number(0, UINT64_MAX);
        break;
    case OPT_SEEDS:
        a->mode = MODE_SEEDS;
        a->count = number(1, UINT32_MAX);
        break;
    case OPT_SOAK:
        a->mode = MODE_SEEDS;
        a->count = POOL_ENDLESS;
        break;
    case OPT_PLANTED_ALL:
        a->mode = MODE_PLANTED_ALL;
        break;
    case OPT_BENCH:
        a->mode = MODE_BENCH;
        break;
    default:
        a->mode = MODE_MEASURE;
        a->measure = &line.simulator->measures[option - OPT_MEASURE];
        break;
    }
}

static void take_option(struct arguments *a, int option)
{
    switch (option) {
    case OPT_TRACE:
        a->traces = true;
        break;
    case OPT_MINIMIZE:
        a->minimizes = true;
        break;
    case OPT_FROM:
        a->options.seed = number(1, UINT64_MAX);
        break;
    case OPT_JOBS:
        a->jobs = (unsigned)number(1, POOL_JOBS_MAX);
        break;
    case OPT_ALL_SEEN:
        a->wants_all_seen = true;
        break;
    case OPT_PROMISES:
        a->options.only_promises = true;
        break;
    case OPT_PLANTED:
        if (!planted_find(line.simulator->planted, optarg, &planted_bug))
            refuse("--list-planted", "there is no planted bug \"%s\"", optarg);
        break;
    case OPT_LIMIT:
        a->limit = number(1, UINT32_MAX);
        break;
    case OPT_TRIALS:
        a->trials = number(1, TRIALS_MAX);
        break;
    case OPT_WITHOUT:
        if (!args_faults(line.simulator, optarg, &a->options.without))
            refuse("--list-faults", "not all of these are faults: \"%s\"", optarg);
        break;
    case OPT_SECONDS:
        a->options.duration = (gavel_ns)number(1, 86400) * NS_PER_S;
        break;
    case OPT_MINUTES:
        a->options.duration = (gavel_ns)number(1, 1440) * 60 * NS_PER_S;
        break;
    default:
        a->options.sizes[option - OPT_SIZE] = (unsigned)number(line.simulator->sizes[option - OPT_SIZE].min,
                                                               line.simulator->sizes[option - OPT_SIZE].max);
        break;
    }
}

/* The options of a set as "--a, --b"; the text is cut off where it does not fit. */
static void join(uint32_t set, char *ret_text, size_t size)
{
    size_t used = 0;

    ret_text[0] = '\0';
    for (const struct option *option = line.options; option->name; option++)
        if (option->val < OPT_COUNT && set & BIT(option->val) && used < size)
            used += (size_t)snprintf(ret_text + used, size - used, "%s--%s", used ? ", " : "", option->name);
}

/* Exactly one mode, and only options that mean something with it. */
static void check(void)
{
    uint32_t mode = line.given & MODES;
    char names[256];
    char others[256];

    if (mode == 0) {
        join(MODES, names, sizeof names);
        (void)fprintf(stderr, "%s: say what to do: one of %s\n\n", line.program, names);
        args_usage(line.simulator, stderr);
        exit(2);
    }
    join(mode, names, sizeof names);
    if (mode & (mode - 1))
        refuse("--help", "only one of these at a time: %s", names);
    if (line.repeated & mode)
        refuse("--help", "%s is given twice", names);
    for (int option = 0; option < OPT_COUNT; option++) {
        if (!(line.given & BIT(option)) || mode & line.modes[option])
            continue;
        join(BIT(option), names, sizeof names);
        join(line.modes[option], others, sizeof others);
        refuse("--help", "%s means something only with %s", names, others);
    }
    if (line.given & BIT(OPT_TRACE) && line.given & BIT(OPT_MINIMIZE))
        refuse("--help", "--trace and --minimize do not go together: --minimize tells its own story");
}

void args_parse(const struct simulator *simulator, int argc, char **argv, struct arguments *ret_arguments)
{
    struct arguments a = {.options = {.seed = 1, .duration = (gavel_ns)simulator->seconds * NS_PER_S},
                          .limit = simulator->limit,
                          .jobs = 1};
    int index = 0;
    int option;

    line.program = argv[0];
    line.simulator = simulator;
    collect_options(simulator);
    while ((option = getopt_long(argc, argv, "h", line.options, &index)) >= 0) {
        if (option == '?') { /* getopt has said why */
            (void)fprintf(stderr, "see %s --help\n", line.program);
            exit(2);
        }
        if (take_list(option)) {
            *ret_arguments = (struct arguments){.mode = MODE_NONE};
            return;
        }
        line.option = line.options[index].name;
        line.repeated |= line.given & BIT(option);
        line.given |= BIT(option);
        if (BIT(option) & MODES)
            take_mode(&a, option);
        else
            take_option(&a, option);
    }
    if (optind < argc)
        refuse("--help", "cannot make sense of \"%s\"", argv[optind]);
    check();
    if (a.measure && a.trials == 0)
        a.trials = a.measure->trials;
    *ret_arguments = a;
}

void args_usage(const struct simulator *simulator, FILE *stream)
{
    (void)fprintf(stream,
                  "usage: %s MODE [OPTION]...\n"
                  "Simulates %s.\n\n"
                  "  --seed N [--trace | --minimize]      one run\n"
                  "  --seeds COUNT [--from N] [--jobs J]  many runs; fails if one does\n"
                  "  --soak [--from N] [--jobs J]         runs until Ctrl-C\n"
                  "  --planted-all [--limit COUNT]        fails if a planted bug is not caught\n"
                  "  --bench                              runs per second\n",
                  simulator->command, simulator->what);
    for (int i = 0; i < MEASURES_MAX && simulator->measures[i].name; i++)
        (void)fprintf(stream, "  --%-12s%-22s %s\n", simulator->measures[i].name,
                      simulator->measures[i].trials ? "[--trials COUNT]" : "", simulator->measures[i].what);
    (void)fputs("  --list-planted | --list-faults       names for the options below\n\n"
                "  --planted NAME      switch a planted bug on\n"
                "  --without A,B,…     switch kinds of faults off\n",
                stream);
    for (int i = 0; i < SIZES_MAX && simulator->sizes[i].name; i++) {
        const struct simulator_size *size = &simulator->sizes[i];

        (void)fprintf(stream, "  --%s N%*s %u to %u; drawn from the seed otherwise\n", size->name,
                      (int)(14 - strlen(size->name)), "", size->min, size->max);
    }
    (void)fprintf(stream, "  --seconds N         virtual time of a run, at least (%u); or --minutes N\n",
                  simulator->seconds);
    if (simulator->sight_count > 0)
        (void)fputs("  --all-seen          --seeds fails, too, if something it counts never happened\n",
                    stream);
    if (simulator->tells_promises)
        (void)fputs("  --promises          judge only what is promised, not the rules that keep it\n",
                    stream);
    (void)fputs("\nexit: 0 nothing is broken, 1 something is, 2 wrong usage\n", stream);
}

void args_print(const struct simulator *simulator, const struct run_options *options)
{
    const char *separator = " --without ";

    (void)printf("%s --seed %" PRIu64, simulator->command, options->seed);
    for (int i = 0; i < SIZES_MAX; i++)
        if (options->sizes[i])
            (void)printf(" --%s %u", simulator->sizes[i].name, options->sizes[i]);
    if (options->duration != (gavel_ns)simulator->seconds * NS_PER_S)
        (void)printf(" --seconds %" PRId64, options->duration / NS_PER_S);
    if (options->only_promises)
        (void)printf(" --promises");
    if (planted_bug != PLANTED_BUG_NONE)
        (void)printf(" --planted %s", planted_name(planted_bug));
    for (unsigned i = 0; i < simulator->fault_count; i++) {
        if (!(options->without & UINT64_C(1) << i))
            continue;
        (void)printf("%s%s", separator, simulator->fault(i)->name);
        separator = ",";
    }
}
