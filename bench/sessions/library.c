/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One process that leads many groups on a cluster with libgavel; a new cluster
 * for each number of groups:
 *
 *   floor    a handle is open and takes part in nothing: CPU and memory of the
 *            nodes and of the client
 *   acquire  from before it joins the first group until it leads all
 *   keep     nothing happens: the same as for the floor
 *
 * The process joins under default settings and does nothing when it leads, so
 * all that it needs is the election's.
 */
#include "bench/sessions/library_load.h"

#include "os/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define WINDOW_NS (20 * NS_PER_S)
#define QUICK_WINDOW_NS NS_PER_S
#define SETTLE_NS (2 * NS_PER_S)
#define SIZES_MAX 4

/* The number of groups that is held to aims. */
#define MAIN_SIZE 10000
#define ACQUIRE_MS 1000
#define NODES_CPU 3
#define CLIENT_CPU 2
#define CLIENT_MIB 64

enum { LEADER };

struct growth {
    size_t groups;
    gavel_ns acquire; /* 0: they were not led in time, or there is no gaveld */
    struct sessions_rest floor;
    struct sessions_rest led;
    uint64_t demoted; /* mandates that were lost though nothing happened */
};

static enum gavel_status measure(struct cluster *cluster, struct library_load_plan *plan,
                                 struct growth *growth)
{
    struct rig *rig = cluster->rig;
    gavel_ns window = cluster->bench->is_quick ? QUICK_WINDOW_NS : WINDOW_NS;
    gavel_ns settle = cluster->bench->is_quick ? 0 : SETTLE_NS;
    struct bench_cluster_status said[CLUSTER_NODES];
    struct mark held;
    size_t ignored;
    enum gavel_status status = bench_cluster_await_steady(cluster, settle, &ignored, said);

    if (status == GAVEL_OK)
        status = library_load_start(rig, LEADER, "library", plan);
    sessions_wait(rig, clock_now() + settle);
    if (status == GAVEL_OK)
        status = sessions_rest(cluster, said, LEADER, window, &growth->floor);
    if (status == GAVEL_OK)
        status = sessions_tell(rig, LEADER, CLIENT_LOAD_CAMPAIGN, CLIENT_LOAD_HOLDS,
                               library_load_limit(growth->groups), &held);
    if (status == GAVEL_ERR_TIMEOUT)
        report_note(&cluster->bench->report,
                    "%zu groups: only %" PRIu64 " of them were led after %" PRId64 " s", growth->groups,
                    atomic_load(&plan->board->elected) - atomic_load(&plan->board->demoted),
                    library_load_limit(growth->groups) / NS_PER_S);
    if (status != GAVEL_OK)
        return status;
    growth->acquire = held.at - atomic_load(&plan->board->began_at);
    sessions_wait(rig, clock_now() + settle);
    status = sessions_rest(cluster, said, LEADER, window, &growth->led);
    growth->demoted = atomic_load(&plan->board->demoted);
    return status;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct growth *growth = cluster->user;
    struct library_load_plan plan = {.own = {.prefix = "led", .count = growth->groups},
                                     .board = library_load_board_new()};
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    sessions_url(cluster, plan.url);
    if (plan.board)
        status = measure(cluster, &plan, growth);
    sessions_end(cluster->rig, LEADER);
    library_load_board_free(plan.board);
    if (growth->groups == cluster->bench->groups)
        bench_cluster_note(cluster, 0);
    return status;
}

static void tell(struct report *report, const struct growth *growth)
{
    bool is_main = growth->groups == MAIN_SIZE;
    const struct sessions_rest *led = &growth->led, *floor = &growth->floor;
    const struct aim none = {0};
    char name[96];

    if (!growth->acquire)
        return;
#define NAME(text) ((void)snprintf(name, sizeof name, "%zu groups: " text, growth->groups), name)
    report_value(report, NAME("until all are led"), (double)growth->acquire / NS_PER_MS, "ms",
                 (struct aim){.p50 = is_main ? ACQUIRE_MS : 0});
    report_value(report, NAME("CPU of three nodes, at rest"), led->nodes_cpu, "% of a core",
                 (struct aim){.p50 = is_main ? NODES_CPU : 0});
    report_value(report, NAME("floor: CPU of three nodes, without groups"), floor->nodes_cpu, "% of a core",
                 none);
    report_value(report, NAME("CPU of the client, at rest"), led->client_cpu, "% of a core",
                 (struct aim){.p50 = is_main ? CLIENT_CPU : 0});
    report_value(report, NAME("floor: CPU of the client, without groups"), floor->client_cpu, "% of a core",
                 none);
    report_value(report, NAME("RSS of a node and its guard, at most"), led->node_rss_mib, "MiB", none);
    report_value(report, NAME("floor: RSS of a node and its guard, without groups"), floor->node_rss_mib,
                 "MiB", none);
    report_value(report, NAME("RSS of the client"), led->client_rss_mib, "MiB",
                 (struct aim){.p50 = is_main ? CLIENT_MIB : 0});
    report_value(report, NAME("floor: RSS of the client, without groups"), floor->client_rss_mib, "MiB",
                 none);
    report_value(report, NAME("mandates lost meanwhile"), (double)growth->demoted, "mandates",
                 (struct aim){.is_none = true});
#undef NAME
}

/* For the plot of growth, which is no curve of shares. */
static void write_growth(struct report *report, const struct growth *growths, size_t count)
{
    char path[PATH_MAX];

    if (!report->out || snprintf(path, sizeof path, "%s/growth-library.csv", report->out) >= PATH_MAX)
        return;
    FILE *file = fopen(path, "we");
    if (!file) {
        report_note(report, "cannot write %s: %s", path, strerror(errno));
        return;
    }
    (void)fprintf(file, "groups,acquire_ms,nodes_cpu_percent,client_cpu_percent,node_rss_mib,client_rss_mib,"
                        "floor_nodes_cpu_percent,floor_client_cpu_percent\n");
    for (size_t i = 0; i < count; i++)
        if (growths[i].acquire)
            (void)fprintf(file, "%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f\n", growths[i].groups,
                          (double)growths[i].acquire / NS_PER_MS, growths[i].led.nodes_cpu,
                          growths[i].led.client_cpu, growths[i].led.node_rss_mib,
                          growths[i].led.client_rss_mib, growths[i].floor.nodes_cpu,
                          growths[i].floor.client_cpu);
    if (fclose(file) != 0)
        report_note(report, "cannot write %s: %s", path, strerror(errno));
}

/* 1,000, 10,000 and so on below the most that is asked for, and that. A quick run begins with 100. */
static size_t choose_sizes(const struct bench *bench, struct growth growths[static SIZES_MAX])
{
    size_t count = 0;

    for (size_t groups = bench->is_quick ? 100 : 1000; groups < bench->groups && count + 1 < SIZES_MAX;
         groups *= 10)
        growths[count++].groups = groups;
    growths[count++].groups = bench->groups;
    return count;
}

enum gavel_status bench_sessions_library(struct bench *bench, struct rig *rig)
{
    struct growth growths[SIZES_MAX] = {0};
    size_t count = choose_sizes(bench, growths);
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < count && status == GAVEL_OK; i++) {
        status = bench_with_clients(bench, rig, run, &growths[i]);
        tell(&bench->report, &growths[i]);
    }
    write_growth(&bench->report, growths, count);
    report_note(
        &bench->report,
        "one process with one handle of libgavel by unix sockets, default settings; each rest, with and "
        "without groups, took %" PRId64 " s; --groups N measures more or fewer",
        (bench->is_quick ? QUICK_WINDOW_NS : WINDOW_NS) / NS_PER_S);
    return status;
}
