/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SIGKILL of the node process of the cluster's leader, under clients that hold
 * many groups: no group may change its leader, and campaigns must be answered
 * again soon. One prober is connected to each node and campaigns again and
 * again, one at a time; measured is from the signal to the answer of the first
 * campaign that was sent after it. The prober of the node that died has to
 * connect to another one first.
 *
 *     prober   ── sent ─ answered ── sent ─────────── answered ── sent ─ answered ──
 *     signal                           ▲                                 ▲
 *                                      └──────────── measured ───────────┘
 *
 * The same with groups that a process leads with libgavel while another one
 * stands by for all of them (sessions-leader). There the probers are silent
 * until the signal, and then each writes a note, so that nothing is waited for
 * but its own acknowledgement:
 *
 *     prober                              sent ─────── answered ──
 *     signal                           ▲                  ▲
 *                                      └──── measured ────┘
 */
#include "bench/sessions/library_load.h"

#include "os/clock.h"

#include <signal.h>

#define GROUPS 1000
#define QUICK_LIBRARY_GROUPS 100
#define HOLDERS 10
#define PACE_NS (2 * NS_PER_MS)
#define SETTLED_NS NS_PER_S
#define PAUSE_NS (50 * NS_PER_MS)

/* One trial for so many of the quicker ones: each waits until the node is back. */
#define FEWER 3

enum { HOLDER, STANDBY, PROBER };
enum { SURVIVOR, RECONNECTED, SERIES };

struct contest {
    struct cluster *cluster;
    struct client_load_board *holders; /* NULL: libgavel leads the groups */
    struct client_load_board *probers;
    bool writes_when_told;
    struct samples series[SERIES];
};

static enum gavel_status await_answers(const struct contest *contest, gavel_ns until)
{
    const struct rig *rig = contest->cluster->rig;

    for (size_t i = 0; i < CLUSTER_NODES; i++)
        while (!atomic_load(&contest->probers->answered_at[i])) {
            uint32_t seen = shared_log_finished(rig->shared_log);
            if (rig_is_interrupted())
                return GAVEL_ERR_STOPPED;
            if (clock_now() >= until)
                return GAVEL_ERR_TIMEOUT;
            if (!atomic_load(&contest->probers->answered_at[i]))
                shared_log_wait(rig->shared_log, seen, ns_min(until, clock_now() + BENCH_LOOK_NS));
        }
    return GAVEL_OK;
}

/*
 * Probers begin where they belong; one that had to move stays where it is until the node that it is at dies.
 * So who has to connect again is known only of a client load that was started for the trial.
 */
static enum gavel_status start_probers(struct contest *contest, struct client_load_plan *plan)
{
    struct mark ignored;
    enum gavel_status status = sessions_start(contest->cluster->rig, PROBER, "prober", plan);

    if (status == GAVEL_OK)
        status = sessions_tell(contest->cluster->rig, PROBER, CLIENT_LOAD_CAMPAIGN, CLIENT_LOAD_HOLDS,
                               CLUSTER_LIMIT_NS, &ignored);
    if (status == GAVEL_OK && !contest->writes_when_told)
        rig_tell(contest->cluster->rig, PROBER, CLIENT_LOAD_WRITE);
    return status;
}

static enum gavel_status trial(struct contest *contest, struct client_load_plan *plan)
{
    struct cluster *cluster = contest->cluster;
    struct client_load_board *board = contest->probers;
    struct bench_cluster_status said[CLUSTER_NODES];
    size_t victim;
    enum gavel_status status = bench_cluster_await_steady(cluster, SETTLED_NS, &victim, said);

    if (status == GAVEL_OK)
        status = start_probers(contest, plan);
    if (status != GAVEL_OK)
        return status;
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        atomic_store(&board->answered_at[i], 0);
    bench_cluster_pause(cluster, PAUSE_NS);
    gavel_ns sent_at = clock_now();
    atomic_store(&board->since, sent_at);
    if (kill(said[victim].pid, SIGKILL) < 0)
        return GAVEL_ERR_IO;
    if (contest->writes_when_told)
        rig_tell(cluster->rig, PROBER, CLIENT_LOAD_WRITE);
    status = await_answers(contest, sent_at + CLUSTER_LIMIT_NS);
    atomic_store(&board->since, NEVER);
    for (size_t i = 0; i < CLUSTER_NODES && status != GAVEL_ERR_STOPPED; i++) {
        gavel_ns at = atomic_load(&board->answered_at[i]);
        samples_add(&contest->series[i == victim ? RECONNECTED : SURVIVOR],
                    at ? at - sent_at : CLUSTER_LIMIT_NS);
    }
    sessions_end(cluster->rig, PROBER);
    return status;
}

static void tell_changes(struct contest *contest, uint64_t changed, uint64_t lost)
{
    struct report *report = &contest->cluster->bench->report;

    report_value(report, "groups that changed their leader", (double)changed, "groups",
                 (struct aim){.is_none = true});
    report_value(report, "mandates or sessions lost meanwhile", (double)lost, "told to holders",
                 (struct aim){.is_none = true});
}

static enum gavel_status verify(struct contest *contest)
{
    struct mark verified;
    enum gavel_status status = sessions_tell(contest->cluster->rig, HOLDER, CLIENT_LOAD_VERIFY,
                                             CLIENT_LOAD_VERIFIED, CLUSTER_LIMIT_NS, &verified);
    uint64_t lost = atomic_load(&contest->holders->lost);

    if (status != GAVEL_OK)
        return status;
    tell_changes(contest, (uint64_t)verified.value, lost);
    /* That is no matter of speed. */
    return verified.value || lost ? GAVEL_ERR_STATE : GAVEL_OK;
}

static struct client_load_plan plan_probers(const struct contest *contest)
{
    struct client_load_plan plan = {.target_count = CLUSTER_NODES,
                                    .connections = CLUSTER_NODES,
                                    .ttl_ms = SESSIONS_TTL_MS,
                                    .tells_process = true,
                                    .own = {.prefix = "probe", .count = CLUSTER_NODES},
                                    .board = contest->probers};

    for (size_t i = 0; i < CLUSTER_NODES; i++)
        sessions_target_near(contest->cluster, i, plan.targets[i]);
    return plan;
}

static enum gavel_status measure(struct contest *contest)
{
    struct cluster *cluster = contest->cluster;
    const struct bench *bench = cluster->bench;
    size_t trials = bench->is_quick ? bench->trials : (bench->trials + FEWER - 1) / FEWER, ignored;
    struct client_load_plan holders = {.target_count = 1,
                                       .connections = HOLDERS,
                                       .ttl_ms = SESSIONS_TTL_MS,
                                       .tells_process = true,
                                       .own = {.prefix = "held", .count = GROUPS},
                                       .board = contest->holders};
    struct client_load_plan probers = plan_probers(contest);
    struct bench_cluster_status said[CLUSTER_NODES];
    struct mark mark;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &ignored, said);

    probers.pace = PACE_NS;
    sessions_target(cluster, false, holders.targets[0]);
    if (status == GAVEL_OK)
        status = sessions_start(cluster->rig, HOLDER, "holder", &holders);
    if (status == GAVEL_OK)
        status = sessions_tell(cluster->rig, HOLDER, CLIENT_LOAD_CAMPAIGN, CLIENT_LOAD_HOLDS,
                               CLUSTER_LIMIT_NS, &mark);
    for (size_t i = 0; i < trials && status == GAVEL_OK; i++)
        status = trial(contest, &probers);
    if (status == GAVEL_OK)
        status = bench_cluster_await_steady(cluster, 0, &ignored, said);
    report_samples(&cluster->bench->report, "SIGKILL to an answered campaign, by a surviving node",
                   &contest->series[SURVIVOR], NS_PER_MS, "ms", (struct aim){.p99 = 100});
    report_samples(&cluster->bench->report, "SIGKILL to an answered campaign, after connecting anew",
                   &contest->series[RECONNECTED], NS_PER_MS, "ms", (struct aim){.p99 = 100});
    if (status == GAVEL_OK)
        status = verify(contest);
    report_note(&cluster->bench->report, "%d groups were held by %d sessions meanwhile", GROUPS, HOLDERS);
    bench_cluster_note(cluster, 0);
    return status;
}

/* One process that leads all the groups, and one that waits for any of them. */
static enum gavel_status lead(struct contest *contest, struct library_load_plan *leader,
                              struct library_load_plan *standby)
{
    struct rig *rig = contest->cluster->rig;
    gavel_ns limit = library_load_limit(leader->own.count);
    struct mark ignored;
    enum gavel_status status = library_load_start(rig, HOLDER, "leader", leader);

    if (status == GAVEL_OK)
        status = sessions_tell(rig, HOLDER, CLIENT_LOAD_CAMPAIGN, CLIENT_LOAD_HOLDS, limit, &ignored);
    if (status == GAVEL_OK)
        status = library_load_start(rig, STANDBY, "standby", standby);
    if (status == GAVEL_OK)
        status = sessions_tell(rig, STANDBY, CLIENT_LOAD_CAMPAIGN, CLIENT_LOAD_STANDS, limit, &ignored);
    return status;
}

static enum gavel_status measure_library(struct contest *contest, struct library_load_plan *leader,
                                         struct library_load_plan *standby)
{
    struct cluster *cluster = contest->cluster;
    struct report *report = &cluster->bench->report;
    struct client_load_plan probers = plan_probers(contest);
    struct bench_cluster_status said[CLUSTER_NODES];
    size_t ignored;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &ignored, said);

    probers.writes_notes = true;
    if (status == GAVEL_OK)
        status = lead(contest, leader, standby);
    for (size_t i = 0; i < cluster->bench->trials && status == GAVEL_OK; i++)
        status = trial(contest, &probers);
    if (status == GAVEL_OK)
        status = bench_cluster_await_steady(cluster, 0, &ignored, said);
    report_samples(report, "SIGKILL to an acknowledged write, by a surviving node",
                   &contest->series[SURVIVOR], NS_PER_MS, "ms", (struct aim){.p50 = 6, .p99 = 15});
    report_samples(report, "SIGKILL to an acknowledged write, after connecting anew",
                   &contest->series[RECONNECTED], NS_PER_MS, "ms", (struct aim){0});
    /* No failure: a process that got too little time loses mandates, too, and others lead then. */
    if (status == GAVEL_OK)
        tell_changes(contest,
                     atomic_load(&leader->board->elected) - leader->own.count +
                         atomic_load(&standby->board->elected),
                     atomic_load(&leader->board->demoted));
    report_note(report, "%zu groups were led by one process with libgavel meanwhile, and another stood by",
                leader->own.count);
    bench_cluster_note(cluster, 0);
    return status;
}

static enum gavel_status run_library(struct cluster *cluster)
{
    struct contest contest = {
        .cluster = cluster, .probers = client_load_board_new(), .writes_when_told = true};
    struct library_load_plan leader = {
        .own = {.prefix = "held", .count = cluster->bench->is_quick ? QUICK_LIBRARY_GROUPS : GROUPS}};
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    sessions_url(cluster, leader.url);
    struct library_load_plan standby = leader;
    leader.board = library_load_board_new();
    standby.board = library_load_board_new();
    if (contest.probers && leader.board && standby.board)
        status = measure_library(&contest, &leader, &standby);
    for (uint32_t i = HOLDER; i <= PROBER; i++)
        sessions_end(cluster->rig, i);
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&contest.series[i]);
    client_load_board_free(contest.probers);
    library_load_board_free(leader.board);
    library_load_board_free(standby.board);
    return status;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct contest contest = {
        .cluster = cluster, .holders = client_load_board_new(), .probers = client_load_board_new()};
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    if (contest.holders && contest.probers)
        status = measure(&contest);
    sessions_end(cluster->rig, HOLDER);
    sessions_end(cluster->rig, PROBER);
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&contest.series[i]);
    client_load_board_free(contest.holders);
    client_load_board_free(contest.probers);
    return status;
}

enum gavel_status bench_sessions_node(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run, NULL);
}

enum gavel_status bench_sessions_leader(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run_library, NULL);
}
