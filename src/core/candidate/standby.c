/* SPDX-License-Identifier: Apache-2.0 */

/* Looking at the group, and claiming it when nobody leads. */

#include "core/candidate/internal.h"

#include <string.h>

void standby_look(struct candidate *c)
{
    struct store_request request = call_request(c, STORE_READ);

    request.record.nonce = c->nonce; /* a store that hides nonces shows us our own */
    if (call_send(c, SLOT_MANDATE, &request, false, &c->look_at))
        c->look_at = c->has_sessions ? NEVER : c->now + jittered(c, c->settings.election_interval_ms);
}

/* Asks the leader to hand over. It is told by its next renewal, or at once by the doorbell. */
void standby_ask(struct candidate *c)
{
    struct store_request request = call_request(c, STORE_ASK);
    gavel_ns retry_at;

    ASSERT(c->state == CANDIDATE_STANDBY);
    if (c->has_sessions)
        ASSERT(c->session.number != 0);
    c->has_ask = false;
    if (c->has_sessions && (c->seen.record.epoch != c->ask_epoch || !c->seen.record.held))
        return; /* another leads by now, or nobody */
    request.record.wish_epoch = c->seen.record.epoch;
    request.record.wish_force = c->ask_force;
    strcpy(request.record.wish_successor, kept_name(c->ask_successor)); /* a name fits */
    (void)call_send(c, SLOT_MANDATE, &request, true, &retry_at);        /* urgent calls are never held back */
}

void standby_ask_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply)
{
    if (status == GAVEL_OK)
        ring_one(c, reply->record.address);
    /* Too early: other stores write the wish down, and the leader obeys it when its time has come. */
    if (c->has_sessions && status == GAVEL_ERR_STATE && !c->has_ask) {
        c->has_ask = true;
        c->ask_at = c->now + jittered(c, c->settings.election_interval_ms);
    }
    c->look_at = c->now;
}

/* What a death is told for: this mandate and no other. */
static struct nonce mandate_mark(const struct candidate *c)
{
    return c->has_sessions ? (struct nonce){0, c->seen.record.epoch} : c->seen.record.nonce;
}

static bool is_own_record(const struct candidate *c)
{
    return c->has_sessions ? c->is_ours : nonce_equal(c->seen.record.nonce, c->nonce);
}

/* Whether somebody should notice the death of the holder's process: us, unless the store does. With a hundred
 * standbys on one machine all would wake, just when the next leader needs the processor. */
static bool is_to_be_watched(const struct candidate *c)
{
    return c->seen.is_found && c->seen.record.held && c->seen.record.process.pid != 0 && !is_own_record(c) &&
           !c->session.sees_deaths;
}

void standby_watch_holder(struct candidate *c)
{
    struct candidate_action *action;

    if (!is_to_be_watched(c)) {
        if (c->is_watching)
            act(c, CANDIDATE_UNWATCH);
        c->is_watching = false;
        return;
    }
    if (c->is_watching && nonce_equal(c->watched, mandate_mark(c)))
        return;
    c->is_watching = true;
    c->watched = mandate_mark(c);
    action = act(c, CANDIDATE_WATCH);
    action->watch.nonce = c->watched;
    action->watch.process = c->seen.record.process;
}

/* Tells the leader once that we are here, so that it can ring us when it goes. */
static void ring_leader(struct candidate *c)
{
    if (c->has_rung || !c->is_registered || c->seen.record.address[0] == '\0')
        return;
    c->has_rung = true;
    ring_one(c, c->seen.record.address);
}

/* Attempts at the work before ours, as far as the record says. One that died has left no word, and has taken
 * that of those before it along; but it was one. */
uint32_t standby_attempts_before(const struct candidate *c)
{
    const struct record *record = &c->seen.record;
    struct outcome outcome;

    if (c->seen.is_found && !record->held && outcome_read(record->successor, &outcome))
        return outcome.attempts;
    return c->seen.is_found && (record->held || record->loss != GAVEL_LOSS_NONE);
}

static void claim(struct candidate *c, enum vacancy vacancy)
{
    struct store_request request = call_request(c, STORE_CLAIM);

    ASSERT(c->state == CANDIDATE_STANDBY);
    ASSERT(c->is_eligible);
    ASSERT(!c->is_stopping);
    ASSERT(vacancy != VACANCY_NONE);
    /* While an earlier claim may still arrive, its nonce is kept: whichever is applied is then known as
     * ours. */
    if (!c->is_claim_open)
        c->nonce = (struct nonce){prng_next(&c->prng), prng_next(&c->prng)};
    c->attempts = standby_attempts_before(c);
    request.expected_version = c->seen.is_found ? c->seen.record.version : 0;
    request.must_be_expired = vacancy == VACANCY_TIMED_OUT;
    request.record.epoch = c->fence.newest;
    request.record.nonce = c->nonce;
    request.record.lease_ms = c->settings.lease_ms;
    request.record.process = call_process(c);
    memcpy(request.record.holder, c->id, sizeof request.record.holder);
    memcpy(request.record.address, c->address, sizeof request.record.address);
    if (PLANTED(WALL_CLOCK)) {
        request.must_be_expired = false;
        request.record.renewed_wall_ms = ms_from_ns(c->now);
    }
    if (!call_send(c, SLOT_MANDATE, &request, false, &c->claim_at))
        return;
    c->is_claim_open = true;
    become_claiming(c);
}

/* From when on a group that is vacant at `at` may be claimed by us and all whom the policy puts before us. */
static gavel_ns all_stand_at(const struct candidate *c, const struct peers_ranking *ranking,
                             enum vacancy vacancy, gavel_ns at)
{
    gavel_ns lease = ns_stretch(ns_from_ms(c->seen.record.lease_ms), c->settings.drift_ppm);

    /* Each waits for a whole lease since its own first look, unless all go by one clock. */
    if (vacancy == VACANCY_TIMED_OUT && c->clock != STORE_CLOCK_STEADY)
        at = ns_max(at, ns_min(peers_joined_at(&c->peers, ranking) + lease, at + cold_observed(c)));
    return cold_all_stand_at(c, ranking, at);
}

/* When the policy lets us claim a group that is or will be vacant at `at`. */
static gavel_ns turn_comes_at(const struct candidate *c, enum vacancy vacancy, gavel_ns at)
{
    const struct record *record = &c->seen.record;
    bool is_lost = observation_loss(&c->seen, vacancy, c->nonce) != GAVEL_LOSS_NONE;
    const struct peers_ranking ranking = {
        .policy = c->settings.policy,
        .id = c->id,
        .priority = c->priority,
        .first_choice = is_lost || outcome_is(record->successor) ? "" : record->successor,
        .excluded = cold_is_going_on(c) ? "" : record->holder, /* or it has come back since */
        .observation = cold_is_going_on(c) ? cold_observed(c) : 0,
    };
    size_t rank = peers_rank(&c->peers, &ranking);

    if (at == NEVER)
        return NEVER;
    if (PLANTED(PREFERRED_BLOCKS) && rank > 0)
        return NEVER;
    at = all_stand_at(c, &ranking, vacancy, at);
    at += (gavel_ns)rank * ns_from_ms(c->settings.stagger_ms);
    if (is_lost)
        at += ns_from_ms(c->settings.takeover_delay_ms);
    else if (strcmp(record->successor, c->id) == 0)
        return at; /* asked for by name: no reason to hold back */
    return ns_max(at, c->hold_back_until);
}

void standby_consider(struct candidate *c)
{
    gavel_ns at;
    enum vacancy vacancy;

    if (c->state != CANDIDATE_STANDBY || c->has_sessions)
        return;
    vacancy = observation_vacancy(&c->seen, &c->settings, c->clock, c->id, c->nonce, c->now, &at);
    c->claim_at = NEVER;
    if (vacancy == VACANCY_TIMED_OUT && c->seen.read_at < at) {
        /* It may be us who cannot reach the store: nobody is down before the store has said so once more. */
        c->look_at = ns_min(c->look_at, c->now);
        return;
    }
    if (vacancy == VACANCY_NONE) {
        c->election_at = NEVER;
    } else if (c->election_at == NEVER) {
        c->election_at = c->now;
        leader_gone(c, observation_loss(&c->seen, vacancy, c->nonce));
    }
    if (!c->is_eligible || !c->is_registered || c->is_stopping)
        return;
    /* A lease that still runs is "lost" for this sum: if it ends, it ends by being lost. */
    c->claim_at = turn_comes_at(c, vacancy == VACANCY_NONE ? VACANCY_TIMED_OUT : vacancy, at);
    if (vacancy == VACANCY_NONE) /* then look first; the claim comes later than that */
        c->claim_at = ns_min(c->claim_at, at);
    else if (c->now >= c->claim_at && !c->calls[SLOT_MANDATE].is_pending)
        claim(c, vacancy);
}

void standby_read_done(struct candidate *c, const struct candidate_call *call,
                       const struct store_reply *reply)
{
    const struct record *record = &c->seen.record;
    bool is_first = !c->seen.is_known;
    struct gavel_event *event;
    bool is_done;
    gavel_ns at;

    ASSERT(call->op == STORE_READ);
    if (observation_update(&c->seen, reply, call->sent_at, c->now, c->settings.drift_ppm) && !is_first)
        c->has_followed = true; /* whoever wrote it was alive; what stood there at first may be long dead */
    if (c->seen.is_found)
        fence_note(&c->fence, record->epoch, c->now);
    standby_watch_holder(c);
    is_done = record->done;
    if (PLANTED(CLAIM_IGNORES_DONE))
        is_done = false;
    if (is_done) {
        finish_seen(c, record);
        return;
    }
    event = emit(c, GAVEL_EVENT_ELECTION_CHECK);
    if (observation_vacancy(&c->seen, &c->settings, c->clock, c->id, c->nonce, c->now, &at) == VACANCY_NONE) {
        leader_seen(c, record->holder, record->epoch);
        c->hold_back_until = INT64_MIN; /* another has it: that is what we held back for */
        ring_leader(c);
        event->leader = record->holder;
        event->epoch = record->epoch;
    }
    standby_consider(c);
}

/* What came before our claim was a release, on behalf of a dead leader: nobody leads yet. */
static bool is_vacated(const struct candidate *c, enum gavel_status status, const struct store_reply *reply)
{
    const struct record *record;

    if (status != GAVEL_ERR_CONFLICT) /* without an answer there is no record to look at */
        return false;
    record = &reply->record;
    return record->version != 0 && !record->held && !record->done &&
           record->version != c->seen.record.version;
}

void standby_claim_done(struct candidate *c, const struct candidate_call *call, enum gavel_status status,
                        const struct store_reply *reply)
{
    ASSERT(c->state == CANDIDATE_CLAIMING);
    ASSERT(c->is_claim_open);
    if (PLANTED(BLIND_RETRY) && status != GAVEL_OK && status != GAVEL_ERR_CONFLICT) {
        struct record record = {.epoch = c->seen.record.epoch + 1, .version = c->seen.record.version + 1};

        lead_won(c, call->sent_at, &record);
        return;
    }
    if (status == GAVEL_OK) {
        lead_won(c, call->sent_at, &reply->record);
        return;
    }
    if (status == GAVEL_ERR_CONFLICT || status == GAVEL_ERR_DONE)
        c->is_claim_open =
            false; /* what is still under way expects a version that is gone, or loses likewise */
    if (c->is_stopping && c->is_claim_open) {
        stop_begin(c, GAVEL_REASON_STOPPED,
                   ""); /* it may have been applied: release whatever our nonce got */
        return;
    }
    /* Another was faster, or nobody knows: read back. Not at once again, should the store go on refusing. */
    if (!is_vacated(c, status, reply))
        c->hold_back_until = ns_max(c->hold_back_until, c->now + retry_delay(c));
    become_standby(c);
    if (status == GAVEL_ERR_DONE)
        finish_seen(c, &reply->record);
}
