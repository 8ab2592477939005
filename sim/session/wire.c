/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections of programs to nodes: streams that keep their order, and end at
 * any time. Of a connection that breaks what is on its way to the program is
 * lost; the node may still get what was sent to it. Not everybody is told that
 * it is gone.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "wire/client.h"

#include <stdlib.h>

struct wire *wire_find(struct hall *hall, uint64_t number)
{
    struct wire *wire;

    LIST_FOREACH(wire, &hall->wires, link)
    {
        if (wire->number == number)
            return wire;
    }
    return NULL;
}

/* What neither end has is not looked for. */
static void retire(struct hall *hall, struct wire *wire)
{
    if (wire->is_up || wire->is_held || wire->is_retired)
        return;
    wire->is_retired = true;
    LIST_REMOVE(wire, link);
    LIST_INSERT_HEAD(&hall->old_wires, wire, link);
}

void wire_clear(struct hall *hall)
{
    struct wire *wire, *next;

    for (wire = LIST_FIRST(&hall->old_wires); wire; wire = next) {
        next = LIST_NEXT(wire, link);
        free(wire);
    }
    LIST_INIT(&hall->old_wires);
    for (wire = LIST_FIRST(&hall->wires); wire; wire = next) {
        next = LIST_NEXT(wire, link);
        lookout_end_all(wire);
        free(wire);
    }
    LIST_INIT(&hall->wires);
}

static gavel_ns soon(struct hall *hall)
{
    return hall->quorum->now + hall_between(hall, HALL_STREAM_NET, 50 * NS_PER_US, NS_PER_MS);
}

static void tell_program(struct hall *hall, struct wire *wire, enum hall_event kind, gavel_ns at)
{
    struct packet *packet = packet_new(hall, NULL, 0);

    packet->wire = wire;
    hall_push_packet(hall, at, kind, wire->program, packet);
}

/* The node hears of it after all that is on its way to it. */
static void hang_up(struct hall *hall, struct wire *wire)
{
    struct packet *packet;

    if (!wire->is_up)
        return;
    packet = packet_new(hall, NULL, 0);
    packet->wire = wire;
    hall_push_packet(hall, ns_max(soon(hall), wire->up_newest + 1), HALL_HUNG_UP, wire->slot, packet);
}

void wire_dial(struct program *program, size_t which)
{
    struct hall *hall = program->hall;
    const struct node *node = &hall->quorum->nodes[which];
    struct wire *wire = calloc(1, sizeof *wire);

    ASSERT(wire);
    wire_drop(program);
    *wire = (struct wire){.number = ++hall->wire_count,
                          .program = program->index,
                          .program_life = program->life,
                          .slot = (unsigned)which,
                          .node_life = node->life,
                          .is_held = true};
    LIST_INIT(&wire->lookouts);
    LIST_INSERT_HEAD(&hall->wires, wire, link);
    program->wire = wire;
    wire->is_up = node_is_up(node) && hall->stations[which].is_up;
    if (!wire->is_up)
        tell_program(hall, wire, HALL_UNWIRED, soon(hall));
    else if (!node_is_frozen(hall->quorum, node) || !node->loses_inbox)
        tell_program(hall, wire, HALL_WIRED, soon(hall)); /* also of a node that is only stopped */
}

void wire_drop(struct program *program)
{
    struct wire *wire = program->wire;

    program->wire = NULL;
    if (!wire)
        return;
    wire->is_held = false;
    hang_up(program->hall, wire);
    retire(program->hall, wire);
}

void wire_program_died(struct program *program) { wire_drop(program); }

void wire_break(struct hall *hall, struct wire *wire)
{
    bool is_told = hall_chance(hall, HALL_STREAM_NET, 700);
    bool node_is_told = hall_chance(hall, HALL_STREAM_NET, 700);

    if (node_is_told)
        hang_up(hall, wire);
    wire->is_held = false;
    if (is_told)
        tell_program(hall, wire, HALL_UNWIRED, soon(hall));
    retire(hall, wire);
}

void wire_node_died(struct hall *hall, unsigned slot)
{
    struct wire *wire, *next;

    for (wire = LIST_FIRST(&hall->wires); wire; wire = next) {
        next = LIST_NEXT(wire, link);
        if (wire->slot != slot || !wire->is_up)
            continue;
        wire->is_up = false;
        lookout_end_all(wire);
        if (hall_chance(hall, HALL_STREAM_NET, 800))
            tell_program(hall, wire, HALL_UNWIRED, ns_max(soon(hall), wire->down_newest + 1));
        retire(hall, wire);
    }
}

/* When a frame arrives, behind those before it. */
static gavel_ns arrival(struct hall *hall, const struct wire *wire, gavel_ns *newest)
{
    gavel_ns tail = hall_length(hall, HALL_STREAM_NET, NS_PER_MS, 800 * NS_PER_MS);
    bool is_slow = hall_chance(hall, HALL_STREAM_NET, 60) && hall_has(hall, HALL_FAULT_SLOW);
    gavel_ns at = soon(hall) + (is_slow ? tail : 0);

    at = ns_max(ns_max(at, wire->mute_until), *newest + 1);
    *newest = at;
    return at;
}

static struct packet *pack(struct hall *hall, struct wire *wire, const Gavel__ClientFrame *frame)
{
    struct packet *packet;
    uint8_t *bytes;
    size_t size;
    enum gavel_status status = client_frame_pack(frame, &bytes, &size);

    ASSERT(status == GAVEL_OK);
    packet = packet_new(hall, bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
    packet->wire = wire;
    free(bytes);
    return packet;
}

void wire_send_up(struct program *program, const Gavel__ClientFrame *frame)
{
    struct wire *wire = program->wire;

    if (wire)
        hall_push_packet(program->hall, arrival(program->hall, wire, &wire->up_newest), HALL_UP, wire->slot,
                         pack(program->hall, wire, frame));
}

void wire_send_down(struct hall *hall, struct wire *wire, const Gavel__ClientFrame *frame)
{
    if (wire->is_held)
        hall_push_packet(hall, arrival(hall, wire, &wire->down_newest), HALL_DOWN, wire->program,
                         pack(hall, wire, frame));
}

/* ---- the node's end ---- */

static void welcome(struct station *station, struct wire *wire)
{
    Gavel__ClientWelcome welcome;
    Gavel__ClientFrame frame;
    static char cluster[] = "hall";

    gavel__client_welcome__init(&welcome);
    gavel__client_frame__init(&frame);
    welcome.version = CLIENT_VERSION_MAX;
    welcome.cluster = cluster;
    welcome.node = station->node->label;
    welcome.revision = station->node->table.revision;
    welcome.drift_ppm = (uint32_t)station->node->raft.settings.drift_ppm;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WELCOME;
    frame.welcome = &welcome;
    wire_send_down(station->hall, wire, &frame);
}

static void answer_locally(struct station *station, struct wire *wire, const Gavel__Ask *ask)
{
    Gavel__Answer answer;
    Gavel__ClientFrame frame;

    gavel__client_frame__init(&frame);
    (void)!frontend_answer(NULL, &station->node->table, station_clock(station), ask, &answer);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
    frame.answer = &answer;
    wire_send_down(station->hall, wire, &frame);
    frontend_answer_done(&answer);
}

/* As a node does: whose it is, whatever the program says (daemon/clients_principal.c). */
static void stamp(const struct wire *wire, Gavel__ClientFrame *frame)
{
    uint64_t principal = wire->program + 1;

    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE) {
        frame->keep_alive->has_principal = true;
        frame->keep_alive->principal = principal;
    } else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST) {
        frame->request->has_principal = true;
        frame->request->principal = principal;
        for (size_t i = 0; i < frame->request->n_ops; i++)
            if (frame->request->ops[i]->what_case == GAVEL__OP__WHAT_OPEN_SESSION)
                frame->request->ops[i]->open_session->principal = principal;
    }
}

static void take_up(struct station *station, struct wire *wire, Gavel__ClientFrame *frame)
{
    stamp(wire, frame);
    switch (frame->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_HELLO:
        welcome(station, wire);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_WATCH:
        lookout_begin(station, wire, frame->watch);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_UNWATCH:
        lookout_end(wire, frame->unwatch->watch);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_ASK:
        if (frame->ask->is_local) {
            answer_locally(station, wire, frame->ask);
            break;
        }
        forwarder_take(&station->forwarder, station_clock(station), wire->number, frame);
        break;
    default:
        forwarder_take(&station->forwarder, station_clock(station), wire->number, frame);
        break;
    }
}

/* True: the packet is done with. */
static bool arrive_up(struct hall *hall, const struct event *event, struct packet *packet, bool is_end)
{
    struct station *station = &hall->stations[event->slot];
    struct wire *wire = packet->wire;
    enum put_off put_off = station_put_off(hall, event, false);
    Gavel__ClientFrame *frame;
    const char *reason;
    enum gavel_status status;

    if (put_off == PUT_OFF)
        return false;
    if (put_off == VOID || !wire->is_up || wire->node_life != station->node->life) {
        /* A machine that runs knows nothing of a connection of the process before. */
        if (!is_end && wire->is_held && node_is_up(&hall->quorum->nodes[event->slot]))
            tell_program(hall, wire, HALL_UNWIRED, soon(hall));
        return true;
    }
    if (hall->quorum->now < station->numb_until) {
        quorum_defer(hall->quorum, event, station->numb_until);
        return false;
    }
    if (is_end) {
        wire->is_up = false;
        lookout_end_all(wire);
        forwarder_forget(&station->forwarder, wire->number);
        retire(hall, wire);
        return true;
    }
    status = client_frame_unpack(packet->bytes, packet->size, &frame, &reason);
    ASSERT(status == GAVEL_OK);
    take_up(station, wire, frame);
    client_frame_free(frame);
    station_settle(station);
    return true;
}

/* ---- the program's end ---- */

static void arrive_down(struct program *program, struct packet *packet, enum hall_event kind)
{
    struct client_event event = {.kind = CLIENT_LOST};
    Gavel__ClientFrame *frame = NULL;
    const char *reason;
    enum gavel_status status;

    if (kind == HALL_WIRED) {
        event.kind = CLIENT_CONNECTED;
    } else if (kind == HALL_DOWN) {
        status = client_frame_unpack(packet->bytes, packet->size, &frame, &reason);
        ASSERT(status == GAVEL_OK);
        event.kind = CLIENT_RECEIVED;
        event.frame = frame;
    } else {
        program->wire = NULL;
        packet->wire->is_held = false;
        retire(program->hall, packet->wire);
        event.reason = NULL;
    }
    program_step(program, &event);
    client_frame_free(frame);
}

static bool arrive_at_program(struct hall *hall, const struct event *event, struct packet *packet,
                              enum hall_event kind)
{
    struct wire *wire = packet->wire;
    struct program *program = &hall->programs[wire->program];

    if (!program->is_alive || wire->program_life != program->life || program->wire != wire)
        return true;
    if (kind != HALL_UNWIRED && !wire->is_held)
        return true;
    if (program_is_frozen(program)) {
        quorum_defer(hall->quorum, event, program->frozen_until);
        return false;
    }
    arrive_down(program, packet, kind);
    return true;
}

void wire_take(struct hall *hall, const struct event *event)
{
    enum hall_event kind = (enum hall_event)(event->nonce.high & 0xff);
    struct packet *packet = (struct packet *)(uintptr_t)event->nonce.low;
    bool is_done;

    if (kind == HALL_UP || kind == HALL_HUNG_UP)
        is_done = arrive_up(hall, event, packet, kind == HALL_HUNG_UP);
    else
        is_done = arrive_at_program(hall, event, packet, kind);
    if (is_done)
        packet_free(hall, packet);
}
