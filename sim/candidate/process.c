/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/process.h"

#include "base/assert.h"
#include "sim/candidate/network.h"
#include "sim/candidate/session.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/work.h"
#include "sim/candidate/world.h"

#include <stdio.h>
#include <string.h>

/* A candidate that is woken so often at one instant makes no progress. */
#define SPINS_MAX 10

static int64_t draw_rate(struct world *world)
{
    int64_t half = world->profile.settings[0].drift_ppm * INT64_C(500);
    int64_t rate = world_between(world, STREAM_PROFILE, -half, half);
    int64_t wild = world_between(world, STREAM_PROFILE, -300000000, 300000000);

    /* The ends are where it hurts. */
    switch (prng_below(&world->streams[STREAM_PROFILE], 3)) {
    case 0:
        rate = half;
        break;
    case 1:
        rate = -half;
        break;
    default:
        break;
    }
    if (world_has(world, FAULT_BREAK))
        return wild;
    return world_has(world, FAULT_RATE) ? rate : 0;
}

static void name(struct world *world, struct process *process, unsigned slot)
{
    unsigned candidates = world->profile.candidates;
    unsigned original =
        slot < candidates ? slot : (unsigned)prng_below(&world->streams[STREAM_PROFILE], candidates);
    char letter = (char)('a' + original);

    (void)snprintf(process->id, sizeof process->id, "%c", letter);
    (void)snprintf(process->label, sizeof process->label, "%c%s", letter, slot < candidates ? "" : "'");
    (void)snprintf(process->address, sizeof process->address, "bell-%u", slot);
}

void processes_begin(struct world *world)
{
    gavel_ns lease = ns_from_ms(world->profile.worst.lease_ms);

    for (unsigned slot = 0; slot < world->profile.slots; slot++) {
        struct process *process = &world->processes[slot];
        gavel_ns offset = world_between(world, STREAM_PROFILE, NS_PER_S, 100000000 * NS_PER_S);
        int64_t rate = draw_rate(world);
        gavel_ns start_at = world_between(world, STREAM_PROFILE, 0, 2 * lease);

        memset(process, 0, sizeof *process);
        process->slot = slot;
        name(world, process, slot);
        process->host = (unsigned)prng_below(&world->streams[STREAM_PROFILE], world->profile.hosts);
        process->clock = (struct clock){.offset = offset, .rate_ppb = rate};
        if (world->profile.clock == STORE_CLOCK_STEADY)
            process->clock = world->store.clock;
        process->priority = (int32_t)prng_below(&world->streams[STREAM_PROFILE], 4);
        process->is_eligible = true;
        if (world->profile.cold_start > 0)
            start_at = cold_start_at(world);
        if (slot < world->profile.candidates)
            (void)world_push(world, start_at, EVENT_START, slot);
    }
}

void process_done(struct process *process)
{
    if (process->is_alive)
        candidate_done(&process->candidate);
    process->is_alive = false;
}

struct process_id process_identity(const struct process *process)
{
    struct process_id identity = {.pid = process->pid, .pid_ns = 1, .start_ticks = process->incarnation};

    (void)snprintf(identity.boot_id, sizeof identity.boot_id, "host-%u", process->host);
    return identity;
}

/* The candidate of a new incarnation. */
static void begin_candidate(struct world *world, struct process *process)
{
    struct candidate_event event = {.kind = CANDIDATE_START};
    struct candidate_config config = {
        .group = "group",
        .id = process->id,
        .address = process->address,
        .priority = process->priority,
        .eligible = process->is_eligible,
        .settings = world->profile.settings[process->slot],
        .clock = world->profile.clock,
        .is_guarded = world->profile.is_guarded,
        .has_sessions = world->profile.has_sessions,
        .seed = prng_next(&world->streams[STREAM_PROCESS]),
        .wall_ms = ms_from_ns(clock_local(&process->clock, world->now)),
    };
    enum gavel_status status;

    process->is_stop_asked = process->has_finished = false;
    process->tick_at = NEVER;
    process->spins = 0;
    process->mandate_epoch = 0;
    process->gave_up_at = 0;
    process->work_runs = false;
    process->fenced_epoch = 0;
    process->watchdog_waits = false;
    process->is_watching = false;
    config.process = process_identity(process);
    status = candidate_init(&process->candidate, &config, NULL);
    ASSERT(status == GAVEL_OK);
    network_forget(world, process);
    if (!process->is_alive)
        session_begin(world, process);
    process->is_alive = true;
    process_step(world, process, &event);
}

void process_start(struct world *world, struct process *process)
{
    ASSERT(!process->is_alive);
    process->incarnation++;
    process->pid = (int32_t)(process->slot + 1 + 100 * process->incarnation);
    process->frozen_until = process->stalled_until = process->cut_from = process->cut_until = 0;
    TRACE(world, process, "joins the group (process %d)", (int)process->pid);
    begin_candidate(world, process);
}

void process_rejoin(struct world *world, struct process *process)
{
    ASSERT(process->is_alive);
    ASSERT(!process->work_runs);
    TRACE(world, process, "joins the group again in session %llu",
          (unsigned long long)process->session.number);
    candidate_done(&process->candidate);
    process->incarnation++;
    begin_candidate(world, process);
}

/* Tells a process that the one it watches is dead; never before it is. */
static void tell_death(struct world *world, const struct process *watcher)
{
    gavel_ns delay = world_between(world, STREAM_PROCESS, 100 * NS_PER_US, 5 * NS_PER_MS);

    world_push(world, world->now + delay, EVENT_DEATH, watcher->slot)->nonce = watcher->watched;
}

void process_die(struct world *world, struct process *process, const char *why)
{
    TRACE(world, process, "%s", why);
    if (world->profile.is_guarded && process->candidate.state != CANDIDATE_ENDED) {
        gavel_ns delay = world_between(world, STREAM_GUARD, NS_PER_MS, 50 * NS_PER_MS);

        struct event *event = world_push(world, world->now + delay, EVENT_RELEASE, process->slot);

        if (world->profile.has_sessions)
            event->number = process->session.number;
        else
            event->nonce = process->candidate.nonce;
    }
    process_done(process);
    process->died_at = world->now;
    process->work_runs = false;
    process->mandate_epoch = 0;
    for (unsigned i = 0; i < world->profile.slots; i++) {
        struct process *other = &world->processes[i];

        if (other->is_alive && other->is_watching && other->watched_pid == process->pid)
            tell_death(world, other);
    }
    referee_demoted(world, process, why);
    if (!world->is_quiet || process->slot >= world->profile.candidates || world->store.record.done)
        return;
    /* What began before the quiet phase may still end in it: then the wait for a leader begins anew. */
    (void)world_push(world, world->now + 10 * NS_PER_MS, EVENT_START, process->slot);
    referee_quiet(world);
}

static void watch(struct world *world, struct process *process, const struct candidate_action *action)
{
    char boot_id[sizeof action->watch.process.boot_id];
    bool is_dead = true;

    (void)snprintf(boot_id, sizeof boot_id, "host-%u", process->host);
    process->is_watching =
        world->profile.sees_processes && strcmp(boot_id, action->watch.process.boot_id) == 0;
    process->watched = action->watch.nonce;
    process->watched_pid = action->watch.process.pid;
    for (unsigned i = 0; i < world->profile.slots; i++)
        if (world->processes[i].is_alive && world->processes[i].pid == process->watched_pid)
            is_dead = false;
    if (process->is_watching && is_dead)
        tell_death(world, process);
}

static void carry_out(struct world *world, struct process *process, const struct candidate_action *action)
{
    switch (action->kind) {
    case CANDIDATE_CALL:
        if (action->call.request.op == STORE_RELEASE && process->gave_up_at == 0 &&
            process->candidate.state == CANDIDATE_STOPPING)
            process->gave_up_at = world->now;
        referee_check_call(world, process, &action->call.request);
        if (action->call.request.op == STORE_RELEASE && process->work_runs)
            violate(world, INVARIANT_ORDER, "%s releases its mandate while its work still runs",
                    process->label);
        if (action->call.request.op != STORE_READ && action->call.request.op < STORE_HEARTBEAT)
            TRACE(world, process, "sends %s, expecting version %llu", store_op_name(action->call.request.op),
                  (unsigned long long)action->call.request.expected_version);
        network_call(world, process, action->call.id, &action->call.request);
        break;
    case CANDIDATE_EMIT:
        if (world->trace)
            trace_event(world, process, &action->event);
        if (action->event.kind == GAVEL_EVENT_STOPPED)
            referee_stopped(world, process, action->event.status);
        break;
    case CANDIDATE_MANDATE:
        work_mandate(world, process, action);
        break;
    case CANDIDATE_WORK_START:
        work_start(world, process, action->work_start.epoch);
        break;
    case CANDIDATE_WORK_STOP:
        if (action->work_stop.reason == GAVEL_REASON_HANDED_OVER ||
            action->work_stop.reason == GAVEL_REASON_RESIGNED)
            referee_handed_over(world, process);
        referee_check_stop(world, process, action->work_stop.deadline);
        work_stop(world, process, action->work_stop.reason, action->work_stop.deadline);
        break;
    case CANDIDATE_RING:
        network_ring_all(world, process);
        break;
    case CANDIDATE_RING_ONE:
        network_ring(world, process, action->address);
        break;
    case CANDIDATE_WATCH:
        watch(world, process, action);
        break;
    case CANDIDATE_UNWATCH:
        process->is_watching = false;
        break;
    }
}

/* Whether it may wait without an end: for its store to speak, or for its work to stop. */
static bool is_at_rest(const struct process *process)
{
    const struct candidate *candidate = &process->candidate;

    if (!candidate->has_sessions)
        return false;
    return candidate->state == CANDIDATE_STANDBY ||
           (candidate->state == CANDIDATE_STOPPING && candidate->is_work_running);
}

/* Sees to it that the candidate is woken in time; an event that comes earlier is asked again when it
 * comes. */
static void plan_tick(struct world *world, struct process *process)
{
    gavel_ns wake_at = session_wake_at(process);
    bool is_late = world_fault(world, STREAM_PROCESS, FAULT_STALL, 20);
    gavel_ns late =
        world_between(world, STREAM_PROCESS, 0, ns_from_ms(process->candidate.settings.heartbeat_ms));
    gavel_ns at;

    if (wake_at == NEVER && is_at_rest(process))
        return;
    if (wake_at == NEVER)
        violate(world, INVARIANT_STUCK, "%s is %s and would never be woken again", process->label,
                candidate_state_name(process->candidate.state));
    at = ns_max(clock_real(&process->clock, wake_at), world->now);
    if (is_late)
        at += late;
    if (process->tick_at <= at)
        return;
    process->tick_at = at;
    world_push(world, at, EVENT_TICK, process->slot)->number = ++process->tick_number;
}

void process_step(struct world *world, struct process *process, struct candidate_event *event)
{
    event->now = clock_local(&process->clock, world->now);
    event->session = process->session;
    candidate_step(&process->candidate, event, &world->actions);
    for (size_t i = 0; i < world->actions.count; i++)
        carry_out(world, process, &world->actions.items[i]);
    if (process->candidate.state == CANDIDATE_ENDED) {
        if (process->work_runs)
            violate(world, INVARIANT_ORDER, "%s ended while its work still runs", process->label);
        process_die(world, process, "ends");
        return;
    }
    referee_check_candidate(world, process);
    plan_tick(world, process);
}

static void tick(struct world *world, struct process *process, uint64_t number)
{
    struct candidate_event event = {.kind = CANDIDATE_TICK};
    gavel_ns now = clock_local(&process->clock, world->now);

    if (number != process->tick_number)
        return;
    process->tick_at = NEVER;
    if (now < session_wake_at(process)) {
        plan_tick(world, process);
        return;
    }
    process_step(world, process, &event);
    if (!process->is_alive)
        return;
    process->spins = session_wake_at(process) <= now ? process->spins + 1 : 0;
    if (process->spins > SPINS_MAX)
        violate(world, INVARIANT_STUCK, "%s is %s and wants to be woken at once, again and again",
                process->label, candidate_state_name(process->candidate.state));
}

void process_freeze(struct world *world, struct process *process, gavel_ns until)
{
    TRACE(world, process, "is frozen for %.3f s", (double)(until - world->now) / (double)NS_PER_S);
    process->frozen_until = until;
    (void)world_push(world, until, EVENT_RESUME, process->slot);
    if (world->profile.has_sessions && world->profile.is_guarded) {
        gavel_ns delay = world_between(world, STREAM_GUARD, NS_PER_MS, 50 * NS_PER_MS);

        if (prng_chance(&world->streams[STREAM_GUARD], 800))
            (void)world_push(world, world->now + delay, EVENT_FENCE, process->slot);
    }
}

void process_fence(struct world *world, struct process *process)
{
    if (!process->is_alive || !process_is_frozen(process, world->now) || !process->work_runs)
        return;
    TRACE(world, process, "its guard has ended its work, since it is frozen");
    process->work_runs = false;
    process->fenced_epoch = process->candidate.epoch;
    if (process->mandate_epoch == 0) /* it was told to stop before that */
        (void)world_push(world, world->now, EVENT_TOLD, process->slot);
    granting_close_dead(world, process->session.number);
}

void process_resume(struct world *world, struct process *process)
{
    bool is_overdue = process->work_runs && clock_local(&process->clock, world->now) >= process->deadline;

    TRACE(world, process, "runs again");
    process->frozen_until = world->now;
    /* Work that is overdue is aborted before it does anything; what is_leader() says then must be right all
     * the same. */
    if (is_overdue)
        process->work_runs = false;
    referee_check_exclusive(world, process);
    if (is_overdue)
        process_die(world, process, "is aborted by its watchdog: it was frozen past its deadline");
}

/* Whether the answer to this call is still of interest. */
static bool candidate_awaits(const struct candidate *candidate, uint64_t call)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        if (candidate->calls[i].is_pending && candidate->calls[i].id == call)
            return true;
    return false;
}

/* Reads, heartbeats and listings are many, and few stories turn on them. */
static bool is_about_mandate(enum store_op op)
{
    return op == STORE_CLAIM || op == STORE_RENEW || op == STORE_RELEASE;
}

static void take_answer(struct world *world, struct process *process, const struct message *message)
{
    struct candidate_event input = {.kind = CANDIDATE_REPLY};
    struct breaker before = process->candidate.breaker;

    input.reply.call = message->call;
    input.reply.reply = &message->reply;
    if (message->reply.status != GAVEL_OK && is_about_mandate(message->request.op))
        TRACE(world, process, "is told %s to its %s", gavel_status_name(message->reply.status),
              store_op_name(message->request.op));
    process_step(world, process, &input);
    if (process->is_alive)
        referee_check_breaker(world, process, &before, message);
}

/* What the store sends: an answer, or something that nobody has asked for. */
static void take_message(struct world *world, struct process *process, const struct message *message)
{
    bool is_call = message->kind == MESSAGE_CALL;
    bool is_awaited = is_call && candidate_awaits(&process->candidate, message->call);
    bool shows = message->kind == MESSAGE_PUSH || (is_awaited && message->request.op != STORE_CANDIDATES);
    uint64_t was_epoch = process->mandate_epoch;
    uint64_t was_version = process->candidate.version;
    const struct candidate *candidate = &process->candidate;
    const struct record was_seen = candidate->seen.record;
    uint64_t was_seen_in = candidate->seen_session;

    if (is_call)
        take_answer(world, process, message);
    else if (message->kind == MESSAGE_PUSH)
        session_pushed(world, process, message);
    else
        session_answered(world, process, message);
    if (!process->is_alive || !world->profile.has_sessions || !shows)
        return;
    referee_check_shown(world, process, message, was_epoch, was_version);
    if (candidate->seen_session == was_seen_in)
        referee_check_order(world, process, &was_seen);
}

/* Events for the event loop of a process, which may be late. */
static void take_in_loop(struct world *world, struct process *process, const struct event *event)
{
    struct candidate_event input = {.kind = CANDIDATE_DOORBELL};

    if (world->now < process->stalled_until) {
        heap_defer(&world->heap, event, process->stalled_until);
        return;
    }
    switch (event->kind) {
    case EVENT_TICK:
        tick(world, process, event->number);
        return;
    case EVENT_REPLY:
        take_message(world, process, event->message);
        network_free(world, event->message);
        return;
    case EVENT_KEEP:
        session_take(world, process, event);
        return;
    case EVENT_DEATH:
        input.kind = CANDIDATE_HOLDER_DIED;
        input.holder_died.nonce = event->nonce;
        TRACE(world, process, "is told that the holder's process is dead");
        break;
    case EVENT_TOLD:
        input.kind = CANDIDATE_WORK_STOPPED;
        break;
    case EVENT_FINISH:
        if (!process->work_runs || event->number != process->work_number)
            return;
        input.kind = CANDIDATE_FINISH;
        process->has_finished = true;
        TRACE(world, process, "has done its work for good");
        break;
    default: /* a doorbell */
        break;
    }
    process_step(world, process, &input);
}

/* What is of its session goes on when another candidate takes part in it. */
static bool is_of_session(const struct process *process, const struct event *event)
{
    if (event->kind == EVENT_KEEP)
        return true; /* its number says of which */
    return event->kind == EVENT_REPLY && event->message->kind != MESSAGE_CALL &&
           process->session.number != 0 && event->message->session == process->session.number;
}

void process_take(struct world *world, const struct event *event)
{
    struct process *process = &world->processes[event->slot];

    if (event->kind == EVENT_START) {
        if (!process->is_alive && process->incarnation == event->incarnation)
            process_start(world, process);
        return;
    }
    if (!process->is_alive ||
        (process->incarnation != event->incarnation && !is_of_session(process, event)) ||
        (event->kind == EVENT_REPLY && event->message->is_void)) {
        if (event->kind == EVENT_REPLY)
            network_free(world, event->message);
        return;
    }
    if (event->kind == EVENT_RESUME) {
        if (world->now == process->frozen_until)
            process_resume(world, process);
        return;
    }
    if (process_is_frozen(process, world->now)) {
        heap_defer(&world->heap, event, process->frozen_until);
        return;
    }
    if (event->kind == EVENT_STOPPED || event->kind == EVENT_WATCHDOG || event->kind == EVENT_ACT)
        work_take(world, process, event);
    else
        take_in_loop(world, process, event);
}
