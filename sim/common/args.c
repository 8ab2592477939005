/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/args.h"

#include "sim/common/pool.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_MAX 1000000

enum {
    OPT_TRACE = MODE_NONE, /* the modes come first */
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
    OPT_SIZE,
    OPT_LIST_PLANTED = OPT_SIZE + SIZES_MAX,
    OPT_LIST_FAULTS,
    OPT_COUNT,
    OPT_HELP = 'h'
};

_Static_assert(OPT_COUNT <= 32, "each option has a bit of a set");

#define BIT(option) (UINT32_C(1) << (option))
#define MODES_MANY (BIT(MODE_SEEDS) | BIT(MODE_SOAK))
#define MODES_SEEDS (BIT(MODE_SEED) | MODES_MANY | BIT(MODE_PLANTED_ALL) | BIT(MODE_BENCH))
#define MODES_FROM (MODES_SEEDS & ~BIT(MODE_SEED))
#define MODES (BIT(MODE_NONE) - 1)
#define TO(member) offsetof(struct arguments, member)

struct row {
    const char *name;
    uint32_t modes;     /* with which it means something */
    bool has_trials;    /* also with a measure that runs trials */
    bool takes_names;   /* instead of a number */
    uint64_t low, high; /* of its number; 0, 0: it takes none */
    size_t to;          /* where the number goes, or that it was said; 0: see take() */
};

/* Those of every simulator. */
static const struct row rows[OPT_COUNT] = {
    [MODE_SEED] = {"seed", MODES, .high = UINT64_MAX, .to = TO(options.seed)},
    [MODE_SEEDS] = {"seeds", MODES, .low = 1, .high = UINT32_MAX, .to = TO(count)},
    [MODE_SOAK] = {.name = "soak", .modes = MODES},
    [MODE_PLANTED_ALL] = {.name = "planted-all", .modes = MODES},
    [MODE_BENCH] = {.name = "bench", .modes = MODES},
    [OPT_TRACE] = {"trace", BIT(MODE_SEED), .to = TO(traces)},
    [OPT_MINIMIZE] = {"minimize", BIT(MODE_SEED), .to = TO(minimizes)},
    [OPT_FROM] = {"from", MODES_FROM, true, .low = 1, .high = UINT64_MAX, .to = TO(options.seed)},
    [OPT_JOBS] = {"jobs", MODES_MANY, true, .low = 1, .high = POOL_JOBS_MAX, .to = TO(jobs)},
    [OPT_ALL_SEEN] = {"all-seen", MODES_MANY, .to = TO(wants_all_seen)},
    [OPT_PROMISES] = {"promises", MODES_SEEDS, .to = TO(options.only_promises)},
    [OPT_PLANTED] = {"planted", MODES_SEEDS & ~BIT(MODE_PLANTED_ALL), true, .takes_names = true},
    [OPT_LIMIT] = {"limit", BIT(MODE_PLANTED_ALL), .low = 1, .high = UINT32_MAX, .to = TO(limit)},
    [OPT_TRIALS] = {"trials", 0, true, .low = 1, .high = TRIALS_MAX, .to = TO(trials)},
    [OPT_WITHOUT] = {"without", MODES_SEEDS, .takes_names = true},
    [OPT_SECONDS] = {"seconds", MODES_SEEDS, .low = 1, .high = 86400, .to = TO(seconds)},
    [OPT_LIST_PLANTED] = {.name = "list-planted", .modes = MODES},
    [OPT_LIST_FAULTS] = {.name = "list-faults", .modes = MODES},
};

static struct {
    const char *program;
    const struct simulator *simulator;
    struct row rows[OPT_COUNT];           /* those that this simulator knows have a name */
    struct option options[OPT_COUNT + 2]; /* of them, and --help, and the end */
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

/* The options that this simulator knows. */
static void collect_options(const struct simulator *simulator)
{
    struct option *option = line.options;
    uint32_t with_trials = 0;

    memcpy(line.rows, rows, sizeof rows);
    for (int i = 0; i < MEASURES_MAX && simulator->measures[i].name; i++) {
        line.rows[MODE_MEASURE + i] = (struct row){.name = simulator->measures[i].name, .modes = MODES};
        with_trials |= simulator->measures[i].trials > 0 ? BIT(MODE_MEASURE + i) : 0;
    }
    for (int i = 0; i < SIZES_MAX && simulator->sizes[i].name; i++)
        line.rows[OPT_SIZE + i] = (struct row){.name = simulator->sizes[i].name,
                                               .modes = MODES_SEEDS,
                                               .low = simulator->sizes[i].min,
                                               .high = simulator->sizes[i].max,
                                               .to = TO(sizes[i])};
    if (simulator->sight_count == 0)
        line.rows[OPT_ALL_SEEN].name = NULL;
    if (!simulator->tells_promises)
        line.rows[OPT_PROMISES].name = NULL;
    if (!with_trials)
        line.rows[OPT_TRIALS].name = NULL;
    for (int i = 0; i < OPT_COUNT; i++) {
        struct row *row = &line.rows[i];

        row->modes |= row->has_trials ? with_trials : 0;
        if (row->name)
            *option++ = (struct option){
                row->name, row->high || row->takes_names ? required_argument : no_argument, NULL, i};
    }
    *option = (struct option){"help", no_argument, NULL, OPT_HELP};
}

/* The value of the option that came last. */
static uint64_t number(const struct row *row)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(optarg, &end, 10);
    if (errno || !isdigit((unsigned char)*optarg) || *end || value < row->low || value > row->high)
        refuse("--help", "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", row->name,
               row->low, row->high, optarg);
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

static void take(struct arguments *a, int option)
{
    const struct row *row = &line.rows[option];
    void *place = (char *)a + row->to;

    line.repeated |= line.given & BIT(option);
    line.given |= BIT(option);
    if (BIT(option) & MODES)
        a->mode = (unsigned)option;
    if (row->high)
        *(uint64_t *)place = number(row);
    else if (row->to)
        *(bool *)place = true;
    if (option == OPT_PLANTED && !planted_find(line.simulator->planted, optarg, &planted_bug))
        refuse("--list-planted", "there is no planted bug \"%s\"", optarg);
    if (option == OPT_WITHOUT && !args_faults(line.simulator, optarg, &a->options.without))
        refuse("--list-faults", "not all of these are faults: \"%s\"", optarg);
}

/* The options of a set as "--a, --b"; the text is cut off where it does not fit. */
static void join(uint32_t set, char *ret_text, size_t size)
{
    size_t used = 0;

    ret_text[0] = '\0';
    for (int i = 0; i < OPT_COUNT; i++)
        if (line.rows[i].name && set & BIT(i) && used < size)
            used +=
                (size_t)snprintf(ret_text + used, size - used, "%s--%s", used ? ", " : "", line.rows[i].name);
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
        if (!(line.given & BIT(option)) || mode & line.rows[option].modes)
            continue;
        join(BIT(option), names, sizeof names);
        join(line.rows[option].modes, others, sizeof others);
        refuse("--help", "%s means something only with %s", names, others);
    }
    if (line.given & BIT(OPT_TRACE) && line.given & BIT(OPT_MINIMIZE))
        refuse("--help", "--trace and --minimize do not go together: --minimize tells its own story");
}

void args_parse(const struct simulator *simulator, int argc, char **argv, struct arguments *ret_arguments)
{
    struct arguments a = {.mode = MODE_NONE,
                          .options.seed = 1,
                          .count = POOL_ENDLESS,
                          .limit = simulator->limit,
                          .jobs = 1,
                          .seconds = simulator->seconds};
    int option;

    *ret_arguments = a;
    line.program = argv[0];
    line.simulator = simulator;
    collect_options(simulator);
    while ((option = getopt_long(argc, argv, "h", line.options, NULL)) >= 0) {
        if (option == '?') { /* getopt has said why */
            (void)fprintf(stderr, "see %s --help\n", line.program);
            exit(2);
        }
        if (take_list(option))
            return;
        take(&a, option);
    }
    if (optind < argc)
        refuse("--help", "cannot make sense of \"%s\"", argv[optind]);
    check();
    a.options.duration = (gavel_ns)a.seconds * NS_PER_S;
    for (int i = 0; i < SIZES_MAX; i++)
        a.options.sizes[i] = (unsigned)a.sizes[i];
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
    (void)fprintf(stream, "  --seconds N         virtual time of a run, at least (%u)\n", simulator->seconds);
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
