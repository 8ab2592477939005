/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `gavel run`: from the SIGKILL of a part of the one that leads to the first
 * beat of the next one's command, with three that stand by.
 *
 *   kill(2) ── guard sees it ── tree dead ── release ── doorbell ── claim ── fork, exec ── beat
 *   └────────────────────────────────────── measured ──────────────────────────────────────┘
 *
 * Beside it the same with flock(1), trial by trial: four times `flock
 * --no-fork FILE COMMAND`, the same command, SIGKILL of the one that holds the
 * lock. With --no-fork flock(1) becomes the command, which thus holds the lock
 * itself until it is dead. Otherwise flock(1) is the command's parent: then
 * its SIGKILL either leaves the lock with the command, and nobody follows, or
 * with --close takes it away while the command still runs, and two do. So this
 * is the floor for what a lock of the kernel can do on one host; it has no
 * record that outlives it, no epoch and no deadline.
 */
#include "bench/bench.h"

#include "bench/props/runs.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Members of the rig: those of gavel, those of flock(1), `gavel handover`. */
#define MEMBERS 4
#define FLOCK_FIRST MEMBERS
#define HANDING_OVER (2 * MEMBERS)

#define TRIAL_LIMIT_NS (20 * NS_PER_S)
#define LOOK_AGAIN_NS (2 * NS_PER_MS)
#define PAUSE_NS (50 * NS_PER_MS)

/* One trial of the further kinds for so many of the first. */
#define FEWER 3

enum fault { FAULT_ELECTOR, FAULT_GUARD, FAULT_COMMAND, FAULT_HANDOVER };
#define FAULT_COUNT (FAULT_HANDOVER + 1)

struct contest {
    struct runs runs;
    struct mark leader; /* of gavel */
    struct mark holder; /* of the lock */
    bool has_flock;
    struct samples latency[FAULT_COUNT];
    struct samples floor;
    struct samples disk;
};

static enum gavel_status start(const struct contest *contest, uint32_t member)
{
    char name[32];

    (void)snprintf(name, sizeof name, "member-%u", (unsigned)member);
    return runs_start(&contest->runs, member, name, 0, NULL);
}

/* Everybody but the leader stands by. */
static enum gavel_status await_standbys(const struct contest *contest)
{
    gavel_ns until = clock_now() + TRIAL_LIMIT_NS;
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < MEMBERS && status == GAVEL_OK; i++)
        if (i != contest->leader.member)
            status = runs_await_standby(&contest->runs, i, contest->leader.epoch, until);
    return status;
}

/* The first beat of a later epoch. */
static enum gavel_status await_leader(struct contest *contest)
{
    struct mark_query query = {
        .kind = MARK_ELECTED, .member = ANY_MEMBER, .epoch_at_least = contest->leader.epoch + 1};

    return rig_expect(contest->runs.rig, &query, clock_now() + TRIAL_LIMIT_NS, &contest->leader);
}

static enum gavel_status trial(struct contest *contest, enum fault fault)
{
    static const enum run_part parts[] = {
        [FAULT_ELECTOR] = PART_ELECTOR, [FAULT_GUARD] = PART_GUARD, [FAULT_COMMAND] = PART_COMMAND};
    uint32_t victim = contest->leader.member;
    enum gavel_status status;
    gavel_ns sent_at;

    bench_sync(contest->runs.rig, &contest->disk);
    bench_pause(contest->runs.rig, PAUSE_NS);
    if (fault == FAULT_HANDOVER)
        status = runs_handover(&contest->runs, HANDING_OVER, &sent_at);
    else
        status = runs_kill(&contest->runs, &contest->leader, parts[fault], &sent_at);
    if (status == GAVEL_OK)
        status = await_leader(contest);
    if (status != GAVEL_OK)
        return status;
    samples_add(&contest->latency[fault], contest->leader.at - sent_at);
    status = runs_bury(&contest->runs, fault == FAULT_HANDOVER ? HANDING_OVER : victim,
                       clock_now() + TRIAL_LIMIT_NS);
    if (status == GAVEL_OK && fault != FAULT_HANDOVER)
        status = start(contest, victim);
    return status != GAVEL_OK ? status : await_standbys(contest);
}

/* Whether the process waits for a lock, by the kernel's own list. */
static bool is_waiting(pid_t pid)
{
    FILE *locks = fopen("/proc/locks", "re");
    char line[256];
    bool waits = false;
    int number;

    while (locks && !waits && fgets(line, sizeof line, locks))
        waits = sscanf(line, "%*d: -> FLOCK %*s %*s %d", &number) == 1 && number == pid;
    if (locks)
        (void)fclose(locks); /* only read from */
    return waits;
}

static enum gavel_status await_waiting(const struct rig *rig, uint32_t member)
{
    gavel_ns until = clock_now() + TRIAL_LIMIT_NS;

    while (!is_waiting(rig->members[member].pid)) {
        if (rig_is_interrupted())
            return GAVEL_ERR_STOPPED;
        if (clock_now() >= until)
            return GAVEL_ERR_TIMEOUT;
        shared_log_wait(rig->shared_log, shared_log_finished(rig->shared_log), clock_now() + LOOK_AGAIN_NS);
    }
    return GAVEL_OK;
}

static enum gavel_status start_flock(const struct contest *contest, uint32_t member)
{
    char path[RIG_DIRECTORY_MAX + 16], program[] = "flock", option[] = "--no-fork", name[32];
    struct beat_words text = {0};
    char *argv[3 + RUNS_BEAT_WORDS + 1] = {program, option, path};

    (void)snprintf(path, sizeof path, "%s/lock", contest->runs.rig->directory);
    (void)snprintf(name, sizeof name, "flock-%u", (unsigned)member);
    runs_beat_words(&contest->runs, member, 0, &text, argv + 3);
    return rig_start_program(contest->runs.rig, member, name, argv, NULL);
}

/* The next one with the lock that begins after `from`. */
static enum gavel_status await_holder(struct contest *contest, size_t from)
{
    struct mark_query query = {
        .kind = MARK_ELECTED, .member = ANY_MEMBER, .member_at_least = FLOCK_FIRST, .from = from};

    return rig_expect(contest->runs.rig, &query, clock_now() + TRIAL_LIMIT_NS, &contest->holder);
}

static enum gavel_status trial_flock(struct contest *contest)
{
    struct rig *rig = contest->runs.rig;
    uint32_t victim = contest->holder.member;
    size_t from = rig_mark_count(rig);
    gavel_ns sent_at, dead_at;

    bench_pause(rig, PAUSE_NS);
    enum gavel_status status = rig_kill(rig, victim, &sent_at, &dead_at);
    if (status == GAVEL_OK)
        status = await_holder(contest, from);
    if (status != GAVEL_OK)
        return status;
    samples_add(&contest->floor, contest->holder.at - sent_at);
    status = start_flock(contest, victim);
    return status != GAVEL_OK ? status : await_waiting(rig, victim);
}

/* Whether flock(1) is there and knows --no-fork, by trying. */
static bool has_flock(const struct contest *contest)
{
    char program[] = "flock", option[] = "--no-fork", command[] = "true";
    char path[RIG_DIRECTORY_MAX + 16];
    char *argv[] = {program, option, path, command, NULL};
    struct rig *rig = contest->runs.rig;

    (void)snprintf(path, sizeof path, "%s/lock", rig->directory);
    return rig_start_program(rig, FLOCK_FIRST, "flock", argv, NULL) == GAVEL_OK &&
           rig_await(rig, FLOCK_FIRST, clock_now() + TRIAL_LIMIT_NS) == GAVEL_OK;
}

static enum gavel_status assemble(struct contest *contest)
{
    struct rig *rig = contest->runs.rig;
    enum gavel_status status = GAVEL_OK;
    size_t from;

    contest->has_flock = has_flock(contest);
    from = rig_mark_count(rig);
    for (uint32_t i = FLOCK_FIRST; contest->has_flock && i < FLOCK_FIRST + MEMBERS && status == GAVEL_OK; i++)
        status = start_flock(contest, i);
    if (status == GAVEL_OK && contest->has_flock)
        status = await_holder(contest, from);
    for (uint32_t i = FLOCK_FIRST; contest->has_flock && i < FLOCK_FIRST + MEMBERS && status == GAVEL_OK; i++)
        if (i != contest->holder.member)
            status = await_waiting(rig, i);
    for (uint32_t i = 0; i < MEMBERS && status == GAVEL_OK; i++)
        status = start(contest, i);
    if (status == GAVEL_OK)
        status = await_leader(contest);
    return status != GAVEL_OK ? status : await_standbys(contest);
}

/* Not a figure: the next command found the one before still there. */
static size_t count_overlaps(const struct rig *rig)
{
    size_t count, overlaps = 0;
    const struct mark *marks = shared_log_marks(rig->shared_log, &count);

    for (size_t i = 0; i < count; i++)
        overlaps += mark_kind(&marks[i]) == MARK_OVERLAP;
    return overlaps;
}

static void tell(struct bench *bench, struct contest *contest)
{
    static const char *const names[FAULT_COUNT] = {
        [FAULT_ELECTOR] = "SIGKILL of the elector to the next beat",
        [FAULT_GUARD] = "SIGKILL of the guard to the next beat",
        [FAULT_COMMAND] = "SIGKILL of the command to the next beat",
        [FAULT_HANDOVER] = "gavel handover, started, to the next beat",
    };
    struct report *report = &bench->report;
    const struct aim aim = {.p50 = 5, .p99 = 50}, none = {0};
    size_t overlaps = count_overlaps(contest->runs.rig);

    report_samples(report, names[FAULT_ELECTOR], &contest->latency[FAULT_ELECTOR], NS_PER_MS, "ms", aim);
    if (contest->has_flock)
        report_samples(report, "floor: SIGKILL of flock(1) to the next beat", &contest->floor, NS_PER_MS,
                       "ms", none);
    report_samples(report, "floor: write 4 KiB, fdatasync", &contest->disk, NS_PER_MS, "ms", none);
    for (enum fault i = FAULT_GUARD; i < FAULT_COUNT; i++)
        report_samples(report, names[i], &contest->latency[i], NS_PER_MS, "ms", none);
    if (contest->has_flock)
        report_note(report,
                    "flock(1) is run with --no-fork, so that its lock excludes: the command holds it itself");
    else
        report_note(report,
                    "no floor by flock(1): it is missing or does not know --no-fork; install util-linux");
    if (overlaps)
        report_note(report, "%zu times the next command found the one before still running", overlaps);
    else
        report_note(report, "each command found the one before it dead");
}

enum gavel_status bench_runs(struct bench *bench, struct rig *rig)
{
    struct contest contest = {0};
    struct gavel_error error = {0};
    enum gavel_status status = runs_init(&contest.runs, rig, &error);
    size_t fewer = (bench->trials + FEWER - 1) / FEWER;

    if (status == GAVEL_OK)
        status = assemble(&contest);
    for (size_t i = 0; i < bench->trials && status == GAVEL_OK; i++) {
        status = trial(&contest, FAULT_ELECTOR);
        if (status == GAVEL_OK && contest.has_flock)
            status = trial_flock(&contest);
    }
    for (size_t i = 0; i < fewer && status == GAVEL_OK; i++)
        for (enum fault fault = FAULT_GUARD; fault < FAULT_COUNT && status == GAVEL_OK; fault++)
            status = trial(&contest, fault);
    if (status != GAVEL_OK && status != GAVEL_ERR_STOPPED)
        runs_print_logs(&contest.runs, MEMBERS, stderr);
    if (contest.runs.rig)
        tell(bench, &contest);
    if (status == GAVEL_OK && count_overlaps(rig))
        status = GAVEL_ERR_STATE;
    for (size_t i = 0; i < FAULT_COUNT; i++)
        samples_done(&contest.latency[i]);
    samples_done(&contest.floor);
    samples_done(&contest.disk);
    return status;
}
