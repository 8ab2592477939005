/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What settings guarantee where a store grants mandates to sessions: what
 * gavel_settings_check() and gavel_settings_bounds() are for leases. Pure sums.
 *
 *   keep-alive sent                                                       others may be granted it
 *   ├─ a third of the time to live ─┼─ call time-out ─┼ slack ┼─ grace ─┼ margin ┼ drift of both ┤
 *                                                             │         └ work has stopped (deadline)
 *                                                             └ work is told to stop
 *
 * Where the work is told to stop before the next keep-alive could be answered,
 * each mandate ends at once, on the best of clusters. Between that and a whole
 * call time-out for the answer, one that is late ends it.
 */
#ifndef CORE_CANDIDATE_SESSION_BOUNDS_H
#define CORE_CANDIDATE_SESSION_BOUNDS_H

#include <gavel/settings.h>

/* Of a session, in the eyes of a candidate. */
struct session_terms {
    gavel_ms ttl_ms;        /* its time to live */
    gavel_ms lasts_ms;      /* from the send of a keep-alive until when the session is known to be open */
    gavel_ms keep_every_ms; /* between two keep-alives */
    bool is_asked;          /* the URL of the store says how long it lives; else it follows from the lease */
};

/*
 * What is counted on for the answer to a keep-alive at the very least: a node
 * gathers them for 20 ms (core/session/forwarder.h), then comes the way to the
 * leader of the cluster and back, and timers fire late.
 */
#define SESSION_ANSWER_MS 50

/* The longest that a cluster keeps. */
#define SESSION_TTL_MAX_MS (INT64_C(24) * 3600 * 1000)

/* With this time to live a mandate lasts for a whole lease from the send of a keep-alive. */
gavel_ms session_ttl_ms(const struct gavel_settings *settings);

/* asked_ttl_ms 0: nothing is asked for. */
void session_terms_of(const struct gavel_settings *settings, gavel_ms asked_ttl_ms,
                      struct session_terms *ret_terms);

/* What the next answer to a keep-alive may take, and then the stop. */
gavel_ms session_needed_ms(const struct gavel_settings *settings, const struct session_terms *terms);

/*
 * A lease, or time to live, with which all adds up, and an answer may take a
 * whole call time-out; a round number. 0: there is none.
 */
gavel_ms session_lease_for(const struct gavel_settings *settings);
gavel_ms session_ttl_for(const struct gavel_settings *settings);

/*
 * ERR_BUDGET: a candidate with these settings could never lead, since its work
 * could not stop in time; or not for longer than a third of the time to live,
 * since it is told to stop before a keep-alive can be answered. *error also has
 * what would do.
 */
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
