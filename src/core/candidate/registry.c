/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Heartbeats that register this candidate, and the list of all of them.
 *
 * Heartbeats reveal two live processes with one id: the store refuses ours because
 * another instance has the id, and that instance's count of beats keeps growing.
 * An instance that is silent for the candidate time-out is taken to be gone and
 * replaced.
 */

#include "core/candidate/internal.h"

#include <string.h>

/* One heartbeat of a process that has died may still arrive late; a second one shows that it lives. */
#define RIVAL_GROWTHS 2

/* Nobody should wait for one that only looks on, or hand over to it. */
static bool is_eligible(const struct candidate *c)
{
    bool is_looking_on = c->state == CANDIDATE_OBSERVING && c->settings.observation_ms > 0;

    if (c->has_sessions)
        return c->is_standing;
    return c->is_eligible && !is_looking_on;
}

void registry_beat(struct candidate *c)
{
    struct store_request request = call_request(c, STORE_HEARTBEAT);
    struct registration *r = &request.registration;
    bool is_urgent = c->has_sessions && holds_mandate(c); /* a new epoch, say */
    bool is_rival_silent =
        c->rival_instance != 0 && c->now - c->rival_since > ns_from_ms(c->settings.candidate_timeout_ms);

    r->instance = c->instance;
    r->beats = c->beats + 1;
    r->priority = c->priority;
    r->eligible = is_eligible(c);
    r->process = c->process;
    r->since_wall_ms = c->since_wall_ms;
    memcpy(r->id, c->id, sizeof r->id);
    memcpy(r->address, c->address, sizeof r->address);
    request.replaces_instance = is_rival_silent ? c->rival_instance : 0;
    if (c->has_sessions)
        request.campaign = stand_campaign(c);
    if (!call_send(c, SLOT_BEAT, &request, is_urgent, &c->beat_at))
        return;
    c->beats++;
    c->has_left = false;
    c->said = request.campaign;
    if (request.campaign.renews_epoch != 0)
        c->renewed_epoch = request.campaign.renews_epoch;
    c->said_session = 0; /* until it is answered */
    c->beat_at = c->has_sessions ? c->now : c->now + jittered(c, c->settings.heartbeat_ms);
}

/*
 * Another instance has our id. Whether it lives shows when its beats grow, and
 * only that: a session that nobody keeps open may last longer than ours would,
 * so where there are sessions one that is silent is waited for.
 */
static void meet_rival(struct candidate *c, const struct store_reply *reply)
{
    bool grows = reply->other_beats > c->rival_beats;

    if (PLANTED(RIVAL_OUTLIVED) && c->has_sessions &&
        c->now - c->rival_since > ns_from_ms(c->settings.lease_ms))
        grows = true;
    if (c->rival_instance != reply->other_instance) {
        c->rival_instance = reply->other_instance;
        c->rival_beats = reply->other_beats;
        c->rival_growths = 0;
        c->rival_since = c->now;
    } else if (grows && ++c->rival_growths < RIVAL_GROWTHS) {
        c->rival_beats = reply->other_beats;
        c->rival_since = c->now;
    } else if (grows) {
        keep_words(&c->trouble, "%s", reply->message);
        stop_for_good(c, GAVEL_ERR_ID_IN_USE);
    } else if (reply->other_beats < c->rival_beats) { /* counted anew */
        c->rival_beats = reply->other_beats;
    }
    c->is_registered = false;
    c->beat_at = ns_min(c->has_sessions ? NEVER : c->beat_at, c->now + ns_from_ms(c->settings.heartbeat_ms));
}

static void beat_succeeded(struct candidate *c, const struct candidate_call *call)
{
    struct gavel_event *event;
    gavel_ns took;

    c->is_registered = !c->has_sessions || (c->session.number != 0 && c->joined_session == c->session.number);
    c->rival_instance = 0;
    if (!holds_mandate(c)) /* a leader's heartbeat is its renewal */
        emit(c, GAVEL_EVENT_HEARTBEAT)->took_ms = ms_from_ns(c->now - call->sent_at);
    if (!c->has_sessions && contention_beat(&c->contention, &c->settings, c->now, &took)) {
        event = emit(c, GAVEL_EVENT_CONTENTION_DETECTED);
        event->took_ms = ms_from_ns(took);
        event->expected_ms = c->settings.heartbeat_ms + c->settings.heartbeat_jitter_ms;
    }
    standby_consider(c);
}

static bool is_answered(enum gavel_status status)
{
    return status == GAVEL_OK || status == GAVEL_ERR_NOT_FOUND || status == GAVEL_ERR_SESSION_GONE ||
           status == GAVEL_ERR_DONE;
}

/*
 * Also if nobody answered: the registration then times out. A candidate of a
 * session does not, so it says once more that it leaves, while the session is
 * known to be open; otherwise it could be granted a mandate that nobody serves.
 */
static void leave_done(struct candidate *c, enum gavel_status status)
{
    bool is_session_open = c->session.number != 0 && c->now < c->session.deadline;

    if (c->has_sessions && !is_answered(status) && is_session_open)
        c->leave_at = c->now + retry_delay(c);
    else
        become_ended(c);
}

void registry_beat_done(struct candidate *c, const struct candidate_call *call, enum gavel_status status,
                        const struct store_reply *reply)
{
    if (call->op == STORE_LEAVE) {
        leave_done(c, status);
    } else if (status == GAVEL_OK) {
        if (c->has_sessions)
            session_beat_done(c, reply);
        beat_succeeded(c, call);
    } else if (status == GAVEL_ERR_ID_IN_USE) {
        meet_rival(c, reply);
    } else if (c->has_sessions) {
        if (status == GAVEL_ERR_DONE && !c->is_stopping)
            finish_seen(c, &reply->record);
        c->beat_at = c->now + retry_delay(c); /* none comes round by itself */
    }
}

void registry_list(struct candidate *c)
{
    struct store_request request = call_request(c, STORE_CANDIDATES);
    /* A leader needs the list only to ring and to hand over. */
    gavel_ms every_ms = holds_mandate(c) ? c->settings.candidate_timeout_ms : c->settings.heartbeat_ms;

    request.registration.instance = c->instance; /* a store that hides instances shows us our own */
    if (call_send(c, SLOT_LIST, &request, false, &c->list_at))
        c->list_at = c->has_sessions ? NEVER : c->now + jittered(c, every_ms);
}

void registry_list_done(struct candidate *c, const struct candidate_call *call,
                        const struct store_reply *reply)
{
    if (c->state != CANDIDATE_OBSERVING && call->sent_at >= c->standing_at)
        c->has_listed = true;
    if (holds_mandate(c) && c->listed_at == NEVER)
        c->listed_at = c->now;
    if (peers_update(&c->peers, reply->registrations, reply->registration_count,
                     c->settings.candidate_timeout_ms, c->now))
        emit(c, GAVEL_EVENT_CANDIDATES_UPDATED)->candidates = peers_active(&c->peers);
    standby_consider(c);
    lead_consider_handover(c);
}

void registry_leave_again(struct candidate *c)
{
    struct store_request request = call_request(c, STORE_LEAVE);
    gavel_ns retry_at;

    ASSERT(c->is_leaving);
    c->leave_at = NEVER;
    call_forget(c, SLOT_BEAT);
    request.registration.instance = c->instance;
    memcpy(request.registration.id, c->id, sizeof request.registration.id);
    (void)call_send(c, SLOT_BEAT, &request, true, &retry_at); /* urgent calls are never held back */
}

void registry_leave(struct candidate *c)
{
    /* Without a session nobody is registered, unless a heartbeat waits to be sent with the opening of one.
     * If that is answered after it was given up, whoever makes our calls leaves for us. */
    bool is_unknown = c->has_sessions && c->session.number == 0;

    if (is_unknown && c->calls[SLOT_BEAT].is_pending)
        return;
    if ((c->beats == 0 && !c->is_ours) || is_unknown || c->has_left) {
        become_ended(c);
        return;
    }
    c->is_leaving = true;
    c->claim_at = NEVER; /* nothing is claimed any more, so nobody is woken for it */
    registry_leave_again(c);
}
