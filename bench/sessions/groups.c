/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many groups on one cluster, held by one process with 100 connections, each
 * with a session of its own; a new cluster for each number of groups:
 *
 *   acquire    all campaigns are sent at once, until the last group is led
 *   keep       nothing happens but keep-alives: CPU and memory of the nodes
 *   writes     a write after the other on each connection, until all nodes
 *              have taken a snapshot of their tables: it must not make
 *              heartbeats late, nor bring on an election
 *   paced      the same at a rate that the nodes are not busy with, so that
 *              a write waits for the snapshot, and not for other writes
 *   fail over  another process holds further groups with one session, and
 *              the first stands by; SIGKILL of that one, until the last of
 *              these groups has its next leader
 */
#include "bench/sessions/sessions.h"

#include "os/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define CONNECTIONS 100
#define FAILING 1000
#define WINDOW_NS (60 * NS_PER_S)
#define SHORT_WINDOW_NS (10 * NS_PER_S)
#define QUICK_WINDOW_NS NS_PER_S
#define SETTLE_NS (2 * NS_PER_S)
#define ACQUIRE_LIMIT_NS (60 * NS_PER_S)
#define WRITE_LIMIT_NS (20 * NS_PER_S)
#define QUICK_WRITE_LIMIT_NS NS_PER_S
#define AFTER_SNAPSHOT_NS NS_PER_S /* what it leaves behind is freed in slices */
#define PACE_NS (100 * NS_PER_MS)  /* of one connection: all together write 1,000 times a second */
#define PACED_TEXT "1000/s"
#define SLOWEST_WRITE_MS 20

enum { SURVIVOR, HOLDER };

static const size_t sizes[] = {100, 1000, 10000, 50000};
#define SIZES (sizeof sizes / sizeof sizes[0])
#define MAIN_SIZE 10000 /* the one that is held to aims; paced writes from this one on */
#define LARGEST 50000   /* held to that of writes */
#define QUICK_SIZES 2
#define TRIALS 5
#define TRIALS_QUICK 1

struct writing {
    uint64_t count;
    gavel_ns elapsed;
    struct samples took;
    bool has_snapshot; /* of all nodes, since it began */
    uint64_t late;     /* heartbeats */
};

struct growth {
    size_t groups;
    gavel_ns acquire;
    struct sessions_rest rest;
    struct samples failover; /* until the last has its next leader */
    struct samples half;     /* until half of them have */
    struct writing hurried;
    struct writing paced;
    uint64_t late; /* heartbeats */
    uint64_t elections;
    uint64_t gaps; /* in watches */
};

/* What is being measured now. */
struct scene {
    struct cluster *cluster;
    struct growth *growth;
    struct client_load_plan survivor;
    struct client_load_plan holder;
    struct bench_cluster_status before[CLUSTER_NODES];
    size_t leader;
};

static enum gavel_status acquire(struct scene *scene)
{
    struct rig *rig = scene->cluster->rig;
    struct mark mark = {0};
    enum gavel_status status = sessions_start(rig, SURVIVOR, "survivor", &scene->survivor);
    gavel_ns began = clock_now();

    if (status == GAVEL_OK)
        status =
            sessions_tell(rig, SURVIVOR, CLIENT_LOAD_CAMPAIGN, CLIENT_LOAD_HOLDS, ACQUIRE_LIMIT_NS, &mark);
    if (status == GAVEL_OK)
        scene->growth->acquire = mark.at - began;
    return status;
}

static enum gavel_status keep(struct scene *scene)
{
    struct rig *rig = scene->cluster->rig;
    bool is_quick = scene->cluster->bench->is_quick;
    gavel_ns window = is_quick                             ? QUICK_WINDOW_NS
                      : scene->growth->groups == MAIN_SIZE ? WINDOW_NS
                                                           : SHORT_WINDOW_NS;

    sessions_wait(rig, clock_now() + (is_quick ? 0 : SETTLE_NS));
    return sessions_rest(scene->cluster, scene->before, SURVIVOR, window, &scene->growth->rest);
}

static enum gavel_status ask_all(struct scene *scene,
                                 struct bench_cluster_status ret_said[static CLUSTER_NODES])
{
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++)
        status = bench_cluster_ask_status(scene->cluster, i, clock_now() + CLUSTER_LIMIT_NS, &ret_said[i]);
    return status;
}

/* Whether every node's log begins later than before: it has a snapshot. */
static bool have_snapshots(const struct bench_cluster_status before[static CLUSTER_NODES],
                           const struct bench_cluster_status now[static CLUSTER_NODES])
{
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        if (now[i].snapshot <= before[i].snapshot)
            return false;
    return true;
}

static uint64_t late_since(const struct bench_cluster_status before[static CLUSTER_NODES],
                           const struct bench_cluster_status now[static CLUSTER_NODES])
{
    uint64_t late = 0;

    for (size_t i = 0; i < CLUSTER_NODES; i++)
        late += now[i].late_heartbeats - before[i].late_heartbeats;
    return late;
}

static enum gavel_status write_on(struct scene *scene, char letter, struct writing *writing)
{
    struct rig *rig = scene->cluster->rig;
    struct client_load_board *board = scene->survivor.board;
    struct bench_cluster_status before[CLUSTER_NODES] = {0}, now[CLUSTER_NODES] = {0};
    size_t from = atomic_load(&board->latency_count);
    /* A snapshot from before, when nobody wrote like this, does not count. */
    enum gavel_status status = ask_all(scene, before);
    gavel_ns began = clock_now();
    gavel_ns until = began + (scene->cluster->bench->is_quick ? QUICK_WRITE_LIMIT_NS : WRITE_LIMIT_NS);

    memcpy(now, before, sizeof now);
    rig_tell(rig, SURVIVOR, letter);
    while (status == GAVEL_OK && clock_now() < until) {
        sessions_wait(rig, ns_min(until, clock_now() + 4 * BENCH_LOOK_NS));
        status = rig_is_interrupted() ? GAVEL_ERR_STOPPED : ask_all(scene, now);
        if (status == GAVEL_OK && !writing->has_snapshot && have_snapshots(before, now)) {
            writing->has_snapshot = true;
            until = ns_min(until, clock_now() + AFTER_SNAPSHOT_NS);
        }
    }
    writing->elapsed = clock_now() - began;
    rig_tell(rig, SURVIVOR, CLIENT_LOAD_REST);
    size_t to = atomic_load(&board->latency_count);
    writing->count = to - from;
    for (size_t i = from; i < to; i++)
        samples_add(&writing->took, board->latencies[i]);
    writing->late = late_since(before, now);
    return status;
}

static enum gavel_status write_both_ways(struct scene *scene)
{
    struct growth *growth = scene->growth;
    bool is_quick = scene->cluster->bench->is_quick;
    enum gavel_status status = write_on(scene, CLIENT_LOAD_HURRY, &growth->hurried);

    if (status != GAVEL_OK || (growth->groups < MAIN_SIZE && !is_quick))
        return status;
    /* What is under way ends first. */
    sessions_wait(scene->cluster->rig, clock_now() + (is_quick ? 0 : SETTLE_NS));
    return write_on(scene, CLIENT_LOAD_WRITE, &growth->paced);
}

static enum gavel_status fail_over(struct scene *scene)
{
    struct rig *rig = scene->cluster->rig;
    /* All may be over before we hear of the death: news count from here on. */
    struct mark_query half = {.kind = MARK_RESULT,
                              .member = SURVIVOR,
                              .epoch_at_least = CLIENT_LOAD_HALF,
                              .from = rig_mark_count(rig)};
    struct mark_query all = {
        .kind = MARK_RESULT, .member = SURVIVOR, .epoch_at_least = CLIENT_LOAD_FOLLOWED, .from = half.from};
    gavel_ns sent_at = 0, ignored;
    struct mark mark = {0};
    enum gavel_status status = sessions_start(rig, HOLDER, "holder", &scene->holder);

    if (status == GAVEL_OK)
        status = sessions_tell(rig, HOLDER, CLIENT_LOAD_CAMPAIGN, CLIENT_LOAD_HOLDS, ACQUIRE_LIMIT_NS, &mark);
    if (status == GAVEL_OK)
        status =
            sessions_tell(rig, SURVIVOR, CLIENT_LOAD_STAND_BY, CLIENT_LOAD_STANDS, ACQUIRE_LIMIT_NS, &mark);
    if (status == GAVEL_OK)
        status = rig_kill(rig, HOLDER, &sent_at, &ignored);
    if (status == GAVEL_OK)
        status = rig_expect(rig, &all, clock_now() + CLUSTER_LIMIT_NS, &mark);
    if (status != GAVEL_OK)
        return status;
    samples_add(&scene->growth->failover, mark.at - sent_at);
    status = rig_expect(rig, &half, clock_now(), &mark);
    if (status == GAVEL_OK)
        samples_add(&scene->growth->half, mark.at - sent_at);
    return status != GAVEL_OK
               ? status
               : sessions_tell(rig, SURVIVOR, CLIENT_LOAD_LEAVE, CLIENT_LOAD_LEFT, ACQUIRE_LIMIT_NS, &mark);
}

/* Heartbeats that were late and elections, since everything was steady. */
static enum gavel_status look_at_calm(struct scene *scene)
{
    struct bench_cluster_status after[CLUSTER_NODES];
    size_t ignored;
    enum gavel_status status = bench_cluster_await_steady(scene->cluster, 0, &ignored, after);

    if (status != GAVEL_OK)
        return status;
    scene->growth->late = late_since(scene->before, after);
    scene->growth->elections = after[ignored].term - scene->before[scene->leader].term;
    return GAVEL_OK;
}

static enum gavel_status measure(struct scene *scene)
{
    struct cluster *cluster = scene->cluster;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &scene->leader, scene->before);

    sessions_target(cluster, false, scene->survivor.targets[0]);
    sessions_target(cluster, false, scene->holder.targets[0]);
    if (status == GAVEL_OK)
        status = acquire(scene);
    if (status == GAVEL_OK)
        status = keep(scene);
    for (size_t i = 0; i < (cluster->bench->is_quick ? TRIALS_QUICK : TRIALS) && status == GAVEL_OK; i++)
        status = fail_over(scene);
    if (status == GAVEL_OK)
        status = write_both_ways(scene);
    if (status == GAVEL_OK)
        status = look_at_calm(scene);
    scene->growth->gaps = atomic_load(&scene->survivor.board->gaps);
    if (status == GAVEL_OK && atomic_load(&scene->survivor.board->lost))
        status = GAVEL_ERR_STATE; /* a mandate that nobody asked for was lost: no matter of speed */
    sessions_end(cluster->rig, SURVIVOR);
    sessions_end(cluster->rig, HOLDER);
    if (scene->growth->groups == MAIN_SIZE || cluster->bench->is_quick)
        bench_cluster_note(cluster, 0);
    return status;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct growth *growth = cluster->user;
    struct client_load_board *board = client_load_board_new();
    struct scene scene = {.cluster = cluster,
                          .growth = growth,
                          .survivor = {.target_count = 1,
                                       .connections = CONNECTIONS,
                                       .ttl_ms = SESSIONS_TTL_MS,
                                       .tells_process = true,
                                       .own = {.prefix = "kept", .count = growth->groups},
                                       .others = {.prefix = "more", .count = FAILING},
                                       .pace = PACE_NS,
                                       .board = board},
                          .holder = {.target_count = 1,
                                     .connections = 1,
                                     .ttl_ms = SESSIONS_TTL_MS,
                                     .tells_process = true,
                                     .own = {.prefix = "more", .count = FAILING}}};
    enum gavel_status status = board ? measure(&scene) : GAVEL_ERR_NO_MEMORY;

    client_load_board_free(board);
    return status;
}

static double slowest_ms(struct writing *writing)
{
    return (double)samples_percentile(&writing->took, 100) / NS_PER_MS;
}

/* Without a snapshot in time a row says nothing about snapshots, so it has another name. */
static void tell_paced(struct report *report, struct growth *growth)
{
    struct writing *paced = &growth->paced;
    const char *with = paced->has_snapshot ? ", with a snapshot" : "";
    bool is_judged = paced->has_snapshot && growth->groups == LARGEST;
    char name[96];

    if (!paced->elapsed)
        return;
    (void)snprintf(name, sizeof name, "%zu groups: a write, at " PACED_TEXT, growth->groups);
    report_samples(report, name, &paced->took, NS_PER_MS, "ms", (struct aim){0});
    (void)snprintf(name, sizeof name, "%zu groups: slowest write at " PACED_TEXT "%s", growth->groups, with);
    report_value(report, name, slowest_ms(paced), "ms",
                 (struct aim){.p50 = is_judged ? SLOWEST_WRITE_MS : 0});
    (void)snprintf(name, sizeof name, "%zu groups: late heartbeats at " PACED_TEXT "%s", growth->groups,
                   with);
    report_value(report, name, (double)paced->late, "of all nodes", (struct aim){.is_none = true});
}

static void tell(struct report *report, struct growth *growth)
{
    struct writing *hurried = &growth->hurried;
    bool is_main = growth->groups == MAIN_SIZE;
    const struct aim none = {0};
    char name[96];

    if (!growth->acquire)
        return; /* there is no gaveld, or it came to nothing */
#define NAME(text) ((void)snprintf(name, sizeof name, "%zu groups: " text, growth->groups), name)
    report_value(report, NAME("until all are led"), (double)growth->acquire / NS_PER_MS, "ms", none);
    report_value(report, NAME("CPU of three nodes, at rest"), growth->rest.nodes_cpu, "% of a core",
                 (struct aim){.p50 = is_main ? 5 : 0});
    report_value(report, NAME("RSS of a node and its guard, at most"), growth->rest.node_rss_mib, "MiB",
                 none);
    report_samples(report, NAME("SIGKILL of who leads 1000, to the last's next leader"), &growth->failover,
                   NS_PER_MS, "ms", (struct aim){.max = is_main ? 100 : 0});
    report_samples(report, NAME("the same, to half of them"), &growth->half, NS_PER_MS, "ms", none);
    report_value(report, NAME("writes, one op each"),
                 hurried->elapsed ? (double)hurried->count * NS_PER_S / (double)hurried->elapsed : 0, "per s",
                 none);
    report_samples(report, NAME("a write"), &hurried->took, NS_PER_MS, "ms", none);
    report_value(report,
                 hurried->has_snapshot ? NAME("slowest write, with a snapshot") : NAME("slowest write"),
                 slowest_ms(hurried), "ms", none);
    tell_paced(report, growth);
    report_value(report, NAME("late heartbeats"), (double)growth->late, "of all nodes",
                 (struct aim){.is_none = true});
    report_value(report, NAME("elections of the cluster"), (double)growth->elections, "terms",
                 (struct aim){.is_none = true});
#undef NAME
    if (growth->gaps)
        report_note(report, "%zu groups: %" PRIu64 " times a watch could not keep up with the changes",
                    growth->groups, growth->gaps);
}

/* For the plot of growth, which is no curve of shares. */
static void write_growth(struct report *report, struct growth *growths, size_t count)
{
    char path[PATH_MAX];

    if (!report->out || snprintf(path, sizeof path, "%s/growth-sessions.csv", report->out) >= PATH_MAX)
        return;
    FILE *file = fopen(path, "we");
    if (!file) {
        report_note(report, "cannot write %s: %s", path, strerror(errno));
        return;
    }
    (void)fprintf(file, "groups,acquire_ms,cpu_percent,rss_mib,failover_ms\n");
    for (size_t i = 0; i < count; i++)
        if (growths[i].acquire)
            (void)fprintf(file, "%zu,%.3f,%.3f,%.3f,%.3f\n", growths[i].groups,
                          (double)growths[i].acquire / NS_PER_MS, growths[i].rest.nodes_cpu,
                          growths[i].rest.node_rss_mib,
                          (double)samples_percentile(&growths[i].failover, 50) / NS_PER_MS);
    if (fclose(file) != 0)
        report_note(report, "cannot write %s: %s", path, strerror(errno));
}

enum gavel_status bench_sessions_groups(struct bench *bench, struct rig *rig)
{
    struct growth growths[SIZES] = {0};
    size_t count = bench->is_quick ? QUICK_SIZES : SIZES;
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < count && status == GAVEL_OK; i++) {
        growths[i].groups = sizes[i];
        status = bench_with_clients(bench, rig, run, &growths[i]);
        tell(&bench->report, &growths[i]);
    }
    write_growth(&bench->report, growths, count);
    report_note(&bench->report,
                "%d connections of one process by unix sockets, a session of %d ms each; at rest for %" PRId64
                " s with %d groups, for %" PRId64 " s with others",
                CONNECTIONS, SESSIONS_TTL_MS, WINDOW_NS / NS_PER_S, MAIN_SIZE,
                (bench->is_quick ? QUICK_WINDOW_NS : SHORT_WINDOW_NS) / NS_PER_S);
    for (size_t i = 0; i < count; i++) {
        samples_done(&growths[i].failover);
        samples_done(&growths[i].half);
        samples_done(&growths[i].hurried.took);
        samples_done(&growths[i].paced.took);
    }
    return status;
}
