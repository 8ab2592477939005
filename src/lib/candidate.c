/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/candidate.h"

#include "lib/handle.h"
#include "lib/loop/grid.h"
#include "lib/push.h"
#include "lib/single.h"
#include "os/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void lib_candidate_free(struct gavel_candidate *candidate)
{
    if (!candidate)
        return;
    subscriptions_done(&candidate->subscriptions);
    candidate_done(&candidate->machine);
    metrics_done(&candidate->metrics);
    precedence_done(&candidate->lock);
    free(candidate);
}

static bool holds_mandate(const struct candidate *machine)
{
    return machine->state == CANDIDATE_PREPARING || machine->state == CANDIDATE_LEADING;
}

/* What the step is about to give up, before it forgets. An answer that comes at that very moment still
 * counts. */
static void count_given_up(struct gavel_candidate *candidate, const struct candidate_event *event)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        const struct candidate_call *call = &candidate->machine.calls[slot];

        if (call->is_pending && event->now >= call->give_up_at &&
            (event->kind != CANDIDATE_REPLY || event->reply.call != call->id))
            metrics_given_up(&candidate->metrics, call->op);
    }
}

static bool awaits(const struct candidate *machine, uint64_t id)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (machine->calls[slot].is_pending && machine->calls[slot].id == id)
            return true;
    return false;
}

/*
 * As the machine is to see it. One that leads has seen each session; another may
 * have been left out of some, whose deadlines came before that of the one that it
 * saw last: it had nothing in them.
 */
static struct store_session session_for(const struct gavel_candidate *candidate)
{
    const struct candidate *machine = &candidate->machine;
    struct store_session session = candidate->gavel->session.now;

    if (session.number != machine->session.number && !holds_mandate(machine))
        session.former_deadline = ns_max(session.former_deadline, machine->session.deadline);
    return session;
}

/* The step itself and what is counted about it. Whoever reads the candidate waits for no more than this. */
static void step(struct gavel_candidate *candidate, struct candidate_event *event)
{
    struct candidate *machine = &candidate->machine;
    struct candidate_actions *actions = &candidate->gavel->actions;
    gavel_ns election_at = machine->election_at;
    gavel_ns doorbell_at = machine->doorbell_at;
    bool held = holds_mandate(machine);

    precedence_lock_first(&candidate->lock);
    event->now = clock_now();
    event->session = session_for(candidate);
    count_given_up(candidate, event);
    candidate_step(machine, event, actions);
    for (size_t i = 0; i < actions->count; i++) {
        const struct candidate_action *action = &actions->items[i];

        if (action->kind == CANDIDATE_CALL)
            metrics_call(&candidate->metrics, &action->call.request, held);
        if (action->kind == CANDIDATE_EMIT)
            metrics_event(&candidate->metrics, &action->event, election_at, clock_wall_ms());
        if (action->kind == CANDIDATE_EMIT && action->event.kind == GAVEL_EVENT_CANDIDATES_UPDATED)
            metrics_peers(&candidate->metrics, &machine->peers);
    }
    if (event->kind == CANDIDATE_DOORBELL && machine->doorbell_at != doorbell_at)
        candidate->metrics.totals.doorbells++;
    candidate->has_ended = machine->state == CANDIDATE_ENDED;
    precedence_unlock(&candidate->lock);
}

static void ring_all(struct gavel_candidate *candidate)
{
    const struct peers *peers = &candidate->machine.peers;

    for (size_t i = 0; i < peers->count; i++)
        if (peers->items[i].address[0] != '\0' && peers->items[i].instance != candidate->machine.instance)
            bell_ring(&candidate->gavel->bell, candidate->group, peers->items[i].address);
}

/* Half of what is kept free behind the deadline is for the watchdog to end the process in words. */
static void arm(struct gavel_candidate *candidate, uint64_t epoch, gavel_ns deadline)
{
    watchdog_arm(&candidate->gavel->watchdog, &candidate->watchdog_entry, epoch, deadline,
                 deadline + ns_from_ms(candidate->machine.settings.stop_margin_ms) / 2);
}

static void set_lease_mandate(struct gavel_candidate *candidate, const struct candidate_action *action)
{
    gavel_ns stop_at = action->mandate.stop_at, deadline = action->mandate.deadline;

    arm(candidate, action->mandate.epoch, deadline);
    on_death_note_mandate(candidate->on_death_entry, candidate->work_epoch_first, stop_at, deadline);
    publish_mandate(candidate->published, action->mandate.epoch, stop_at);
}

/* Its instants follow from the deadline of the session, which is noted once for all. */
static void set_session_mandate(struct gavel_candidate *candidate, const struct candidate_action *action)
{
    const struct candidate *machine = &candidate->machine;
    gavel_ns margin = ns_from_ms(machine->settings.stop_margin_ms);
    gavel_ns grace = ns_from_ms(machine->settings.stop_grace_ms);
    gavel_ns term = action->mandate.term_ends_at;
    gavel_ns stop_lead = candidate_stop_lead(machine);

    watchdog_bind(&candidate->gavel->watchdog, &candidate->watchdog_entry, action->mandate.epoch, margin,
                  term);
    on_death_note_session_mandate(candidate->on_death_entry, candidate->work_epoch_first,
                                  machine->mandate_session, stop_lead, margin, term);
    publish_session_mandate(candidate->published, action->mandate.epoch, machine->mandate_session, stop_lead,
                            term == NEVER ? NEVER : term - grace);
}

/* The watchdog and the guard know of a mandate before anyone may act on it. */
static void set_mandate(struct gavel_candidate *candidate, const struct candidate_action *action)
{
    if (!candidate->work_runs)
        candidate->work_epoch_first = action->mandate.epoch;
    candidate->work_epoch = action->mandate.epoch;
    if (candidate->machine.has_sessions)
        set_session_mandate(candidate, action);
    else
        set_lease_mandate(candidate, action);
}

static void end_mandate(struct gavel_candidate *candidate)
{
    publish_mandate(candidate->published, 0, 0);
    if (candidate->work_runs)
        return;
    on_death_note_stopped(candidate->on_death_entry);
    watchdog_disarm(&candidate->gavel->watchdog, &candidate->watchdog_entry);
}

/* To the guard the mandate goes on until the work has stopped; its deadline may have come nearer. */
static void stop_work(struct gavel_candidate *candidate, const struct candidate_action *action)
{
    gavel_ns deadline = action->work_stop.deadline;

    publish_mandate(candidate->published, 0, 0);
    arm(candidate, action->work_stop.epoch, deadline);
    on_death_note_mandate(candidate->on_death_entry, candidate->work_epoch_first,
                          deadline - ns_from_ms(candidate->machine.settings.stop_grace_ms), deadline);
    candidate->work_runs = false; /* who subscribes from now on is not told of this mandate */
    deliver_demoted(candidate, action->work_stop.reason);
    candidate->work_stopped = true;
}

static void carry_out(struct gavel_candidate *candidate, const struct candidate_action *action)
{
    switch (action->kind) {
    case CANDIDATE_CALL:
        if (action->call.request.op == STORE_CLAIM)
            on_death_note_claim(candidate->on_death_entry, action->call.request.record.nonce);
        worker_submit(candidate, action->call.id, &action->call.request);
        break;
    case CANDIDATE_EMIT:
        /* The watchdog may have told it already: this thread hangs in callbacks when it happens. */
        if (action->event.kind != GAVEL_EVENT_OVERRUN ||
            watchdog_take_report(&candidate->gavel->watchdog, &candidate->watchdog_entry))
            deliver_event(candidate, &action->event);
        break;
    case CANDIDATE_MANDATE:
        if (action->mandate.stop_at != 0)
            set_mandate(candidate, action);
        else
            end_mandate(candidate);
        break;
    case CANDIDATE_WORK_START:
        candidate->work_runs = true;
        candidate->work_epoch = action->work_start.epoch;
        deliver_elected(candidate);
        break;
    case CANDIDATE_WORK_STOP:
        stop_work(candidate, action);
        break;
    case CANDIDATE_RING:
        ring_all(candidate);
        break;
    case CANDIDATE_RING_ONE:
        bell_ring(&candidate->gavel->bell, candidate->group, action->address);
        break;
    case CANDIDATE_WATCH:
        watch_set(candidate, &action->watch.process, action->watch.nonce);
        break;
    case CANDIDATE_UNWATCH:
        watch_clear(candidate);
        break;
    }
}

static void step_and_carry_out(struct gavel_candidate *candidate, struct candidate_event *event)
{
    const struct candidate_actions *actions = &candidate->gavel->actions;

    step(candidate, event);
    for (size_t i = 0; i < actions->count; i++)
        carry_out(candidate, &actions->items[i]);
}

void lib_candidate_set_timer(struct gavel_candidate *candidate)
{
    gavel_ns at = NEVER;

    if (!candidate->has_ended)
        at = deliver_work_at(candidate);
    if (!candidate->has_ended && !candidate->is_single)
        at = ns_min(at, grid_wake_at(&candidate->machine, candidate->gavel->timers.count));
    timers_set(&candidate->gavel->timers, &candidate->timer, at);
}

/* Whoever waits for an ended candidate to be gone is told at the end of the pass. */
static void depart_if_ended(struct gavel_candidate *candidate)
{
    if (!candidate->has_ended || !candidate->is_leaving || candidate->is_departed)
        return;
    candidate->is_departed = true;
    candidate->next_departed = candidate->gavel->departed;
    candidate->gavel->departed = candidate;
}

void lib_candidate_settle(struct gavel_candidate *candidate)
{
    while (candidate->work_stopped || candidate->holder_died) {
        struct candidate_event event = {0};

        if (candidate->work_stopped) {
            candidate->work_stopped = false;
            on_death_note_stopped(candidate->on_death_entry);
            watchdog_disarm(&candidate->gavel->watchdog, &candidate->watchdog_entry);
            event.kind = CANDIDATE_WORK_STOPPED;
        } else {
            candidate->holder_died = false;
            event.kind = CANDIDATE_HOLDER_DIED;
            event.holder_died.nonce = candidate->watched_nonce;
        }
        step_and_carry_out(candidate, &event);
    }
    lib_session_note(candidate);
    lib_candidate_set_timer(candidate);
    depart_if_ended(candidate);
}

void lib_candidate_feed(struct gavel_candidate *candidate, struct candidate_event *event)
{
    if (!candidate->has_ended && !candidate->is_single)
        step_and_carry_out(candidate, event);
    lib_candidate_settle(candidate);
}

void lib_candidate_start_now(struct gavel_candidate *candidate)
{
    struct candidate_event event = {.kind = CANDIDATE_START};
    struct gavel *gavel = candidate->gavel;
    size_t count;

    if (candidate->is_started)
        return;
    candidate->is_started = true;
    pthread_mutex_lock(&gavel->mutex);
    count = gavel->candidate_count;
    pthread_mutex_unlock(&gavel->mutex);
    if (timers_reserve(&gavel->timers, count) != GAVEL_OK ||
        timers_reserve(&gavel->lapsed, count) != GAVEL_OK || lib_session_reserve(gavel, count) != GAVEL_OK ||
        watchdog_reserve(&gavel->watchdog, count) != GAVEL_OK) {
        struct gavel_event stopped = deliver_blank_event(candidate, GAVEL_EVENT_STOPPED);

        stopped.status = GAVEL_ERR_NO_MEMORY;
        precedence_lock_first(&candidate->lock);
        candidate->has_ended = true;
        precedence_unlock(&candidate->lock);
        deliver_event(candidate, &stopped);
    } else if (candidate->is_single) {
        single_start(candidate);
    } else {
        push_join(candidate); /* before the first look, so that no change is missed */
    }
    lib_candidate_feed(candidate, &event);
}

void lib_candidate_start(struct gavel_candidate *candidate)
{
    struct gavel *gavel = candidate->gavel;

    if (!candidate->machine.has_sessions || gavel->jobs < LIB_JOBS_WANTED)
        lib_candidate_start_now(candidate);
    else if (!gavel->to_start) /* else it comes after that one */
        gavel->to_start = candidate;
}

void lib_candidate_start_waiting(struct gavel *gavel)
{
    while (gavel->to_start && gavel->jobs < LIB_JOBS_WANTED) {
        struct gavel_candidate *candidate = gavel->to_start;

        gavel->to_start = lib_candidate_after(gavel, candidate);
        lib_candidate_start_now(candidate);
    }
}

void lib_candidate_stop(struct gavel_candidate *candidate)
{
    struct candidate_event event = {.kind = CANDIDATE_STOP};

    event.stop.loss = atomic_load(&candidate->gavel->loss);
    candidate->is_leaving = true;
    candidate->is_started = true; /* who still waits for that has nothing to end */
    if (candidate->is_single && !candidate->has_ended)
        single_stop(candidate);
    lib_candidate_feed(candidate, &event);
}

void lib_candidate_doorbell(struct gavel_candidate *candidate)
{
    struct candidate_event event = {.kind = CANDIDATE_DOORBELL};

    lib_candidate_feed(candidate, &event);
}

void lib_candidate_reply(struct gavel_candidate *candidate, struct job *job)
{
    struct candidate_event event = {.kind = CANDIDATE_REPLY};
    gavel_ns took = clock_now() - job->queued_at;

    if (!job->reply)
        return; /* as if it had not come: the candidate gives the call up */
    precedence_lock_first(&candidate->lock);
    metrics_reply(&candidate->metrics, job->op, job->reply->status, took,
                  awaits(&candidate->machine, job->call));
    if (awaits(&candidate->machine, job->call))
        metrics_silent(&candidate->metrics, job->reply);
    precedence_unlock(&candidate->lock);
    event.reply.call = job->call;
    event.reply.reply = job->reply;
    lib_candidate_feed(candidate, &event);
}

void lib_candidate_due(struct gavel_candidate *candidate)
{
    struct candidate_event event = {.kind = CANDIDATE_TICK};

    if (!candidate->is_single && !candidate->has_ended &&
        candidate_wake_at(&candidate->machine) <= clock_now())
        lib_candidate_feed(candidate, &event);
    if (deliver_work_at(candidate) <= clock_now())
        deliver_work(candidate);
    lib_candidate_set_timer(candidate);
}

static void note_lapsed(struct timer *timer, void *argument)
{
    struct gavel_candidate *candidate = (void *)((char *)timer - offsetof(struct gavel_candidate, timer));
    const gavel_ns *now = argument;
    gavel_ns stop_at, deadline;

    if (candidate->is_single || !holds_mandate(&candidate->machine))
        return;
    candidate_times_in(&candidate->machine, &candidate->gavel->session.now, &stop_at, &deadline);
    if (stop_at <= *now)
        timers_set(&candidate->gavel->lapsed, &candidate->lapse,
                   candidate->machine.has_sessions ? stop_at : deadline);
}

/* Its session may have been prolonged while others were told to stop. */
static bool has_lapsed(const struct gavel_candidate *candidate)
{
    gavel_ns stop_at, deadline;

    candidate_times_in(&candidate->machine, &candidate->gavel->session.now, &stop_at, &deadline);
    return stop_at <= clock_now();
}

void lib_candidate_demote_lapsed(struct gavel *gavel)
{
    gavel_ns now = clock_now();
    struct timer *first;

    lib_session_look_ahead(gavel); /* the answer to a keep-alive may have come just now */
    /* A leader's timer is never later than the end of its lease, or its term, so all are among those due. */
    timers_visit_due(&gavel->timers, now, note_lapsed, &now);
    lib_session_note_lapsed(gavel, now);
    while ((first = timers_first(&gavel->lapsed))) {
        struct gavel_candidate *candidate = (void *)((char *)first - offsetof(struct gavel_candidate, lapse));
        struct candidate_event event = {.kind = CANDIDATE_TICK};

        timers_set(&gavel->lapsed, first, NEVER);
        if (has_lapsed(candidate))
            lib_candidate_feed(candidate, &event);
        lib_session_look_ahead(gavel);
    }
}
