/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Contention: two finished heartbeats are further apart than the settings allow,
 * as a multiple of the heartbeat. The store is slow, the machine is overloaded, or
 * the process was paused. Reports are limited to one per interval.
 */
#ifndef CORE_CANDIDATE_CONTENTION_H
#define CORE_CANDIDATE_CONTENTION_H

#include "base/time.h"

#include <stdbool.h>

struct contention {
    gavel_ns last_beat_at;     /* 0: none yet */
    gavel_ns last_reported_at; /* 0: never */
};

/* Notes a finished heartbeat. True if an event is due; then *ret_took is the time since the one before. */
bool contention_beat(struct contention *contention, const struct gavel_settings *settings, gavel_ns now,
                     gavel_ns *ret_took);

#endif
