/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Holding a mandate: winning it, renewing it, renewing it as a new epoch before
 * its maximum, and noticing when to hand it over.
 */

#include "core/candidate/internal.h"

#include <string.h>

/* The instant by which a mandate whose claim or renewal was SENT at `sent_at` has stopped all work. */
static gavel_ns deadline_of(const struct candidate *c, gavel_ns sent_at)
{
    gavel_ns lease = ns_from_ms(c->settings.lease_ms);

    if (PLANTED(NO_DRIFT))
        return sent_at + lease;
    return sent_at + ns_shrink(lease, c->settings.drift_ppm) - ns_from_ms(c->settings.stop_margin_ms);
}

/* When a mandate of limited length must have been renewed as a new epoch. */
static gavel_ns term_ends_at(const struct candidate *c)
{
    return c->settings.max_mandate_ms > 0 ? c->mandate_at + ns_from_ms(c->settings.max_mandate_ms) : NEVER;
}

/* When to claim the new epoch: early enough for a try, its time-out and another try. */
static gavel_ns new_epoch_due_at(const struct candidate *c)
{
    gavel_ns max = ns_from_ms(c->settings.max_mandate_ms);
    gavel_ns lead = ns_min(max / 2, ns_from_ms(2 * c->settings.call_timeout_ms + c->settings.stop_grace_ms +
                                               c->settings.heartbeat_ms + c->settings.heartbeat_jitter_ms));

    return max > 0 ? c->mandate_at + max - lead : NEVER;
}

gavel_ns lead_new_epoch_at(const struct candidate *c)
{
    return holds_mandate(c) ? new_epoch_due_at(c) : NEVER;
}

gavel_ns lead_term_stop_at(const struct candidate *c)
{
    gavel_ns ends_at = term_ends_at(c);

    return ends_at == NEVER ? NEVER : ends_at - ns_from_ms(c->settings.stop_grace_ms);
}

static gavel_ns deadline_within(const struct candidate *c, gavel_ns session_deadline)
{
    ASSERT(c->has_sessions);
    ASSERT(c->mandate_session != 0);
    return ns_min(session_deadline - ns_from_ms(c->settings.stop_margin_ms), term_ends_at(c));
}

static void last_as_long_as(struct candidate *c, gavel_ns session_deadline)
{
    c->deadline = deadline_within(c, session_deadline);
    c->stop_at = c->deadline - ns_from_ms(c->settings.stop_grace_ms);
    ASSERT(c->stop_at <= c->deadline);
}

void candidate_times_in(const struct candidate *c, const struct store_session *session, gavel_ns *ret_stop_at,
                        gavel_ns *ret_deadline)
{
    *ret_stop_at = c->stop_at;
    *ret_deadline = c->deadline;
    if (!c->has_sessions || !holds_mandate(c))
        return;
    *ret_stop_at = *ret_deadline = 0;
    if (c->mandate_session != session->number)
        return;
    *ret_deadline = deadline_within(c, session->deadline);
    *ret_stop_at = *ret_deadline - ns_from_ms(c->settings.stop_grace_ms);
}

void lead_follow_session(struct candidate *c)
{
    ASSERT(c->mandate_session == c->session.number);
    last_as_long_as(c, c->session.deadline);
}

/* What we know of the deadline may be hours old: keep-alives wake nobody. */
void lead_follow_former_session(struct candidate *c)
{
    ASSERT(c->mandate_session != c->session.number);
    if (PLANTED(FORMER_DEADLINE_OLD))
        return;
    last_as_long_as(c, c->session.former_deadline);
}

static void extend(struct candidate *c, gavel_ns sent_at)
{
    gavel_ns grace = ns_from_ms(c->settings.stop_grace_ms);

    ASSERT(sent_at <= c->now);
    ASSERT(sent_at >= c->renewed_at); /* calls are answered in order: a deadline never comes nearer */
    c->renewed_at = sent_at;
    if (PLANTED(DEADLINE_FROM_ANSWER))
        c->renewed_at = c->now;
    c->deadline = ns_min(deadline_of(c, c->renewed_at), term_ends_at(c));
    c->stop_at = c->deadline - grace;
    ASSERT(c->stop_at <= c->deadline);
    ASSERT(c->deadline <= term_ends_at(c));
    c->is_renewal_failing = false;
    /* A doorbell may have asked for a look while the call was under way. */
    c->look_at = ns_min(c->look_at, sent_at + jittered(c, c->settings.heartbeat_ms));
    if (!c->is_claim_open) /* the heartbeat after that may be too late for the new epoch */
        c->look_at = ns_min(c->look_at, new_epoch_due_at(c));
}

static void publish(struct candidate *c)
{
    struct candidate_action *action = act(c, CANDIDATE_MANDATE);

    ASSERT(c->state == CANDIDATE_LEADING);
    ASSERT(c->epoch != 0);
    action->mandate.epoch = c->epoch;
    action->mandate.stop_at = c->stop_at;
    action->mandate.deadline = c->deadline;
    action->mandate.term_ends_at = term_ends_at(c);
}

/* A claim was answered: the mandate is ours, counted from when the claim was sent. That of a session counts
 * from now on. */
void lead_won(struct candidate *c, gavel_ns sent_at, const struct record *record)
{
    ASSERT(c->state == (c->has_sessions ? CANDIDATE_STANDBY : CANDIDATE_CLAIMING));
    ASSERT(sent_at <= c->now);
    c->is_claim_open = false;
    c->has_followed = true;
    c->epoch = record->epoch;
    c->version = record->version;
    c->mandate_at = sent_at;
    c->listed_at = NEVER;
    c->wish_epoch = 0;
    if (!c->has_sessions) /* a look that is due there may be what closes the breaker */
        c->look_at = NEVER;
    fence_note(&c->fence, c->epoch, c->now);
    if (c->has_sessions)
        lead_follow_session(c);
    else
        extend(c, sent_at);
    if (c->is_stopping || !c->is_eligible) {
        stop_begin(c, c->is_stopping ? GAVEL_REASON_STOPPED : GAVEL_REASON_INELIGIBLE, "");
        return;
    }
    if (c->is_watching)
        act(c, CANDIDATE_UNWATCH);
    c->is_watching = false;
    become_preparing(c);
    lead_start(c);
}

/* Starts the work when its preparation is over. */
void lead_start(struct candidate *c)
{
    struct gavel_event *event;

    if (c->state != CANDIDATE_PREPARING || c->now >= c->stop_at ||
        c->now < c->entered_at + ns_from_ms(c->settings.preparation_ms))
        return;
    become_leading(c);
    publish(c);
    ASSERT(c->is_work_running);
    act(c, CANDIDATE_WORK_START)->work_start.epoch = c->epoch;
    event = emit(c, GAVEL_EVENT_BECAME_LEADER);
    event->epoch = c->epoch;
    event->leader = c->id;
    event->took_ms = c->election_at == NEVER ? 0 : ms_from_ns(c->now - c->election_at);
    c->election_at = NEVER;
    leader_seen(c, c->id, c->epoch);
    enter_phase(c, GAVEL_PHASE_READY);
    ring(c); /* so that the others know at once whom they have */
    /* Whom to ring at the end: those that came lately are not known yet. Many may begin to lead at once. */
    c->list_at = c->has_sessions ? session_list_at(c) : c->now;
    lead_consider_handover(c);
}

struct store_request lead_request(const struct candidate *c, enum store_op op)
{
    struct store_request request = call_request(c, op);

    request.expected_version = c->version;
    request.record.nonce = c->nonce;
    request.record.lease_ms = c->settings.lease_ms;
    request.record.process = call_process(c);
    /* While a claim of ours is open, any epoch that our nonce got is ours. */
    request.record.epoch = c->is_claim_open ? 0 : c->epoch;
    if (PLANTED(WALL_CLOCK))
        request.record.renewed_wall_ms = ms_from_ns(c->now);
    memcpy(request.record.holder, c->id, sizeof request.record.holder);
    memcpy(request.record.address, c->address, sizeof request.record.address);
    return request;
}

void lead_renew(struct candidate *c)
{
    /* Also while preparing: that may take most of a short mandate. */
    bool is_reclaim = c->now >= new_epoch_due_at(c) && !c->is_claim_open && c->version != 0;
    struct store_request request = lead_request(c, is_reclaim ? STORE_CLAIM : STORE_RENEW);

    ASSERT(holds_mandate(c));
    if (!call_send(c, SLOT_MANDATE, &request, true, &c->look_at))
        return;
    ASSERT(c->calls[SLOT_MANDATE].is_pending);
    c->look_at = NEVER; /* the answer says when next */
    if (is_reclaim)
        c->is_claim_open = true;
}

/* Our mandate goes on as a new epoch. */
static void take_new_epoch(struct candidate *c, gavel_ns sent_at, uint64_t epoch)
{
    struct gavel_event *event;

    ASSERT(holds_mandate(c));
    c->epoch = epoch;
    c->mandate_at = sent_at;
    if (c->has_sessions)
        lead_follow_session(c);
    else
        extend(c, sent_at);
    fence_note(&c->fence, epoch, c->now);
    if (c->state != CANDIDATE_LEADING)
        return; /* nobody was told of the epoch before */
    event = emit(c, GAVEL_EVENT_MANDATE_RENEWED);
    event->epoch = epoch;
    event->leader = c->id;
    leader_seen(c, c->id, epoch);
}

static void renewal_failed(struct candidate *c)
{
    ASSERT(holds_mandate(c));
    c->is_renewal_failing = true;
    c->look_at = c->now + retry_delay(c);
}

/* The answer to the claim of a new epoch on our own record. */
void lead_reclaim_done(struct candidate *c, const struct candidate_call *call, enum gavel_status status,
                       const struct store_reply *reply)
{
    if (!holds_mandate(c))
        return;
    if (status == GAVEL_OK) {
        c->is_claim_open = false;
        c->version = reply->record.version;
        take_new_epoch(c, call->sent_at, reply->record.epoch);
        if (c->state == CANDIDATE_LEADING)
            publish(c);
    } else if (status == GAVEL_ERR_CONFLICT || status == GAVEL_ERR_DONE) {
        c->is_claim_open = false;
        c->version = 0; /* ours was old, or somebody else holds it: a renewal tells */
        c->look_at = c->now;
    } else {
        renewal_failed(c);
    }
}

/* A wish that was told to us directly stands until the record has one. A store with sessions ends wishes. */
static void take_wish(struct candidate *c, const struct record *record)
{
    bool is_over = c->has_sessions && c->is_wish_recorded;

    if (PLANTED(WISH_KEPT))
        is_over = false;
    if (record->wish_epoch != c->epoch) {
        c->wish_epoch = is_over ? 0 : c->wish_epoch;
        return;
    }
    if (c->wish_epoch != c->epoch || strcmp(kept_name(c->wish_successor), record->wish_successor) != 0)
        c->wish_at = c->now;
    if (!keep_name(&c->wish_successor, record->wish_successor)) {
        c->wish_epoch = 0; /* to whom is not to be remembered */
        return;
    }
    c->is_wish_recorded = true;
    c->wish_epoch = record->wish_epoch;
    c->wish_force = record->wish_force;
}

void lead_renew_done(struct candidate *c, const struct candidate_call *call, enum gavel_status status,
                     const struct store_reply *reply)
{
    struct gavel_event *event;

    if (!holds_mandate(c))
        return;
    /*
     * Somebody else holds it; or the store is not the one it was (deleted,
     * replaced), and others may be electing a leader in its successor already.
     */
    if (status == GAVEL_ERR_NOT_HOLDER || status == GAVEL_ERR_STORE_DAMAGED) {
        stop_begin(c, GAVEL_REASON_SUPERSEDED, "");
        return;
    }
    if (status != GAVEL_OK) {
        renewal_failed(c);
        return;
    }
    c->version = reply->record.version;
    if (reply->record.epoch > c->epoch)
        take_new_epoch(c, call->sent_at, reply->record.epoch);
    else
        extend(c, call->sent_at);
    /* A claim still under way comes too late: the renewal changed the version, or came after it for
     * certain. */
    c->is_claim_open = false;
    if (c->state == CANDIDATE_LEADING)
        publish(c);
    event = emit(c, GAVEL_EVENT_HEARTBEAT);
    event->epoch = c->epoch;
    event->took_ms = ms_from_ns(c->now - call->sent_at);
    take_wish(c, &reply->record);
    lead_consider_handover(c);
}

void lead_go_on(struct candidate *c, const struct record *record)
{
    ASSERT(c->has_sessions);
    ASSERT(holds_mandate(c));
    ASSERT(record->held);
    c->version = record->version;
    if (record->epoch > c->epoch) {
        take_new_epoch(c, c->now, record->epoch);
        c->had_epoch = record->epoch;
        if (c->state == CANDIDATE_LEADING)
            publish(c);
    }
    take_wish(c, record);
    lead_consider_handover(c);
}

/* Whether the candidate that somebody wishes for could lead; if it is not known yet, the list is asked for
 * anew: soon at first, and then as long after as we have waited for it so far, up to the candidate time-out.
 */
static bool is_fit(struct candidate *c, const char *successor)
{
    const struct peer *peer;
    gavel_ns waited;

    if (successor[0] == '\0')
        return true;
    peer = peers_find(&c->peers, successor);
    if (!peer || (c->has_sessions && !peer->is_eligible)) {
        waited = ns_min(c->now - c->wish_at, ns_from_ms(c->settings.candidate_timeout_ms));
        c->list_at = ns_min(c->list_at, c->now + ns_max(waited, retry_delay(c)));
    }
    return peer && peer->is_eligible;
}

void lead_consider_handover(struct candidate *c)
{
    bool is_challengeable = c->now >= c->mandate_at + ns_from_ms(c->settings.min_mandate_ms);
    bool preempts = c->settings.preempt && !c->has_sessions; /* a store that grants also wishes */
    const char *wished = kept_name(c->wish_successor);
    gavel_ns heard_after = c->listed_at;
    const struct peer *better;

    if (PLANTED(FLAPPING))
        preempts = true;
    if (PLANTED(HANDOVER_TO_THE_DEAD))
        heard_after = INT64_MIN;
    if (c->state != CANDIDATE_LEADING)
        return;
    if (c->wish_epoch == c->epoch && (c->wish_force || is_challengeable) && strcmp(wished, c->id) != 0 &&
        is_fit(c, wished)) {
        stop_begin(c, wished[0] ? GAVEL_REASON_HANDED_OVER : GAVEL_REASON_RESIGNED, wished);
        return;
    }
    if (c->has_sessions && c->wish_epoch == c->epoch &&
        !is_challengeable) /* no renewal brings us here again */
        c->look_at = ns_min(c->look_at, c->mandate_at + ns_from_ms(c->settings.min_mandate_ms));
    if (!preempts || !is_challengeable)
        return;
    /*
     * One that has died stands in the list for a while: hand over only to one
     * that beats. And to the best one: to another that was merely heard of
     * first would be two hand-overs.
     */
    better = peers_better(&c->peers, c->settings.policy, c->id, c->priority, heard_after);
    if (better)
        stop_begin(c, GAVEL_REASON_HANDED_OVER, better->id);
    else if (peers_better(&c->peers, c->settings.policy, c->id, c->priority, INT64_MIN))
        c->list_at = ns_min(c->list_at, c->now + jittered(c, c->settings.heartbeat_ms));
}

void lead_check_time(struct candidate *c)
{
    if (holds_mandate(c) && c->now >= c->stop_at)
        stop_begin(c, c->deadline == term_ends_at(c) ? GAVEL_REASON_TERM_OVER : GAVEL_REASON_LAPSED, "");
    if (c->state == CANDIDATE_STOPPING && c->is_work_running && !c->has_overrun && c->now >= c->deadline) {
        c->has_overrun = true;
        emit(c, GAVEL_EVENT_OVERRUN)->epoch = c->epoch;
    }
}
