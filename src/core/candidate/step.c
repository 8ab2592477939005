/* SPDX-License-Identifier: Apache-2.0 */

/* The step function: one event in, then whatever has come due. */

#include "base/error.h"
#include "core/candidate/internal.h"

#include <stdlib.h>
#include <string.h>

/* Obey a doorbell at most so often; more of them, true or forged, cost nothing. */
#define DOORBELL_EVERY (20 * NS_PER_MS)

/* Let a hint make an open breaker try at most so often. */
#define NUDGE_EVERY NS_PER_S

enum gavel_status candidate_check_policy(enum gavel_policy policy, bool has_sessions,
                                         struct gavel_error *error)
{
    if (policy != GAVEL_POLICY_BALANCED || has_sessions)
        return GAVEL_OK;
    return error_set(
        error, GAVEL_ERR_STORE_UNSUPPORTED,
        "the policy balanced needs a cluster, which knows who leads how many groups; this store does not: use first, lexicographic or priority");
}

enum gavel_status candidate_init(struct candidate *c, const struct candidate_config *config,
                                 struct gavel_error *error)
{
    enum gavel_status status = name_check("group name", config->group, error);

    if (status == GAVEL_OK)
        status = name_check("candidate id", config->id, error);
    if (status == GAVEL_OK)
        status = gavel_settings_check(&config->settings, error);
    if (status == GAVEL_OK)
        status = candidate_check_policy(config->settings.policy, config->has_sessions, error);
    if (status != GAVEL_OK)
        return status;
    memset(c, 0, sizeof *c);
    memcpy(c->group, config->group, strlen(config->group) + 1);
    memcpy(c->id, config->id, strlen(config->id) + 1);
    if (config->address && strlen(config->address) <= ADDRESS_MAX_BYTES)
        memcpy(c->address, config->address, strlen(config->address) + 1);
    c->store = config->store && *config->store ? config->store : "the store";
    c->settings = config->settings;
    c->clock = config->clock;
    c->process = config->process;
    c->is_guarded = config->is_guarded;
    c->has_sessions = config->has_sessions;
    c->is_patient = c->has_sessions && config->settings.takeover_delay_ms > 0;
    c->priority = config->priority;
    c->is_eligible = config->eligible;
    c->since_wall_ms = config->wall_ms;
    prng_seed(&c->prng, config->seed);
    c->instance = prng_next(&c->prng) | 1; /* never 0, which means none */
    c->nonce = (struct nonce){prng_next(&c->prng), prng_next(&c->prng)};
    c->look_at = c->beat_at = c->list_at = c->claim_at = c->election_at = c->settle_at = NEVER;
    c->death_at = c->leave_at = c->orphan_at = NEVER;
    c->now = c->doorbell_at = c->nudged_at = INT64_MIN / 2;
    c->hold_back_until = c->stood_at = INT64_MIN / 2;
    return GAVEL_OK;
}

void candidate_done(struct candidate *c)
{
    if (!c)
        return;
    peers_done(&c->peers);
    free(c->trouble);
    free(c->stop_message);
    free(c->successor);
    free(c->wish_successor);
    free(c->ask_successor);
    c->trouble = c->stop_message = c->successor = c->wish_successor = c->ask_successor = NULL;
}

static bool takes_part(const struct candidate *c)
{
    return c->state != CANDIDATE_IDLE && c->state != CANDIDATE_ENDED && c->state != CANDIDATE_STOPPING;
}

static void nudge(struct candidate *c)
{
    if (c->now - c->nudged_at < NUDGE_EVERY)
        return;
    c->nudged_at = c->now;
    breaker_nudge(&c->breaker);
}

static void doorbell(struct candidate *c)
{
    /* If a look was put off to an instant that is still to come, this hint is met by it as well. */
    bool is_put_off = c->doorbell_at > c->now;
    gavel_ns at = is_put_off ? c->doorbell_at : ns_max(c->now, c->doorbell_at + DOORBELL_EVERY);

    /* Who has a session never looks by itself: what may have changed while it stops is looked at later. */
    if (c->has_sessions && c->state == CANDIDATE_STOPPING) {
        c->has_news = true;
        c->look_at = ns_min(c->look_at, at);
    }
    if (!takes_part(c))
        return;
    c->doorbell_at = at;
    c->is_hurried = c->has_news = true;
    c->look_at = ns_min(c->look_at, at);
    if (c->state == CANDIDATE_LEADING)
        c->list_at = ns_min(c->list_at, at);
    nudge(c);
}

/* The store speaks to us, so it can be reached. */
static void told(struct candidate *c, const struct candidate_event *event)
{
    const struct sight sight = {
        .record = event->told.record,
        .is_found = event->told.is_found,
        .is_ours = event->told.is_ours,
        .session = c->session.number,
        .revision = event->told.revision,
    };

    ASSERT(c->has_sessions);
    if (c->state == CANDIDATE_IDLE || c->state == CANDIDATE_ENDED)
        return;
    (void)session_see(c, &sight); /* an old one is of no use */
    nudge(c);
    if (c->breaker.state == BREAKER_HALF_OPEN)
        c->look_at = ns_min(c->look_at, c->now); /* only that closes it */
}

static void holder_died(struct candidate *c, struct nonce nonce)
{
    if (!c->seen.is_found || !c->seen.record.held || !c->is_watching || !nonce_equal(c->watched, nonce))
        return;
    c->seen.is_holder_dead = true;
    c->seen.died_at = c->now;
    if (!takes_part(c))
        return;
    if (c->has_sessions) { /* the store ends its session, and grants the mandate to the next */
        c->death_at = c->now;
        return;
    }
    /* What we saw last may be older than its last renewal, so look once more; the claim follows. */
    c->is_hurried = true;
    c->look_at = ns_min(c->look_at, c->now);
    nudge(c);
}

static void ensure(struct candidate *c, uint64_t epoch, bool force, const char *desired)
{
    bool is_named = desired[0] != '\0';
    bool is_led_by_other = c->state == CANDIDATE_STANDBY && c->seen.is_found && c->election_at == NEVER;

    if (!takes_part(c))
        return;
    /* Force is meant for the leader that the caller saw, not for one that came since. */
    force = force && epoch == candidate_leader_epoch(c);
    if (c->state == CANDIDATE_LEADING) {
        c->wish_epoch = force || is_named ? c->epoch : 0;
        c->wish_force = force;
        c->is_wish_recorded = false;
        c->wish_at = c->now;
        if (!keep_name(&c->wish_successor, desired))
            c->wish_epoch = 0;
        lead_consider_handover(c);
        return;
    }
    c->look_at = ns_min(c->look_at, c->now);
    if (is_led_by_other && (is_named ? strcmp(desired, c->seen.record.holder) != 0 : force)) {
        c->has_ask = keep_name(&c->ask_successor, desired);
        c->ask_epoch = c->seen.record.epoch;
        c->ask_at = c->now;
        c->ask_force = force;
    }
}

static void set_eligible(struct candidate *c, bool is_eligible)
{
    if (c->is_eligible == is_eligible)
        return;
    c->is_eligible = is_eligible;
    if (takes_part(c))
        c->beat_at = ns_min(c->beat_at, c->now); /* the others should know */
    if (!is_eligible && holds_mandate(c))
        stop_begin(c, GAVEL_REASON_INELIGIBLE, "");
    standby_consider(c);
}

static void handle(struct candidate *c, const struct candidate_event *event)
{
    switch (event->kind) {
    case CANDIDATE_START:
        c->look_at = c->now + ns_from_ms(prng_between(&c->prng, c->settings.start_jitter_min_ms,
                                                      c->settings.start_jitter_max_ms));
        c->phase_at = c->entered_at = c->now;
        break;
    case CANDIDATE_TICK:
        break;
    case CANDIDATE_REPLY:
        call_reply(c, event->reply.call, event->reply.reply);
        break;
    case CANDIDATE_DOORBELL:
        doorbell(c);
        break;
    case CANDIDATE_TOLD:
        told(c, event);
        break;
    case CANDIDATE_HOLDER_DIED:
        holder_died(c, event->holder_died.nonce);
        break;
    case CANDIDATE_WORK_STOPPED:
        stop_work_done(c);
        break;
    case CANDIDATE_RESIGN:
        if (holds_mandate(c))
            stop_begin(c, event->resign.successor[0] ? GAVEL_REASON_HANDED_OVER : GAVEL_REASON_RESIGNED,
                       event->resign.successor);
        break;
    case CANDIDATE_FINISH:
        finish_begin(c);
        break;
    case CANDIDATE_OUTCOME:
        c->outcome = event->outcome;
        c->has_outcome = true;
        break;
    case CANDIDATE_ENSURE:
        ensure(c, event->ensure.epoch, event->ensure.force, event->ensure.desired);
        break;
    case CANDIDATE_SET_ELIGIBLE:
        set_eligible(c, event->eligible);
        break;
    case CANDIDATE_GO_ON:
        c->waits = false;
        break;
    case CANDIDATE_STOP:
        c->loss = event->stop.loss;
        stop_for_good(c, GAVEL_OK);
        break;
    }
}

/* Whether something that comes round anyway may come now, so that it shares a call with what is due. */
static bool is_nearly_due(const struct candidate *c, gavel_ns at)
{
    return at != NEVER && at - c->now <= ns_from_ms(c->settings.heartbeat_ms) / 4;
}

static bool is_free(const struct candidate *c, enum candidate_slot slot)
{
    return !c->calls[slot].is_pending;
}

/* Whether what nobody waits for may be said or asked, once it is due. */
static bool may_begin(const struct candidate *c, enum candidate_slot slot)
{
    return is_free(c, slot) && !c->waits;
}

static void run_calls(struct candidate *c)
{
    bool has_looked = false;
    bool may_write = !c->has_sessions || c->session.number != 0;

    if (c->now >= c->settle_at && is_free(c, SLOT_MANDATE) && c->is_finishing)
        finish_look(c);
    else if (c->now >= c->settle_at && is_free(c, SLOT_MANDATE))
        stop_send_release(c);
    if (c->now >= c->death_at && is_free(c, SLOT_MANDATE) && may_write)
        session_tell_death(c);
    if (c->now >= c->orphan_at && is_free(c, SLOT_MANDATE))
        session_release_orphan(c);
    if (c->has_ask && c->now >= c->ask_at && c->state == CANDIDATE_STANDBY && is_free(c, SLOT_MANDATE) &&
        may_write)
        standby_ask(c);
    if (c->now >= c->look_at && may_begin(c, SLOT_MANDATE) && takes_part(c)) {
        has_looked = !c->is_hurried; /* a claim may follow, and must not wait for a heartbeat and a listing */
        c->is_hurried = false;
        if (holds_mandate(c) && !c->has_sessions)
            lead_renew(c);
        else
            standby_look(c);
    }
    if (may_begin(c, SLOT_BEAT) &&
        (c->now >= stand_due_at(c) || (has_looked && is_nearly_due(c, stand_due_at(c)))))
        registry_beat(c);
    if (may_begin(c, SLOT_LIST) && takes_part(c) &&
        (c->now >= c->list_at || (has_looked && is_nearly_due(c, c->list_at))))
        registry_list(c);
}

/* What has become due by now, whatever the event was. */
static void run_due(struct candidate *c)
{
    if (c->state == CANDIDATE_IDLE && !c->is_stopping && c->now >= c->look_at)
        become_observing(c);
    if (c->state == CANDIDATE_OBSERVING && c->is_registered && c->seen.is_known && !c->is_stopping &&
        c->now >= c->entered_at + ns_from_ms(c->settings.observation_ms)) {
        become_standby(c);
        if (!c->has_sessions)
            c->look_at = ns_min(c->look_at, c->now); /* what was seen while observing may be old */
    }
    if (c->has_sessions) {
        session_consider(c);
        lead_check_time(c); /* the session that it was granted to may be about to end */
    }
    if (c->is_stopping && !c->is_leaving &&
        (c->state == CANDIDATE_IDLE || c->state == CANDIDATE_OBSERVING || c->state == CANDIDATE_STANDBY))
        registry_leave(c);
    if (c->is_leaving) {
        if (c->now >= c->leave_at)
            registry_leave_again(c);
        return;
    }
    if (c->has_sessions)
        stand_consider(c);
    lead_start(c);
    if (c->now >= c->claim_at && is_free(c, SLOT_MANDATE))
        standby_consider(c);
    run_calls(c);
}

/* What holds after every step, whatever came in. */
static void check_after(const struct candidate *c)
{
    if (holds_mandate(c)) {
        ASSERT(c->now < c->stop_at);
        ASSERT(c->stop_at <= c->deadline);
        ASSERT(c->epoch != 0);
        if (c->has_sessions)
            ASSERT(!session_is_over(c));
    }
    ASSERT((c->state == CANDIDATE_LEADING) <= c->is_work_running);
    if (c->is_work_running && c->state != CANDIDATE_LEADING)
        ASSERT(c->state == CANDIDATE_STOPPING);
    if (c->state == CANDIDATE_CLAIMING)
        ASSERT(c->calls[SLOT_MANDATE].is_pending);
}

void candidate_step(struct candidate *c, const struct candidate_event *event,
                    struct candidate_actions *ret_actions)
{
    ASSERT(event->now >= c->now);
    ASSERT(!c->actions); /* a step is not taken within a step */
    ret_actions->count = 0;
    c->actions = ret_actions;
    c->now = event->now;
    if (c->state != CANDIDATE_ENDED) {
        session_follow(c, &event->session, event->waits);
        lead_check_time(c); /* first: whatever the event brings, a mandate that is over is over */
        handle(c, event);
        call_timeouts(c);
        lead_check_time(c);
        run_due(c);
        check_after(c);
    }
    c->actions = NULL;
}

/* The part of the timers that belongs to the state. */
static gavel_ns state_wake_at(const struct candidate *c)
{
    gavel_ns at = NEVER;

    switch (c->state) {
    case CANDIDATE_OBSERVING:
        at = c->entered_at + ns_from_ms(c->settings.observation_ms);
        return at > c->now ? at : NEVER; /* after that it waits for answers, not for time */
    case CANDIDATE_STANDBY:
        return is_free(c, SLOT_MANDATE) && !c->has_sessions ? c->claim_at : NEVER;
    case CANDIDATE_PREPARING:
        at = c->entered_at + ns_from_ms(c->settings.preparation_ms);
        return ns_min(at > c->now ? at : NEVER, c->has_sessions ? lead_term_stop_at(c) : c->stop_at);
    case CANDIDATE_LEADING:
        return c->has_sessions ? lead_term_stop_at(c) : c->stop_at;
    case CANDIDATE_STOPPING:
        if (is_free(c, SLOT_MANDATE))
            at = c->settle_at;
        return c->is_work_running && !c->has_overrun ? ns_min(at, c->deadline) : at;
    case CANDIDATE_IDLE:
    case CANDIDATE_CLAIMING:
    case CANDIDATE_ENDED:
        return NEVER;
    }
    return NEVER;
}

gavel_ns candidate_wake_at(const struct candidate *c)
{
    gavel_ns at;

    if (c->state == CANDIDATE_IDLE)
        return c->look_at;
    if (c->state == CANDIDATE_ENDED)
        return NEVER;
    at = state_wake_at(c);
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (c->calls[slot].is_pending)
            at = ns_min(at, c->calls[slot].give_up_at);
    if (c->is_leaving)
        return ns_min(at, c->leave_at);
    if (c->has_sessions)
        at = ns_min(at, c->claim_at);
    if (is_free(c, SLOT_MANDATE) && c->session.number != 0)
        at = ns_min(at, ns_min(c->death_at, c->orphan_at));
    if (is_free(c, SLOT_MANDATE) && c->session.number != 0 && c->has_ask && c->state == CANDIDATE_STANDBY)
        at = ns_min(at, c->ask_at);
    if (may_begin(c, SLOT_MANDATE) && takes_part(c))
        at = ns_min(at, c->look_at);
    if (may_begin(c, SLOT_BEAT))
        at = ns_min(at, stand_due_at(c));
    if (may_begin(c, SLOT_LIST) && takes_part(c))
        at = ns_min(at, c->list_at);
    return at;
}

gavel_ns candidate_stop_lead(const struct candidate *c)
{
    return ns_from_ms(c->settings.stop_margin_ms) + ns_from_ms(c->settings.stop_grace_ms);
}

bool candidate_is_leader(const struct candidate *c, gavel_ns now)
{
    if (PLANTED(IS_LEADER_WITHOUT_CLOCK))
        return c->state == CANDIDATE_LEADING;
    return c->state == CANDIDATE_LEADING && now < c->stop_at;
}

enum candidate_answer candidate_answer(const struct candidate *c, gavel_ns now, gavel_ns *ret_until)
{
    if (!candidate_is_leader(c, now))
        return CANDIDATE_NOT_LEADER;
    *ret_until = c->stop_at;
    return c->is_renewal_failing ? CANDIDATE_UNKNOWN_UNTIL : CANDIDATE_LEADER;
}

/* Keep-alives are sent several times in what a session lasts. */
static bool is_silent(const struct store_session *session, gavel_ns now)
{
    return session->lasts != 0 && now - (session->deadline - session->lasts) > session->lasts / 2;
}

bool candidate_is_leader_in(const struct candidate *c, const struct store_session *session, gavel_ns now)
{
    gavel_ns stop_at, deadline;

    candidate_times_in(c, session, &stop_at, &deadline);
    return c->state == CANDIDATE_LEADING && now < stop_at;
}

enum candidate_answer candidate_answer_in(const struct candidate *c, const struct store_session *session,
                                          gavel_ns now, gavel_ns *ret_until)
{
    gavel_ns stop_at, deadline;

    if (!c->has_sessions)
        return candidate_answer(c, now, ret_until);
    if (!candidate_is_leader_in(c, session, now))
        return CANDIDATE_NOT_LEADER;
    candidate_times_in(c, session, &stop_at, &deadline);
    *ret_until = stop_at;
    return is_silent(session, now) ? CANDIDATE_UNKNOWN_UNTIL : CANDIDATE_LEADER;
}

uint64_t candidate_leader_epoch(const struct candidate *c)
{
    if (c->state == CANDIDATE_LEADING)
        return c->epoch;
    return c->is_leader_down || c->state == CANDIDATE_STOPPING ? 0 : c->last_epoch;
}
