/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections of programs to nodes: streams that keep their order, and end at
 * any time. Of a connection that breaks what is on its way to the program is
 * lost; the node may still get what was sent to it. Not everybody is told that
 * it is gone.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "sim/common/memory.h"
#include "wire/client.h"

#include <stdlib.h>

struct connection *connection_find(struct testbed *testbed, uint64_t number)
{
    struct connection *connection;

    LIST_FOREACH(connection, &testbed->connections, link) {
        if (connection->number == number)
            return connection;
    }
    return NULL;
}

/* What neither end has is not looked for. */
static void retire(struct testbed *testbed, struct connection *connection)
{
    if (connection->is_up || connection->is_held || connection->is_retired)
        return;
    connection->is_retired = true;
    LIST_REMOVE(connection, link);
    LIST_INSERT_HEAD(&testbed->old_connections, connection, link);
}

void connection_clear(struct testbed *testbed)
{
    struct connection *connection, *next;

    for (connection = LIST_FIRST(&testbed->old_connections); connection; connection = next) {
        next = LIST_NEXT(connection, link);
        free(connection);
    }
    LIST_INIT(&testbed->old_connections);
    for (connection = LIST_FIRST(&testbed->connections); connection; connection = next) {
        next = LIST_NEXT(connection, link);
        watch_end_all(connection);
        free(connection);
    }
    LIST_INIT(&testbed->connections);
}

static gavel_ns soon(struct testbed *testbed)
{
    return testbed->cluster->now + testbed_between(testbed, TESTBED_STREAM_NET, 50 * NS_PER_US, NS_PER_MS);
}

static void tell_program(struct testbed *testbed, struct connection *connection, enum testbed_event kind,
                         gavel_ns at)
{
    struct packet *packet = packet_new(testbed, NULL, 0);

    packet->connection = connection;
    testbed_push_packet(testbed, at, kind, connection->program, packet);
}

/* The node hears of it after all that is on its way to it. */
static void hang_up(struct testbed *testbed, struct connection *connection)
{
    struct packet *packet;

    if (!connection->is_up)
        return;
    packet = packet_new(testbed, NULL, 0);
    packet->connection = connection;
    testbed_push_packet(testbed, ns_max(soon(testbed), connection->up_newest + 1), TESTBED_HUNG_UP,
                        connection->slot, packet);
}

void connection_dial(struct program *program, size_t which)
{
    struct testbed *testbed = program->testbed;
    const struct host *host = &testbed->cluster->hosts[which];
    struct connection *connection = zeroed(1, sizeof *connection);

    connection_drop(program);
    *connection = (struct connection){.number = ++testbed->connection_count,
                                      .program = program->index,
                                      .program_life = program->life,
                                      .slot = (unsigned)which,
                                      .host_life = host->life,
                                      .is_held = true};
    LIST_INIT(&connection->watches);
    LIST_INSERT_HEAD(&testbed->connections, connection, link);
    program->connection = connection;
    connection->is_up = host_is_up(host) && testbed->services[which].is_up;
    if (!connection->is_up)
        tell_program(testbed, connection, TESTBED_DISCONNECTED, soon(testbed));
    else if (!host_is_frozen(testbed->cluster, host) || !host->loses_inbox)
        tell_program(testbed, connection, TESTBED_CONNECTED,
                     soon(testbed)); /* also of a node that is only stopped */
}

void connection_drop(struct program *program)
{
    struct connection *connection = program->connection;

    program->connection = NULL;
    if (!connection)
        return;
    connection->is_held = false;
    hang_up(program->testbed, connection);
    retire(program->testbed, connection);
}

void connection_program_died(struct program *program) { connection_drop(program); }

void connection_break(struct testbed *testbed, struct connection *connection)
{
    bool is_told = testbed_chance(testbed, TESTBED_STREAM_NET, 700);
    bool host_is_told = testbed_chance(testbed, TESTBED_STREAM_NET, 700);

    if (host_is_told)
        hang_up(testbed, connection);
    connection->is_held = false;
    if (is_told)
        tell_program(testbed, connection, TESTBED_DISCONNECTED, soon(testbed));
    retire(testbed, connection);
}

void connection_node_died(struct testbed *testbed, unsigned slot)
{
    struct connection *connection, *next;

    for (connection = LIST_FIRST(&testbed->connections); connection; connection = next) {
        next = LIST_NEXT(connection, link);
        if (connection->slot != slot || !connection->is_up)
            continue;
        connection->is_up = false;
        watch_end_all(connection);
        if (testbed_chance(testbed, TESTBED_STREAM_NET, 800))
            tell_program(testbed, connection, TESTBED_DISCONNECTED,
                         ns_max(soon(testbed), connection->down_newest + 1));
        retire(testbed, connection);
    }
}

/* When a frame arrives, behind those before it. */
static gavel_ns arrival(struct testbed *testbed, const struct connection *connection, gavel_ns *newest)
{
    gavel_ns tail = testbed_length(testbed, TESTBED_STREAM_NET, NS_PER_MS, 800 * NS_PER_MS);
    bool is_slow = testbed_chance(testbed, TESTBED_STREAM_NET, 60) && testbed_has(testbed, CLIENT_FAULT_SLOW);
    gavel_ns at = soon(testbed) + (is_slow ? tail : 0);

    at = ns_max(ns_max(at, connection->mute_until), *newest + 1);
    *newest = at;
    return at;
}

static struct packet *pack(struct testbed *testbed, struct connection *connection,
                           const Gavel__ClientFrame *frame)
{
    struct packet *packet;
    uint8_t *bytes;
    size_t size;
    enum gavel_status status = client_frame_pack(frame, &bytes, &size);

    ASSERT(status == GAVEL_OK);
    packet = packet_new(testbed, bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
    packet->connection = connection;
    free(bytes);
    return packet;
}

static bool is_of_life(const Gavel__ClientFrame *frame)
{
    return frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE ||
           (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST && frame->request->n_ops > 0 &&
            frame->request->ops[0]->what_case == GAVEL__OP__WHAT_OPEN_SESSION);
}

void connection_send_up(struct program *program, const Gavel__ClientFrame *frame)
{
    struct connection *connection = program->connection;

    if (is_of_life(frame))
        program->kept_at = program->testbed->cluster->now;
    if (connection)
        testbed_push_packet(program->testbed, arrival(program->testbed, connection, &connection->up_newest),
                            TESTBED_FRAME_UP, connection->slot, pack(program->testbed, connection, frame));
}

void connection_send_down(struct testbed *testbed, struct connection *connection,
                          const Gavel__ClientFrame *frame)
{
    if (connection->is_held)
        testbed_push_packet(testbed, arrival(testbed, connection, &connection->down_newest),
                            TESTBED_FRAME_DOWN, connection->program, pack(testbed, connection, frame));
}

/* ---- the node's end ---- */

static void welcome(struct service *service, struct connection *connection)
{
    Gavel__ClientWelcome welcome;
    Gavel__ClientFrame frame;
    static char cluster[] = "test";

    gavel__client_welcome__init(&welcome);
    gavel__client_frame__init(&frame);
    welcome.version = CLIENT_VERSION_MAX;
    welcome.cluster = cluster;
    welcome.node = service->host->label;
    welcome.revision = service->host->table.revision;
    welcome.drift_ppm = (uint32_t)service->host->node.raft.settings.drift_ppm;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WELCOME;
    frame.welcome = &welcome;
    connection_send_down(service->testbed, connection, &frame);
}

static void answer_locally(struct service *service, struct connection *connection, const Gavel__Ask *ask)
{
    Gavel__Answer answer;
    Gavel__ClientFrame frame;

    gavel__client_frame__init(&frame);
    (void)!frontend_answer(NULL, &service->host->table, service_clock(service), ask, &answer);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
    frame.answer = &answer;
    connection_send_down(service->testbed, connection, &frame);
    frontend_answer_done(&answer);
}

/* As a node does: whose it is, whatever the program says (daemon/clients_principal.c). */
static void stamp(const struct connection *connection, Gavel__ClientFrame *frame)
{
    uint64_t principal = connection->program + 1;

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

static void take_up(struct service *service, struct connection *connection, Gavel__ClientFrame *frame)
{
    stamp(connection, frame);
    switch (frame->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_HELLO:
        welcome(service, connection);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_WATCH:
        watch_begin(service, connection, frame->watch);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_UNWATCH:
        watch_end(connection, frame->unwatch->watch);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_ASK:
        if (frame->ask->is_local) {
            answer_locally(service, connection, frame->ask);
            break;
        }
        service_ask(service, connection->number, frame);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE:
        sessionless_keep(service, frame->keep_alive);
        if (service->is_up)
            service_ask(service, connection->number, frame);
        break;
    default:
        service_ask(service, connection->number, frame);
        break;
    }
}

/* True: the packet is done with. */
static bool arrive_up(struct testbed *testbed, const struct event *event, struct packet *packet, bool is_end)
{
    struct service *service = &testbed->services[event->slot];
    struct connection *connection = packet->connection;
    enum put_off put_off = service_put_off(testbed, event, false);
    Gavel__ClientFrame *frame;
    const char *reason;
    enum gavel_status status;

    if (put_off == PUT_OFF)
        return false;
    if (put_off == VOID || !connection->is_up || connection->host_life != service->host->life) {
        /* A machine that runs knows nothing of a connection of the process before. */
        if (!is_end && connection->is_held && host_is_up(&testbed->cluster->hosts[event->slot]))
            tell_program(testbed, connection, TESTBED_DISCONNECTED, soon(testbed));
        return true;
    }
    if (testbed->cluster->now < service->numb_until) {
        heap_defer(&testbed->cluster->heap, event, service->numb_until);
        return false;
    }
    if (is_end) {
        connection->is_up = false;
        watch_end_all(connection);
        retire(testbed, connection);
        service_feed(service, (struct node_event){.kind = NODE_CLIENT_GONE, .client.id = connection->number});
        return true;
    }
    status = client_frame_unpack(packet->bytes, packet->size, &frame, &reason);
    ASSERT(status == GAVEL_OK);
    take_up(service, connection, frame);
    client_frame_free(frame);
    service_settle(service);
    return true;
}

/* ---- the program's end ---- */

static void arrive_down(struct program *program, struct packet *packet, enum testbed_event kind)
{
    struct client_event event = {.kind = CLIENT_LOST};
    Gavel__ClientFrame *frame = NULL;
    const char *reason;
    enum gavel_status status;

    if (kind == TESTBED_CONNECTED) {
        event.kind = CLIENT_CONNECTED;
    } else if (kind == TESTBED_FRAME_DOWN) {
        status = client_frame_unpack(packet->bytes, packet->size, &frame, &reason);
        ASSERT(status == GAVEL_OK);
        event.kind = CLIENT_RECEIVED;
        event.frame = frame;
    } else {
        program->connection = NULL;
        packet->connection->is_held = false;
        retire(program->testbed, packet->connection);
        event.reason = NULL;
    }
    program_step(program, &event);
    client_frame_free(frame);
}

static bool arrive_at_program(struct testbed *testbed, const struct event *event, struct packet *packet,
                              enum testbed_event kind)
{
    struct connection *connection = packet->connection;
    struct program *program = &testbed->programs[connection->program];

    if (!program->is_alive || connection->program_life != program->life || program->connection != connection)
        return true;
    if (kind != TESTBED_DISCONNECTED && !connection->is_held)
        return true;
    if (program_is_frozen(program)) {
        heap_defer(&testbed->cluster->heap, event, program->frozen_until);
        return false;
    }
    arrive_down(program, packet, kind);
    return true;
}

void connection_take(struct testbed *testbed, const struct event *event)
{
    enum testbed_event kind = (enum testbed_event)(event->nonce.high & 0xff);
    struct packet *packet = (struct packet *)(uintptr_t)event->nonce.low;
    bool is_done;

    if (kind == TESTBED_FRAME_UP || kind == TESTBED_HUNG_UP)
        is_done = arrive_up(testbed, event, packet, kind == TESTBED_HUNG_UP);
    else
        is_done = arrive_at_program(testbed, event, packet, kind);
    if (is_done)
        packet_free(testbed, packet);
}
