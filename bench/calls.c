/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What gavel_is_leader() costs, as a leader and as a standby. A single call is
 * shorter than reading the clock twice, so a sample is the mean of a thousand:
 * enough to time, too few to be interrupted often.
 * Samples are in picoseconds, for tenths of nanoseconds.
 */
#include "bench/bench.h"

#include "os/clock.h"

#include <gavel/gavel.h>

#define PS_PER_NS 1000
#define BATCH 1000
#define BATCHES 2000
#define BATCHES_QUICK 200
#define LIMIT_NS (60 * NS_PER_S)
#define ELECTION_LIMIT_MS 10000

enum { LEADER, STANDBY, EPOCH, CLOCK, SERIES };

static int64_t time_is_leader(const struct gavel_candidate *candidate, bool expected)
{
    size_t agreed = 0;
    gavel_ns began = clock_now();

    for (size_t i = 0; i < BATCH; i++)
        agreed += gavel_is_leader(candidate) == expected;
    gavel_ns took = clock_now() - began;
    /* One that answered otherwise on the way was measured as something else. */
    return agreed == BATCH ? took * PS_PER_NS / BATCH : -1;
}

static int64_t time_epoch(const struct gavel_candidate *candidate)
{
    volatile uint64_t sink = 0;
    gavel_ns began = clock_now();

    for (size_t i = 0; i < BATCH; i++)
        sink = sink + gavel_epoch(candidate);
    return (clock_now() - began) * PS_PER_NS / BATCH;
}

static int64_t time_clock(void)
{
    volatile gavel_ns sink = 0;
    gavel_ns began = clock_now();

    for (size_t i = 0; i < BATCH; i++)
        sink = clock_now();
    (void)sink;
    return (clock_now() - began) * PS_PER_NS / BATCH;
}

static enum gavel_status join(struct gavel *gavel, const char *group, bool eligible,
                              struct gavel_candidate **ret_candidate)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;

    options.group = group;
    options.eligible = eligible;
    return gavel_join(gavel, &options, ret_candidate, NULL);
}

static enum gavel_status measure(const struct member_context *context, struct gavel *gavel, size_t batches)
{
    struct gavel_candidate *leader = NULL;
    struct gavel_candidate *standby = NULL;
    struct gavel_ensure_options ensure = {.timeout_ms = ELECTION_LIMIT_MS};
    enum gavel_status status = join(gavel, "led", true, &leader);

    if (status == GAVEL_OK)
        status = join(gavel, "watched", false, &standby);
    if (status == GAVEL_OK)
        status = gavel_ensure_leader(leader, &ensure, NULL);
    for (size_t i = 0; status == GAVEL_OK && i < batches; i++) {
        int64_t leads = time_is_leader(leader, true);
        if (leads >= 0)
            bench_result(context, LEADER, leads);
        int64_t stands_by = time_is_leader(standby, false);
        if (stands_by >= 0)
            bench_result(context, STANDBY, stands_by);
        bench_result(context, EPOCH, time_epoch(leader));
        bench_result(context, CLOCK, time_clock());
    }
    return status;
}

static int run(const struct member_context *context, void *user)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel *gavel = NULL;

    options.store = "memory:bench";
    enum gavel_status status = gavel_open(&options, &gavel, NULL);
    if (status == GAVEL_OK)
        status = measure(context, gavel, *(const size_t *)user);
    (void)gavel_close(gavel); /* not from a callback, so it cannot be refused */
    return status != GAVEL_OK ? 1 : 0;
}

enum gavel_status bench_calls(struct bench *bench, struct rig *rig)
{
    struct samples series[SERIES] = {0};
    size_t batches = bench->is_quick ? BATCHES_QUICK : BATCHES;
    struct aim aim = {.p50 = 50};
    enum gavel_status status = bench_collect(rig, run, &batches, LIMIT_NS, series, SERIES);

    if (status == GAVEL_OK) {
        report_samples(&bench->report, "gavel_is_leader(), leader", &series[LEADER], PS_PER_NS, "ns", aim);
        report_samples(&bench->report, "gavel_is_leader(), standby", &series[STANDBY], PS_PER_NS, "ns", aim);
        report_samples(&bench->report, "gavel_epoch()", &series[EPOCH], PS_PER_NS, "ns", (struct aim){0});
        report_samples(&bench->report, "floor: clock_gettime(2)", &series[CLOCK], PS_PER_NS, "ns",
                       (struct aim){0});
        report_note(&bench->report, "each sample is the mean of %d calls", BATCH);
    }
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&series[i]);
    return status;
}
