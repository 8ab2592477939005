/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Giving a mandate up, in this order: is_leader() turns false, the work stops,
 * the mandate is released, the others are rung. A release before the work has
 * stopped would let two leaders overlap.
 */

#include "core/candidate/internal.h"

#include <string.h>

void stop_end(struct candidate *c, bool is_released)
{
    bool was_voluntary = c->reason == GAVEL_REASON_RESIGNED || c->reason == GAVEL_REASON_HANDED_OVER ||
                         c->reason == GAVEL_REASON_TERM_OVER;

    ASSERT(c->state == CANDIDATE_STOPPING);
    ASSERT(!c->is_work_running);
    if (is_released)
        ring(c);
    /* Let another have it, even one that missed the doorbell: it looks at least once in this time. */
    if (was_voluntary && (kept_name(c->successor)[0] != '\0' || peers_others(&c->peers, c->id) > 0))
        c->hold_back_until =
            c->now + 2 * ns_from_ms(c->settings.election_interval_ms + c->settings.heartbeat_jitter_ms);
    become_standby(c);
    ASSERT(c->epoch == 0);
}

/*
 * We had asked for a new epoch when we began to stop, and got it: then that is
 * what we give up, to whom we meant to. Otherwise the release of the former one
 * would find nothing, and we would go on to lead as if nobody had resigned.
 */
static bool is_renewed(const struct candidate *c)
{
    if (PLANTED(RESIGNATION_UNDONE))
        return false;
    return c->has_sessions && c->is_ours && c->seen_session == c->mandate_session &&
           c->renewed_epoch == c->epoch && c->seen.record.epoch > c->epoch;
}

void stop_send_release(struct candidate *c)
{
    struct store_request request;
    gavel_ns retry_at;

    if (is_renewed(c))
        c->epoch = c->had_epoch = c->seen.record.epoch;
    request = lead_request(c, STORE_RELEASE);
    ASSERT(c->state == CANDIDATE_STOPPING);
    ASSERT(!c->is_work_running || PLANTED(RELEASE_BEFORE_STOP));
    if (c->has_sessions)
        ASSERT(!session_is_over(c) || PLANTED(FORMER_SESSION_RELEASED));
    c->settle_at = NEVER;
    /* A renewal still under way is of no interest: it cannot be applied after the release. */
    call_forget(c, SLOT_MANDATE);
    strcpy(request.record.successor, kept_name(c->successor)); /* a name fits */
    if (c->has_outcome) {                                      /* whoever has one ends, and names nobody */
        c->outcome.attempts = c->attempts < UINT32_MAX ? c->attempts + 1 : c->attempts;
        outcome_write(&c->outcome, request.record.successor);
    }
    request.record.done = c->is_finishing;
    if (PLANTED(RELEASE_STAYS))
        request.leaves = false;
    else
        request.leaves = c->has_sessions && (c->is_stopping || c->gives_up);
    c->is_release_leaving = request.leaves || request.record.done;
    request.record.loss = c->reason == GAVEL_REASON_LAPSED ? GAVEL_LOSS_LAPSED : c->loss;
    (void)call_send(c, SLOT_MANDATE, &request, true, &retry_at); /* urgent calls are never held back */
    ASSERT(c->calls[SLOT_MANDATE].is_pending);
}

/* Nothing of the work is left: the mandate may go. One of a session that is over is gone already. */
static void let_go(struct candidate *c)
{
    bool is_over = c->has_sessions && session_is_over(c);

    ASSERT(!c->is_work_running);
    if (PLANTED(FORMER_SESSION_RELEASED) && c->session.number != 0)
        is_over = false;
    if (is_over && c->is_finishing)
        finish_session_over(c);
    else if (is_over)
        stop_end(c, false);
    else
        stop_send_release(c);
}

/* The work is told to stop; the mandate is kept until it has. */
static void stop_work(struct candidate *c)
{
    struct candidate_action *action = act(c, CANDIDATE_MANDATE);
    struct gavel_event *event;

    ASSERT(c->is_work_running);
    ASSERT(c->epoch != 0);
    ASSERT(c->state == CANDIDATE_STOPPING);
    action->mandate.epoch = 0;
    action->mandate.stop_at = 0;
    action->mandate.deadline = action->mandate.term_ends_at = c->deadline;
    event = emit(c, GAVEL_EVENT_LOST_LEADERSHIP);
    event->epoch = c->epoch;
    event->reason = c->reason;
    event->took_ms = ms_from_ns(c->now - c->led_from);
    action = act(c, CANDIDATE_WORK_STOP);
    action->work_stop.epoch = c->epoch;
    action->work_stop.reason = c->reason;
    action->work_stop.deadline = c->deadline;
}

void stop_begin(struct candidate *c, enum gavel_reason reason, const char *successor)
{
    bool has_work = c->is_work_running;

    if (has_work)
        ASSERT(c->state == CANDIDATE_LEADING);
    /* The store would grant it the next one in the very write that ends this one, and so on. */
    c->gives_up = c->has_sessions && c->state == CANDIDATE_PREPARING &&
                  (reason == GAVEL_REASON_LAPSED || reason == GAVEL_REASON_TERM_OVER);
    c->reason = reason;
    (void)keep_name(&c->successor, successor); /* a hint: without memory anybody may follow */
    become_stopping(c);
    if (reason == GAVEL_REASON_SUPERSEDED || (c->has_sessions && session_is_over(c)))
        c->deadline = ns_min(c->deadline, c->now + ns_from_ms(c->settings.stop_grace_ms));
    if (has_work)
        stop_work(c);
    if (PLANTED(RECLAIM_WHILE_STOPPING) && has_work) {
        c->is_work_running = false;
        stop_end(c, false);
        return;
    }
    if (!has_work && reason == GAVEL_REASON_SUPERSEDED)
        stop_end(c, false);
    else if (!has_work)
        let_go(c);
    if (PLANTED(RELEASE_BEFORE_STOP) && has_work)
        stop_send_release(c);
}

void stop_for_good(struct candidate *c, enum gavel_status status)
{
    if (c->is_stopping)
        return;
    c->is_stopping = true;
    c->stop_status = status;
    /* A claim whose outcome is not known may have been applied. */
    if (holds_mandate(c) || (c->state == CANDIDATE_STANDBY && c->is_claim_open))
        stop_begin(c, GAVEL_REASON_STOPPED, "");
}

void stop_work_done(struct candidate *c)
{
    if (c->state != CANDIDATE_STOPPING || !c->is_work_running)
        return;
    c->is_work_running = false;
    if (PLANTED(RELEASE_BEFORE_STOP)) {
        /* It was sent when the work was told to stop. */
        if (!c->calls[SLOT_MANDATE].is_pending)
            stop_end(c, true);
        return;
    }
    if (c->reason == GAVEL_REASON_SUPERSEDED && !c->is_finishing)
        stop_end(c, false);
    else
        let_go(c);
}

/* What a release has to do with our taking part in the group. */
static void note_left(struct candidate *c, enum gavel_status status)
{
    if (status == GAVEL_ERR_NOT_FOUND || (status == GAVEL_OK && c->is_release_leaving))
        stand_left(c);
}

/*
 * The release of a mandate of a session. Without an answer it is sent again:
 * the store would go on taking us for the leader for as long as the session
 * lasts. It names its epoch, so it ends no later mandate, whenever it arrives.
 */
static void session_release_done(struct candidate *c, enum gavel_status status,
                                 const struct store_reply *reply)
{
    bool is_answered = status == GAVEL_OK || status == GAVEL_ERR_NOT_HOLDER ||
                       status == GAVEL_ERR_SESSION_GONE || status == GAVEL_ERR_NOT_FOUND;
    bool is_hopeless = c->is_stopping && c->now >= c->session.deadline; /* the session ends soon by itself */

    if (PLANTED(RELEASE_SENT_ONCE))
        is_answered = true;
    if (!is_answered && !is_hopeless) {
        c->settle_at = c->now + retry_delay(c);
        return;
    }
    if (c->seen.record.epoch <= c->epoch) /* else we were granted another while the answer was under way */
        c->is_ours = false;
    if (status == GAVEL_OK || status == GAVEL_ERR_NOT_HOLDER)
        (void)session_see_reply(c, reply); /* if it is old, something newer was seen */
    if (status == GAVEL_ERR_NOT_HOLDER && is_renewed(c)) {
        stop_send_release(c);
        return;
    }
    note_left(c, status);
    stop_end(c, status == GAVEL_OK);
}

/* Released, or not known: then the record still has our nonce and we may claim it afresh, and others after
 * the lease. */
void stop_release_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply)
{
    bool was_claim_open = c->is_claim_open;

    if (c->is_work_running) /* only with the planted bug */
        return;
    if (c->is_finishing) {
        if (c->has_sessions)
            note_left(c, status);
        finish_release_done(c, status, reply);
        return;
    }
    if (c->has_sessions) {
        session_release_done(c, status, reply);
        return;
    }
    /*
     * Whatever came of it, the next claim gets a nonce of its own: this
     * release may still be under way, and with the old nonce it would end the
     * new mandate while its work runs.
     */
    c->is_claim_open = false;
    if (PLANTED(LATE_RELEASE) && status != GAVEL_OK && status != GAVEL_ERR_NOT_HOLDER)
        c->is_claim_open = was_claim_open;
    stop_end(c, status == GAVEL_OK);
}
