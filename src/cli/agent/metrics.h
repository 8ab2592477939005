/* SPDX-License-Identifier: Apache-2.0 */

/* The metrics of an agent, as text for Prometheus. */
#ifndef CLI_AGENT_METRICS_H
#define CLI_AGENT_METRICS_H

#include "base/time.h"

#include <gavel/gavel.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_figures {
    const char *group;
    const char *candidate;
    enum gavel_answer answer;
    uint64_t epoch;
    gavel_ns left;   /* of the mandate; NEVER: it does not end */
    bool is_leaving; /* the fields below, up to `connections`, are unknown */
    size_t candidates;
    struct gavel_breaker breaker;
    struct gavel_metrics metrics;
    size_t connections;
    size_t streams;
    uint64_t requests;
    uint64_t cut;
};

/* The caller frees it. NULL: no memory. */
char *agent_metrics_text(const struct agent_figures *figures, size_t *ret_length);

#endif
