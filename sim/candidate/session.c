/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/session.h"

#include "base/planted.h"
#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/work.h"
#include "sim/candidate/world.h"

#include <string.h>

static const struct gavel_settings *settings_of(const struct process *process)
{
    return &process->candidate.settings;
}

/* How long a session is known to be open after the send of a keep-alive: less the drift of both clocks. */
static gavel_ns lasts(const struct world *world, const struct process *process)
{
    gavel_ns ttl = ns_from_ms(granting_ttl_ms(world, process->slot));
    int64_t ppm = settings_of(process)->drift_ppm;

    return (gavel_ns)((wide)ttl * (1000000 - ppm) / (1000000 + ppm));
}

static void plan(struct world *world, struct process *process, gavel_ns delay)
{
    gavel_ns at = clock_real(&process->clock, clock_local(&process->clock, world->now) + delay);

    world_push(world, ns_max(at, world->now), EVENT_KEEP, process->slot)->number = ++process->keep_number;
}

/* Opens a session with a number that nobody had. An opening that was not answered is left to expire. */
static void open_one(struct world *world, struct process *process)
{
    process->opening = ++world->next_session;
    network_session(world, process, MESSAGE_OPEN, process->opening);
    plan(world, process, ns_from_ms(settings_of(process)->call_timeout_ms));
}

void session_begin(struct world *world, struct process *process)
{
    process->session = (struct store_session){.lasts = lasts(world, process)};
    process->opening = 0;
    process->shown_revision = process->told_version = process->told_epoch = process->told_wish = 0;
    if (!world->profile.has_sessions)
        return;
    open_one(world, process);
}

void session_take(struct world *world, struct process *process, const struct event *event)
{
    const struct gavel_settings *s = settings_of(process);

    if (event->number != process->keep_number)
        return;
    if (process->session.number == 0) {
        open_one(world, process);
        return;
    }
    network_session(world, process, MESSAGE_KEEP, process->session.number);
    plan(world, process,
         ns_from_ms(s->heartbeat_ms) +
             world_between(world, STREAM_SESSION, 0, ns_from_ms(s->heartbeat_jitter_ms)));
}

/* Until when it is known to be open if this was sent then. */
static gavel_ns deadline_of(const struct world *world, const struct process *process, gavel_ns sent_at)
{
    if (PLANTED(SESSION_FROM_ANSWER))
        sent_at = clock_local(&process->clock, world->now);
    return sent_at + lasts(world, process);
}

static void tell_candidate(struct world *world, struct process *process, enum candidate_event_kind kind)
{
    struct candidate_event event = {.kind = kind};

    process_step(world, process, &event);
}

static void opened(struct world *world, struct process *process, const struct message *message)
{
    if (message->reply.status != GAVEL_OK || process->session.number != 0 ||
        message->session != process->opening)
        return;
    process->session.number = message->session;
    process->session.deadline = deadline_of(world, process, message->sent_at);
    TRACE(world, process, "has opened session %llu", (unsigned long long)message->session);
    plan(world, process, ns_from_ms(settings_of(process)->heartbeat_ms));
    network_flush(world, process);
    tell_candidate(world, process, CANDIDATE_TICK);
}

/* What it need not look for any more. */
static void note_told(struct process *process, const struct record *record)
{
    if (process->told_version < record->version)
        process->told_version = record->version;
    if (process->told_epoch < record->epoch)
        process->told_epoch = record->epoch;
    if (process->told_wish < record->wish_epoch)
        process->told_wish = record->wish_epoch;
}

static void kept(struct world *world, struct process *process, const struct message *message)
{
    const struct record *record = &message->reply.record;

    if (message->session != process->session.number)
        return;
    if (message->reply.status == GAVEL_ERR_SESSION_GONE) {
        TRACE(world, process, "is told that session %llu is gone", (unsigned long long)message->session);
        process->session = (struct store_session){.former_deadline = process->session.deadline,
                                                  .lasts = lasts(world, process)};
        open_one(world, process);
        if (prng_chance(&world->streams[STREAM_SESSION], 250)) /* or with the next one */
            tell_candidate(world, process, CANDIDATE_TICK);
        return;
    }
    if (message->reply.status != GAVEL_OK)
        return;
    process->session.deadline =
        ns_max(process->session.deadline, deadline_of(world, process, message->sent_at));
    work_follow_session(world, process);
    /* A push was lost: then a client looks at the whole. */
    if (record->version > process->told_version || record->epoch > process->told_epoch ||
        record->wish_epoch > process->told_wish) {
        note_told(process, record);
        tell_candidate(world, process, CANDIDATE_DOORBELL);
    }
}

void session_answered(struct world *world, struct process *process, const struct message *message)
{
    if (message->kind == MESSAGE_OPEN)
        opened(world, process, message);
    else
        kept(world, process, message);
}

void session_pushed(struct world *world, struct process *process, const struct message *message)
{
    struct candidate_event event = {.kind = CANDIDATE_TOLD};

    if (message->session != process->session.number)
        return; /* of a former session */
    note_told(process, &message->reply.record);
    event.told.record = &message->reply.record;
    event.told.is_found = message->reply.found;
    event.told.is_ours = message->reply.is_ours;
    event.told.revision = message->reply.revision;
    process_step(world, process, &event);
}

gavel_ns session_wake_at(const struct process *process)
{
    const struct candidate *candidate = &process->candidate;
    gavel_ns at = candidate_wake_at(candidate);
    bool leads = candidate->state == CANDIDATE_PREPARING || candidate->state == CANDIDATE_LEADING;

    if (candidate->has_sessions && leads)
        at = ns_min(at, process->session.deadline - candidate_stop_lead(candidate));
    return at;
}
