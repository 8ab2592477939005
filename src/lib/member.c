/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/member.h"

#include "lib/handle.h"
#include "lib/loop/grid.h"
#include "lib/push.h"
#include "lib/single.h"
#include "os/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void member_free(struct gavel_candidate *member)
{
    if (!member)
        return;
    subscriptions_done(&member->subscriptions);
    candidate_done(&member->machine);
    metrics_done(&member->metrics);
    free(member->listing);
    precedence_done(&member->lock);
    free(member);
}

static bool holds_mandate(const struct candidate *machine)
{
    return machine->state == CANDIDATE_PREPARING || machine->state == CANDIDATE_LEADING;
}

/* What the step is about to give up, before it forgets. An answer that comes at that very moment still
 * counts. */
static void count_given_up(struct gavel_candidate *member, const struct candidate_event *event)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        const struct candidate_call *call = &member->machine.calls[slot];

        if (call->is_pending && event->now >= call->give_up_at &&
            (event->kind != CANDIDATE_REPLY || event->reply.call != call->id))
            metrics_given_up(&member->metrics, call->op);
    }
}

static bool awaits(const struct candidate *machine, uint64_t id)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (machine->calls[slot].is_pending && machine->calls[slot].id == id)
            return true;
    return false;
}

/* The step itself and what is counted about it. Whoever reads the candidate waits for no more than this. */
static void step(struct gavel_candidate *member, struct candidate_event *event)
{
    struct candidate *machine = &member->machine;
    struct candidate_actions *actions = &member->gavel->actions;
    gavel_ns election_at = machine->election_at;
    gavel_ns doorbell_at = machine->doorbell_at;
    bool held = holds_mandate(machine);

    precedence_lock_first(&member->lock);
    event->now = clock_now();
    count_given_up(member, event);
    candidate_step(machine, event, actions);
    for (size_t i = 0; i < actions->count; i++) {
        const struct candidate_action *action = &actions->items[i];

        if (action->kind == CANDIDATE_CALL)
            metrics_call(&member->metrics, &action->call.request, held);
        if (action->kind == CANDIDATE_EMIT)
            metrics_event(&member->metrics, &action->event, election_at, clock_wall_ms());
        if (action->kind == CANDIDATE_EMIT && action->event.kind == GAVEL_EVENT_CANDIDATES_UPDATED)
            metrics_peers(&member->metrics, &machine->peers);
    }
    if (event->kind == CANDIDATE_DOORBELL && machine->doorbell_at != doorbell_at)
        member->metrics.totals.doorbells++;
    member->has_ended = machine->state == CANDIDATE_ENDED;
    precedence_unlock(&member->lock);
}

static void ring_all(struct gavel_candidate *member)
{
    const struct peers *peers = &member->machine.peers;

    for (size_t i = 0; i < peers->count; i++)
        if (peers->items[i].address[0] != '\0' && peers->items[i].instance != member->machine.instance)
            bell_ring(&member->gavel->bell, member->group, peers->items[i].address);
}

/* Half of what is kept free behind the deadline is for the watchdog to end the process in words. */
static void arm(struct gavel_candidate *member, uint64_t epoch, gavel_ns deadline)
{
    watchdog_arm(&member->gavel->watchdog, &member->watchdog_entry, epoch, deadline,
                 deadline + ns_from_ms(member->machine.settings.stop_margin_ms) / 2);
}

/* The watchdog and the guard know of a mandate before anyone may act on it. */
static void set_mandate(struct gavel_candidate *member, uint64_t epoch, gavel_ns stop_at, gavel_ns deadline)
{
    struct watchdog *watchdog = &member->gavel->watchdog;

    if (stop_at != 0) {
        if (!member->work_runs)
            member->work_epoch_first = epoch;
        member->work_epoch = epoch;
        arm(member, epoch, deadline);
        on_death_note_mandate(member->on_death_entry, member->work_epoch_first, stop_at, deadline);
    }
    publish_mandate(member->published, epoch, stop_at);
    if (stop_at == 0 && !member->work_runs) {
        on_death_note_stopped(member->on_death_entry);
        watchdog_disarm(watchdog, &member->watchdog_entry);
    }
}

/* To the guard the mandate goes on until the work has stopped; its deadline may have come nearer. */
static void stop_work(struct gavel_candidate *member, const struct candidate_action *action)
{
    gavel_ns deadline = action->work_stop.deadline;

    set_mandate(member, 0, 0, 0);
    arm(member, action->work_stop.epoch, deadline);
    on_death_note_mandate(member->on_death_entry, member->work_epoch_first,
                          deadline - ns_from_ms(member->machine.settings.stop_grace_ms), deadline);
    member->work_runs = false; /* who subscribes from now on is not told of this mandate */
    deliver_demoted(member, action->work_stop.reason);
    member->work_stopped = true;
}

static void carry_out(struct gavel_candidate *member, const struct candidate_action *action)
{
    switch (action->kind) {
    case CANDIDATE_CALL:
        if (action->call.request.op == STORE_CLAIM)
            on_death_note_claim(member->on_death_entry, action->call.request.record.nonce);
        worker_submit(member, action->call.id, &action->call.request);
        break;
    case CANDIDATE_EMIT:
        /* The watchdog may have told it already: this thread hangs in callbacks when it happens. */
        if (action->event.kind != GAVEL_EVENT_OVERRUN ||
            watchdog_take_report(&member->gavel->watchdog, &member->watchdog_entry))
            deliver_event(member, &action->event);
        break;
    case CANDIDATE_MANDATE:
        set_mandate(member, action->mandate.epoch, action->mandate.stop_at, action->mandate.deadline);
        break;
    case CANDIDATE_WORK_START:
        member->work_runs = true;
        member->work_epoch = action->work_start.epoch;
        deliver_elected(member);
        break;
    case CANDIDATE_WORK_STOP:
        stop_work(member, action);
        break;
    case CANDIDATE_RING:
        ring_all(member);
        break;
    case CANDIDATE_RING_ONE:
        bell_ring(&member->gavel->bell, member->group, action->address);
        break;
    case CANDIDATE_WATCH:
        watch_set(member, &action->watch.process, action->watch.nonce);
        break;
    case CANDIDATE_UNWATCH:
        watch_clear(member);
        break;
    }
}

static void step_and_carry_out(struct gavel_candidate *member, struct candidate_event *event)
{
    const struct candidate_actions *actions = &member->gavel->actions;

    step(member, event);
    for (size_t i = 0; i < actions->count; i++)
        carry_out(member, &actions->items[i]);
}

void member_set_timer(struct gavel_candidate *member)
{
    gavel_ns at = NEVER;

    if (!member->has_ended)
        at = deliver_work_at(member);
    if (!member->has_ended && !member->is_single)
        at = ns_min(at, grid_wake_at(&member->machine, member->gavel->timers.count));
    timers_set(&member->gavel->timers, &member->timer, at);
}

/* Whoever waits for an ended candidate to be gone is told at the end of the pass. */
static void depart_if_ended(struct gavel_candidate *member)
{
    if (!member->has_ended || !member->is_leaving || member->is_departed)
        return;
    member->is_departed = true;
    member->next_departed = member->gavel->departed;
    member->gavel->departed = member;
}

void member_settle(struct gavel_candidate *member)
{
    while (member->work_stopped || member->holder_died) {
        struct candidate_event event = {0};

        if (member->work_stopped) {
            member->work_stopped = false;
            on_death_note_stopped(member->on_death_entry);
            watchdog_disarm(&member->gavel->watchdog, &member->watchdog_entry);
            event.kind = CANDIDATE_WORK_STOPPED;
        } else {
            member->holder_died = false;
            event.kind = CANDIDATE_HOLDER_DIED;
            event.holder_died.nonce = member->watched_nonce;
        }
        step_and_carry_out(member, &event);
    }
    member_set_timer(member);
    depart_if_ended(member);
}

void member_feed(struct gavel_candidate *member, struct candidate_event *event)
{
    if (!member->has_ended && !member->is_single)
        step_and_carry_out(member, event);
    member_settle(member);
}

void member_start(struct gavel_candidate *member)
{
    struct candidate_event event = {.kind = CANDIDATE_START};
    struct gavel *gavel = member->gavel;
    size_t count;

    pthread_mutex_lock(&gavel->mutex);
    count = gavel->member_count;
    pthread_mutex_unlock(&gavel->mutex);
    if (timers_reserve(&gavel->timers, count) != GAVEL_OK ||
        timers_reserve(&gavel->lapsed, count) != GAVEL_OK ||
        watchdog_reserve(&gavel->watchdog, count) != GAVEL_OK) {
        struct gavel_event stopped = deliver_blank_event(member, GAVEL_EVENT_STOPPED);

        stopped.status = GAVEL_ERR_NO_MEMORY;
        precedence_lock_first(&member->lock);
        member->has_ended = true;
        precedence_unlock(&member->lock);
        deliver_event(member, &stopped);
    } else if (member->is_single) {
        single_start(member);
    } else {
        push_join(member); /* before the first look, so that no change is missed */
    }
    member_feed(member, &event);
}

void member_stop(struct gavel_candidate *member)
{
    struct candidate_event event = {.kind = CANDIDATE_STOP};

    event.stop.loss = atomic_load(&member->gavel->loss);
    member->is_leaving = true;
    if (member->is_single && !member->has_ended)
        single_stop(member);
    member_feed(member, &event);
}

void member_doorbell(struct gavel_candidate *member)
{
    struct candidate_event event = {.kind = CANDIDATE_DOORBELL};

    member_feed(member, &event);
}

void member_reply(struct gavel_candidate *member, struct job *job)
{
    struct candidate_event event = {.kind = CANDIDATE_REPLY};
    gavel_ns took = clock_now() - job->queued_at;

    precedence_lock_first(&member->lock);
    metrics_reply(&member->metrics, &job->request, job->reply.status, took,
                  awaits(&member->machine, job->call));
    if (awaits(&member->machine, job->call))
        metrics_silent(&member->metrics, &job->reply);
    precedence_unlock(&member->lock);
    event.reply.call = job->call;
    event.reply.reply = &job->reply;
    if (job->request.op == STORE_CANDIDATES && job->reply.status == GAVEL_OK) {
        /* The machine copies what it needs; the rest is kept for gavel_candidates(). */
        struct registration *before = member->listing;

        precedence_lock_first(&member->lock);
        member->listing = job->reply.registrations;
        member->listing_count = job->reply.registration_count;
        precedence_unlock(&member->lock);
        member_feed(member, &event);
        job->reply.registrations = before;
        return;
    }
    member_feed(member, &event);
}

void member_due(struct gavel_candidate *member)
{
    struct candidate_event event = {.kind = CANDIDATE_TICK};

    if (!member->is_single && !member->has_ended && candidate_wake_at(&member->machine) <= clock_now())
        member_feed(member, &event);
    if (deliver_work_at(member) <= clock_now())
        deliver_work(member);
    member_set_timer(member);
}

static void note_lapsed(struct timer *timer, void *argument)
{
    struct gavel_candidate *member = (void *)((char *)timer - offsetof(struct gavel_candidate, timer));
    const gavel_ns *now = argument;

    if (!member->is_single && holds_mandate(&member->machine) && member->machine.stop_at <= *now)
        timers_set(&member->gavel->lapsed, &member->lapse, member->machine.deadline);
}

void member_demote_lapsed(struct gavel *gavel)
{
    gavel_ns now = clock_now();
    struct timer *first;

    /* A leader's timer is never later than its stop_at, so all of them are among those due. */
    timers_visit_due(&gavel->timers, now, note_lapsed, &now);
    while ((first = timers_first(&gavel->lapsed))) {
        struct gavel_candidate *member = (void *)((char *)first - offsetof(struct gavel_candidate, lapse));
        struct candidate_event event = {.kind = CANDIDATE_TICK};

        timers_set(&gavel->lapsed, first, NEVER);
        member_feed(member, &event);
    }
}
