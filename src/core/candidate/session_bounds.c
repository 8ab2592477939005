/* SPDX-License-Identifier: Apache-2.0 */

#include "core/candidate/session_bounds.h"

#include "base/error.h"
#include "base/time.h"

#define PPM 1000000

/* Of a client that was cut off: a connection that fails, a pause, and one that succeeds. */
#define RECONNECT_MS 2000

/* The nodes of a cluster count on at least so much, whatever a candidate is told. */
#define DRIFT_LEAST_PPM 1000

static int64_t drift_of(const struct gavel_settings *s)
{
    return s->drift_ppm > DRIFT_LEAST_PPM ? s->drift_ppm : DRIFT_LEAST_PPM;
}

gavel_ms session_ttl_ms(const struct gavel_settings *s)
{
    int64_t slow = PPM - drift_of(s), fast = PPM + drift_of(s);

    return (s->lease_ms * fast + slow - 1) / slow + 1;
}

/* As src/core/session/client_session.c: our clock may be slow, and that of the cluster fast. */
void session_terms_of(const struct gavel_settings *s, gavel_ms ttl_ms, struct session_terms *ret_terms)
{
    *ret_terms = (struct session_terms){
        .ttl_ms = ttl_ms,
        .lasts_ms = ttl_ms * (PPM - drift_of(s)) / (PPM + drift_of(s)),
        .keep_every_ms = ttl_ms / 3,
    };
}

gavel_ms session_needed_ms(const struct gavel_settings *s, const struct session_terms *terms)
{
    return terms->keep_every_ms + s->call_timeout_ms + s->stop_grace_ms;
}

enum gavel_status session_terms_check(const struct gavel_settings *s, const struct session_terms *terms,
                                      struct gavel_error *error)
{
    if (terms->lasts_ms > s->stop_grace_ms + s->stop_margin_ms)
        return GAVEL_OK;
    return error_set(
        error, GAVEL_ERR_BUDGET,
        "it could never lead: a session of %lld ms lasts for %lld ms less the drift of both clocks, and stop_grace %lld + stop_margin %lld = %lld ms must be less; lengthen the time to live or shorten the stop grace",
        (long long)terms->ttl_ms, (long long)terms->lasts_ms, (long long)s->stop_grace_ms,
        (long long)s->stop_margin_ms, (long long)(s->stop_grace_ms + s->stop_margin_ms));
}

void session_bounds(const struct gavel_settings *s, const struct session_terms *terms,
                    struct gavel_bounds *ret_bounds)
{
    gavel_ms stopped_by = terms->lasts_ms - s->stop_margin_ms;
    /* The store counts from when it has received the keep-alive, on a clock that may be slow. */
    gavel_ms takeover_after = ms_from_ns(ns_stretch(ns_from_ms(terms->ttl_ms), (int)drift_of(s))) + 1;
    /* One write gives it up and grants it to the next, who is told. */
    gavel_ms resign = 2 * s->call_timeout_ms + s->preparation_ms;
    /* Who waits for the delay says afterwards that it does not wait any more. */
    gavel_ms delay = s->takeover_delay_ms > 0 ? s->takeover_delay_ms + s->stagger_ms + s->call_timeout_ms : 0;
    gavel_ms loss = takeover_after + resign + delay;
    gavel_ms beyond = stopped_by - takeover_after * 100 / 101;

    *ret_bounds = (struct gavel_bounds){
        .renew_slack_ms = stopped_by - session_needed_ms(s, terms),
        .stop_begins_ms = stopped_by - s->stop_grace_ms,
        .stopped_by_ms = stopped_by,
        .takeover_after_ms = takeover_after,
        .gap_resign_ms = resign,
        .gap_killed_ms = resign + delay,
        .gap_loss_ms = loss,
        .gap_outage_ms = RECONNECT_MS + loss,
        .overlap_ms = 0,
        .overlap_at_1pct_ms = beyond > 0 ? beyond : 0,
    };
}
