/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three nodes are started at once, until the first of them has claimed: with
 * empty folders, bootstrapped, and then once more with the folders as SIGKILL
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
static enum gavel_status kill_all(struct quorum *quorum)
{
    struct quorum_status said[QUORUM_NODES];
    gavel_ns until = clock_now() + QUORUM_LIMIT_NS;
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < QUORUM_NODES && !status; i++)
        status = quorum_ask_status(quorum, i, until, &said[i]);
    for (size_t i = 0; i < QUORUM_NODES && !status; i++)
        status = local_cluster_signal(&quorum->cluster, i, SIGKILL);
    for (size_t i = 0; i < QUORUM_NODES && !status; i++) {
        status = local_cluster_await_end(&quorum->cluster, i, until, NULL);
        if (!status)
            status = quorum_await_death(said[i].pid, until);
    }
    return status;
}

static enum gavel_status await_claim(struct contest *contest, struct quorum *quorum, size_t series,
                                     gavel_ns began)
{
    struct quorum_event claim;
    enum gavel_status status = quorum_expect(quorum, "became_leader", began, began + QUORUM_LIMIT_NS, &claim);

    if (status == GAVEL_ERR_STOPPED)
        return status;
    samples_add(&contest->series[series], status ? QUORUM_LIMIT_NS : claim.at - began);
    contest->failed += status != GAVEL_OK;
    return GAVEL_OK;
}

static enum gavel_status start_again(struct contest *contest, struct quorum *quorum)
{
    struct quorum_status said[QUORUM_NODES];
    size_t leader;
    enum gavel_status status = quorum_await_steady(quorum, 0, &leader, said);

    if (!status)
        status = kill_all(quorum);
    quorum_forget(quorum);
    gavel_ns began = clock_now();
    for (size_t i = 0; i < QUORUM_NODES && !status; i++)
        status = local_cluster_start_node(&quorum->cluster, i, NULL);
    return status ? status : await_claim(contest, quorum, AGAIN, began);
}

/* The cluster that quorum_with_cluster() has started only shows that it can be; each trial has its own. */
static enum gavel_status run(struct quorum *quorum)
{
    struct report *report = &quorum->bench->report;
    const struct aim aim = {.max = 1000};
    struct contest contest = {0};
    struct gavel_error error = {0};
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < quorum->bench->trials && !status; i++) {
        trial_quorum_close(quorum);
        gavel_ns began = clock_now();
        status = trial_quorum_open(quorum, &error);
        if (!status)
            status = await_claim(&contest, quorum, NEW, began);
        else
            report_note(report, "%s", error.message);
        if (!status)
            status = start_again(&contest, quorum);
    }
    report_samples(report, "three new nodes to the first claim", &contest.series[NEW], NS_PER_MS, "ms", aim);
    report_samples(report, "three nodes started again to the first claim", &contest.series[AGAIN], NS_PER_MS,
                   "ms", aim);
    quorum_note(quorum, contest.failed);
    if (!status && contest.failed)
        status = GAVEL_ERR_TIMEOUT;
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&contest.series[i]);
    return status;
}

enum gavel_status bench_quorum_cold(struct bench *bench, struct crew *crew)
{
    return quorum_with_cluster(bench, crew, run);
}
