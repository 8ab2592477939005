/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two processes with libgavel are candidates in the same thousand groups. The
 * one that leads them all is killed, until the other one's on_elected was
 * called for the first of them, and for the last. The killed one is started
 * again and stands by, and the next trial is the other's.
 */
#include "bench/sessions/library_load.h"

#include "os/clock.h"

#define GROUPS 1000
#define QUICK_GROUPS 100
/* Longer than a third of the time to live: so a trial begins at any moment between two keep-alives. */
#define PAUSE_NS NS_PER_S
#define LAST_MS 40

/* One trial for so many of the quicker ones: each waits until all groups have a standby again. */
#define FEWER 3

#define MEMBERS 2

struct contest {
    struct cluster *cluster;
    struct library_load_plan plan[MEMBERS];
    struct samples first;
    struct samples last;
    struct samples disk;
};

static enum gavel_status join(struct contest *contest, uint32_t member, enum client_load_news news)
{
    struct library_load_plan *plan = &contest->plan[member];
    struct mark ignored;
    enum gavel_status status =
        library_load_start(contest->cluster->rig, member, member ? "second" : "first", plan);

    return status != GAVEL_OK ? status
                              : sessions_tell(contest->cluster->rig, member, CLIENT_LOAD_CAMPAIGN, news,
                                              library_load_limit(plan->own.count), &ignored);
}

static enum gavel_status trial(struct contest *contest, uint32_t victim)
{
    struct rig *rig = contest->cluster->rig;
    uint32_t survivor = MEMBERS - 1 - victim;
    struct library_load_board *board = contest->plan[survivor].board;
    struct mark_query all = {.kind = MARK_RESULT, .member = survivor, .epoch_at_least = CLIENT_LOAD_HOLDS};
    gavel_ns sent_at = 0, ignored;
    struct mark held = {0};

    bench_pause(rig, PAUSE_NS);
    atomic_store(&board->first_at, 0);
    all.from = rig_mark_count(rig);
    enum gavel_status status = rig_kill(rig, victim, &sent_at, &ignored);
    if (status == GAVEL_OK)
        status =
            rig_expect(rig, &all, clock_now() + library_load_limit(contest->plan[survivor].own.count), &held);
    if (status != GAVEL_OK)
        return status;
    samples_add(&contest->first, atomic_load(&board->first_at) - sent_at);
    samples_add(&contest->last, held.at - sent_at);
    bench_sync(rig, &contest->disk);
    return join(contest, victim, CLIENT_LOAD_STANDS);
}

static uint64_t demotions(const struct contest *contest)
{
    uint64_t demoted = 0;

    for (size_t i = 0; i < MEMBERS; i++)
        demoted += atomic_load(&contest->plan[i].board->demoted);
    return demoted;
}

static void tell(struct contest *contest)
{
    struct report *report = &contest->cluster->bench->report;
    size_t groups = contest->plan[0].own.count;
    char name[96];

    (void)snprintf(name, sizeof name, "SIGKILL to the first on_elected of %zu", groups);
    report_samples(report, name, &contest->first, NS_PER_MS, "ms", (struct aim){0});
    (void)snprintf(name, sizeof name, "SIGKILL to the last on_elected of %zu", groups);
    report_samples(report, name, &contest->last, NS_PER_MS, "ms", (struct aim){.max = LAST_MS});
    report_value(report, "mandates lost without a SIGKILL", (double)demotions(contest), "mandates",
                 (struct aim){.is_none = true});
    report_samples(report, "floor: write 4 KiB, fdatasync", &contest->disk, NS_PER_MS, "ms", (struct aim){0});
    bench_cluster_note(contest->cluster, 0);
}

static enum gavel_status measure(struct contest *contest)
{
    const struct bench *bench = contest->cluster->bench;
    size_t trials = bench->is_quick ? bench->trials : (bench->trials + FEWER - 1) / FEWER, ignored;
    struct bench_cluster_status said[CLUSTER_NODES];
    enum gavel_status status = bench_cluster_await_steady(contest->cluster, 0, &ignored, said);

    if (status == GAVEL_OK)
        status = join(contest, 0, CLIENT_LOAD_HOLDS);
    if (status == GAVEL_OK)
        status = join(contest, 1, CLIENT_LOAD_STANDS);
    for (size_t i = 0; i < trials && status == GAVEL_OK; i++)
        status = trial(contest, i % MEMBERS);
    tell(contest);
    return status;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct contest contest = {.cluster = cluster};
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < MEMBERS; i++) {
        contest.plan[i] = (struct library_load_plan){
            .own = {.prefix = "many", .count = cluster->bench->is_quick ? QUICK_GROUPS : GROUPS},
            .board = library_load_board_new()};
        sessions_url(cluster, contest.plan[i].url);
        if (!contest.plan[i].board)
            status = GAVEL_ERR_NO_MEMORY;
    }
    if (status == GAVEL_OK)
        status = measure(&contest);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        sessions_end(cluster->rig, i);
        library_load_board_free(contest.plan[i].board);
    }
    samples_done(&contest.first);
    samples_done(&contest.last);
    samples_done(&contest.disk);
    return status;
}

enum gavel_status bench_sessions_many(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run, NULL);
}
