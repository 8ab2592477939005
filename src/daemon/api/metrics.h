/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /metrics: a view as text for Prometheus. Pure: what comes out depends on
 * the arguments alone.
 *
 * Names follow Prometheus (seconds, _total, a prefix), so they differ a little
 * from the usual words:
 *
 *     election_count          gavel_election_count_total
 *     election_duration_ms    gavel_election_duration_seconds (histogram)
 *     election_success_rate   gavel_election_success_rate (0 to 1; 1 before the first election)
 *     failover_count          gavel_failover_count_total
 *     leader_transfer_count   gavel_leader_transfer_count_total
 *     split_brain_detected    gavel_split_brain_detected_total
 *     current_leader_id       gavel_current_leader_id{leader_id="n1"} 1 (no line without a leader)
 *     current_term            gavel_current_term
 */
#ifndef DAEMON_API_METRICS_H
#define DAEMON_API_METRICS_H

#include "daemon/shared/view.h"

/* How often a call of the API was answered with this code. */
struct metrics_call {
    const char *method;
    const char *path;
    int code;
    uint64_t count;
};

struct metrics_api {
    const struct metrics_call *calls;
    size_t call_count;
    uint64_t connections; /* open */
    uint64_t accepted;
    uint64_t cut;
    uint64_t streams;
    uint64_t campaigns; /* of the streams */
    /* of the table */
    uint64_t groups;
    uint64_t sessions;
    uint64_t notes;
    uint64_t group_elections;
};

/* The text, handed over: free() it. NULL: no memory. */
char *metrics_text(const struct view *view, gavel_ns now, const struct metrics_api *api, size_t *ret_length);

#endif
