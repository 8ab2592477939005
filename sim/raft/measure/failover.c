/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fail-over times. A trial is a world of its own: the cluster elects its first
 * leader, works under load for a while, something happens to the leader, and
 * the clock runs from there until another node claims.
 *
 * Trials are shared out to several processes; the samples are in memory that
 * all of them share.
 */

#include "sim/raft/measure/failover.h"

#include "base/histogram.h"
#include "sim/common/planted.h"
#include "sim/common/pool.h"
#include "sim/raft/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define DELAY_MIN (100 * NS_PER_US)
#define DELAY_MAX (10 * NS_PER_MS)

/* Within which 99.9 % of all must end. */
#define AIM NS_PER_S
#define AIM_PER_MILLE 999

/* A trial that takes longer has failed. */
#define PATIENCE (30 * NS_PER_S)
#define STEP (20 * NS_PER_MS)

/* What a failed trial took: longer than any other. */
#define FAILED INT64_MAX

static void crash_with_obituary(struct cluster *cluster, struct host *leader)
{
    host_die(cluster, leader, true, "fault of the trial");
}

static void crash_without_obituary(struct cluster *cluster, struct host *leader)
{
    host_die(cluster, leader, false, "fault of the trial");
}

static void hang(struct cluster *cluster, struct host *leader) { host_freeze(cluster, leader, NEVER, false); }

static void cut(struct cluster *cluster, const struct host *leader, bool is_out, bool is_in)
{
    for (unsigned slot = 0; slot < cluster->used; slot++) {
        if (slot == leader->slot)
            continue;
        if (is_out)
            net_cut(cluster, leader->slot, slot, NEVER, ALL_KINDS);
        if (is_in)
            net_cut(cluster, slot, leader->slot, NEVER, ALL_KINDS);
    }
}

static void partition(struct cluster *cluster, struct host *leader) { cut(cluster, leader, true, true); }
static void mute(struct cluster *cluster, struct host *leader) { cut(cluster, leader, true, false); }
static void deafen(struct cluster *cluster, struct host *leader) { cut(cluster, leader, false, true); }

static const struct {
    const char *name;
    void (*strike)(struct cluster *cluster, struct host *leader);
} kinds[] = {
    {"crash with obituary", crash_with_obituary},
    {"crash without", crash_without_obituary},
    {"hang", hang},
    {"partition, both ways", partition},
    {"partition, not heard", mute},
    {"partition, hears nothing", deafen},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static const unsigned sizes[] = {3, 5};
#define SIZES (sizeof sizes / sizeof *sizes)
#define ROWS (KINDS * SIZES)

struct failover {
    uint64_t first_seed;
    gavel_ns *samples; /* row by row; shared by all processes */
    uint64_t trials;
};

/* Who has claimed since the fault. */
struct observer {
    const struct host *victim; /* NULL before the fault */
    gavel_ns claimed_at;       /* 0: not yet */
};

static void claimed(void *context, struct cluster *cluster, struct host *host)
{
    struct observer *observer = context;

    if (host != observer->victim && observer->claimed_at == 0)
        observer->claimed_at = cluster->now;
}

/* Runs until somebody has claimed; false if nobody does, or something breaks. */
static bool wait_for_claim(struct cluster *cluster, struct observer *observer)
{
    gavel_ns limit = cluster->now + PATIENCE;

    observer->claimed_at = 0;
    for (gavel_ns at = cluster->now + STEP; observer->claimed_at == 0 && at < limit; at += STEP)
        if (!cluster_advance(cluster, at))
            return false;
    return observer->claimed_at != 0;
}

/* How long it took; or FAILED and why, if nobody came or something broke. */
static gavel_ns run_trial(struct cluster *cluster, size_t row, uint64_t seed, const char **ret_why)
{
    struct observer observer = {0};
    struct profile profile;
    struct prng prng;
    struct host *leader;
    gavel_ns struck_at;

    prng_seed(&prng, seed);
    cluster_profile_plain(&profile, sizes[row % SIZES], DELAY_MIN, DELAY_MAX);
    cluster_begin(cluster, &profile, seed);
    cluster->watch.claimed = claimed;
    cluster->watch.context = &observer;
    *ret_why = "there was no first leader";
    if (!wait_for_claim(cluster, &observer))
        return FAILED;
    struck_at = cluster->now + prng_between(&prng, 500 * NS_PER_MS, 1500 * NS_PER_MS);
    *ret_why = "nobody led when the fault was due";
    if (!cluster_advance(cluster, struck_at))
        return FAILED;
    leader = cluster_worker(cluster);
    if (!leader)
        return FAILED;
    observer.victim = leader;
    struck_at = cluster->now;
    kinds[row / SIZES].strike(cluster, leader);
    *ret_why = "nobody has claimed after the fault";
    if (!wait_for_claim(cluster, &observer))
        return FAILED;
    return observer.claimed_at - struck_at;
}

/* With one trial per row, each row has the seed after that of the row before it. */
static void print_failed(uint64_t seed, size_t row, const char *why)
{
    (void)printf("FAILED: seed %" PRIu64 " (%s, %u nodes): %s\n"
                 "  replay: gavel-sim raft --failover --trials 1 --from %" PRIu64,
                 seed, kinds[row / SIZES].name, sizes[row % SIZES], why, seed - row);
    if (planted_bug != PLANTED_BUG_NONE)
        (void)printf(" --planted %s", planted_name(planted_bug));
    (void)printf("\n");
    (void)fflush(stdout); /* the process may end without */
}

static void *begin_process(const void *context)
{
    (void)context;
    return cluster_new();
}

static void end_process(const void *context, void *memory)
{
    (void)context;
    cluster_free(memory);
}

static bool run_seed(void *memory, const void *context, uint64_t seed, uint64_t counts[POOL_COUNTS])
{
    const struct failover *failover = context;
    uint64_t which = seed - failover->first_seed;
    size_t row = which / failover->trials;
    struct cluster *cluster = memory;
    const char *why;
    gavel_ns took = run_trial(cluster, row, seed, &why);

    failover->samples[which] = took;
    counts[0] += took <= AIM;
    if (took == FAILED)
        print_failed(seed, row, cluster->what[0] ? cluster->what : why);
    return took == FAILED;
}

static int compare(const void *a, const void *b)
{
    gavel_ns left = *(const gavel_ns *)a;
    gavel_ns right = *(const gavel_ns *)b;

    return (left > right) - (left < right);
}

static double ms(gavel_ns ns) { return (double)ns / (double)NS_PER_MS; }

/* A failed trial has no time: where it would stand, there is none. */
static void print_time(gavel_ns took)
{
    if (took == FAILED)
        (void)printf(" %9s", "-");
    else
        (void)printf(" %9.1f", ms(took));
}

static void print_row(const char *name, unsigned nodes, gavel_ns *samples, size_t count)
{
    size_t in_time = 0;

    qsort(samples, count, sizeof *samples, compare);
    for (size_t i = 0; i < count; i++)
        in_time += samples[i] <= AIM;
    (void)printf("%-26s %5u %8zu", name, nodes, count);
    print_time(percentile_of_sorted(samples, count, 50));
    print_time(percentile_of_sorted(samples, count, 99));
    print_time(percentile_of_sorted(samples, count, 99.9));
    print_time(samples[count - 1]);
    (void)printf(" %9.3f %%\n", 100.0 * (double)in_time / (double)count);
}

int failover_measure(uint64_t trials, uint64_t first_seed, unsigned jobs)
{
    uint64_t total = trials * ROWS;
    struct failover failover = {.first_seed = first_seed, .trials = trials};
    struct pool_work work = {
        .begin = begin_process, .run = run_seed, .end = end_process, .context = &failover};
    struct pool_result result;

    failover.samples = mmap(NULL, total * sizeof *failover.samples, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (failover.samples == MAP_FAILED) {
        (void)fputs("gavel-sim: no memory for the samples\n", stderr);
        return 1;
    }
    for (uint64_t i = 0; i < total; i++)
        failover.samples[i] = FAILED; /* also if its process dies */
    pool_run(&work, first_seed, total, jobs, &result);
    (void)printf("from the fault to the claim of another node, in ms of simulated time\n"
                 "(default settings, messages take up to %d ms, under load)\n\n"
                 "%-26s %5s %8s %9s %9s %9s %9s %11s\n",
                 (int)ms_from_ns(DELAY_MAX), "fault of the leader", "nodes", "trials", "p50", "p99", "p99.9",
                 "max", "within 1 s");
    for (size_t row = 0; row < ROWS; row++)
        print_row(kinds[row / SIZES].name, sizes[row % SIZES], failover.samples + row * trials, trials);
    (void)printf("\n%llu trials, %.3f %% within 1 s, %llu failed, %.1f s\n", (unsigned long long)result.done,
                 100.0 * (double)result.counts[0] / (double)total, (unsigned long long)result.failed,
                 result.seconds);
    (void)munmap(failover.samples, total * sizeof *failover.samples);
    return result.failed > 0 || result.counts[0] * 1000 < total * AIM_PER_MILLE;
}
