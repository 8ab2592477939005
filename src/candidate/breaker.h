/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The circuit breaker around the store, so that a store in trouble is not
 * hammered by every standby.
 *
 *   closed ── threshold failures in a row ──► open ── reset time ──► half open
 *     ▲                                        ▲                        │
 *     │                                        └──── a failure ─────────┤
 *     └─────────────────────── a success ───────────────────────────────┘
 *
 * It never holds back the renewal or the release of a leader: refusing those
 * would turn a short outage into a lost mandate.
 */
#ifndef CANDIDATE_BREAKER_H
#define CANDIDATE_BREAKER_H

#include "base/time.h"

#include <stdbool.h>

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

struct breaker {
    enum breaker_state state;
    int failures;       /* in a row */
    int trials;         /* calls let through while half open */
    gavel_ns opened_at; /* the first time since it was closed */
    gavel_ns retry_at;  /* while open */
};

/* True if this success closed it. */
bool breaker_succeeded(struct breaker *breaker);

/* True if this failure opened it (again after half open is not "opened": nothing new happened). */
bool breaker_failed(struct breaker *breaker, const struct gavel_settings *settings, gavel_ns now);

/* Whether a call may go out now; moves from open to half open when the reset time has come. */
bool breaker_allows(struct breaker *breaker, const struct gavel_settings *settings, gavel_ns now);

/* A reason to try early, such as a doorbell: an open breaker becomes half open. */
void breaker_nudge(struct breaker *breaker);

const char *breaker_state_name(enum breaker_state state);

#endif
