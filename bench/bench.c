/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `gavel bench`: a table of sections. Each gets a rig of its own, with a new
 * directory and a new store, so that none measures the traces of another.
 */
#include "bench/bench.h"

#include "base/assert.h"
#include "base/prng.h"
#include "bench/plot.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIALS 100
#define TRIALS_QUICK 10
#define TRIALS_MAX 2000
#define GROUPS 10000
#define GROUPS_QUICK 1000
#define GROUPS_MAX 1000000

const struct flag bench_flags[] = {
    {"quick", FLAG_SWITCH, NULL, "fewer and shorter trials: shows that everything works, not how fast"},
    {"only", FLAG_TEXT, "NAMES",
     "sections to run, separated by commas: calls, store, handover, failover, run, groups, simulator, cluster-kill, sessions-kill, stores-kill, …; or all of cluster, sessions or stores"},
    {"trials", FLAG_NUMBER, "N", "hand-overs, fail-overs and cold starts to measure (100)"},
    {"groups", FLAG_NUMBER, "N", "sessions-library: the most groups that one process leads (10000)"},
    {"servers", FLAG_TEXT, "FILE", "a file that lists servers to measure, see gavel-bench(1)"},
    {"gaveld", FLAG_TEXT, "FILE",
     "the program of the nodes (the gaveld of this gavel): to compare with another version"},
    {"out", FLAG_TEXT, "DIR", "also write CSV files and plots (with gnuplot) to this directory"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static const struct {
    const char *name;
    const char *title;
    bench_run run;
} sections[] = {
    {"calls", "asking the library whether we lead", bench_calls},
    {"store", "calls to the SQLite store, beside what the disk and SQLite alone need", bench_store},
    {"handover", "a leader resigns, another process leads", bench_handover},
    {"failover", "SIGKILL of the leading process until another leads, with 3 standbys, beside flock(2)",
     bench_failover},
    {"run", "gavel run with 3 standbys: until the next command's first beat, beside flock(1)", bench_runs},
    {"groups", "one process that leads many groups", bench_groups},
    {"simulator", "runs of the simulator", bench_simulator},
    {"cluster-kill", "gaveld: SIGKILL of the leader's node process until another node has claimed",
     bench_cluster_kill},
    {"cluster-kill-all", "gaveld: SIGKILL of the leader's guard and node at once", bench_cluster_kill_all},
    {"cluster-freeze", "gaveld: SIGSTOP of the leader's node process, and what it says when it goes on",
     bench_cluster_freeze},
    {"cluster-transfer", "gaveld: the leader hands over to a node that was named", bench_cluster_transfer},
    {"cluster-cold", "gaveld: three nodes are started until one has claimed", bench_cluster_cold},
    {"cluster-lookups", "gaveld: GET /leader under load, beside a bare TCP echo", bench_cluster_lookups},
    {"cluster-idle", "gaveld: what three nodes cost that have nothing to do", bench_cluster_idle},
    {"sessions-kill", "elections on a cluster: SIGKILL of the leading process, with 2 standbys",
     bench_sessions_kill},
    {"sessions-standbys", "elections on a cluster: SIGKILL of the leading process, with up to 100 standbys",
     bench_sessions_standbys},
    {"sessions-resign", "elections on a cluster: the leading process resigns", bench_sessions_resign},
    {"sessions-freeze", "elections on a cluster: SIGSTOP of a leading client on another machine",
     bench_sessions_freeze},
    {"sessions-node", "elections on a cluster: SIGKILL of the node process of the cluster's leader",
     bench_sessions_node},
    {"sessions-leader",
     "elections on a cluster: SIGKILL of the cluster's leader while libgavel leads many groups",
     bench_sessions_leader},
    {"sessions-host", "elections on a cluster: loss of a host with a node and the leading candidate",
     bench_sessions_host},
    {"sessions-groups", "elections on a cluster: many groups, held by 100 sessions", bench_sessions_groups},
    {"sessions-library", "elections on a cluster: many groups, led by one process with libgavel",
     bench_sessions_library},
    {"sessions-many", "elections on a cluster: SIGKILL of a process that leads many groups with libgavel",
     bench_sessions_many},
    {"sessions-lookups", "elections on a cluster: who leads a group, by HTTP and by the client protocol",
     bench_sessions_lookups},
    {"sessions-writes", "elections on a cluster: acknowledged writes, by HTTP and by the client protocol",
     bench_sessions_writes},
    {"sessions-http", "elections on a cluster: a campaign over HTTP, until its candidate leads",
     bench_sessions_http},
    {"stores-kill", "stores on servers: SIGKILL of the leading elector, with 2 standbys, beside recipes",
     bench_stores_kill},
    {"stores-freeze", "stores on servers: SIGSTOP of who leads, with 2 standbys, beside recipes",
     bench_stores_freeze},
    {"stores-load", "stores on servers: requests when nothing happens", bench_stores_load},
};
#define SECTION_COUNT (sizeof sections / sizeof sections[0])

void bench_result(const struct member_context *context, uint64_t series, int64_t value)
{
    member_mark(context, MARK_RESULT, series, clock_now(), value);
}

enum gavel_status bench_await(struct rig *rig, uint32_t member, gavel_ns until)
{
    gavel_ns ignored;
    enum gavel_status status;

    do
        status = rig_await(rig, member, ns_min(until, clock_now() + BENCH_LOOK_NS));
    while (status == GAVEL_ERR_TIMEOUT && clock_now() < until && !rig_is_interrupted());
    if (!rig_is_interrupted())
        return status;
    (void)rig_kill(rig, member, &ignored, &ignored); /* it may have ended by itself */
    return GAVEL_ERR_STOPPED;
}

enum gavel_status bench_collect(struct rig *rig, member_run run, void *user, gavel_ns limit,
                                struct samples *series, size_t series_count)
{
    size_t count;
    const struct mark *marks;
    enum gavel_status status = rig_start(rig, 0, "bench", run, user, NULL);

    if (status == GAVEL_OK)
        status = bench_await(rig, 0, clock_now() + limit);
    if (status != GAVEL_OK)
        return status;
    marks = shared_log_marks(rig->shared_log, &count);
    for (size_t i = 0; i < count; i++) {
        if (mark_kind(&marks[i]) != MARK_RESULT)
            continue;
        ASSERT(marks[i].epoch < series_count);
        samples_add(&series[marks[i].epoch], marks[i].value);
    }
    return shared_log_lost(rig->shared_log) ? GAVEL_ERR_NO_MEMORY : GAVEL_OK;
}

void bench_pause(const struct rig *rig, gavel_ns longest)
{
    struct prng prng;

    prng_seed(&prng, entropy_u64());
    gavel_ns until = clock_now() + prng_between(&prng, 0, longest);
    while (clock_now() < until && !rig_is_interrupted())
        shared_log_wait(rig->shared_log, shared_log_finished(rig->shared_log), until);
}

void bench_sync(const struct rig *rig, struct samples *samples)
{
    char path[RIG_DIRECTORY_MAX + 16], block[4096] = {0};

    (void)snprintf(path, sizeof path, "%s/block", rig->directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return; /* a floor without samples shows as such */
    gavel_ns began = clock_now();
    if (pwrite(fd, block, sizeof block, 0) == (ssize_t)sizeof block && fdatasync(fd) == 0)
        samples_add(samples, clock_now() - began);
    (void)close(fd); /* nothing of it is kept */
}

/* How this program was built decides what its figures mean. */
static const char *build_text(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return "a build with sanitizers: every figure is far too high";
#elif !defined(__OPTIMIZE__)
    return "a build without optimisation: figures of the library are too high";
#else
    return "an optimised build";
#endif
}

static enum gavel_status run_section(struct bench *bench, size_t i)
{
    struct rig rig;
    struct gavel_error error = {0};

    report_section(&bench->report, sections[i].name, sections[i].title);
    enum gavel_status status = rig_open(&rig, &error);
    if (status != GAVEL_OK) {
        report_note(&bench->report, "not measured: %s", error.message);
    } else {
        status = sections[i].run(bench, &rig);
        if (status != GAVEL_OK)
            report_note(&bench->report, "not measured to the end: %s",
                        status == GAVEL_ERR_STOPPED ? "ended by a signal" : gavel_status_text(status));
        rig_close(&rig);
    }
    report_section_end(&bench->report);
    return status;
}

/* By one name; "cluster", "sessions" and "stores" are every section that begins so. Clusters were called
 * quorums. */
static bool is_named(const char *name, size_t length, size_t section)
{
    static const char *const wholes[] = {"cluster", "sessions", "stores"};
    static const char former[] = "quorum", present[] = "cluster";
    const char *full = sections[section].name;

    if (strncmp(name, former, strlen(former)) == 0 && strncmp(full, present, strlen(present)) == 0) {
        name += strlen(former);
        full += strlen(present);
        length -= strlen(former);
        return length == 0 || (strncmp(full, name, length) == 0 && full[length] == '\0');
    }
    if (strncmp(full, name, length) != 0)
        return false;
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++)
        if (strlen(wholes[i]) == length && strncmp(wholes[i], name, length) == 0)
            return true;
    return full[length] == '\0';
}

/* By a list of names with commas between them. */
static bool is_chosen(const char *names, size_t section)
{
    for (size_t length; *names; names += length + (names[length] == ',')) {
        length = strcspn(names, ",");
        if (length && is_named(names, length, section))
            return true;
    }
    return false;
}

/* The first of these names that is no section; NULL if all are. */
static const char *unknown_section(const char *names)
{
    do {
        size_t length = strcspn(names, ","), i = 0;

        while (i < SECTION_COUNT && !(length && is_named(names, length, i)))
            i++;
        if (i == SECTION_COUNT)
            return names;
        names += length;
    } while (*names++ == ',');
    return NULL;
}

static bool is_program(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

static bool print_json(const struct bench *bench)
{
    json_t *root = json_pack("{s:s, s:b, s:I, s:O, s:I}", "build", build_text(), "quick", bench->is_quick,
                             "trials", (json_int_t)bench->trials, "sections", bench->report.sections,
                             "missed", (json_int_t)bench->report.missed);

    if (!root)
        return false;
    bool is_written =
        json_dumpf(root, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 && putchar('\n') != EOF;
    json_decref(root);
    return is_written;
}

static size_t run_sections(struct bench *bench, const char *only)
{
    size_t failed = 0;

    for (size_t i = 0; i < SECTION_COUNT && !rig_is_interrupted(); i++)
        if (!only || is_chosen(only, i))
            failed += run_section(bench, i) != GAVEL_OK;
    return failed;
}

int command_bench(const struct cli *cli, int argc, char **argv)
{
    struct bench bench = {.cli = cli,
                          .is_quick = cli_flag_is_set(cli, "quick"),
                          .out = cli_flag_text(cli, "out"),
                          .servers = cli_flag_text(cli, "servers"),
                          .gaveld = cli_flag_text(cli, "gaveld")};
    const char *only = cli_flag_text(cli, "only");
    int64_t trials = cli_flag_number(cli, "trials", bench.is_quick ? TRIALS_QUICK : TRIALS);
    int64_t groups = cli_flag_number(cli, "groups", bench.is_quick ? GROUPS_QUICK : GROUPS);

    (void)argc;
    (void)argv;
    if (only && unknown_section(only))
        return cli_fail(
            cli, GAVEL_ERR_INVALID,
            "there is no section \"%.*s\"; --only takes calls, store, handover, failover, run, groups, simulator, cluster, or one of cluster-kill, -kill-all, -freeze, -transfer, -cold, -lookups, -idle; sessions, or one of sessions-kill, -standbys, -resign, -freeze, -node, -leader, -host, -groups, -library, -many, -lookups, -writes, -http; stores, or one of stores-kill, -freeze, -load; with commas between several",
            (int)strcspn(unknown_section(only), ","), unknown_section(only));
    if (trials < 1 || trials > TRIALS_MAX)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--trials must be from 1 to %d", TRIALS_MAX);
    if (groups < 1 || groups > GROUPS_MAX)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--groups must be from 1 to %d", GROUPS_MAX);
    if (bench.gaveld && !is_program(bench.gaveld))
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "%s is no program that can be executed; name a gaveld with --gaveld", bench.gaveld);
    bench.trials = (size_t)trials;
    bench.groups = (size_t)groups;
    if (bench.out && mkdir(bench.out, 0777) < 0 && errno != EEXIST)
        return cli_fail(cli, GAVEL_ERR_IO, "cannot create the directory %s: %s; name another with --out",
                        bench.out, strerror(errno));
    if (report_init(&bench.report, cli, bench.out) != GAVEL_OK)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");

    if (!cli->config.json)
        (void)printf("gavel %s, %s\n", GAVEL_VERSION, build_text());
    size_t failed = run_sections(&bench, only);
    if (bench.out)
        bench_plot(bench.out);
    if (cli->config.json)
        failed += !print_json(&bench);
    else if (bench.report.missed)
        (void)printf("\n%zu aims missed\n", bench.report.missed);
    report_done(&bench.report);
    return cli_finish(cli, failed || rig_is_interrupted() ? CLI_EXIT_FAILURE : CLI_EXIT_OK);
}
