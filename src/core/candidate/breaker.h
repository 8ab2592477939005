/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The circuit breaker around the store, so that a store in trouble is not
 * hammered by every standby.
 *
 *   closed ── threshold failures in a row ──► open ── reset time ──► half open
 *     ▲                                        ▲                        │
 *     │                                        └──── a failure ─────────┤
 *     └────────────── a success of a call sent after it opened ─────────┘
 *
 * Only calls about the mandate close it, and only they are let through while
 * it is half open: a store may take heartbeats and refuse the rest. While
 * nobody leads, it tries at least once per election interval, as often as it
 * would look if closed: there is no leader whom the load could cost its lease.
 *
 * It never holds back the renewal or the release of a leader: refusing those
 * would turn a short outage into a lost mandate.
 */
#ifndef CORE_CANDIDATE_BREAKER_H
#define CORE_CANDIDATE_BREAKER_H

#include "base/time.h"

#include <stdbool.h>

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

struct breaker {
    enum breaker_state state;
    int failures;       /* in a row */
    int trials;         /* calls let through while half open */
    gavel_ns opened_at; /* the first time since it was closed */
    gavel_ns retry_at;  /* while open */
    gavel_ns failed_at; /* the last time */
};

/* A call about the mandate, sent at that instant, has succeeded. True if that closed the breaker. */
bool breaker_succeeded(struct breaker *breaker, gavel_ns sent_at);

/* True if this failure opened it. Going from half open back to open does not count: nothing new happened. */
bool breaker_failed(struct breaker *breaker, const struct gavel_settings *settings, gavel_ns now);

/* When an open breaker tries again; is_led: somebody leads, as far as we know. */
gavel_ns breaker_retry_at(const struct breaker *breaker, const struct gavel_settings *settings, bool is_led);

/* Whether a call about the mandate may go out now; moves from open to half open when it is time to try. */
bool breaker_allows(struct breaker *breaker, const struct gavel_settings *settings, bool is_led,
                    gavel_ns now);

/* A reason to try early, such as a doorbell: an open breaker becomes half open. */
void breaker_nudge(struct breaker *breaker);

/* Nobody will learn what came of a call that it let through while half open: another may be tried. */
void breaker_forget(struct breaker *breaker);

#endif
