/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One election with three candidates, each a process: the one that leads is
 * killed, frozen, or gives up, until the next one knows that it leads.
 *
 *   kill      on this machine, by unix socket: a node sees the death by pidfd
 *   freeze    by TCP, and no process is told: the session has to run out
 *   resign    the leader hands over
 *   standbys  as kill, with up to a hundred candidates that wait for it
 *
 * Each with candidates that use libgavel over gavel://, as any program would,
 * and with candidates that campaign by sessions of the client protocol, as
 * those over HTTP do; standbys with libgavel only.
 */
#include "bench/sessions/sessions.h"

#include "bench/props/participant.h"
#include "os/clock.h"

#define MEMBERS 3 /* unless the section says otherwise */
#define TRIAL_LIMIT_NS (20 * NS_PER_S)
#define PAUSE_NS (50 * NS_PER_MS)
#define MANY_AFTER_FREEZE 20
#define FEW_AFTER_FREEZE 10
#define SHORT_TTL_MS 500
#define MOST_BESIDE_STANDBYS 100 /* trials: each standby writes a mark in each */
#define LARGEST_RATIO 1.5

static const uint32_t standbys[] = {3, 10, 30, 100};
#define STANDBYS (sizeof standbys / sizeof standbys[0])
#define QUICK_STANDBYS 2

_Static_assert(RIG_MAX > 100, "a hundred standbys and their leader are members");

enum fault { FAULT_KILL, FAULT_FREEZE, FAULT_HANDOVER };

struct contest {
    struct rig *rig;
    enum fault fault;
    uint32_t members;
    member_run run;
    void *user;
    struct mark leader;
    struct samples latency;
    struct samples disk;
};

static enum gavel_status start(const struct contest *contest, uint32_t member)
{
    char name[32];

    (void)snprintf(name, sizeof name, "member-%u", (unsigned)member);
    return rig_start(contest->rig, member, name, contest->run, contest->user, NULL);
}

static enum gavel_status await_standbys(struct contest *contest, size_t from)
{
    return sessions_await_standbys(contest->rig, 0, contest->members, from, TRIAL_LIMIT_NS, &contest->leader);
}

/* *ret_sent_at is right before the signal, or when the leader was about to give up. */
static enum gavel_status inflict(struct contest *contest, gavel_ns *ret_sent_at)
{
    struct mark_query query = {
        .kind = MARK_RESIGN, .member = contest->leader.member, .from = rig_mark_count(contest->rig)};
    uint32_t victim = contest->leader.member;
    struct mark resigned;
    gavel_ns ignored;

    if (contest->fault == FAULT_KILL)
        return rig_kill(contest->rig, victim, ret_sent_at, &ignored);
    if (contest->fault == FAULT_FREEZE)
        return rig_freeze(contest->rig, victim, ret_sent_at);
    rig_tell(contest->rig, victim, RIG_RESIGN);
    enum gavel_status status = rig_expect(contest->rig, &query, clock_now() + TRIAL_LIMIT_NS, &resigned);
    if (status == GAVEL_OK)
        *ret_sent_at = resigned.at;
    return status;
}

static enum gavel_status trial(struct contest *contest)
{
    struct rig *rig = contest->rig;
    size_t from = rig_mark_count(rig);
    struct mark_query query = {.kind = MARK_ELECTED,
                               .member = ANY_MEMBER,
                               .epoch_at_least = contest->leader.epoch + 1,
                               .from = from};
    uint32_t victim = contest->leader.member;
    gavel_ns sent_at;

    bench_pause(rig, PAUSE_NS);
    enum gavel_status status = inflict(contest, &sent_at);
    if (status == GAVEL_OK)
        status = rig_expect(rig, &query, clock_now() + TRIAL_LIMIT_NS, &contest->leader);
    if (status != GAVEL_OK)
        return status;
    /* If nobody came forward the same one may lead again; that is no hand-over. Nor is it one if it had lost
     * the mandate before. */
    if (contest->leader.member != victim && contest->leader.at >= sent_at)
        samples_add(&contest->latency, contest->leader.at - sent_at);
    bench_sync(rig, &contest->disk);
    if (contest->fault == FAULT_FREEZE)
        sessions_end(rig, victim);
    if (contest->fault != FAULT_HANDOVER)
        status = start(contest, victim);
    return status != GAVEL_OK ? status : await_standbys(contest, from);
}

static enum gavel_status run_contest(struct contest *contest, size_t trials)
{
    size_t from = rig_mark_count(contest->rig);
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .from = from};
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < contest->members && status == GAVEL_OK; i++)
        status = start(contest, i);
    if (status == GAVEL_OK)
        status = rig_expect(contest->rig, &query, clock_now() + TRIAL_LIMIT_NS, &contest->leader);
    if (status == GAVEL_OK)
        status = await_standbys(contest, from);
    for (size_t i = 0; i < 2 * trials && contest->latency.count < trials && status == GAVEL_OK; i++)
        status = trial(contest);
    for (uint32_t i = 0; i < contest->members; i++)
        sessions_end(contest->rig, i);
    return status;
}

static struct client_load_plan candidate_plan(const struct cluster *cluster, bool is_tcp, uint32_t ttl_ms,
                                              const char *group)
{
    struct client_load_plan plan = {.target_count = 1,
                                    .connections = 1,
                                    .ttl_ms = ttl_ms,
                                    .tells_process = !is_tcp,
                                    .is_candidate = true,
                                    .own = {.count = 1}};

    sessions_target(cluster, is_tcp, plan.targets[0]);
    (void)snprintf(plan.own.prefix, sizeof plan.own.prefix, "%s", group);
    return plan;
}

/* The same fault for candidates of both kinds. */
static enum gavel_status run_both(struct cluster *cluster, enum fault fault, const char *what, struct aim aim)
{
    struct report *report = &cluster->bench->report;
    struct client_load_plan plan = candidate_plan(cluster, false, SESSIONS_TTL_MS, "one");
    char url[SESSIONS_URL_BYTES], name[96];
    struct contest ours = {
        .rig = cluster->rig, .fault = fault, .members = MEMBERS, .run = participant_run, .user = url};
    struct contest session = {
        .rig = cluster->rig, .fault = fault, .members = MEMBERS, .run = client_load_run, .user = &plan};
    struct bench_cluster_status said[CLUSTER_NODES];
    size_t leader;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &leader, said);

    if (status != GAVEL_OK)
        return status;
    sessions_url(cluster, url);
    status = run_contest(&ours, cluster->bench->trials);
    if (status == GAVEL_OK)
        status = run_contest(&session, cluster->bench->trials);
    (void)snprintf(name, sizeof name, "%s to on_elected, libgavel", what);
    report_samples(report, name, &ours.latency, NS_PER_MS, "ms", aim);
    (void)snprintf(name, sizeof name, "%s to the next leader, sessions", what);
    report_samples(report, name, &session.latency, NS_PER_MS, "ms", aim);
    for (size_t i = 0; i < session.disk.count; i++)
        samples_add(&ours.disk, session.disk.values[i]);
    report_samples(report, "floor: write 4 KiB, fdatasync", &ours.disk, NS_PER_MS, "ms", (struct aim){0});
    bench_cluster_note(cluster, 0);
    samples_done(&ours.latency);
    samples_done(&ours.disk);
    samples_done(&session.latency);
    samples_done(&session.disk);
    return status;
}

static enum gavel_status run_kill(struct cluster *cluster)
{
    return run_both(cluster, FAULT_KILL, "SIGKILL", (struct aim){.p50 = 5, .p99 = 50});
}

static enum gavel_status run_resign(struct cluster *cluster)
{
    return run_both(cluster, FAULT_HANDOVER, "resigning", (struct aim){.p50 = 5});
}

static enum gavel_status freeze(struct cluster *cluster, uint32_t ttl_ms, const char *group, size_t trials)
{
    struct client_load_plan plan = candidate_plan(cluster, true, ttl_ms, group);
    struct contest contest = {.rig = cluster->rig,
                              .fault = FAULT_FREEZE,
                              .members = MEMBERS,
                              .run = client_load_run,
                              .user = &plan};
    enum gavel_status status = run_contest(&contest, trials);
    char name[96];

    (void)snprintf(name, sizeof name, "SIGSTOP to the next leader, time to live %u ms", (unsigned)ttl_ms);
    report_samples(&cluster->bench->report, name, &contest.latency, NS_PER_MS, "ms",
                   (struct aim){.max = ttl_ms + 200});
    samples_done(&contest.latency);
    samples_done(&contest.disk);
    return status;
}

static enum gavel_status run_freeze(struct cluster *cluster)
{
    const struct bench *bench = cluster->bench;
    struct bench_cluster_status said[CLUSTER_NODES];
    size_t leader, most = bench->trials < MANY_AFTER_FREEZE ? bench->trials : MANY_AFTER_FREEZE;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &leader, said);

    if (status == GAVEL_OK)
        status = freeze(cluster, SHORT_TTL_MS, "short", most);
    if (status == GAVEL_OK && !bench->is_quick)
        status = freeze(cluster, SESSIONS_TTL_MS, "long", most < FEW_AFTER_FREEZE ? most : FEW_AFTER_FREEZE);
    report_note(
        &cluster->bench->report,
        "clients by TCP that tell of no process; their last keep-alive was up to a third of the time to live before the signal");
    bench_cluster_note(cluster, 0);
    return status;
}

/* The trials with so many standbys; what the disk needed beside them is added to `disk`. */
static enum gavel_status stand_by(struct cluster *cluster, uint32_t count, char *url, size_t trials,
                                  struct samples *ret_latency, struct samples *disk)
{
    struct contest contest = {
        .rig = cluster->rig, .fault = FAULT_KILL, .members = count + 1, .run = participant_run, .user = url};
    enum gavel_status status = run_contest(&contest, trials);

    for (size_t i = 0; i < contest.disk.count; i++)
        samples_add(disk, contest.disk.values[i]);
    samples_done(&contest.disk);
    *ret_latency = contest.latency; /* also what came before a failure */
    return status;
}

/* Beside the first of them, which has the fewest standbys. */
static void tell_standbys(struct report *report, struct samples *latency, size_t count)
{
    char name[96];

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%u standbys: SIGKILL to on_elected", (unsigned)standbys[i]);
        report_samples(report, name, &latency[i], NS_PER_MS, "ms", (struct aim){0});
    }
    for (size_t i = 1; i < count; i++) {
        if (!latency[0].count || !latency[i].count)
            continue;
        (void)snprintf(name, sizeof name, "%u standbys: p50 beside %u standbys", (unsigned)standbys[i],
                       (unsigned)standbys[0]);
        report_value(report, name,
                     (double)samples_percentile(&latency[i], 50) /
                         (double)samples_percentile(&latency[0], 50),
                     "times", (struct aim){.p50 = i + 1 == STANDBYS ? LARGEST_RATIO : 0});
    }
}

static enum gavel_status run_standbys(struct cluster *cluster)
{
    const struct bench *bench = cluster->bench;
    size_t count = bench->is_quick ? QUICK_STANDBYS : STANDBYS, leader;
    size_t trials = bench->trials < MOST_BESIDE_STANDBYS ? bench->trials : MOST_BESIDE_STANDBYS;
    struct bench_cluster_status said[CLUSTER_NODES];
    struct samples latency[STANDBYS] = {0}, disk = {0};
    char url[SESSIONS_URL_BYTES];
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &leader, said);

    sessions_url(cluster, url);
    for (size_t i = 0; i < count && status == GAVEL_OK; i++)
        status = stand_by(cluster, standbys[i], url, trials, &latency[i], &disk);
    tell_standbys(&cluster->bench->report, latency, count);
    report_samples(&cluster->bench->report, "floor: write 4 KiB, fdatasync", &disk, NS_PER_MS, "ms",
                   (struct aim){0});
    bench_cluster_note(cluster, 0);
    for (size_t i = 0; i < count; i++)
        samples_done(&latency[i]);
    samples_done(&disk);
    return status;
}

enum gavel_status bench_sessions_kill(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run_kill, NULL);
}

enum gavel_status bench_sessions_resign(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run_resign, NULL);
}

enum gavel_status bench_sessions_freeze(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run_freeze, NULL);
}

enum gavel_status bench_sessions_standbys(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run_standbys, NULL);
}
