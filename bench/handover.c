/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graceful hand-over between two processes. The leader notes when it is about
 * to call gavel_resign() and when its work has stopped; the other one notes
 * when its on_elected is entered. All three on the same clock.
 */
#include "bench/bench.h"

#include "bench/props/participant.h"
#include "os/clock.h"

#include <gavel/gavel.h>

#define TRIAL_LIMIT_NS (20 * NS_PER_S)
#define PAUSE_NS (50 * NS_PER_MS)

/* The leader of a higher epoch than `epoch`, and that the other one knows it. */
static enum gavel_status await_leader(const struct rig *rig, uint64_t epoch, struct mark *ret_elected)
{
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .epoch_at_least = epoch + 1};
    struct mark ignored;
    enum gavel_status status = rig_expect(rig, &query, clock_now() + TRIAL_LIMIT_NS, ret_elected);

    if (status != GAVEL_OK)
        return status;
    query = (struct mark_query){
        .kind = MARK_KNOWS, .member = !ret_elected->member, .epoch_at_least = ret_elected->epoch};
    return rig_expect(rig, &query, clock_now() + TRIAL_LIMIT_NS, &ignored);
}

struct results {
    struct samples from_resign;
    struct samples from_stopped;
    struct samples disk;
};

/* Lets `leader` resign; it is the next leader afterwards. */
static enum gavel_status trial(struct rig *rig, struct mark *leader, gavel_ns settle, struct results *results)
{
    struct mark_query resign = {.kind = MARK_RESIGN, .member = leader->member, .from = rig_mark_count(rig)};
    struct mark_query stop = {
        .kind = MARK_STOPPED, .member = leader->member, .epoch_at_least = leader->epoch, .from = resign.from};
    struct mark resigned, stopped, elected;

    bench_sync(rig, &results->disk);
    /* One that has resigned holds back for two heartbeats, which would be measured otherwise. */
    while (clock_now() < leader->at + settle && !rig_is_interrupted())
        shared_log_wait(rig->shared_log, shared_log_finished(rig->shared_log), leader->at + settle);
    bench_pause(rig, PAUSE_NS);
    rig_tell(rig, leader->member, RIG_RESIGN);
    enum gavel_status status = await_leader(rig, leader->epoch, &elected);
    if (status == GAVEL_OK)
        status = rig_expect(rig, &resign, clock_now(), &resigned);
    if (status == GAVEL_OK)
        status = rig_expect(rig, &stop, clock_now(), &stopped);
    if (status != GAVEL_OK)
        return status;
    /* After a gap of two heartbeats the same one may lead again; that is no hand-over. */
    if (elected.member != leader->member) {
        samples_add(&results->from_resign, elected.at - resigned.at);
        samples_add(&results->from_stopped, elected.at - stopped.at);
    }
    *leader = elected;
    return GAVEL_OK;
}

enum gavel_status bench_handover(struct bench *bench, struct rig *rig)
{
    struct results results = {0};
    struct gavel_settings settings;
    struct mark leader;
    enum gavel_status status = gavel_settings_preset("local", &settings);

    if (status == GAVEL_OK)
        status = rig_start(rig, 0, "first", participant_run, NULL, NULL);
    if (status == GAVEL_OK)
        status = rig_start(rig, 1, "second", participant_run, NULL, NULL);
    if (status == GAVEL_OK)
        status = await_leader(rig, 0, &leader);
    gavel_ns settle =
        status != GAVEL_OK ? 0 : ns_from_ms(2 * (settings.heartbeat_ms + settings.heartbeat_jitter_ms));
    /* One that did not count is made up for, within reason. */
    for (size_t i = 0;
         status == GAVEL_OK && results.from_resign.count < bench->trials && i < 2 * bench->trials; i++)
        status = trial(rig, &leader, settle, &results);

    struct aim aim = {.p50 = 10, .p99 = 50};
    report_samples(&bench->report, "gavel_resign() to on_elected", &results.from_resign, NS_PER_MS, "ms",
                   aim);
    report_samples(&bench->report, "work stopped to on_elected", &results.from_stopped, NS_PER_MS, "ms",
                   (struct aim){0});
    report_samples(&bench->report, "floor: write 4 KiB, fdatasync", &results.disk, NS_PER_MS, "ms",
                   (struct aim){0});
    samples_done(&results.from_resign);
    samples_done(&results.disk);
    samples_done(&results.from_stopped);
    return status;
}
