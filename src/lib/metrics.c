/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/metrics.h"

#include "base/histogram.h"

#include <stdlib.h>

void metrics_init(struct metrics *metrics, int64_t wall_ms)
{
    *metrics = (struct metrics){.totals.start_wall_ms = wall_ms};
}

void metrics_done(struct metrics *metrics)
{
    free(metrics->known);
    metrics->known = NULL;
    metrics->known_count = 0;
    free(metrics->latencies.us);
    metrics->latencies = (struct latencies){0};
}

/* False without memory: then this one is not kept. */
static bool make_room(struct latencies *latencies)
{
    size_t capacity = latencies->capacity > 0 ? 2 * (size_t)latencies->capacity : 4;
    uint32_t *us;

    if (latencies->filled < latencies->capacity || latencies->capacity == METRICS_SAMPLES)
        return true;
    if (capacity > METRICS_SAMPLES)
        capacity = METRICS_SAMPLES;
    us = realloc(latencies->us, capacity * sizeof *us);
    if (!us)
        return false;
    latencies->us = us;
    latencies->capacity = (uint8_t)capacity;
    return true;
}

static void add_latency(struct latencies *latencies, gavel_ns took)
{
    uint32_t us = took / NS_PER_US < UINT32_MAX ? (uint32_t)(took / NS_PER_US) : UINT32_MAX;

    if (!make_room(latencies))
        return;
    if (latencies->filled < latencies->capacity) {
        latencies->us[latencies->filled++] = us;
        return;
    }
    latencies->us[latencies->next] = us;
    latencies->next = (uint8_t)((latencies->next + 1) % METRICS_SAMPLES);
}

void metrics_call(struct metrics *metrics, const struct store_request *request, bool leads)
{
    /* A leader also claims, to begin a new epoch of its own mandate; that is no election. */
    if (request->op == STORE_CLAIM && !leads)
        metrics->totals.elections++;
}

/* Whether the store did its part. A refusal is an answer, not a failure of the store. */
static bool is_answer(enum gavel_status status)
{
    return status == GAVEL_OK || status == GAVEL_ERR_CONFLICT || status == GAVEL_ERR_NOT_HOLDER ||
           status == GAVEL_ERR_ID_IN_USE || status == GAVEL_ERR_DONE || status == GAVEL_ERR_SESSION_GONE;
}

static bool is_heartbeat(enum store_op op) { return op == STORE_HEARTBEAT || op == STORE_RENEW; }

void metrics_reply(struct metrics *metrics, enum store_op op, enum gavel_status status, gavel_ns took,
                   bool is_awaited)
{
    add_latency(&metrics->latencies, took);
    if (!is_awaited)
        return;
    if (status == GAVEL_ERR_TIMEOUT)
        metrics->totals.call_timeouts++;
    if (is_heartbeat(op) && !is_answer(status))
        metrics->totals.heartbeat_failures++;
}

void metrics_given_up(struct metrics *metrics, enum store_op op)
{
    metrics->totals.call_timeouts++;
    if (is_heartbeat(op))
        metrics->totals.heartbeat_failures++;
}

void metrics_event(struct metrics *metrics, const struct gavel_event *event, gavel_ns election_at,
                   int64_t wall_ms)
{
    struct gavel_metrics *totals = &metrics->totals;

    switch (event->kind) {
    case GAVEL_EVENT_HEARTBEAT:
        totals->heartbeats++;
        totals->last_heartbeat_wall_ms = wall_ms;
        break;
    case GAVEL_EVENT_BECAME_LEADER:
        totals->elections_won++;
        totals->election_last_us = election_at > 0 && election_at <= event->at_ns
                                       ? (event->at_ns - election_at) / NS_PER_US
                                       : event->took_ms * (NS_PER_MS / NS_PER_US);
        break;
    case GAVEL_EVENT_LEADER_CHANGED:
        totals->leader_changes++;
        break;
    case GAVEL_EVENT_CONTENTION_DETECTED:
        totals->contentions++;
        break;
    default:
        break;
    }
}

static bool knows(const struct metrics *metrics, uint64_t instance)
{
    for (size_t i = 0; i < metrics->known_count; i++)
        if (metrics->known[i] == instance)
            return true;
    return false;
}

void metrics_silent(struct metrics *metrics, const struct store_reply *reply)
{
    for (size_t i = 0; i < reply->silent_count; i++)
        metrics->totals.timeouts += knows(metrics, reply->silent[i]);
}

void metrics_peers(struct metrics *metrics, const struct peers *peers)
{
    uint64_t *known = calloc(peers->count > 0 ? peers->count : 1, sizeof *known);
    size_t count = 0;

    if (!known)
        return; /* counted at the next change */
    for (size_t i = 0; i < peers->count; i++) {
        if (!peers->items[i].is_active)
            continue;
        if (!knows(metrics, peers->items[i].instance))
            metrics->totals.registrations++;
        known[count++] = peers->items[i].instance;
    }
    free(metrics->known);
    metrics->known = known;
    metrics->known_count = count;
}

void metrics_copy(const struct metrics *metrics, struct metrics_copy *ret_copy)
{
    ret_copy->totals = metrics->totals;
    ret_copy->count = metrics->latencies.filled;
    for (size_t i = 0; i < ret_copy->count; i++)
        ret_copy->us[i] = metrics->latencies.us[i];
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void metrics_fill(struct metrics_copy *copy, struct gavel_metrics *ret_metrics)
{
    qsort(copy->us, copy->count, sizeof *copy->us, by_size);
    *ret_metrics = copy->totals;
    ret_metrics->latency_p50_us = percentile_of_sorted(copy->us, copy->count, 50);
    ret_metrics->latency_p95_us = percentile_of_sorted(copy->us, copy->count, 95);
    ret_metrics->latency_p99_us = percentile_of_sorted(copy->us, copy->count, 99);
}
