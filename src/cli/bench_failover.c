/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SIGKILL of the leading process until the next one's on_elected, with three
 * standbys. Beside it the same trial with flock(2): processes that block on a
 * lock which the kernel lets go when its holder dies. Nothing that notices a
 * death and wakes another process can be faster than that. What gavel adds is
 * a durable record with a new epoch, so the disk has a floor of its own here,
 * measured between the trials.
 */
#include "cli/bench.h"

#include "cli/elector.h"
#include "os/clock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#define MEMBERS 4
#define TRIAL_LIMIT_NS (20 * NS_PER_S)
#define PAUSE_NS (50 * NS_PER_MS)

/* A trial of either kind: how a member lives, and how the driver knows that a standby is ready. */
struct contest {
    post_run run;
    void *user;
    bool has_epochs; /* a standby is ready when it knows the leader; else when it has joined */
};

/* Waits for the lock for ever, and holds it until killed. */
static int flock_run(const struct post *post, void *user)
{
    char path[CREW_FOLDER_MAX + 16];

    (void)user;
    (void)snprintf(path, sizeof(path), "%s/lock", post->crew->folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return 1;
    post_mark(post, MARK_JOINED, 0, clock_now(), getpid());
    if (flock(fd, LOCK_EX) < 0)
        return 1;
    post_mark(post, MARK_ELECTED, 0, clock_now(), getpid());
    while (post_listen(post, clock_now() + NS_PER_S) != CREW_QUIT)
        ;
    return 0;
}

static enum gavel_status start(struct crew *crew, const struct contest *contest, uint32_t member)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "member-%u", (unsigned)member);
    return crew_start(crew, member, name, contest->run, contest->user, NULL);
}

/* Everybody but the leader stands by. The one that was started last is looked for from `from` on. */
static enum gavel_status await_standbys(const struct crew *crew, const struct contest *contest,
                                        const struct mark *leader, uint32_t newcomer, size_t from)
{
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < MEMBERS && !status; i++) {
        struct mark_query query = {.kind = contest->has_epochs ? MARK_KNOWS : MARK_JOINED,
                                   .member = i,
                                   .epoch_at_least = leader->epoch,
                                   .from = i == newcomer ? from : 0};
        struct mark ignored;
        if (i != leader->member)
            status = crew_expect(crew, &query, clock_now() + TRIAL_LIMIT_NS, &ignored);
    }
    return status;
}

/* Kills the leader; *leader is the next one afterwards, and the dead one has been replaced. */
static enum gavel_status trial(struct crew *crew, const struct contest *contest, struct mark *leader,
                               struct samples *samples, struct samples *disk)
{
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .from = crew_mark_count(crew)};
    uint32_t victim = leader->member;
    gavel_ns sent_at, dead_at;

    bench_pause(crew, PAUSE_NS);
    enum gavel_status status = crew_kill(crew, victim, &sent_at, &dead_at);
    if (!status)
        status = crew_expect(crew, &query, clock_now() + TRIAL_LIMIT_NS, leader);
    if (status)
        return status;
    samples_add(samples, leader->at - sent_at);
    bench_sync(crew, disk);
    size_t from = crew_mark_count(crew);
    status = start(crew, contest, victim);
    return status ? status : await_standbys(crew, contest, leader, victim, from);
}

static enum gavel_status run_contest(struct bench *bench, struct crew *crew, const struct contest *contest,
                                     struct samples *samples, struct samples *disk)
{
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .from = crew_mark_count(crew)};
    size_t from = query.from;
    struct mark leader;
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < MEMBERS && !status; i++)
        status = start(crew, contest, i);
    if (!status)
        status = crew_expect(crew, &query, clock_now() + TRIAL_LIMIT_NS, &leader);
    if (!status)
        status = await_standbys(crew, contest, &leader, leader.member, from);
    for (size_t i = 0; i < bench->trials && !status; i++)
        status = trial(crew, contest, &leader, samples, disk);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        gavel_ns ignored;
        (void)crew_kill(crew, i, &ignored, &ignored); /* who waits for a lock does not listen */
    }
    return status;
}

enum gavel_status bench_failover(struct bench *bench, struct crew *crew)
{
    struct elector_plan plan = {0};
    struct contest gavel = {.run = elector_run, .user = &plan, .has_epochs = true};
    struct contest floor = {.run = flock_run};
    struct samples gavel_samples = {0}, floor_samples = {0}, disk = {0}, ignored = {0};
    struct aim aim = {.p50 = 5, .p99 = 50};
    enum gavel_status status = run_contest(bench, crew, &floor, &floor_samples, &ignored);

    if (!status)
        status = run_contest(bench, crew, &gavel, &gavel_samples, &disk);
    report_samples(&bench->report, "SIGKILL to on_elected", &gavel_samples, NS_PER_MS, "ms", aim);
    report_samples(&bench->report, "floor: SIGKILL to flock(2) held", &floor_samples, NS_PER_MS, "ms",
                   (struct aim){0});
    if (!status)
        report_note(
            &bench->report, "at p50 gavel adds %.2f ms to what the kernel needs",
            (double)(samples_percentile(&gavel_samples, 50) - samples_percentile(&floor_samples, 50)) /
                NS_PER_MS);
    samples_done(&gavel_samples);
    samples_done(&floor_samples);
    samples_done(&disk);
    samples_done(&ignored);
    return status;
}
