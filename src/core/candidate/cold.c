/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cold start: nobody has led since we came, and we look on before we take
 * part so that the policy can choose among all who come.
 *
 *   first:   ├──── observation ────┤ lists; better ones that still observe are waited for
 *   better:            ├──── observation ────┤ claims
 *   third:          ├──── observation ────┤
 *
 * So whoever comes while the first one observes takes part in the choice, in
 * whatever order they come. A policy delays and never blocks: one that comes
 * again and again is waited for no longer than one that came in time.
 */

#include "core/candidate/internal.h"

bool cold_is_going_on(const struct candidate *c)
{
    bool has_order =
        c->settings.policy == GAVEL_POLICY_LEXICOGRAPHIC || c->settings.policy == GAVEL_POLICY_PRIORITY;

    return c->settings.observation_ms > 0 && has_order && !c->has_followed;
}

gavel_ns cold_observed(const struct candidate *c)
{
    return ns_stretch(ns_from_ms(c->settings.observation_ms), c->settings.drift_ppm);
}

gavel_ns cold_all_stand_at(const struct candidate *c, const struct peers_ranking *ranking, gavel_ns at)
{
    gavel_ns call_timeout = ns_from_ms(c->settings.call_timeout_ms);
    bool has_listed = c->has_listed;

    if (PLANTED(LIST_FROM_BEFORE))
        has_listed = true;
    if (!cold_is_going_on(c))
        return at;
    if (PLANTED(STAGGER_FROM_SIGHT))
        return at;
    at = ns_max(at, c->standing_at);
    if (!has_listed)
        at = ns_max(at, c->standing_at + call_timeout); /* the answer brings us here again */
    return ns_max(
        at, ns_min(peers_stand_at(&c->peers, ranking), c->standing_at + call_timeout + cold_observed(c)));
}
