/* SPDX-License-Identifier: Apache-2.0 */

#include "core/candidate/session_bounds.h"

#include "base/error.h"
#include "base/time.h"

#include <stdio.h>

#define PPM 1000000

/* Of a client that was cut off: a connection that fails, a pause, and one that succeeds. */
#define RECONNECT_MS 2000

/* What is proposed is a round number. */
#define STEP_MS 100

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
void session_terms_of(const struct gavel_settings *s, gavel_ms asked_ttl_ms, struct session_terms *ret_terms)
{
    gavel_ms ttl_ms = asked_ttl_ms > 0 ? asked_ttl_ms : session_ttl_ms(s);

    *ret_terms = (struct session_terms){
        .ttl_ms = ttl_ms,
        .lasts_ms = ttl_ms * (PPM - drift_of(s)) / (PPM + drift_of(s)),
        .keep_every_ms = ttl_ms / 3,
        .is_asked = asked_ttl_ms > 0,
    };
}

gavel_ms session_needed_ms(const struct gavel_settings *s, const struct session_terms *terms)
{
    return terms->keep_every_ms + s->call_timeout_ms + s->stop_grace_ms;
}

static gavel_ms stopped_by_ms(const struct gavel_settings *s, const struct session_terms *terms)
{
    return terms->lasts_ms - s->stop_margin_ms;
}

static gavel_ms rounded(gavel_ms ms) { return ms + STEP_MS - 1 - (ms + STEP_MS - 1) % STEP_MS; }

/*
 * ttl * (1 - drift) / (1 + drift) - ttl / 3 > call time-out + grace + margin; the rest is for what the sums
 * round off.
 */
static gavel_ms least_ttl_ms(const struct gavel_settings *s)
{
    int64_t slow = PPM - drift_of(s), fast = PPM + drift_of(s);
    gavel_ms answer = s->call_timeout_ms > SESSION_ANSWER_MS ? s->call_timeout_ms : SESSION_ANSWER_MS;
    gavel_ms needed = answer + s->stop_grace_ms + s->stop_margin_ms + 2;

    return needed * 3 * fast / (3 * slow - fast) + 1;
}

static bool adds_up(const struct gavel_settings *s, const struct session_terms *terms)
{
    return terms->ttl_ms <= SESSION_TTL_MAX_MS && gavel_settings_check(s, NULL) == GAVEL_OK &&
           stopped_by_ms(s, terms) > session_needed_ms(s, terms);
}

gavel_ms session_ttl_for(const struct gavel_settings *s)
{
    struct session_terms terms;
    gavel_ms ttl_ms = rounded(least_ttl_ms(s));

    session_terms_of(s, ttl_ms, &terms);
    return adds_up(s, &terms) ? ttl_ms : 0;
}

gavel_ms session_lease_for(const struct gavel_settings *s)
{
    struct gavel_settings longer = *s;
    struct session_terms terms;
    gavel_ms renewed_by = s->heartbeat_ms + s->heartbeat_jitter_ms + s->call_timeout_ms;
    /* As if there were no sessions: drift takes its part of the lease away; the rest is for the sums. */
    gavel_ms least = (renewed_by + s->stop_grace_ms + s->stop_margin_ms + 1) * PPM / (PPM - s->drift_ppm) + 2;

    session_terms_of(s, least_ttl_ms(s), &terms);
    longer.lease_ms = rounded(terms.lasts_ms + 1 > least ? terms.lasts_ms + 1 : least);
    session_terms_of(&longer, 0, &terms);
    return adds_up(&longer, &terms) ? longer.lease_ms : 0;
}

/* What somebody can set instead. */
static const char *advice(const struct gavel_settings *s, const struct session_terms *terms, char *buffer,
                          size_t size)
{
    gavel_ms ms = terms->is_asked ? session_ttl_for(s) : session_lease_for(s);

    if (ms == 0)
        return "shorten the stop grace";
    (void)snprintf(buffer, size,
                   terms->is_asked ? "ttl_ms=%lld in the URL would do" : "a lease of %lld ms would do",
                   (long long)ms);
    return buffer;
}

enum gavel_status session_terms_check(const struct gavel_settings *s, const struct session_terms *terms,
                                      struct gavel_error *error)
{
    gavel_ms stop_begins = stopped_by_ms(s, terms) - s->stop_grace_ms;
    gavel_ms answered = terms->keep_every_ms + SESSION_ANSWER_MS;
    char text[64];

    if (stop_begins > answered)
        return GAVEL_OK;
    if (stop_begins <= 0)
        return error_set(
            error, GAVEL_ERR_BUDGET,
            "it could never lead: a session of %lld ms lasts for %lld ms less the drift of both clocks, and stop_grace %lld + stop_margin %lld = %lld ms must be less; %s",
            (long long)terms->ttl_ms, (long long)terms->lasts_ms, (long long)s->stop_grace_ms,
            (long long)s->stop_margin_ms, (long long)(s->stop_grace_ms + s->stop_margin_ms),
            advice(s, terms, text, sizeof text));
    return error_set(
        error, GAVEL_ERR_BUDGET,
        "each mandate would end before a keep-alive is answered: the work is told to stop after session %lld - drift %lld - stop_margin %lld - stop_grace %lld = %lld ms, which must be more than keep-alive %lld (a third) + answer %d = %lld ms; %s",
        (long long)terms->ttl_ms, (long long)(terms->ttl_ms - terms->lasts_ms), (long long)s->stop_margin_ms,
        (long long)s->stop_grace_ms, (long long)stop_begins, (long long)terms->keep_every_ms,
        SESSION_ANSWER_MS, (long long)answered, advice(s, terms, text, sizeof text));
}

void session_bounds(const struct gavel_settings *s, const struct session_terms *terms,
                    struct gavel_bounds *ret_bounds)
{
    gavel_ms stopped_by = stopped_by_ms(s, terms);
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
