/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The leader is lost, until another has claimed: its no-op is committed, and
 * it holds a lease. Lost in three ways:
 *
 *   kill      its node process dies; its guard sends the obituary
 *   kill-all  guard and node die at once: the promise of the others has to
 *             run out
 *   freeze    the node process is stopped: likewise, and when it goes on it
 *             must not say that it leads
 */
#include "bench/cluster/cluster.h"

#include "os/clock.h"

#include <signal.h>
#include <string.h>

/* A node that has just been started withholds its vote; so long after that none does. */
#define SETTLED_NS NS_PER_S
#define PAUSE_NS (50 * NS_PER_MS)

enum fault { FAULT_KILL, FAULT_KILL_ALL, FAULT_FREEZE };

enum { CLAIM, OBITUARY, ELECTION, ELECTED, FOUND, WOKEN, FOLLOWS, DISK, SERIES };

struct contest {
    enum fault fault;
    struct samples series[SERIES];
    size_t failed;
    size_t wrong; /* answers of one that was frozen, by which it leads */
    size_t answers;
};

/* The nodes' own word on the way to the claim; not all of them happen with every fault. */
static void note_stages(struct contest *contest, const struct cluster *cluster, gavel_ns sent_at)
{
    gavel_ns obituary = bench_cluster_first(cluster, "leader_down", NULL, sent_at);
    gavel_ns election = ns_min(bench_cluster_first(cluster, "role_changed", "pre-candidate", sent_at),
                               bench_cluster_first(cluster, "role_changed", "candidate", sent_at));
    gavel_ns elected = bench_cluster_first(cluster, "role_changed", "leader", sent_at);

    if (obituary != NEVER)
        samples_add(&contest->series[OBITUARY], obituary - sent_at);
    if (election != NEVER)
        samples_add(&contest->series[ELECTION], election - sent_at);
    if (elected != NEVER)
        samples_add(&contest->series[ELECTED], elected - sent_at);
}

/* Asks the nodes that were not hurt until both name the new leader. */
static enum gavel_status find_leader(struct contest *contest, struct cluster *cluster, size_t victim,
                                     const struct bench_cluster_event *claim)
{
    gavel_ns until = clock_now() + CLUSTER_LIMIT_NS;
    char name[CLUSTER_NAME_MAX];

    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        if (i == victim)
            continue;
        do {
            if (rig_is_interrupted())
                return GAVEL_ERR_STOPPED;
            enum gavel_status status = bench_cluster_ask_leader(cluster, i, until, name);
            if (status != GAVEL_OK)
                return status;
        } while (bench_cluster_find(cluster, name) != claim->node);
        samples_add(&contest->series[FOUND], clock_now() - claim->at);
    }
    return GAVEL_OK;
}

/* What the woken one answers, counted. Both must be of the same node. */
static enum gavel_status hear_woken(struct contest *contest, const struct cluster *cluster, size_t victim,
                                    const struct http_answer *leader, const struct http_answer *status,
                                    size_t *ret_leader)
{
    char name[CLUSTER_NAME_MAX];
    struct bench_cluster_status said;
    enum gavel_status result = bench_cluster_read_leader(leader, name);

    if (!result)
        result = bench_cluster_read_status(status, &said);
    if (result)
        return result;
    *ret_leader = bench_cluster_find(cluster, name);
    contest->answers += 2;
    contest->wrong += (*ret_leader == victim) + said.has_lease;
    return GAVEL_OK;
}

/*
 * Lets the frozen one go on. The first two questions lie with it already, so
 * that it answers them before it has heard anything from the others.
 */
static enum gavel_status wake(struct contest *contest, struct cluster *cluster, size_t victim, pid_t pid,
                              size_t new_leader)
{
    struct http_answer *answers = cluster->woken;
    uint16_t port = local_cluster_node(&cluster->cluster, victim)->api_port;
    gavel_ns until = clock_now() + CLUSTER_LIMIT_NS, woken_at = 0;
    size_t leader = CLUSTER_NODES, rounds = 0;
    struct http_line lines[2];
    enum gavel_status status = GAVEL_OK;

    http_line_init(&lines[0], port);
    http_line_init(&lines[1], port);
    while (status == GAVEL_OK && leader != new_leader) {
        status = http_line_ask(&lines[0], "GET", "/leader", NULL);
        if (status == GAVEL_OK)
            status = http_line_ask(&lines[1], "GET", "/status", NULL);
        if (!rounds && status == GAVEL_OK) {
            bench_cluster_pause(cluster, 2 * PAUSE_NS);
            woken_at = clock_now();
            if (kill(pid, SIGCONT) < 0)
                status = GAVEL_ERR_IO;
        }
        for (size_t i = 0; i < 2 && status == GAVEL_OK; i++)
            status = http_line_hear(&lines[i], until, &answers[i]);
        if (status == GAVEL_OK)
            status = hear_woken(contest, cluster, victim, &answers[0], &answers[1], &leader);
        if (status == GAVEL_OK && !rounds++)
            samples_add(&contest->series[WOKEN], clock_now() - woken_at);
        if (status == GAVEL_OK && (rig_is_interrupted() || clock_now() > until))
            status = rig_is_interrupted() ? GAVEL_ERR_STOPPED : GAVEL_ERR_TIMEOUT;
    }
    if (status == GAVEL_OK)
        samples_add(&contest->series[FOLLOWS], clock_now() - woken_at);
    (void)kill(pid, SIGCONT); /* whatever went wrong, it shall be able to leave */
    http_line_close(&lines[0]);
    http_line_close(&lines[1]);
    return status;
}

static enum gavel_status inflict(struct cluster *cluster, enum fault fault, size_t victim,
                                 const struct bench_cluster_status *said, gavel_ns *ret_sent_at)
{
    gavel_ns sent_at = clock_now();

    /* The guard first: one that lives on for a moment would tell of the death. */
    if (fault == FAULT_KILL_ALL && local_cluster_signal(&cluster->cluster, victim, SIGKILL) != GAVEL_OK)
        return GAVEL_ERR_IO;
    if (kill(said->pid, fault == FAULT_FREEZE ? SIGSTOP : SIGKILL) < 0 && fault != FAULT_KILL_ALL)
        return GAVEL_ERR_IO;
    *ret_sent_at = sent_at;
    return GAVEL_OK;
}

static enum gavel_status start_again(struct cluster *cluster, size_t victim, pid_t pid)
{
    gavel_ns until = clock_now() + CLUSTER_LIMIT_NS;
    enum gavel_status status = local_cluster_await_end(&cluster->cluster, victim, until, NULL);

    if (status == GAVEL_OK)
        status = bench_cluster_await_death(pid, until);
    return status != GAVEL_OK ? status : local_cluster_start_node(&cluster->cluster, victim, NULL);
}

/* One that was not over in time counts as the limit, and goes on with whoever leads. */
static enum gavel_status trial(struct contest *contest, struct cluster *cluster)
{
    struct bench_cluster_status said[CLUSTER_NODES];
    struct bench_cluster_event claim = {0};
    gavel_ns sent_at;
    size_t victim;
    enum gavel_status status = bench_cluster_await_steady(cluster, SETTLED_NS, &victim, said);

    if (status != GAVEL_OK)
        return status;
    bench_cluster_pause(cluster, PAUSE_NS);
    bench_cluster_forget(cluster);
    status = inflict(cluster, contest->fault, victim, &said[victim], &sent_at);
    if (status != GAVEL_OK)
        return status;
    status = bench_cluster_expect(cluster, "became_leader", sent_at, sent_at + CLUSTER_LIMIT_NS, &claim);
    samples_add(&contest->series[CLAIM], status != GAVEL_OK ? CLUSTER_LIMIT_NS : claim.at - sent_at);
    if (status == GAVEL_OK) {
        status = find_leader(contest, cluster, victim, &claim);
        note_stages(contest, cluster, sent_at);
    }
    if (contest->fault == FAULT_FREEZE) {
        if (status != GAVEL_OK)
            (void)kill(said[victim].pid, SIGCONT); /* it shall be able to leave */
        else
            status = wake(contest, cluster, victim, said[victim].pid, claim.node);
    }
    if (status == GAVEL_ERR_STOPPED)
        return status;
    contest->failed += status != GAVEL_OK;
    bench_sync(cluster->rig, &contest->series[DISK]);
    return contest->fault == FAULT_KILL_ALL ? start_again(cluster, victim, said[victim].pid) : GAVEL_OK;
}

static void tell(struct contest *contest, struct cluster *cluster)
{
    static const char *const names[] = {
        [FAULT_KILL] = "SIGKILL of the node process to the next claim",
        [FAULT_KILL_ALL] = "SIGKILL of guard and node to the next claim",
        [FAULT_FREEZE] = "SIGSTOP of the node process to the next claim",
    };
    static const struct aim aims[] = {[FAULT_KILL] = {.p50 = 10, .p99 = 50},
                                      [FAULT_KILL_ALL] = {.p99 = 400},
                                      [FAULT_FREEZE] = {.p99 = 500}};
    struct report *report = &cluster->bench->report;
    struct samples *series = contest->series;
    const struct aim none = {0};

    report_samples(report, names[contest->fault], &series[CLAIM], NS_PER_MS, "ms", aims[contest->fault]);
    if (series[OBITUARY].count)
        report_samples(report, "of which: to the obituary at a peer", &series[OBITUARY], NS_PER_MS, "ms",
                       none);
    if (series[ELECTION].count)
        report_samples(report, "of which: to the beginning of an election", &series[ELECTION], NS_PER_MS,
                       "ms", none);
    if (series[ELECTED].count)
        report_samples(report, "of which: to a majority of votes", &series[ELECTED], NS_PER_MS, "ms", none);
    report_samples(report, "the claim to GET /leader naming it, on survivors", &series[FOUND], NS_PER_MS,
                   "ms", (struct aim){.max = 100});
    if (contest->fault == FAULT_FREEZE) {
        report_samples(report, "SIGCONT to the first answers of the old leader", &series[WOKEN], NS_PER_MS,
                       "ms", none);
        report_samples(report, "SIGCONT to the old leader naming the new one", &series[FOLLOWS], NS_PER_MS,
                       "ms", none);
        report_value(report, "answers by which a woken leader leads", (double)contest->wrong, "answers",
                     (struct aim){.is_none = true});
        report_note(
            report,
            "%zu answers of woken leaders were judged; the first ones were asked for while they were frozen",
            contest->answers);
    }
    report_samples(report, "floor: write 4 KiB, fdatasync", &series[DISK], NS_PER_MS, "ms", none);
    bench_cluster_note(cluster, contest->failed);
}

static enum gavel_status run_contest(struct cluster *cluster, enum fault fault)
{
    struct contest contest = {.fault = fault};
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < cluster->bench->trials && status == GAVEL_OK; i++)
        status = trial(&contest, cluster);
    tell(&contest, cluster);
    /* Whether a woken leader says so is no matter of speed. */
    if (status == GAVEL_OK && (contest.wrong || contest.failed))
        status = contest.wrong ? GAVEL_ERR_STATE : GAVEL_ERR_TIMEOUT;
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&contest.series[i]);
    return status;
}

static enum gavel_status run_kill(struct cluster *cluster) { return run_contest(cluster, FAULT_KILL); }
static enum gavel_status run_kill_all(struct cluster *cluster)
{
    return run_contest(cluster, FAULT_KILL_ALL);
}
static enum gavel_status run_freeze(struct cluster *cluster) { return run_contest(cluster, FAULT_FREEZE); }

enum gavel_status bench_cluster_kill(struct bench *bench, struct rig *rig)
{
    return bench_with_cluster(bench, rig, run_kill);
}

enum gavel_status bench_cluster_kill_all(struct bench *bench, struct rig *rig)
{
    return bench_with_cluster(bench, rig, run_kill_all);
}

enum gavel_status bench_cluster_freeze(struct bench *bench, struct rig *rig)
{
    return bench_with_cluster(bench, rig, run_freeze);
}
