/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fail-over on the stores of servers, with two that stand by: SIGKILL of the
 * elector of the `gavel run` that leads, to the first beat of the next one's
 * command; and beside it, on the same servers in the same minutes, the recipes
 * that people use today.
 *
 *   kill(2) ── guard sees it ── tree dead ── release ── doorbell ── read, claim ── exec ── beat
 *   kill(2) ── … the lock expires on the server … ── the next one looks ── it leads
 *
 * A trial of gavel takes milliseconds, one of a recipe up to a minute. So the
 * recipes run in parallel (parallel.h) in a process of their own, many at a time,
 * while the stores take turns here.
 *
 * SIGSTOP is no proof of a death: all have to wait for the lease, gavel too,
 * and all of them run in parallel.
 */
#include "bench/stores/stores.h"

#include "bench/stores/parallel.h"
#include "os/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMBERS 3
#define PAUSE_NS (50 * NS_PER_MS)
#define BURY_LIMIT_NS (20 * NS_PER_S)

/* A trial of the slowest takes a few seconds, for the next standby to come up. */
#define TRIALS_MOST 50
#define PARALLEL_TRIAL_TRIALS_MOST 20
#define PARALLEL 10
#define TAIL_BYTES 4096

/* Standbys need so long to come up, and the longest period between two signs of life is 20 s. */
#define SETTLE_LEAST_NS (6 * NS_PER_S)
#define SETTLE_MOST_NS (22 * NS_PER_S)
#define SETTLE_QUICK_NS NS_PER_S

/* A session of `etcdctl elect` lives for 60 s after its last sign of life. */
#define PARALLEL_TRIAL_LIMIT_NS (120 * NS_PER_S)

static const char gavel_command[] =
    "\"$PROGRAM\" run --store \"$STORE\" --group \"$KEY\" --id \"$ID\" -- sh -c 'echo leads; exec sleep 600'";

struct race {
    struct bench *bench;
    struct rig *rig; /* of the parallel, and of the disk */
    struct servers *servers;
    struct field fields[FIELDS_MAX];
    size_t field_count;
    struct parallel_plan plan;
    char titles[PARALLEL_CONTENDERS_MAX][SERVER_TITLE_MAX + SERVER_NAME_MAX + 8];
    struct samples parallel[PARALLEL_CONTENDERS_MAX];
    size_t failed[PARALLEL_CONTENDERS_MAX];
    struct samples disk;
    double load; /* of the machine before it began; below 0: unknown */
    char self[PATH_MAX];
};

static enum gavel_status trial(struct race *race, struct field *field)
{
    uint32_t victim = field->leader.member;
    gavel_ns sent_at;
    enum gavel_status status = field_await_standbys(field, MEMBERS);

    if (status != GAVEL_OK)
        return status;
    bench_sync(race->rig, &race->disk);
    bench_pause(race->rig, PAUSE_NS);
    status = runs_kill(&field->runs, &field->leader, PART_ELECTOR, &sent_at);
    if (status == GAVEL_OK)
        status = field_await_leader(field);
    if (status != GAVEL_OK)
        return status;
    samples_add(&field->latency, field->leader.at - sent_at);
    status = runs_bury(&field->runs, victim, clock_now() + BURY_LIMIT_NS);
    /* It comes up while the others have their turn. */
    return status != GAVEL_OK ? status : field_start(field, victim);
}

/* One trial of each store after the other. What fails on one store does not keep the others. */
static enum gavel_status take_turns(struct race *race)
{
    size_t trials = race->bench->trials < TRIALS_MOST ? race->bench->trials : TRIALS_MOST;

    for (size_t i = 0; i < race->field_count; i++) {
        struct field *field = &race->fields[i];
        enum gavel_status status = field->status != GAVEL_OK ? field->status : field_assemble(field, MEMBERS);
        if (status != GAVEL_OK && field->status == GAVEL_OK)
            field_fail(field, race->bench, status);
    }
    for (size_t n = 0; n < trials; n++)
        for (size_t i = 0; i < race->field_count && !rig_is_interrupted(); i++) {
            struct field *field = &race->fields[i];
            enum gavel_status status = field->status != GAVEL_OK ? GAVEL_OK : trial(race, field);
            if (status != GAVEL_OK)
                field_fail(field, race->bench, status);
        }
    return rig_is_interrupted() ? GAVEL_ERR_STOPPED : GAVEL_OK;
}

static void add_contender(struct race *race, const char *title, const char *store_name, const char *command,
                          const char *store)
{
    size_t at = race->plan.contender_count++;

    (void)snprintf(race->titles[at], sizeof race->titles[at], "%s on %s", title, store_name);
    race->plan.contenders[at] = (struct parallel_contender){.command = command, .store = store};
}

static void add_rivals(struct race *race)
{
    for (size_t i = 0; i < race->servers->rival_count; i++) {
        const struct server_rival *rival = &race->servers->rivals[i];
        add_contender(race, rival->title, race->servers->stores[rival->store].name, rival->command, NULL);
    }
}

static void collect(struct race *race)
{
    size_t count;
    const struct mark *marks = shared_log_marks(race->rig->shared_log, &count);

    for (size_t i = 0; i < count; i++) {
        if (mark_kind(&marks[i]) != MARK_RESULT || marks[i].epoch >= race->plan.contender_count)
            continue;
        if (marks[i].value == PARALLEL_FAILED)
            race->failed[marks[i].epoch]++;
        else
            samples_add(&race->parallel[marks[i].epoch], marks[i].value);
    }
}

/* What the contenders said last, for who looks into a failure. */
static void print_log(const struct race *race)
{
    char path[RIG_DIRECTORY_MAX + 32], text[TAIL_BYTES + 1];

    parallel_log(race->rig, path);
    FILE *log = fopen(path, "re");
    if (!log)
        return;
    (void)fseek(log, -TAIL_BYTES, SEEK_END); /* fails on a shorter file, which is then read whole */
    text[fread(text, 1, TAIL_BYTES, log)] = '\0';
    (void)fprintf(stderr, "gavel bench: those who compete said last:\n%s", text);
    (void)fclose(log); /* only read from */
}

/* The rows of the parallel. A trial that failed is told below the table. */
static enum gavel_status tell_parallel(struct race *race, const char *what)
{
    char name[128];
    size_t failed = 0;

    collect(race);
    for (size_t i = 0; i < race->plan.contender_count; i++) {
        (void)snprintf(name, sizeof name, "%s, %s", what, race->titles[i]);
        report_samples(&race->bench->report, name, &race->parallel[i], NS_PER_MS, "ms", (struct aim){0});
        if (race->failed[i])
            report_note(&race->bench->report, "%zu trials of %s failed: it ended by itself, or took %lld s",
                        race->failed[i], race->titles[i], (long long)(PARALLEL_TRIAL_LIMIT_NS / NS_PER_S));
        failed += race->failed[i];
    }
    if (race->plan.contender_count)
        report_note(
            &race->bench->report,
            "what waits for a lock to expire ran in up to %zu elections at a time, with %d standbys each",
            race->plan.parallel, PARALLEL_TRIAL_MEMBERS - 1);
    if (race->load >= 0)
        report_note(&race->bench->report, "load average before it began: %.2f, with %ld CPUs", race->load,
                    sysconf(_SC_NPROCESSORS_ONLN));
    if (failed)
        print_log(race);
    return failed ? GAVEL_ERR_IO : GAVEL_OK;
}

static struct race *race_new(struct bench *bench, struct rig *rig, int signal_number,
                             enum gavel_status *ret_status)
{
    struct race *race = calloc(1, sizeof *race);
    struct servers *servers = calloc(1, sizeof *servers);
    struct runs runs;
    struct gavel_error error = {0};

    *ret_status = race && servers ? stores_list(bench, servers) : GAVEL_ERR_NO_MEMORY;
    if (!*ret_status)
        *ret_status = runs_init(&runs, rig, &error);
    if (*ret_status) {
        free(race);
        free(servers);
        return NULL;
    }
    race->bench = bench;
    race->rig = rig;
    race->servers = servers;
    if (getloadavg(&race->load, 1) != 1)
        race->load = -1;
    (void)snprintf(race->self, sizeof race->self, "%s", runs.gavel);
    race->plan = (struct parallel_plan){
        .parallel = PARALLEL,
        .trials = bench->trials < PARALLEL_TRIAL_TRIALS_MOST ? bench->trials : PARALLEL_TRIAL_TRIALS_MOST,
        .signal = signal_number,
        .settle_least = bench->is_quick ? SETTLE_QUICK_NS : SETTLE_LEAST_NS,
        .settle_most = bench->is_quick ? SETTLE_QUICK_NS : SETTLE_MOST_NS,
        .limit = PARALLEL_TRIAL_LIMIT_NS,
        .program = race->self};
    return race;
}

static void race_free(struct race *race)
{
    for (size_t i = 0; i < race->field_count; i++)
        field_close(&race->fields[i]);
    for (size_t i = 0; i < PARALLEL_CONTENDERS_MAX; i++)
        samples_done(&race->parallel[i]);
    samples_done(&race->disk);
    free(race->servers);
    free(race);
}

/* The parallel' process is member 0 of the section's own rig. */
static enum gavel_status start_parallel(struct race *race)
{
    return race->plan.contender_count ? rig_start(race->rig, 0, "parallel", parallel_run, &race->plan, NULL)
                                      : GAVEL_OK;
}

static enum gavel_status await_parallel(struct race *race)
{
    gavel_ns until = clock_now() + (gavel_ns)race->plan.trials * (PARALLEL_TRIAL_LIMIT_NS + SETTLE_MOST_NS);

    return race->plan.contender_count ? bench_await(race->rig, 0, until) : GAVEL_OK;
}

/* The aims of a fail-over at which the death is seen. */
static struct aim aim_of(const struct field *field)
{
    if (!field->server)
        return (struct aim){.p50 = 5};
    return (struct aim){.p50 = strncmp(field->server->url, "s3:", 3) == 0 ? 200 : 20};
}

/* Not a figure: the next command found the one before still there. */
static size_t count_overlaps(const struct rig *rig)
{
    size_t count, overlaps = 0;
    const struct mark *marks = shared_log_marks(rig->shared_log, &count);

    for (size_t i = 0; i < count; i++)
        overlaps += mark_kind(&marks[i]) == MARK_OVERLAP;
    return overlaps;
}

/* The rows of gavel; ERR_STATE if two commands ever ran at once. */
static enum gavel_status tell_fields(struct race *race, const char *what)
{
    enum gavel_status status = GAVEL_OK;
    size_t overlaps = 0;
    char name[128];

    for (size_t i = 0; i < race->field_count; i++) {
        struct field *field = &race->fields[i];
        (void)snprintf(name, sizeof name, "%s, gavel run on %s", what, field->name);
        report_samples(&race->bench->report, name, &field->latency, NS_PER_MS, "ms", aim_of(field));
        if (field->is_open)
            overlaps += count_overlaps(&field->rig);
        status = status != GAVEL_OK ? status : field->status;
    }
    report_samples(&race->bench->report, "floor: write 4 KiB, fdatasync", &race->disk, NS_PER_MS, "ms",
                   (struct aim){0});
    if (overlaps)
        report_note(&race->bench->report, "%zu times the next command found the one before still running",
                    overlaps);
    else
        report_note(&race->bench->report, "each command of gavel run found the one before it dead");
    return overlaps ? GAVEL_ERR_STATE : status;
}

enum gavel_status bench_stores_kill(struct bench *bench, struct rig *rig)
{
    enum gavel_status status;
    struct race *race = race_new(bench, rig, SIGKILL, &status);

    if (!race)
        return status == GAVEL_ERR_NOT_FOUND ? GAVEL_OK : status;
    add_rivals(race);
    race->field_count = race->servers->store_count + 1;
    for (size_t i = 0; i < race->field_count; i++)
        field_open(&race->fields[i], bench, i ? &race->servers->stores[i - 1] : NULL);
    status = start_parallel(race);
    if (status == GAVEL_OK)
        status = take_turns(race);
    if (status == GAVEL_OK)
        status = await_parallel(race);
    enum gavel_status fields = tell_fields(race, "SIGKILL");
    enum gavel_status parallel = tell_parallel(race, "SIGKILL");
    race_free(race);
    return status != GAVEL_OK ? status : fields ? fields : parallel;
}

enum gavel_status bench_stores_freeze(struct bench *bench, struct rig *rig)
{
    enum gavel_status status;
    struct race *race = race_new(bench, rig, SIGSTOP, &status);

    if (!race)
        return status == GAVEL_ERR_NOT_FOUND ? GAVEL_OK : status;
    for (size_t i = 0; i < race->servers->store_count; i++)
        add_contender(race, "gavel run", race->servers->stores[i].name, gavel_command,
                      race->servers->stores[i].url);
    add_rivals(race);
    status = start_parallel(race);
    if (status == GAVEL_OK)
        status = await_parallel(race);
    enum gavel_status parallel = tell_parallel(race, "SIGSTOP");
    race_free(race);
    return status != GAVEL_OK ? status : parallel;
}
