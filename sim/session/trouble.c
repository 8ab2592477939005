/* SPDX-License-Identifier: Apache-2.0 */

/* What goes wrong with programs, their connections, and the threads that hear them. */

#include "sim/session/world.h"

static unsigned stream_of(enum hall_fault fault) { return HALL_STREAM_FAULTS + fault; }

/* Rather somebody who works: there it matters. */
static struct program *pick(struct hall *hall, enum hall_fault fault)
{
    unsigned drawn = hall_below(hall, stream_of(fault), hall->profile.programs);
    bool prefers = hall_chance(hall, stream_of(fault), 600);

    for (unsigned i = 0; i < hall->profile.programs && prefers; i++) {
        struct program *program = &hall->programs[(drawn + i) % hall->profile.programs];

        for (unsigned group = 0; group < hall->profile.groups; group++)
            if (program->is_alive && program->seats[group].works)
                return program;
    }
    return &hall->programs[drawn];
}

static struct station *pick_station(struct hall *hall, enum hall_fault fault)
{
    unsigned drawn = hall_below(hall, stream_of(fault), hall->profile.quorum.nodes);
    bool prefers = hall_chance(hall, stream_of(fault), 600);
    const struct node *leader = quorum_leader(hall->quorum);

    return &hall->stations[prefers && leader ? leader->slot : drawn];
}

/* For any time; or until just when the quorum finds that its session has ended: there it matters. */
static void freeze(struct hall *hall)
{
    struct program *program = pick(hall, HALL_FAULT_FREEZE);
    gavel_ns longest = 3 * ns_from_ms(hall->profile.ttl_max_ms);
    gavel_ns length = hall_length(hall, stream_of(HALL_FAULT_FREEZE), 10 * NS_PER_MS, longest);
    gavel_ns beyond = hall_between(hall, stream_of(HALL_FAULT_FREEZE), 0, 40 * NS_PER_MS);
    bool is_nasty = hall_chance(hall, stream_of(HALL_FAULT_FREEZE), 600);
    gavel_ns ttl = ns_from_ms(hall->profile.program[program->index].ttl_ms);
    gavel_ns ends_at;

    if (program->is_alive && is_nasty && program->deadline != 0) {
        ends_at = program->deadline + ttl / 1000000 * 3 * hall->profile.quorum.worst.drift_ppm;
        length = ns_max(clock_real(&program->clock, ends_at) + beyond - hall->quorum->now, NS_PER_MS);
    }
    program_freeze(program, length);
}

static void kill(struct hall *hall) { program_kill(pick(hall, HALL_FAULT_KILL), "is killed"); }

static void cut(struct hall *hall)
{
    struct program *program = pick(hall, HALL_FAULT_BREAK);

    if (!program->is_alive || !program->wire)
        return;
    TRACE(hall->quorum, NULL, "the connection of %s breaks", program->label);
    wire_break(hall, program->wire);
}

static void mute(struct hall *hall)
{
    struct program *program = pick(hall, HALL_FAULT_MUTE);
    gavel_ns length = hall_length(hall, stream_of(HALL_FAULT_MUTE), 20 * NS_PER_MS, 2 * NS_PER_S);

    if (!program->is_alive || !program->wire)
        return;
    TRACE(hall->quorum, NULL, "the connection of %s carries nothing for %.3f s", program->label,
          (double)length / 1e9);
    program->wire->mute_until = hall->quorum->now + length;
}

static void numb(struct hall *hall)
{
    struct station *station = pick_station(hall, HALL_FAULT_NUMB);
    gavel_ns length = hall_length(hall, stream_of(HALL_FAULT_NUMB), 50 * NS_PER_MS, 3 * NS_PER_S);

    if (!station->is_up)
        return;
    TRACE(hall->quorum, station->node, "its thread of clients does not run for %.3f s", (double)length / 1e9);
    station->numb_until = hall->quorum->now + length;
}

static void visit(struct hall *hall)
{
    struct station *station = pick_station(hall, HALL_FAULT_VISIT);

    if (station->is_up)
        hall_push(hall, hall->quorum->now, HALL_VISIT, station->node->slot, 0);
}

/* How much more often than the profile says. */
static const struct {
    void (*happen)(struct hall *hall);
    unsigned times;
} lasting[HALL_FAULT_COUNT] = {
    [HALL_FAULT_FREEZE] = {freeze, 4}, [HALL_FAULT_KILL] = {kill, 1}, [HALL_FAULT_BREAK] = {cut, 2},
    [HALL_FAULT_MUTE] = {mute, 2},     [HALL_FAULT_NUMB] = {numb, 1}, [HALL_FAULT_VISIT] = {visit, 8},
};

static void plan(struct hall *hall, unsigned fault)
{
    gavel_ns every = hall->profile.fault_every / lasting[fault].times;

    hall_push(hall, hall->quorum->now + hall_between(hall, HALL_STREAM_FAULTS + fault, every / 16, 2 * every),
              HALL_FAULT, 0, fault);
}

void trouble_begin(struct hall *hall)
{
    for (unsigned fault = 0; fault < HALL_FAULT_COUNT; fault++)
        if (lasting[fault].happen && hall_has(hall, (enum hall_fault)fault))
            plan(hall, fault);
}

void trouble_take(struct hall *hall, uint64_t fault)
{
    if (hall->is_healed)
        return;
    hall->quorum->counts.faults++;
    plan(hall, (unsigned)fault);
    lasting[fault].happen(hall);
}

void trouble_heal(struct hall *hall)
{
    struct wire *wire;

    for (unsigned i = 0; i < hall->profile.programs; i++)
        program_resume(&hall->programs[i]);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        hall->stations[i].numb_until = 0;
    LIST_FOREACH(wire, &hall->wires, link) { wire->mute_until = 0; }
}
