/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The defaults, and the sums that decide whether settings are safe and useful.
 *
 *   round sent                                             the promise ends
 *   ├─ heartbeat ─┼─ heartbeat ─┼─ slack ─┼─ stop_margin ─┼─ drift ─┤
 *                 │             │         │               └ the work has stopped
 *                 │             │         └ the work begins to stop (raft_deadline())
 *                 │             └ the answers to the next round must be back before that
 *                 └ one heartbeat may be lost
 *
 * Safety needs none of these sums: the lease is computed from what was really
 * promised. But without slack a leader stops at the first lost message.
 */

#include "base/error.h"
#include "base/time.h"
#include "core/raft/raft.h"

#include <stddef.h>
#include <string.h>

/* Longer times than this are a mistake of units, and would overflow sums. */
#define LONGEST (INT64_C(3600) * NS_PER_S)

#define BATCH_BYTES_MAX (64u << 20)
#define INFLIGHT_MAX 1024
#define UNCOMMITTED_ENTRIES_MAX (1u << 20)
#define UNCOMMITTED_BYTES_MAX (1u << 30)
#define VOTE_BURST_MAX 1000000

void raft_settings_default(struct raft_settings *ret_settings)
{
    *ret_settings = (struct raft_settings){
        .election_min = 150 * NS_PER_MS,
        .election_max = 300 * NS_PER_MS,
        .heartbeat = 50 * NS_PER_MS,
        .promise = 150 * NS_PER_MS,
        .stop_margin = 10 * NS_PER_MS,
        .drift_ppm = 1000,
        .transfer_timeout = 300 * NS_PER_MS,
        .auto_failover = true,
        .catch_up_timeout = 10 * NS_PER_S,
        .prefers_after = 5 * NS_PER_S,
        .batch_bytes = 64 * 1024,
        .batch_entries = 256,
        .inflight_max = 8,
        .uncommitted_entries = 8192,
        .uncommitted_bytes = 64u << 20,
        .disk_patience = NS_PER_S,
        .vote_burst = 16,
        .vote_refill = 20 * NS_PER_MS,
    };
}

/* The names are those that people set. */
static const struct {
    const char *name;
    size_t offset;
    gavel_ns least;
} times[] = {
#define TIME(field, least)                                                                                   \
    {                                                                                                        \
#field, offsetof(struct raft_settings, field), least                                                 \
    }
    TIME(election_min, 1), TIME(election_max, 1),     TIME(heartbeat, 1),        TIME(promise, 1),
    TIME(stop_margin, 1),  TIME(transfer_timeout, 1), TIME(catch_up_timeout, 1), TIME(prefers_after, 0),
    TIME(vote_refill, 1),  TIME(disk_patience, 1),
#undef TIME
};

static const struct {
    const char *name;
    size_t offset;
    uint32_t most;
} counts[] = {
#define COUNT(field, most)                                                                                   \
    {                                                                                                        \
#field, offsetof(struct raft_settings, field), most                                                  \
    }
    COUNT(batch_bytes, BATCH_BYTES_MAX),
    COUNT(batch_entries, RAFT_APPEND_ENTRIES_MAX),
    COUNT(inflight_max, INFLIGHT_MAX),
    COUNT(uncommitted_entries, UNCOMMITTED_ENTRIES_MAX),
    COUNT(uncommitted_bytes, UNCOMMITTED_BYTES_MAX),
    COUNT(vote_burst, VOTE_BURST_MAX),
#undef COUNT
};

/* For people: milliseconds, with as many digits as it needs. */
static double in_ms(gavel_ns ns) { return (double)ns / (double)NS_PER_MS; }

static enum gavel_status check_values(const struct raft_settings *s, struct gavel_error *error)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        gavel_ns value;

        memcpy(&value, (const char *)s + times[i].offset, sizeof value);
        if (value < times[i].least || value > LONGEST)
            return error_set(error, GAVEL_ERR_INVALID, "%s is %.10g ms; it must be %s and at most an hour",
                             times[i].name, in_ms(value), times[i].least > 0 ? "above 0" : "0 or more");
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint32_t value;

        memcpy(&value, (const char *)s + counts[i].offset, sizeof value);
        if (value < 1 || value > counts[i].most)
            return error_set(error, GAVEL_ERR_INVALID, "%s is %u; it must be between 1 and %u",
                             counts[i].name, (unsigned)value, (unsigned)counts[i].most);
    }
    if (s->drift_ppm < 0 || s->drift_ppm > 100000)
        return error_set(error, GAVEL_ERR_INVALID,
                         "drift_ppm is %d; it must be between 0 and 100000 (10 %% between two clocks)",
                         s->drift_ppm);
    return GAVEL_OK;
}

/* What a promise loses on its way to a lease: promise - promise * (1 - drift) / (1 + drift), rounded up. */
static gavel_ns drift_of(gavel_ns promise, int ppm) { return promise * 2 * ppm / (1000000 + ppm) + 1; }

enum gavel_status raft_settings_check(const struct raft_settings *settings, struct gavel_error *error)
{
    const struct raft_settings *s = settings;
    enum gavel_status status = check_values(s, error);
    gavel_ns drift;
    gavel_ns needed;

    if (status != GAVEL_OK)
        return status;
    drift = drift_of(s->promise, s->drift_ppm);
    needed = 2 * s->heartbeat + s->stop_margin + drift;
    if (s->election_min >= s->election_max)
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "election_min (%.10g ms) must be less than election_max (%.10g ms), or candidates will stand at the same time",
            in_ms(s->election_min), in_ms(s->election_max));
    if (s->promise > s->election_min)
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "promise (%.10g ms) must be at most election_min (%.10g ms), or candidates stand while nobody may vote for them",
            in_ms(s->promise), in_ms(s->election_min));
    if (needed >= s->promise)
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "the times do not add up: 2 * heartbeat %.10g + stop_margin %.10g + drift %.10g = %.10g ms must be less than promise %.10g ms; make the promise longer or one of the others shorter",
            in_ms(s->heartbeat), in_ms(s->stop_margin), in_ms(drift), in_ms(needed), in_ms(s->promise));
    if (s->vote_burst < 2 || 2 * s->vote_refill > s->election_min)
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "vote_burst (%u) must be at least 2 and vote_refill (%.10g ms) at most half of election_min (%.10g ms), or a candidate that was granted its pre-vote is not heard when it asks for the vote",
            (unsigned)s->vote_burst, in_ms(s->vote_refill), in_ms(s->election_min));
    if (s->transfer_timeout <= s->stop_margin)
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "transfer_timeout (%.10g ms) must be longer than stop_margin (%.10g ms), or every transfer fails while the work is still stopping",
            in_ms(s->transfer_timeout), in_ms(s->stop_margin));
    return GAVEL_OK;
}
