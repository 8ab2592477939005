/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SIGKILL of the leading process until the next one's on_elected, with three
 * standbys. Beside it the same trial with flock(2): processes that block on a
 * lock which the kernel lets go when its holder dies. Nothing that notices a
 * death and wakes another process can be faster than that. What gavel adds is
 * a durable record with a new epoch, so the disk has a floor of its own here,
 * measured between the trials.
 */
#include "bench/bench.h"

#include "bench/props/participant.h"
#include "os/clock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#define MEMBERS 4
#define TRIAL_LIMIT_NS (20 * NS_PER_S)
#define PAUSE_NS (50 * NS_PER_MS)

/* A trial of either kind: how a member lives, and how the driver knows that a standby is ready. */
struct contest {
    member_run run;
    void *user;
    bool has_epochs; /* a standby is ready when it knows the leader; else when it has joined */
};

/* Waits for the lock for ever, and holds it until killed. */
static int flock_run(const struct member_context *context, void *user)
{
    char path[RIG_DIRECTORY_MAX + 16];

    (void)user;
    (void)snprintf(path, sizeof path, "%s/lock", context->rig->directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return 1;
    member_mark(context, MARK_JOINED, 0, clock_now(), getpid());
    if (flock(fd, LOCK_EX) < 0)
        return 1;
    member_mark(context, MARK_ELECTED, 0, clock_now(), getpid());
    while (member_listen(context, clock_now() + NS_PER_S) != RIG_QUIT)
        ;
    return 0;
}

static enum gavel_status start(struct rig *rig, const struct contest *contest, uint32_t member)
{
    char name[32];

    (void)snprintf(name, sizeof name, "member-%u", (unsigned)member);
    return rig_start(rig, member, name, contest->run, contest->user, NULL);
}

/* Everybody but the leader stands by. The one that was started last is looked for from `from` on. */
static enum gavel_status await_standbys(const struct rig *rig, const struct contest *contest,
                                        const struct mark *leader, uint32_t newcomer, size_t from)
{
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < MEMBERS && status == GAVEL_OK; i++) {
        struct mark_query query = {.kind = contest->has_epochs ? MARK_KNOWS : MARK_JOINED,
                                   .member = i,
                                   .epoch_at_least = leader->epoch,
                                   .from = i == newcomer ? from : 0};
        struct mark ignored;
        if (i != leader->member)
            status = rig_expect(rig, &query, clock_now() + TRIAL_LIMIT_NS, &ignored);
    }
    return status;
}

/* When the first of the standbys saw that the leader of that epoch is dead; it may be none. */
static void note_first_sight(const struct rig *rig, uint64_t epoch, size_t from, gavel_ns sent_at,
                             struct samples *samples)
{
    size_t count;
    const struct mark *marks = shared_log_marks(rig->shared_log, &count);
    gavel_ns first = NEVER;

    for (size_t i = from; i < count; i++)
        if (mark_kind(&marks[i]) == MARK_DEAD && marks[i].epoch == epoch)
            first = ns_min(first, marks[i].at);
    if (first != NEVER)
        samples_add(samples, first - sent_at);
}

struct results {
    struct samples latency; /* SIGKILL to the next leader */
    struct samples sight;   /* SIGKILL to a standby's word that the leader is dead */
    struct samples disk;    /* what a durable write takes, between the trials */
};

/* Kills the leader; *leader is the next one afterwards, and the dead one has been replaced. */
static enum gavel_status trial(struct rig *rig, const struct contest *contest, struct mark *leader,
                               struct results *results)
{
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .from = rig_mark_count(rig)};
    uint32_t victim = leader->member;
    uint64_t epoch = leader->epoch;
    gavel_ns sent_at, dead_at;

    bench_pause(rig, PAUSE_NS);
    enum gavel_status status = rig_kill(rig, victim, &sent_at, &dead_at);
    if (status == GAVEL_OK)
        status = rig_expect(rig, &query, clock_now() + TRIAL_LIMIT_NS, leader);
    if (status != GAVEL_OK)
        return status;
    samples_add(&results->latency, leader->at - sent_at);
    if (contest->has_epochs)
        note_first_sight(rig, epoch, query.from, sent_at, &results->sight);
    bench_sync(rig, &results->disk);
    size_t from = rig_mark_count(rig);
    status = start(rig, contest, victim);
    return status != GAVEL_OK ? status : await_standbys(rig, contest, leader, victim, from);
}

static enum gavel_status run_contest(struct bench *bench, struct rig *rig, const struct contest *contest,
                                     struct results *results)
{
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .from = rig_mark_count(rig)};
    size_t from = query.from;
    struct mark leader = {0};
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < MEMBERS && status == GAVEL_OK; i++)
        status = start(rig, contest, i);
    if (status == GAVEL_OK)
        status = rig_expect(rig, &query, clock_now() + TRIAL_LIMIT_NS, &leader);
    if (status == GAVEL_OK)
        status = await_standbys(rig, contest, &leader, leader.member, from);
    for (size_t i = 0; i < bench->trials && status == GAVEL_OK; i++)
        status = trial(rig, contest, &leader, results);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        gavel_ns ignored;
        (void)rig_kill(rig, i, &ignored, &ignored); /* who waits for a lock does not listen */
    }
    return status;
}

static void results_done(struct results *results)
{
    samples_done(&results->latency);
    samples_done(&results->sight);
    samples_done(&results->disk);
}

enum gavel_status bench_failover(struct bench *bench, struct rig *rig)
{
    struct contest gavel = {.run = participant_run, .has_epochs = true};
    struct contest lock = {.run = flock_run};
    struct results ours = {0}, floor = {0};
    struct aim aim = {.p50 = 5, .p99 = 50}, none = {0};
    struct report *report = &bench->report;
    enum gavel_status status = run_contest(bench, rig, &lock, &floor);

    if (status == GAVEL_OK)
        status = run_contest(bench, rig, &gavel, &ours);
    report_samples(report, "SIGKILL to on_elected", &ours.latency, NS_PER_MS, "ms", aim);
    report_samples(report, "of which: to a standby seeing the death", &ours.sight, NS_PER_MS, "ms", none);
    report_samples(report, "floor: SIGKILL to flock(2) held", &floor.latency, NS_PER_MS, "ms", none);
    report_samples(report, "floor: write 4 KiB, fdatasync", &ours.disk, NS_PER_MS, "ms", none);
    if (status == GAVEL_OK)
        report_note(report, "at p50 gavel takes %.2f ms more than the kernel and one durable write together",
                    (double)(samples_percentile(&ours.latency, 50) - samples_percentile(&floor.latency, 50) -
                             samples_percentile(&ours.disk, 50)) /
                        NS_PER_MS);
    results_done(&ours);
    results_done(&floor);
    return status;
}
