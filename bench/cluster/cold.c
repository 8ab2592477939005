/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three nodes are started at once, until the first of them has claimed: with
 * empty directories, bootstrapped, and then once more with the directories as SIGKILL
 * of everything has left them.
 */
#include "bench/cluster/cluster.h"

#include "os/clock.h"

#include <signal.h>

enum { NEW, AGAIN, SERIES };

struct contest {
    struct samples series[SERIES];
    size_t failed;
};

/* Ends guards and nodes without a word. */
static enum gavel_status kill_all(struct cluster *cluster)
{
    struct bench_cluster_status said[CLUSTER_NODES];
    gavel_ns until = clock_now() + CLUSTER_LIMIT_NS;
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++)
        status = bench_cluster_ask_status(cluster, i, until, &said[i]);
    for (size_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++)
        status = local_cluster_signal(&cluster->cluster, i, SIGKILL);
    for (size_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++) {
        status = local_cluster_await_end(&cluster->cluster, i, until, NULL);
        if (status == GAVEL_OK)
            status = bench_cluster_await_death(said[i].pid, until);
    }
    return status;
}

static enum gavel_status await_claim(struct contest *contest, struct cluster *cluster, size_t series,
                                     gavel_ns began)
{
    struct bench_cluster_event claim;
    enum gavel_status status =
        bench_cluster_expect(cluster, "became_leader", began, began + CLUSTER_LIMIT_NS, &claim);

    if (status == GAVEL_ERR_STOPPED)
        return status;
    samples_add(&contest->series[series], status != GAVEL_OK ? CLUSTER_LIMIT_NS : claim.at - began);
    contest->failed += status != GAVEL_OK;
    return GAVEL_OK;
}

static enum gavel_status start_again(struct contest *contest, struct cluster *cluster)
{
    struct bench_cluster_status said[CLUSTER_NODES];
    size_t leader;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &leader, said);

    if (status == GAVEL_OK)
        status = kill_all(cluster);
    bench_cluster_forget(cluster);
    gavel_ns began = clock_now();
    for (size_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++)
        status = local_cluster_start_node(&cluster->cluster, i, NULL);
    return status != GAVEL_OK ? status : await_claim(contest, cluster, AGAIN, began);
}

/* The cluster that bench_with_cluster() has started only shows that it can be; each trial has its own. */
static enum gavel_status run(struct cluster *cluster)
{
    struct report *report = &cluster->bench->report;
    const struct aim aim = {.max = 1000};
    struct contest contest = {0};
    struct gavel_error error = {0};
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < cluster->bench->trials && status == GAVEL_OK; i++) {
        trial_cluster_close(cluster);
        gavel_ns began = clock_now();
        status = trial_cluster_open(cluster, &error);
        if (status == GAVEL_OK)
            status = await_claim(&contest, cluster, NEW, began);
        else
            report_note(report, "%s", error.message);
        if (status == GAVEL_OK)
            status = start_again(&contest, cluster);
    }
    report_samples(report, "three new nodes to the first claim", &contest.series[NEW], NS_PER_MS, "ms", aim);
    report_samples(report, "three nodes started again to the first claim", &contest.series[AGAIN], NS_PER_MS,
                   "ms", aim);
    bench_cluster_note(cluster, contest.failed);
    if (status == GAVEL_OK && contest.failed)
        status = GAVEL_ERR_TIMEOUT;
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&contest.series[i]);
    return status;
}

enum gavel_status bench_cluster_cold(struct bench *bench, struct rig *rig)
{
    return bench_with_cluster(bench, rig, run);
}
