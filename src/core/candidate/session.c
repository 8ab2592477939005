/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mandates that last as long as the session of the store object, and that the
 * store grants.
 *
 *   keep-alive sent ├──────────── time to live × (1 − drift) ────────────┤ deadline of the session
 *   mandate                                   stop_at ├ grace ┤ margin ──┤
 *   store:             applied ▲├──────── time to live × (1 + drift) ─────────┤ grants it to another
 *
 * Somebody else keeps the session open, for all candidates of the process at
 * once; each step is told how things stand. The rules:
 *
 *  1. Only what the store shows in the session that is open now makes us lead:
 *     a record that is held by this session under our id, after a heartbeat of
 *     ours was answered in it, with an epoch that was never ours before. So
 *     neither a late answer nor a repeated push brings back what was given up.
 *  2. The mandate is over when the session is: by our clock, or because another
 *     number is open. It is never carried over.
 *  3. If the store shows in this session that somebody else holds it, or nobody,
 *     we stop.
 *  4. What is shown as ours, but may not make us lead, is released by its
 *     epoch: nobody else would ever do it.
 *  5. Of two records that were shown in one session the older one is ignored;
 *     base/request.h has their order.
 */

#include "core/candidate/internal.h"

#include <string.h>

bool session_is_over(const struct candidate *c)
{
    return c->mandate_session == 0 || c->mandate_session != c->session.number;
}

/* Another session, or none: what was said and granted in the former one is void. */
static void begin_anew(struct candidate *c)
{
    struct candidate_call *beat = &c->calls[SLOT_BEAT];

    c->is_ours = false;
    c->is_registered = false;
    if (c->state == CANDIDATE_IDLE)
        return;
    if (c->is_leaving) {
        become_ended(c); /* nobody is registered in it any more */
        return;
    }
    if (beat->session != 0)
        call_forget(c, SLOT_BEAT); /* one that was to go with any session still may */
    c->beat_at = ns_min(c->beat_at, c->now);
    if (c->session.number == 0)
        return;
    breaker_nudge(&c->breaker); /* the store was there to open it */
    if (!beat->is_pending)      /* whose answer shows the record */
        c->look_at = ns_min(c->look_at, c->now);
}

/* The mandate ends with the session; its work has until the last deadline that was known, and no longer than
 * it may take: somebody else may have been granted the mandate already. */
static void end_mandate(struct candidate *c)
{
    if (holds_mandate(c)) {
        lead_follow_former_session(c);
        stop_begin(c, GAVEL_REASON_LAPSED, "");
    } else if (c->state == CANDIDATE_STOPPING && !c->is_work_running && c->is_finishing) {
        finish_session_over(c);
    } else if (c->state == CANDIDATE_STOPPING && !c->is_work_running) {
        c->settle_at = NEVER;
        call_forget(c, SLOT_MANDATE); /* its release has nothing to end any more */
        stop_end(c, false);
    }
}

static bool follows(const struct candidate *c)
{
    return c->state == CANDIDATE_OBSERVING || c->state == CANDIDATE_STANDBY;
}

void session_follow(struct candidate *c, const struct store_session *session, bool waits)
{
    bool is_another = session->number != c->session.number;
    bool saw_deaths = c->session.sees_deaths;

    if (!c->has_sessions) {
        ASSERT(session->number == 0);
        return;
    }
    if (!is_another)
        ASSERT(session->deadline >= c->session.deadline);
    else if (c->session.number != 0)
        ASSERT(session->former_deadline >= c->session.deadline);
    c->session = *session;
    if (PLANTED(MANDATE_OUTLIVES_SESSION) && holds_mandate(c) && session->number != 0)
        c->mandate_session = session->number;
    if (is_another) {
        c->waits = waits;
        if (session_is_over(c))
            end_mandate(c);
        begin_anew(c);
    } else if (saw_deaths != session->sees_deaths && follows(c)) {
        standby_watch_holder(c);
    }
    if (holds_mandate(c))
        lead_follow_session(c);
}

/* What is new to us as one that holds the mandate. */
static void see_as_leader(struct candidate *c)
{
    const struct record *record = &c->seen.record;

    if (c->is_ours) {
        lead_go_on(c, record);
        return;
    }
    if (PLANTED(SUPERSEDED_IGNORED))
        return;
    if (record->version > c->version)
        stop_begin(c, GAVEL_REASON_SUPERSEDED, "");
}

gavel_ns session_list_at(struct candidate *c)
{
    return ns_min(c->list_at, c->now + prng_between(&c->prng, 0, ns_from_ms(c->settings.heartbeat_ms)));
}

/* Somebody else leads now: who it is, and who else is there, is asked for in a while, not by all at once. */
static void look_later(struct candidate *c)
{
    gavel_ns look_at = c->now + prng_between(&c->prng, 0, ns_from_ms(c->settings.election_interval_ms));

    c->look_at = ns_min(c->look_at, look_at);
    c->list_at = session_list_at(c);
}

/* Whether it shows that we hold the mandate. Candidates of one store object share a session, so the session
 * alone does not tell. */
static bool is_own(const struct candidate *c, const struct sight *sight)
{
    return sight->is_found && sight->is_ours && sight->record->held &&
           strcmp(sight->record->holder, c->id) == 0;
}

/* How far the store had come when it showed this, at least. */
static uint64_t reached_by(const struct sight *sight)
{
    uint64_t version = sight->is_found ? sight->record->version : 0;

    return sight->revision > version ? sight->revision : version;
}

/* Whether it shows the group as it was before what we know; base/request.h has the order. */
static bool is_older(const struct candidate *c, const struct sight *sight)
{
    const struct record *seen = &c->seen.record;
    const struct record *record = sight->record;

    if (!c->seen.is_known || c->seen_session != sight->session)
        return false;
    if (!sight->is_found) /* not yet, or not any more */
        return c->seen.is_found && sight->revision <= c->seen_revision;
    if (!c->seen.is_found)
        return reached_by(sight) < c->seen_revision;
    if (record->version != seen->version)
        return record->version < seen->version;
    if (PLANTED(LAST_OF_VERSION))
        return false;
    if (record->epoch != seen->epoch)
        return record->epoch < seen->epoch;
    if (record->held != seen->held || record->done != seen->done)
        return seen->held || seen->done;
    return sight->revision != 0 && sight->revision < c->seen_revision;
}

/* Takes the record over as the newest that is known. */
static void observe(struct candidate *c, const struct sight *sight)
{
    struct observation *seen = &c->seen;
    const struct record before = seen->record;
    bool is_same_mandate = seen->is_found && sight->is_found && before.epoch == sight->record->epoch;
    bool is_new = !seen->is_known || seen->is_found != sight->is_found ||
                  (sight->is_found && before.version != sight->record->version);

    if (is_new)
        seen->seen_at = c->now;
    if (!is_same_mandate)
        seen->is_holder_dead = false;
    if (seen->is_known && sight->is_found && sight->record->epoch > before.epoch)
        c->has_followed = true; /* whoever was granted that has come since, or is us */
    seen->is_known = true;
    seen->is_found = sight->is_found;
    seen->read_at = c->now;
    memset(&seen->record, 0, sizeof seen->record);
    if (sight->is_found)
        seen->record = *sight->record;
    if (!sight->is_read && is_same_mandate)
        seen->record.process = before.process;
    c->seen_revision = c->seen_session == sight->session && c->seen_revision > reached_by(sight)
                           ? c->seen_revision
                           : reached_by(sight);
    c->seen_session = sight->session;
    c->is_ours = is_own(c, sight);
    if (!sight->is_read && !is_same_mandate && seen->record.held && !c->is_ours)
        look_later(c);
}

bool session_see(struct candidate *c, const struct sight *sight)
{
    bool is_of_this = sight->session == c->session.number;
    bool is_old = is_older(c, sight);

    ASSERT(c->has_sessions);
    if (PLANTED(OLD_PUSH_ELECTS))
        is_old = false;
    if (!is_of_this || is_old)
        return false;
    if (is_own(c, sight) && sight->record->epoch > c->seen.record.epoch)
        c->attempts = standby_attempts_before(c); /* as the record stood before */
    observe(c, sight);
    if (PLANTED(OLD_PUSH_ELECTS) && c->is_ours && !holds_mandate(c))
        c->had_epoch = 0;
    if (c->seen.is_found)
        fence_note(&c->fence, c->seen.record.epoch, c->now);
    if (holds_mandate(c))
        see_as_leader(c);
    else
        standby_watch_holder(c);
    return true;
}

bool session_see_reply(struct candidate *c, const struct store_reply *reply)
{
    return session_see(c, &(struct sight){.record = &reply->record,
                                          .is_found = reply->found,
                                          .is_ours = reply->is_ours,
                                          .session = reply->session,
                                          .revision = reply->revision});
}

void session_read_done(struct candidate *c, const struct store_reply *reply)
{
    const struct sight sight = {.record = &reply->record,
                                .is_found = reply->found,
                                .is_ours = reply->is_ours,
                                .is_read = true,
                                .session = reply->session,
                                .revision = reply->revision};
    struct gavel_event *event = emit(c, GAVEL_EVENT_ELECTION_CHECK);

    if (reply->found && reply->record.held) {
        event->leader = reply->record.holder;
        event->epoch = reply->record.epoch;
    }
    c->has_news = false;
    if (!session_see(c, &sight))
        c->look_at = ns_min(c->look_at, c->now + retry_delay(c));
}

void session_beat_done(struct candidate *c, const struct store_reply *reply)
{
    if (reply->session == 0 || reply->session != c->session.number) {
        c->beat_at = c->now + retry_delay(c); /* what was said is void with that session */
        return;
    }
    if (c->joined_session != c->session.number) {
        c->joined_revision = reply->revision;
        c->joined_above = c->said.epoch_at_least;
    }
    c->said_session = c->joined_session = c->session.number;
    (void)session_see_reply(c, reply); /* if it is old, something newer was seen */
}

/* Whether the store shows the mandate as ours, after a heartbeat of ours was answered in this session. */
static bool is_shown_as_ours(const struct candidate *c)
{
    return c->is_ours && c->session.number != 0 && c->seen_session == c->session.number &&
           c->joined_session == c->session.number;
}

/*
 * Whether the newest record makes us lead: rule 1. Epochs are revisions, so one
 * from before we joined was granted to a former candidate of our id. One that is
 * not above what we have asked for comes from a store that was put back.
 */
static bool is_elected(const struct candidate *c)
{
    uint64_t epoch = c->seen.record.epoch;

    if (!is_shown_as_ours(c) || epoch <= c->had_epoch)
        return false;
    if (PLANTED(FORMER_SELF_FOLLOWED))
        return true;
    return epoch >= c->joined_revision && epoch > c->joined_above;
}

/* Rule 4. A candidate that only looks on does not stand; one that leaves withdraws. */
static bool is_orphaned(const struct candidate *c)
{
    if (PLANTED(ORPHAN_KEPT))
        return false;
    if (!follows(c) || c->is_stopping || !is_shown_as_ours(c))
        return false;
    return !is_elected(c) || !stand_has_time(c) || (c->state == CANDIDATE_OBSERVING && !stand_may(c));
}

/* Not at once: what is known may be old, and should the store go on granting it must not go on in a loop. */
static void consider_orphan(struct candidate *c)
{
    if (!is_orphaned(c))
        c->orphan_at = NEVER;
    else if (c->orphan_at == NEVER)
        c->orphan_at = c->now + retry_delay(c);
}

void session_release_orphan(struct candidate *c)
{
    struct store_request request = call_request(c, STORE_RELEASE);
    gavel_ns retry_at;

    c->orphan_at = NEVER; /* until the next step finds that it is still there */
    if (!is_orphaned(c))
        return;
    request.record.epoch = c->seen.record.epoch;
    memcpy(request.record.holder, c->id, sizeof request.record.holder);
    (void)call_send(c, SLOT_MANDATE, &request, true, &retry_at); /* urgent calls are never held back */
    c->orphan_call = c->calls[SLOT_MANDATE].id;
}

void session_orphan_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply)
{
    if (status == GAVEL_OK)
        (void)session_see_reply(c, reply); /* if it is old, something newer was seen */
    else
        c->look_at = ns_min(c->look_at, c->now + retry_delay(c));
}

void session_consider(struct candidate *c)
{
    const struct record *record = &c->seen.record;

    consider_orphan(c);
    if ((c->state != CANDIDATE_OBSERVING && c->state != CANDIDATE_STANDBY) || !c->seen.is_known ||
        c->seen_session != c->session.number || c->is_stopping)
        return;
    if (record->done) {
        finish_seen(c, record);
    } else if (c->state == CANDIDATE_STANDBY && is_elected(c) && stand_has_time(c)) {
        c->mandate_session = c->session.number;
        c->had_epoch = record->epoch;
        lead_won(c, c->now, record);
    } else if (record->held && !c->is_ours) {
        leader_seen(c, record->holder, record->epoch);
        c->election_at = NEVER;
    } else if (!record->held && c->election_at == NEVER) {
        c->election_at = c->now;
        leader_gone(c, record->loss);
    }
}

void session_tell_death(struct candidate *c)
{
    struct store_request request = call_request(c, STORE_DIED);
    gavel_ns retry_at;

    ASSERT(c->session.number != 0);
    c->death_at = NEVER;
    if (!c->seen.is_holder_dead || !c->seen.record.held || c->is_ours)
        return; /* the store knows, or it was told of another */
    request.record.epoch = c->seen.record.epoch;
    request.record.process = c->seen.record.process;
    memcpy(request.record.holder, c->seen.record.holder, sizeof request.record.holder);
    (void)call_send(c, SLOT_MANDATE, &request, true, &retry_at); /* urgent calls are never held back */
}

void session_died_done(struct candidate *c, enum gavel_status status)
{
    bool is_answered = status == GAVEL_OK || status == GAVEL_ERR_NOT_HOLDER || status == GAVEL_ERR_CONFLICT ||
                       status == GAVEL_ERR_STORE_UNSUPPORTED || status == GAVEL_ERR_INVALID ||
                       status == GAVEL_ERR_STATE || status == GAVEL_ERR_DENIED;

    if (is_answered)
        c->look_at = ns_min(c->look_at, c->now); /* what came of it */
    else
        c->death_at = c->now + retry_delay(c);
}
