/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls to the store: requests out, replies and time-outs in.
 *
 * A call that is not answered in time has failed. It is then unknown whether a
 * write was applied, and a late answer is ignored. That is always safe: a
 * deadline counts only from calls that were answered, and an open claim is
 * settled by reading its nonce back.
 */

#include "core/candidate/internal.h"

#include <string.h>

gavel_ns jittered(struct candidate *c, gavel_ms ms)
{
    return ns_from_ms(ms) + prng_between(&c->prng, 0, ns_from_ms(c->settings.heartbeat_jitter_ms));
}

/* A fifth of a heartbeat, within reason: several tries fit before the work must stop. */
gavel_ns retry_delay(struct candidate *c)
{
    gavel_ns fifth = ns_from_ms(c->settings.heartbeat_ms) / 5;
    gavel_ns delay = ns_min(ns_max(fifth, 10 * NS_PER_MS), NS_PER_S);

    return delay + prng_between(&c->prng, 0, delay / 4);
}

struct store_request call_request(const struct candidate *c, enum store_op op)
{
    return (struct store_request){
        .op = op,
        .group = c->group,
        .session = c->session.number,
        .candidate_timeout_ms = c->settings.candidate_timeout_ms,
    };
}

struct process_id call_process(const struct candidate *c)
{
    const struct process_id nobody = {0};

    return c->is_guarded ? nobody : c->process;
}

/*
 * Whether somebody leads, as far as we know: then a store in trouble is left
 * alone for longer, but not beyond *ret_until, when that lease is over.
 */
static bool is_led(const struct candidate *c, gavel_ns *ret_until)
{
    *ret_until = NEVER;
    if (holds_mandate(c))
        return true;
    /* Who holds it has an open session, unless there is news that we have not seen; if it is ours, nobody
     * leads as yet. */
    if (c->has_sessions)
        return c->seen.is_known && c->seen.record.held && !c->seen.is_holder_dead && !c->is_ours &&
               !c->has_news;
    return c->seen.is_known && observation_vacancy(&c->seen, &c->settings, c->clock, c->id, c->nonce, c->now,
                                                   ret_until) == VACANCY_NONE;
}

/* Whether the breaker lets a call go out now; if not, *ret_retry_at is when to ask again. */
static bool is_allowed(struct candidate *c, enum candidate_slot slot, gavel_ns *ret_retry_at)
{
    gavel_ns later = c->now + ns_from_ms(c->settings.call_timeout_ms);
    bool is_closed = c->breaker.state == BREAKER_CLOSED;
    gavel_ns until, retry_at;
    bool led = is_led(c, &until);

    if (is_closed || (slot == SLOT_MANDATE && breaker_allows(&c->breaker, &c->settings, led, c->now)))
        return true;
    /* While half open another call is being tried: look again when it must have ended. The other slots are
     * told when the breaker closes. */
    *ret_retry_at = later;
    if (c->breaker.state == BREAKER_OPEN) {
        retry_at = breaker_retry_at(&c->breaker, &c->settings, led);
        if (led) /* nobody will, then */
            retry_at = ns_min(retry_at, ns_max(until, breaker_retry_at(&c->breaker, &c->settings, false)));
        *ret_retry_at = slot == SLOT_MANDATE ? retry_at : ns_max(retry_at, later);
    }
    return false;
}

bool call_send(struct candidate *c, enum candidate_slot slot, const struct store_request *request,
               bool is_urgent, gavel_ns *ret_retry_at)
{
    struct candidate_call *call = &c->calls[slot];
    bool was_closed = c->breaker.state == BREAKER_CLOSED;
    struct candidate_action *action;

    ASSERT((unsigned)slot < SLOT_COUNT);
    ASSERT(!call->is_pending);
    ASSERT(c->state != CANDIDATE_ENDED);
    if (!is_urgent && !is_allowed(c, slot, ret_retry_at))
        return false;
    *call = (struct candidate_call){
        .is_pending = true,
        .op = request->op,
        .id = ++c->next_call,
        .session = request->session,
        .is_trial = !is_urgent && !was_closed,
        .sent_at = c->now,
        .give_up_at = c->now + ns_from_ms(c->settings.call_timeout_ms),
    };
    ASSERT(call->give_up_at > call->sent_at);
    action = act(c, CANDIDATE_CALL);
    action->call.id = call->id;
    action->call.request = *request;
    action->call.request.give_up_at = call->give_up_at;
    return true;
}

void call_forget(struct candidate *c, enum candidate_slot slot)
{
    struct candidate_call *call = &c->calls[slot];

    if (call->is_pending && call->is_trial)
        breaker_forget(&c->breaker);
    call->is_pending = false;
}

/* A no of a store with sessions to this operation. */
static bool is_refusal(enum store_op op, enum gavel_status status)
{
    switch (op) {
    case STORE_DIED:
        return status == GAVEL_ERR_STATE || status == GAVEL_ERR_DENIED;
    case STORE_ASK:
        return status == GAVEL_ERR_STATE || status == GAVEL_ERR_NOT_FOUND;
    case STORE_HEARTBEAT:
        return status == GAVEL_ERR_STATE;
    case STORE_RELEASE:
    case STORE_LEAVE:
        return status == GAVEL_ERR_NOT_FOUND;
    default:
        return false;
    }
}

/* An answer that shows the store at work, even if it says no. */
static bool is_answer(const struct candidate *c, enum store_op op, enum gavel_status status)
{
    if (c->has_sessions && is_refusal(op, status))
        return true;
    return status == GAVEL_OK || status == GAVEL_ERR_CONFLICT || status == GAVEL_ERR_NOT_HOLDER ||
           status == GAVEL_ERR_ID_IN_USE || status == GAVEL_ERR_DONE || status == GAVEL_ERR_SESSION_GONE;
}

/* A hint may have closed the breaker long before its reset time: what waits for that must not go on
 * waiting. */
static void catch_up(struct candidate *c)
{
    c->beat_at = ns_min(c->beat_at, c->now);
    if (!c->has_sessions || c->list_at != NEVER) /* without a heartbeat nothing is due by itself */
        c->list_at = ns_min(c->list_at, c->now);
    if (!holds_mandate(c) && !c->has_sessions)
        c->look_at = ns_min(c->look_at, c->now);
}

/*
 * What an outcome means for the breaker. Heartbeats do not make up for failing
 * looks and renewals: a store may take the one and refuse the other.
 */
static void count_outcome(struct candidate *c, enum candidate_slot slot, const struct candidate_call *call,
                          enum gavel_status status, const struct store_reply *reply)
{
    gavel_ns opened_at = c->breaker.opened_at;
    bool counts = slot == SLOT_MANDATE;
    struct gavel_event *event;

    if (PLANTED(BREAKER_OLD_ANSWER) && c->breaker.state != BREAKER_CLOSED)
        counts = true;
    if (is_answer(c, call->op, status)) {
        if (!counts)
            return;
        if (breaker_succeeded(&c->breaker, call->sent_at)) {
            emit(c, GAVEL_EVENT_BREAKER_CLOSED)->took_ms = ms_from_ns(c->now - opened_at);
            catch_up(c);
        }
        return;
    }
    if (reply)
        keep_words(&c->trouble, "%s", reply->message);
    else if (c->has_sessions) /* a call is given up a moment before the driver says so in its own words */
        keep_words(&c->trouble, STORE_SILENT_CLUSTER, c->store, STORE_SILENT_CLUSTER_CAUSE);
    else
        keep_words(&c->trouble, "%s did not answer in time; it may be overloaded, frozen or cut off",
                   c->store);
    if (breaker_failed(&c->breaker, &c->settings, c->now)) {
        event = emit(c, GAVEL_EVENT_BREAKER_OPEN);
        event->status = status;
        event->message = c->trouble ? c->trouble : "";
    }
    /* Only a look closes it, and where nothing comes round by itself somebody must ask for one. */
    if (c->has_sessions && c->breaker.state != BREAKER_CLOSED)
        c->look_at = ns_min(c->look_at, c->now + retry_delay(c));
}

static void mandate_call_done(struct candidate *c, const struct candidate_call *call,
                              enum gavel_status status, const struct store_reply *reply)
{
    switch (call->op) {
    case STORE_READ:
        if (c->state == CANDIDATE_STOPPING && c->is_finishing && !c->is_work_running)
            finish_read_done(c, status, reply);
        else if (status == GAVEL_OK && c->has_sessions)
            session_read_done(c, reply);
        else if (status == GAVEL_OK)
            standby_read_done(c, call, reply);
        else
            c->look_at = c->now + retry_delay(c);
        break;
    case STORE_CLAIM:
        if (c->state == CANDIDATE_CLAIMING)
            standby_claim_done(c, call, status, reply);
        else
            lead_reclaim_done(c, call, status, reply);
        break;
    case STORE_RENEW:
        lead_renew_done(c, call, status, reply);
        break;
    case STORE_RELEASE:
        if (call->id == c->orphan_call)
            session_orphan_done(c, status, reply);
        else
            stop_release_done(c, status, reply);
        break;
    case STORE_DIED:
        session_died_done(c, status);
        break;
    case STORE_ASK:
        standby_ask_done(c, status, reply);
        break;
    default:
        ASSERT(!"an operation of another slot");
    }
}

/* Where nothing comes round by itself, what has failed is asked again. */
static void list_failed(struct candidate *c)
{
    if (c->has_sessions)
        c->list_at = ns_min(c->list_at, c->now + jittered(c, c->settings.heartbeat_ms));
}

static void call_done(struct candidate *c, enum candidate_slot slot, enum gavel_status status,
                      const struct store_reply *reply)
{
    struct candidate_call call = c->calls[slot];

    ASSERT(call.is_pending);
    ASSERT(call.sent_at <= c->now);
    ASSERT(call.id <= c->next_call);
    c->calls[slot].is_pending = false;
    count_outcome(c, slot, &call, status, reply);
    if (status == GAVEL_ERR_STORE_TOO_NEW)
        stop_for_good(c, status); /* no trying again will help */
    switch (slot) {
    case SLOT_MANDATE:
        mandate_call_done(c, &call, status, reply);
        break;
    case SLOT_BEAT:
        registry_beat_done(c, &call, status, reply);
        break;
    case SLOT_LIST:
        if (status == GAVEL_OK)
            registry_list_done(c, &call, reply);
        else
            list_failed(c);
        break;
    case SLOT_COUNT:
        break;
    }
}

void call_reply(struct candidate *c, uint64_t id, const struct store_reply *reply)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (c->calls[slot].is_pending && c->calls[slot].id == id) {
            call_done(c, (enum candidate_slot)slot, reply->status, reply);
            return;
        }
    }
}

void call_timeouts(struct candidate *c)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (c->calls[slot].is_pending && c->now >= c->calls[slot].give_up_at)
            call_done(c, (enum candidate_slot)slot, GAVEL_ERR_TIMEOUT, NULL);
}
