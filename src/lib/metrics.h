/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Metrics. The machine's events say what happens; what they do not say (how
 * long calls took, which candidates are new) is computed here. All of it under
 * the candidate's lock.
 */
#ifndef LIB_METRICS_H
#define LIB_METRICS_H

#include "base/request.h"
#include "core/candidate/candidate.h"

#include <gavel/gavel.h>

/* Calls whose latencies are kept. */
#define METRICS_SAMPLES 100

/* Of the newest calls. It grows with them: most candidates of a session make only a few. */
struct latencies {
    uint32_t *us;
    uint8_t capacity;
    uint8_t filled;
    uint8_t next; /* where the next one goes once METRICS_SAMPLES are kept */
};

struct metrics {
    struct gavel_metrics totals;
    struct latencies latencies;
    uint64_t *known; /* instances that were active in the last listing */
    size_t known_count;
};

void metrics_init(struct metrics *metrics, int64_t wall_ms);
void metrics_done(struct metrics *metrics);

/* A call goes out; `leads` says whether it is the leader's own. */
void metrics_call(struct metrics *metrics, const struct store_request *request, bool leads);

/* A call was answered after `took`. Not is_awaited: the machine had already given it up. */
void metrics_reply(struct metrics *metrics, enum store_op op, enum gavel_status status, gavel_ns took,
                   bool is_awaited);

/* The machine gives up a call. */
void metrics_given_up(struct metrics *metrics, enum store_op op);

/* The machine emits an event; election_at is when the vacancy was noticed, as of before the step. */
void metrics_event(struct metrics *metrics, const struct gavel_event *event, gavel_ns election_at,
                   int64_t wall_ms);

/*
 * Before the machine gets a listing: counts the candidates that were there at
 * the last look and fell silent since.
 */
void metrics_silent(struct metrics *metrics, const struct store_reply *reply);

/* Counts the active candidates that were not there at the last look. */
void metrics_peers(struct metrics *metrics, const struct peers *peers);

/* What metrics_fill() needs, without anything that belongs to the candidate. */
struct metrics_copy {
    struct gavel_metrics totals;
    int64_t us[METRICS_SAMPLES];
    size_t count;
};

void metrics_copy(const struct metrics *metrics, struct metrics_copy *ret_copy);

/* Sorts, for which nobody should hold a lock. */
void metrics_fill(struct metrics_copy *copy, struct gavel_metrics *ret_metrics);

#endif
