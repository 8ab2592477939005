/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What three nodes cost that have nothing to do: the CPU time of node process
 * and guard together over a while, and their memory after it. RSS counts
 * pages that both share twice, and those of libraries in full; PSS counts
 * each page by its share.
 */
#include "bench/cluster/cluster.h"

#include "os/clock.h"

#include <inttypes.h>

#define WINDOW_NS (20 * NS_PER_S)
#define WINDOW_QUICK_NS (2 * NS_PER_S)
#define SETTLED_NS (2 * NS_PER_S)
#define KIB_PER_MIB 1024.0

static void tell(struct report *report, const char *who, const struct bench_cluster_cost *before,
                 const struct bench_cluster_cost *after, gavel_ns passed)
{
    char name[64];

    (void)snprintf(name, sizeof name, "CPU of %s", who);
    report_value(report, name, (double)(after->cpu - before->cpu) * 100 / (double)passed, "% of a core",
                 (struct aim){.p50 = 1});
    (void)snprintf(name, sizeof name, "RSS of %s, node and guard", who);
    report_value(report, name, (double)after->rss_kib / KIB_PER_MIB, "MiB", (struct aim){.p50 = 15});
    (void)snprintf(name, sizeof name, "RSS of %s, node process alone", who);
    report_value(report, name, (double)after->node_rss_kib / KIB_PER_MIB, "MiB", (struct aim){0});
    (void)snprintf(name, sizeof name, "PSS of %s, node and guard", who);
    report_value(report, name, (double)after->pss_kib / KIB_PER_MIB, "MiB", (struct aim){0});
}

static enum gavel_status run(struct cluster *cluster)
{
    gavel_ns window = cluster->bench->is_quick ? WINDOW_QUICK_NS : WINDOW_NS;
    struct bench_cluster_status said[CLUSTER_NODES], later[CLUSTER_NODES];
    struct bench_cluster_cost before[CLUSTER_NODES], after;
    size_t leader, ignored;
    enum gavel_status status = bench_cluster_await_steady(cluster, SETTLED_NS, &leader, said);

    if (status != GAVEL_OK)
        return status;
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        before[i] = bench_cluster_cost_of(&said[i]);
    gavel_ns began = clock_now();
    /* Nothing is asked meanwhile, and no stream is heard. */
    while (clock_now() < began + window && !rig_is_interrupted())
        shared_log_wait(cluster->rig->shared_log, shared_log_finished(cluster->rig->shared_log),
                        began + window);
    gavel_ns passed = clock_now() - began;
    if (rig_is_interrupted())
        return GAVEL_ERR_STOPPED;
    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        char who[32] = "the leader";
        if (i != leader)
            (void)snprintf(who, sizeof who, "the follower %s",
                           local_cluster_node(&cluster->cluster, i)->name);
        after = bench_cluster_cost_of(&said[i]);
        tell(&cluster->bench->report, who, &before[i], &after, passed);
    }
    status = bench_cluster_await_steady(cluster, 0, &ignored, later);
    if (status == GAVEL_OK)
        report_note(&cluster->bench->report, "over %.1f s; %" PRIu64 " elections meanwhile",
                    (double)passed / NS_PER_S, later[ignored].term - said[leader].term);
    bench_cluster_note(cluster, 0);
    return status;
}

enum gavel_status bench_cluster_idle(struct bench *bench, struct rig *rig)
{
    return bench_with_cluster(bench, rig, run);
}
