/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program: a process with a real client, a clock, and seats in some groups.
 * It can be stopped for any time: then nothing of it runs, and what comes for
 * it waits. It can be killed: then only the quorum remembers it.
 */
#include "sim/session/world.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

#define WAKES_MAX 200

gavel_ns program_clock(const struct program *program)
{
    return clock_local(&program->clock, program->hall->quorum->now);
}

bool program_is_frozen(const struct program *program)
{
    return program->hall->quorum->now < program->frozen_until;
}

/* ---- steps ---- */

static void arm(struct program *program)
{
    struct hall *hall = program->hall;
    gavel_ns wake = client_wake_at(program->client);
    gavel_ns at;

    if (wake == NEVER)
        return;
    at = ns_max(clock_real(&program->clock, wake), hall->quorum->now);
    if (program->timer_at <= at)
        return;
    program->timer_at = at;
    hall_push(hall, at, HALL_TIMER, program->index, ++program->timer);
}

static void deadline(struct program *program, gavel_ns at)
{
    struct hall *hall = program->hall;

    program->deadline = at;
    if (at != 0 && !program->is_closing)
        judge_counts_on(hall->judge, hall->quorum->now, program->index, client_session(program->client),
                        clock_real(&program->clock, at));
    office_deadline(program);
}

static void take_watch(struct program *program, const struct client_action *action)
{
    struct hall *hall = program->hall;
    unsigned group = (unsigned)action->token - 1;

    if (action->kind == CLIENT_DO_CHANGE) {
        hall_see(hall, HALL_SIGHT_CHANGES);
        judge_sees(hall->judge, program->index, group, action->change);
        office_change(program, action->change);
        return;
    }
    if (action->kind == CLIENT_DO_GAP)
        hall_see(hall, HALL_SIGHT_GAPS);
    if (action->status == GAVEL_OK)
        judge_watches(hall->judge, program->index, group, action->revision, action->kind == CLIENT_DO_GAP);
    program->seats[group].is_looking = false; /* what was missed is seen by looking */
    matter_ask(program, MATTER_LOOK, group);
}

static void carry_out(struct program *program, const struct client_action *action)
{
    switch (action->kind) {
    case CLIENT_DO_CONNECT:
        wire_dial(program, action->which);
        break;
    case CLIENT_DO_DISCONNECT:
        wire_drop(program);
        break;
    case CLIENT_DO_SEND:
        wire_send_up(program, action->frame);
        break;
    case CLIENT_DO_RESULT:
        matter_result(program, action);
        break;
    case CLIENT_DO_ANSWER:
        matter_answer(program, action);
        break;
    case CLIENT_DO_CHANGE:
    case CLIENT_DO_WATCHING:
    case CLIENT_DO_GAP:
        take_watch(program, action);
        break;
    case CLIENT_DO_DEADLINE:
        deadline(program, action->at);
        break;
    case CLIENT_DO_SESSION_LOST:
        TRACE(program->hall->quorum, NULL, "%s has lost its session", program->label);
        office_session_lost(program);
        break;
    case CLIENT_DO_CLOSED:
        break;
    }
}

/* What comes out is carried out in order; what that asks for waits until then. */
void program_step(struct program *program, struct client_event *event)
{
    struct hall *hall = program->hall;
    const struct client_actions *actions;
    struct client_action copies[160];
    size_t count;
    uint64_t life = program->life;

    event->now = program_clock(program);
    actions = client_step(program->client, event);
    /* Frames that were to be sent live until the next step, so they go first. */
    count = 0;
    for (size_t i = 0; i < actions->count; i++) {
        const struct client_action *action = &actions->items[i];

        if (action->kind == CLIENT_DO_SEND || action->kind == CLIENT_DO_CONNECT ||
            action->kind == CLIENT_DO_DISCONNECT)
            carry_out(program, action);
        else if (count < sizeof copies / sizeof *copies)
            copies[count++] = *action;
        else
            ASSERT(!"a step has more actions than there is room for");
    }
    for (size_t i = 0; i < count && program->life == life; i++)
        carry_out(program, &copies[i]);
    if (program->life != life)
        return;
    if (client_state(program->client) == CLIENT_UP && program->up_since == 0)
        program->up_since = hall->quorum->now;
    else if (client_state(program->client) != CLIENT_UP)
        program->up_since = 0;
    if (client_state(program->client) == CLIENT_CLOSED)
        program_kill(program, "has closed its session, and ends");
    else
        arm(program);
}

/* ---- life ---- */

static int64_t draw_rate(struct hall *hall)
{
    int64_t half = (int64_t)hall->profile.quorum.worst.drift_ppm * 1000 / 2 - 1;
    unsigned extreme = hall_below(hall, HALL_STREAM_PROGRAM, 3);
    int64_t rate = hall_between(hall, HALL_STREAM_PROGRAM, -half, half);

    if (half <= 0 || !(hall->profile.faults & HALL_FAULT_BIT(HALL_FAULT_CLIENT_RATE)))
        return 0;
    return extreme == 0 ? half : extreme == 1 ? -half : rate;
}

static void watch_groups(struct program *program)
{
    for (unsigned group = 0; group < program->hall->profile.groups; group++) {
        struct client_event event = {.kind = CLIENT_WATCH};

        event.watch.watch = group + 1;
        event.watch.group = hall_group_name(group);
        event.watch.prefix = "";
        event.watch.is_of_session = false;
        event.watch.after_revision = 0;
        program_step(program, &event);
    }
}

void program_start(struct hall *hall, struct program *program)
{
    unsigned index = program->index;
    uint64_t life = program->life;
    const struct hall_program_profile *profile = &hall->profile.program[index];
    gavel_ns ttl = ns_from_ms(profile->ttl_ms);
    struct client_settings settings = {
        .ttl_ms = profile->ttl_ms,
        .drift_ppm = 1000, /* the nodes tell if it is more */
        .connect_timeout = ttl / 3,
        .silence = ttl / 2,
        .retry_min = 2 * NS_PER_MS,
        .retry_max = 100 * NS_PER_MS,
        .address_count = hall->profile.quorum.nodes,
        .session = prng_next(&hall->streams[HALL_STREAM_PROGRAM]) | 1,
        .seed = prng_next(&hall->streams[HALL_STREAM_PROGRAM]),
        .name = "hall",
        .program = "gavel-sim",
    };
    enum gavel_status status;

    if (program->is_alive)
        return;
    *program = (struct program){.hall = hall, .index = index, .life = life + 1, .timer_at = NEVER};
    (void)snprintf(program->label, sizeof program->label, "%c", (char)('P' + index)); /* they fit */
    (void)snprintf(program->id, sizeof program->id, "c%u", index * 5 % 8);            /* not as they join */
    program->is_alive = true;
    program->pid = ++hall->pids;
    program->clock.rate_ppb = draw_rate(hall);
    program->clock.offset = hall_between(hall, HALL_STREAM_PROGRAM, NS_PER_S, 1000000 * NS_PER_S);
    program->tokens = (uint64_t)program->pid << 32;
    settings.process =
        (struct table_process){.boot_id = "11111111-2222-3333-4444-555555555555", .pid = program->pid};
    for (unsigned group = 0; group < HALL_GROUPS_MAX; group++)
        program->seats[group].priority = (int32_t)hall_below(hall, HALL_STREAM_PROGRAM, 3);
    status = client_new(&settings, program_clock(program), &program->client);
    ASSERT(status == GAVEL_OK);
    judge_born(hall->judge, index, program->pid);
    TRACE(hall->quorum, NULL, "%s starts, process %d", program->label, (int)program->pid);
    hall_push(hall, hall->quorum->now, HALL_ACT, index, program->life);
    watch_groups(program);
}

void program_clear(struct program *program)
{
    client_free(program->client);
    program->client = NULL;
}

void program_kill(struct program *program, const char *why)
{
    struct hall *hall = program->hall;
    unsigned machine = hall->profile.program[program->index].machine;
    gavel_ns delay = hall_length(hall, HALL_STREAM_PROGRAM, NS_PER_MS, 300 * NS_PER_MS);

    if (!program->is_alive)
        return;
    TRACE(hall->quorum, NULL, "%s %s", program->label, why);
    office_stop_all(program);
    program->is_alive = false;
    program->life++;
    wire_program_died(program);
    judge_died(hall->judge, program->index, program->pid);
    if (machine < SLOTS_MAX && node_is_up(&hall->quorum->nodes[machine]))
        hall_push(hall, hall->quorum->now + delay, HALL_DEATH, machine, (uint64_t)program->pid);
    delay = hall_length(hall, HALL_STREAM_PROGRAM, NS_PER_MS, 2 * NS_PER_S);
    hall_push(hall, hall->quorum->now + delay, HALL_BORN, program->index, program->life);
}

void program_freeze(struct program *program, gavel_ns length)
{
    struct hall *hall = program->hall;

    if (!program->is_alive || program_is_frozen(program))
        return;
    TRACE(hall->quorum, NULL, "%s is stopped for %.3f s", program->label, (double)length / 1e9);
    program->frozen_until = hall->quorum->now + length;
}

void program_resume(struct program *program)
{
    struct hall *hall = program->hall;

    if (!program->is_alive || !program_is_frozen(program))
        return;
    TRACE(hall->quorum, NULL, "%s runs again", program->label);
    heap_hurry(&hall->quorum->heap, 0, program->frozen_until, hall->quorum->now);
    program->frozen_until = 0;
}

static void timer(struct program *program, uint64_t number)
{
    struct hall *hall = program->hall;
    struct client_event event = {.kind = CLIENT_TIMER};

    if (number != program->timer)
        return;
    program->timer_at = NEVER;
    if (program_clock(program) < client_wake_at(program->client)) {
        arm(program);
        return;
    }
    program->wakes = hall->quorum->now == program->woken_at ? program->wakes + 1 : 0;
    program->woken_at = hall->quorum->now;
    if (program->wakes > WAKES_MAX)
        judge_stuck(hall->judge, program->label);
    else
        program_step(program, &event);
}

static void act(struct program *program)
{
    struct hall *hall = program->hall;
    const struct hall_program_profile *profile = &hall->profile.program[program->index];
    uint64_t life = program->life;
    gavel_ns every = profile->act_every;

    hall_push(hall, hall->quorum->now + hall_between(hall, HALL_STREAM_PROGRAM, every / 4, 2 * every),
              HALL_ACT, program->index, program->life);
    for (unsigned group = 0; group < hall->profile.groups && program->life == life; group++) {
        if (profile->roles[group] == ROLE_CAMPAIGN)
            office_act(program, group);
        else if (profile->roles[group] == ROLE_LEASE)
            lease_act(program, group);
    }
}

void program_take(struct hall *hall, const struct event *event)
{
    struct program *program = &hall->programs[event->slot];
    struct event deferred;

    if (event->kind == HALL_BORN) {
        if (event->number == program->life && !program->is_alive) {
            program_clear(program);
            program_start(hall, program);
        }
        return;
    }
    if (!program->is_alive)
        return;
    if (program_is_frozen(program)) {
        deferred = *event;
        hall_push(hall, program->frozen_until, (enum hall_event)deferred.kind, deferred.slot,
                  deferred.number);
        return;
    }
    if (event->kind == HALL_TIMER)
        timer(program, event->number);
    else if (event->number == program->life)
        act(program);
}
