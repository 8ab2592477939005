/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The states and the edges between them; the diagram is in candidate.h,
 * and a test prints this table so that the two cannot drift apart.
 * become_x() is the only place that enters state x.
 */

#include "core/candidate/internal.h"

#define BIT(state) (1u << (state))

static const struct {
    const char *name;
    unsigned allowed; /* bit set of next states */
} states[CANDIDATE_STATE_COUNT] = {
    [CANDIDATE_IDLE] = {"idle", BIT(CANDIDATE_OBSERVING) | BIT(CANDIDATE_ENDED)},
    [CANDIDATE_OBSERVING] = {"observing", BIT(CANDIDATE_STANDBY) | BIT(CANDIDATE_ENDED)},
    [CANDIDATE_STANDBY] = {"standby", BIT(CANDIDATE_CLAIMING) | BIT(CANDIDATE_PREPARING) |
                                          BIT(CANDIDATE_STOPPING) | BIT(CANDIDATE_ENDED)},
    [CANDIDATE_CLAIMING] = {"claiming",
                            BIT(CANDIDATE_PREPARING) | BIT(CANDIDATE_STANDBY) | BIT(CANDIDATE_STOPPING)},
    [CANDIDATE_PREPARING] = {"preparing", BIT(CANDIDATE_LEADING) | BIT(CANDIDATE_STOPPING)},
    [CANDIDATE_LEADING] = {"leading", BIT(CANDIDATE_STOPPING)},
    [CANDIDATE_STOPPING] = {"stopping", BIT(CANDIDATE_STANDBY)},
    [CANDIDATE_ENDED] = {"ended", 0},
};

const char *candidate_state_name(enum candidate_state state)
{
    return (unsigned)state < CANDIDATE_STATE_COUNT ? states[state].name : "unknown";
}

bool candidate_may_move(enum candidate_state from, enum candidate_state to)
{
    return (states[from].allowed & BIT(to)) != 0;
}

bool holds_mandate(const struct candidate *c)
{
    return c->state == CANDIDATE_PREPARING || c->state == CANDIDATE_LEADING;
}

static void move(struct candidate *c, enum candidate_state to)
{
    ASSERT((unsigned)to < CANDIDATE_STATE_COUNT);
    ASSERT(candidate_may_move(c->state, to));
    ASSERT(c->now >= c->entered_at);
    /* Work runs only with a mandate, and nothing else is done before it has stopped. */
    if (to != CANDIDATE_STOPPING)
        ASSERT(!c->is_work_running);
    c->state = to;
    c->entered_at = c->now;
}

void enter_phase(struct candidate *c, enum gavel_phase phase)
{
    struct gavel_event *event;

    if (c->phase == phase)
        return;
    ASSERT(c->now >= c->phase_at);
    event = emit(c, GAVEL_EVENT_PHASE_CHANGED);
    event->previous_phase = c->phase;
    event->phase = phase;
    event->took_ms = ms_from_ns(c->now - c->phase_at);
    c->phase = phase;
    c->phase_at = c->now;
}

void become_observing(struct candidate *c)
{
    ASSERT(c->epoch == 0);
    move(c, CANDIDATE_OBSERVING);
    c->phase_at = c->now;
    c->look_at = c->beat_at = c->list_at = c->now;
}

/* Who came meanwhile is not known yet. */
static void list_now(struct candidate *c)
{
    if (PLANTED(LIST_FROM_BEFORE))
        return;
    c->list_at = c->now;
}

void become_standby(struct candidate *c)
{
    bool is_first = c->state == CANDIDATE_OBSERVING;

    move(c, CANDIDATE_STANDBY);
    c->claim_at = NEVER;
    c->epoch = 0;
    c->mandate_session = 0;
    c->stop_at = c->deadline = 0;
    if (is_first) {
        c->standing_at = c->now;
        enter_phase(c, GAVEL_PHASE_ELECTION);
        if (c->settings.observation_ms > 0) {
            c->beat_at = c->now; /* from now on it counts as eligible */
            list_now(c);
        }
    } else if (!c->has_sessions) { /* a session is told by whatever ended its mandate */
        c->look_at = c->now;
    }
    ASSERT(!holds_mandate(c));
    ASSERT(!c->is_work_running);
}

void become_claiming(struct candidate *c)
{
    ASSERT(c->is_claim_open);
    ASSERT(c->calls[SLOT_MANDATE].is_pending);
    ASSERT(c->calls[SLOT_MANDATE].op == STORE_CLAIM);
    ASSERT(c->epoch == 0);
    move(c, CANDIDATE_CLAIMING);
    c->claim_at = NEVER;
}

void become_preparing(struct candidate *c)
{
    ASSERT(c->epoch != 0);
    ASSERT(!c->is_claim_open);
    ASSERT(c->stop_at <= c->deadline);
    ASSERT(!c->is_stopping);
    if (c->state == CANDIDATE_STANDBY) /* nobody has claimed anything */
        ASSERT(c->has_sessions);
    move(c, CANDIDATE_PREPARING);
    enter_phase(c, GAVEL_PHASE_PREPARING);
}

void become_leading(struct candidate *c)
{
    ASSERT(c->epoch != 0);
    ASSERT(c->now < c->stop_at);
    ASSERT(!c->is_stopping);
    move(c, CANDIDATE_LEADING);
    c->led_from = c->now;
    c->is_work_running = true;
    c->has_overrun = false;
}

void become_stopping(struct candidate *c)
{
    /* A mandate that ends before its work has started: the election goes on. */
    if (c->phase == GAVEL_PHASE_PREPARING)
        enter_phase(c, GAVEL_PHASE_ELECTION);
    move(c, CANDIDATE_STOPPING);
    /* Of a session a look that is due may be the only one: who leads now, or whether the store is back. */
    if (!c->has_sessions)
        c->look_at = NEVER;
    ASSERT(c->phase != GAVEL_PHASE_PREPARING);
}

static bool has_words(const char *words) { return words && words[0] != '\0'; }

void become_ended(struct candidate *c)
{
    struct gavel_event *event;

    ASSERT(!holds_mandate(c));
    ASSERT(c->is_stopping);
    move(c, CANDIDATE_ENDED);
    c->look_at = c->beat_at = c->list_at = c->claim_at = NEVER;
    c->settle_at = c->death_at = c->leave_at = c->orphan_at = NEVER;
    for (int i = 0; i < SLOT_COUNT; i++)
        c->calls[i].is_pending = false;
    event = emit(c, GAVEL_EVENT_STOPPED);
    event->status = c->stop_status;
    if (c->stop_status != GAVEL_OK)
        event->message = has_words(c->stop_message) ? c->stop_message : c->trouble ? c->trouble : "";
    if (c->stop_status == GAVEL_ERR_DONE) {
        event->previous = c->seen.record.holder;
        event->epoch = c->seen.record.epoch;
    }
}
