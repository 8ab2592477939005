/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a candidate of a session says of itself, and when.
 *
 * It says so in its heartbeat, which is not sent by time: only in a new
 * session, when something else is to be said, and again after a failure. Who
 * is silent is there as long as its session is.
 *
 *   registered ── observation over, its turn at a cold start ──► stands ── ineligible, stopping ──►
 * registered
 *
 * Who stands is granted the mandate by the store, whatever it does at that
 * moment, and so it goes on standing while it leads and after it has handed over.
 * Who stops, or was granted a mandate that left it no time to work, leaves the
 * group with its release; the latter comes back after a while.
 *
 * A takeover delay is patience: the store leaves out who is patient while the
 * last leader is one that was lost. We wait on our own clock from when we saw the
 * vacancy, and say that we are patient no more; and say the opposite as soon as
 * anybody leads.
 */

#include "core/candidate/internal.h"

bool stand_has_time(const struct candidate *c)
{
    if (PLANTED(STANDS_WITHOUT_TIME))
        return true;
    return c->session.lasts == 0 || c->session.lasts > candidate_stop_lead(c);
}

/* It would be granted the mandate, give it up at once, and be granted it again. */
static void tell_short(struct candidate *c)
{
    if (c->is_told_short || stand_has_time(c))
        return;
    c->is_told_short = true;
    keep_words(
        &c->trouble,
        "cannot lead: sessions of %.60s last for %lld ms, and stopping the work may take %lld ms; lengthen the sessions or shorten the stop grace",
        c->store, (long long)ms_from_ns(c->session.lasts), (long long)ms_from_ns(candidate_stop_lead(c)));
}

bool stand_may(const struct candidate *c)
{
    bool is_looking_on = c->state == CANDIDATE_OBSERVING && c->settings.observation_ms > 0;

    if (PLANTED(STANDS_WHILE_OBSERVING))
        is_looking_on = false;
    return c->is_eligible && !c->is_stopping && !is_looking_on && stand_has_time(c) &&
           c->state != CANDIDATE_IDLE && c->state != CANDIDATE_ENDED;
}

/*
 * What the policy makes us wait beyond the others. Of those that stand the
 * store chooses the best at once, so the ranks need no stagger among them. One
 * is left, for what it takes to say that one stands: whoever is better has
 * begun before us.
 */
static gavel_ns head_start(const struct candidate *c, const struct peers_ranking *ranking)
{
    return peers_rank(&c->peers, ranking) > 0 ? ns_from_ms(c->settings.stagger_ms) : 0;
}

/* When the policy lets us stand. */
static gavel_ns turn_comes_at(const struct candidate *c)
{
    const struct peers_ranking ranking = {
        .policy = c->settings.policy,
        .id = c->id,
        .priority = c->priority,
        .first_choice = "",
        .excluded = "",
        .observation = cold_observed(c),
    };

    if (!cold_is_going_on(c))
        return c->now;
    return cold_all_stand_at(c, &ranking, c->standing_at) + head_start(c, &ranking);
}

/* When our patience with a group that has lost its leader ends; NEVER if it has not. */
static gavel_ns patience_ends_at(const struct candidate *c)
{
    const struct record *record = &c->seen.record;
    const struct peers_ranking ranking = {
        .policy = c->settings.policy,
        .id = c->id,
        .priority = c->priority,
        .first_choice = "",
        .excluded = record->holder,      /* or it has come back since */
        .observation = cold_observed(c), /* who was listed as one that looks on may stand by now */
    };

    if (PLANTED(PATIENCE_KEPT))
        return NEVER;
    if (!c->seen.is_known || c->seen_session != c->session.number || !c->is_standing || record->held ||
        record->done || record->loss == GAVEL_LOSS_NONE)
        return NEVER;
    /* At a cold start all wait from their turn on, not from when each came to see the vacancy. */
    return ns_max(c->seen.seen_at, c->stood_at) + ns_from_ms(c->settings.takeover_delay_ms) +
           head_start(c, &ranking);
}

static void consider_patience(struct candidate *c)
{
    gavel_ns ends_at = patience_ends_at(c);

    if (c->settings.takeover_delay_ms == 0)
        return;
    if (PLANTED(PATIENCE_GONE) && !c->is_patient)
        return;
    c->is_patient = c->now < ends_at;
    if (ends_at != NEVER && c->is_patient)
        c->claim_at = ns_min(c->claim_at, ends_at);
}

void stand_consider(struct candidate *c)
{
    ASSERT(c->has_sessions);
    c->claim_at = NEVER;
    tell_short(c);
    if (!stand_may(c)) {
        c->is_standing = false;
        return;
    }
    if (!c->is_standing) {
        gavel_ns at = turn_comes_at(c);

        c->is_standing = c->now >= at;
        if (!c->is_standing)
            c->claim_at = at;
        else if (cold_is_going_on(c))
            c->stood_at = c->now;
    }
    consider_patience(c);
    ASSERT(c->claim_at > c->now); /* or nothing would be gained by being woken then */
}

struct campaign stand_campaign(const struct candidate *c)
{
    return (struct campaign){
        .stands = c->is_standing,
        .is_patient = c->is_patient,
        .epoch_at_least = c->fence.newest,
        .renews_epoch = c->now >= lead_new_epoch_at(c) ? c->epoch : 0,
        .policy = c->settings.policy,
        .min_mandate_ms = c->settings.min_mandate_ms,
        .preempts = c->settings.preempt,
    };
}

/* Whether the store knows in this session what we would say now. */
static bool is_said(const struct candidate *c)
{
    const struct campaign campaign = stand_campaign(c);

    if (c->said_session == 0 || c->said_session != c->session.number)
        return false;
    return campaign.stands == c->said.stands && campaign.is_patient == c->said.is_patient &&
           (campaign.renews_epoch == 0 || campaign.renews_epoch == c->said.renews_epoch);
}

void stand_left(struct candidate *c)
{
    ASSERT(c->has_sessions);
    c->has_left = true;
    c->is_registered = false;
    c->joined_session = c->said_session = 0;
    c->beat_at = c->now + retry_delay(c);
}

gavel_ns stand_due_at(const struct candidate *c)
{
    bool is_leaving = c->is_stopping || (c->state == CANDIDATE_STOPPING && c->gives_up);

    if (!c->has_sessions)
        return c->beat_at;
    if (is_leaving) /* a heartbeat that comes after the release would join again */
        return NEVER;
    if (!is_said(c))
        return c->beat_at;
    /* A new epoch is asked for once: another answer than a new one would not change. */
    return c->said.renews_epoch == c->epoch ? NEVER : lead_new_epoch_at(c);
}
