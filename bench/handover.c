/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graceful hand-over between two processes. The leader notes when it is about
 * to call gavel_resign() and when its work has stopped; the other one notes
 * when its on_elected is entered. All three on the same clock.
 */
#include "bench/bench.h"

#include "bench/props/elector.h"
#include "os/clock.h"

#include <gavel/gavel.h>

#define TRIAL_LIMIT_NS (20 * NS_PER_S)
#define PAUSE_NS (50 * NS_PER_MS)

/* The leader of a higher epoch than `epoch`, and that the other one knows it. */
static enum gavel_status await_leader(const struct crew *crew, uint64_t epoch, struct mark *ret_elected)
{
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .epoch_at_least = epoch + 1};
    struct mark ignored;
    enum gavel_status status = crew_expect(crew, &query, clock_now() + TRIAL_LIMIT_NS, ret_elected);

    if (status)
        return status;
    query = (struct mark_query){
        .kind = MARK_KNOWS, .member = !ret_elected->member, .epoch_at_least = ret_elected->epoch};
    return crew_expect(crew, &query, clock_now() + TRIAL_LIMIT_NS, &ignored);
}

struct results {
    struct samples from_resign;
    struct samples from_stopped;
    struct samples disk;
};

/* Lets `leader` resign; it is the next leader afterwards. */
static enum gavel_status trial(struct crew *crew, struct mark *leader, gavel_ns settle,
                               struct results *results)
{
    struct mark_query resign = {.kind = MARK_RESIGN, .member = leader->member, .from = crew_mark_count(crew)};
    struct mark_query stop = {
        .kind = MARK_STOPPED, .member = leader->member, .epoch_at_least = leader->epoch, .from = resign.from};
    struct mark resigned, stopped, elected;

    bench_sync(crew, &results->disk);
    /* One that has resigned holds back for two heartbeats, which would be measured otherwise. */
    while (clock_now() < leader->at + settle && !crew_is_interrupted())
        witness_wait(crew->witness, witness_finished(crew->witness), leader->at + settle);
    bench_pause(crew, PAUSE_NS);
    crew_tell(crew, leader->member, CREW_RESIGN);
    enum gavel_status status = await_leader(crew, leader->epoch, &elected);
    if (!status)
        status = crew_expect(crew, &resign, clock_now(), &resigned);
    if (!status)
        status = crew_expect(crew, &stop, clock_now(), &stopped);
    if (status)
        return status;
    /* After a gap of two heartbeats the same one may lead again; that is no hand-over. */
    if (elected.member != leader->member) {
        samples_add(&results->from_resign, elected.at - resigned.at);
        samples_add(&results->from_stopped, elected.at - stopped.at);
    }
    *leader = elected;
    return GAVEL_OK;
}

enum gavel_status bench_handover(struct bench *bench, struct crew *crew)
{
    struct results results = {0};
    struct gavel_settings settings;
    struct mark leader;
    enum gavel_status status = gavel_settings_preset("local", &settings);

    if (!status)
        status = crew_start(crew, 0, "first", elector_run, NULL, NULL);
    if (!status)
        status = crew_start(crew, 1, "second", elector_run, NULL, NULL);
    if (!status)
        status = await_leader(crew, 0, &leader);
    gavel_ns settle = status ? 0 : ns_from_ms(2 * (settings.heartbeat_ms + settings.heartbeat_jitter_ms));
    /* One that did not count is made up for, within reason. */
    for (size_t i = 0; !status && results.from_resign.count < bench->trials && i < 2 * bench->trials; i++)
        status = trial(crew, &leader, settle, &results);

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
