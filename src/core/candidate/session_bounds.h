/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What settings guarantee where a store grants mandates to sessions: what
 * gavel_settings_check() and gavel_settings_bounds() are for leases. Pure sums.
 *
 *   keep-alive sent                                                       others may be granted it
 *   ├─ a third of the time to live ─┼─ call time-out ─┼ slack ┼─ grace ─┼ margin ┼ drift of both ┤
 *                                                             │         └ work has stopped (deadline)
 *                                                             └ work is told to stop
 */
#ifndef CORE_CANDIDATE_SESSION_BOUNDS_H
#define CORE_CANDIDATE_SESSION_BOUNDS_H

#include <gavel/settings.h>

/* Of a session, in the eyes of a candidate. */
struct session_terms {
    gavel_ms ttl_ms;        /* its time to live */
    gavel_ms lasts_ms;      /* from the send of a keep-alive until when the session is known to be open */
    gavel_ms keep_every_ms; /* between two keep-alives */
};

/* With this time to live a mandate lasts for a whole lease from the send of a keep-alive. */
gavel_ms session_ttl_ms(const struct gavel_settings *settings);

void session_terms_of(const struct gavel_settings *settings, gavel_ms ttl_ms,
                      struct session_terms *ret_terms);

/* What the next answer to a keep-alive may take, and then the stop. */
gavel_ms session_needed_ms(const struct gavel_settings *settings, const struct session_terms *terms);

/* ERR_BUDGET: a candidate with these settings never stands for election, since its work could not stop in
 * time. */
GAVEL_CHECKED enum gavel_status session_terms_check(const struct gavel_settings *settings,
                                                    const struct session_terms *terms,
                                                    struct gavel_error *error);

/*
 * For settings and terms that have been checked. renew_slack_ms may be 0 or
 * less: then an answer that takes a whole call time-out ends the mandate.
 */
void session_bounds(const struct gavel_settings *settings, const struct session_terms *terms,
                    struct gavel_bounds *ret_bounds);

#endif
