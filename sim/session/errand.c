/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Errands between the nodes: lost, late, doubled, and out of order. Also what
 * a node itself has to say to the leader (processes of its machine are dead),
 * and what others than sessions ask of it.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "wire/client.h"

#include <stdio.h>
#include <stdlib.h>

#define NUMBER_OF_DEATHS 0

static void post(struct station *from, unsigned to, gavel_ns at, bool is_answer, uint64_t number,
                 uint64_t incarnation, const uint8_t *bytes, size_t size)
{
    struct packet *packet = packet_new(from->hall, bytes, size);

    packet->from = from->node->slot;
    packet->is_answer = is_answer;
    packet->number = number;
    packet->incarnation = incarnation;
    hall_push_packet(from->hall, at, HALL_ERRAND, to, packet);
}

bool errand_send(struct station *from, uint64_t to, bool is_answer, uint64_t number, uint64_t incarnation,
                 const uint8_t *bytes, size_t size, bool may_double)
{
    struct hall *hall = from->hall;
    struct quorum *quorum = hall->quorum;
    const struct link *link = &quorum->network.links[from->node->slot][to - 1];
    gavel_ns *newest = &hall->errand_newest[from->node->slot][to - 1];
    gavel_ns tail = hall_length(hall, HALL_STREAM_NET, 2 * NS_PER_MS, 2 * NS_PER_S);
    gavel_ns again = hall_length(hall, HALL_STREAM_NET, 100 * NS_PER_US, NS_PER_S);
    bool is_unsent = hall_chance(hall, HALL_STREAM_NET, 50) && hall_has(hall, HALL_FAULT_UNSENT);
    bool is_lost = hall_chance(hall, HALL_STREAM_NET, hall->profile.loss_per_mille);
    bool is_late = hall_chance(hall, HALL_STREAM_NET, hall->profile.late_per_mille);
    bool is_twice = hall_chance(hall, HALL_STREAM_NET, hall->profile.twice_per_mille);
    bool is_told = hall_chance(hall, HALL_STREAM_NET, 500);
    gavel_ns at =
        quorum->now + link->base + hall_between(hall, HALL_STREAM_NET, 1, 1 + hall->profile.quorum.jitter);

    if (is_unsent)
        return false;
    if (quorum->now < link->cut_until && link->cut_kinds == ALL_KINDS)
        return !is_told;
    if (is_lost && hall_has(hall, HALL_FAULT_LOST))
        return true;
    if (is_late && hall_has(hall, HALL_FAULT_LATE))
        at += tail;
    else
        *newest = at = ns_max(at, *newest + 1);
    if (is_twice && may_double && hall_has(hall, HALL_FAULT_TWICE))
        post(from, (unsigned)to - 1, at + again, is_answer, number, incarnation, bytes, size);
    post(from, (unsigned)to - 1, at, is_answer, number, incarnation, bytes, size);
    return true;
}

static void take(struct station *station, const struct packet *packet)
{
    gavel_ns now = station_clock(station);
    bool is_working = raft_is_working(&station->node->raft, now);
    int64_t wall_ms = hall_wall_ms(station->hall);
    Gavel__ClientFrame *frame;
    const char *reason;

    if (packet->is_answer && packet->incarnation != station->node->raft.state.incarnation)
        return; /* for whom we were before */
    if (client_frame_unpack(packet->bytes, packet->size, &frame, &reason) != GAVEL_OK)
        return;
    if (packet->is_answer)
        forwarder_reply(&station->forwarder, now, packet->number, frame);
    else if (packet->number != NUMBER_OF_DEATHS)
        frontend_take(&station->frontend, now, is_working, wall_ms,
                      (struct frontend_ticket){.origin = packet->from + 1,
                                               .tag = packet->number,
                                               .incarnation = packet->incarnation},
                      frame);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST)
        frontend_mourn(&station->frontend, now, wall_ms, (const Gavel__Op *const *)frame->request->ops,
                       frame->request->n_ops);
    client_frame_free(frame);
}

/* A node that has restarted hears what was sent to it before, too. */
void errand_take(struct hall *hall, const struct event *event)
{
    struct packet *packet = (struct packet *)(uintptr_t)event->nonce.low;
    struct station *station = &hall->stations[event->slot];
    struct event now = *event;
    enum put_off put_off;

    now.incarnation = hall->quorum->nodes[event->slot].life;
    put_off = station_put_off(hall, &now, true);
    if (put_off == PUT_OFF)
        return;
    if (put_off == NOT_PUT_OFF)
        take(station, packet);
    packet_free(hall, packet);
    if (put_off == NOT_PUT_OFF)
        station_settle(station);
}

/* ---- deaths ---- */

static bool is_dead(const struct station *station, int32_t pid)
{
    unsigned kept = station->dead_count < DEAD_MAX ? station->dead_count : DEAD_MAX;

    for (unsigned i = 0; i < kept; i++)
        if (station->dead[i] == pid)
            return true;
    return false;
}

static void tell(struct station *station, const Gavel__Op *op)
{
    Gavel__Request request;
    Gavel__ClientFrame frame;
    Gavel__Op *ops[] = {(Gavel__Op *)(uintptr_t)op};
    uint8_t *bytes;
    size_t size;

    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    if (station->frontend.is_open) {
        frontend_mourn(&station->frontend, station_clock(station), hall_wall_ms(station->hall), &op, 1);
        return;
    }
    if (station->node->raft.leader == 0)
        return; /* the tick tells again */
    request.n_ops = 1;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    if (client_frame_pack(&frame, &bytes, &size) != GAVEL_OK)
        return;
    (void)errand_send(station, station->node->raft.leader, false, NUMBER_OF_DEATHS,
                      station->node->raft.state.incarnation, bytes + CLIENT_LENGTH_BYTES,
                      size - CLIENT_LENGTH_BYTES, true);
    free(bytes);
}

/* All that the table has of the dead. */
void errand_mourn(struct station *station)
{
    const struct table *table = &station->node->table;

    if (station->dead_count == 0)
        return;
    for (struct table_session *session = table_session_first(table); session;
         session = table_session_next(session)) {
        Gavel__CloseSession close;
        Gavel__Op op;

        gavel__close_session__init(&close);
        gavel__op__init(&op);
        if (session->process.pid == 0 || !is_dead(station, session->process.pid))
            continue;
        close.session = session->id;
        close.ending = GAVEL__ENDING__ENDING_DEAD;
        op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
        op.close_session = &close;
        tell(station, &op);
    }
    for (struct table_group *group = table_group_from(table, ""); group; group = table_group_next(group)) {
        Gavel__Release release;
        Gavel__Op op;

        gavel__release__init(&release);
        gavel__op__init(&op);
        if (!group->is_held || group->session || group->process.pid == 0 ||
            !is_dead(station, group->process.pid))
            continue;
        release.group = group->name;
        release.epoch = group->epoch;
        release.is_dead = true;
        op.what_case = GAVEL__OP__WHAT_RELEASE;
        op.release = &release;
        tell(station, &op);
    }
}

/* ---- visits ---- */

/* Somebody who has learnt the id of a program's session closes it, if he can. */
static void steal(struct station *station)
{
    struct hall *hall = station->hall;
    const struct program *program =
        &hall->programs[hall_below(hall, HALL_STREAM_VISIT, hall->profile.programs)];
    Gavel__CloseSession close;
    Gavel__Op op;
    Gavel__Op *ops[] = {&op};
    Gavel__Request request;
    Gavel__ClientFrame frame;

    if (!program->client || client_session(program->client) == 0)
        return;
    gavel__close_session__init(&close);
    gavel__op__init(&op);
    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    close.session = client_session(program->client);
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    request.n_ops = 1;
    request.ops = ops;
    request.has_principal = true;
    request.principal = THIEF;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    forwarder_take(&station->forwarder, station_clock(station), VISIT_BIT | THIEF, &frame);
}

/* A note that nobody else writes, without a session: through the API of this node. */
void errand_visit(struct station *station)
{
    struct hall *hall = station->hall;
    unsigned group = hall_below(hall, HALL_STREAM_VISIT, hall->profile.groups);
    Gavel__PutNote put;
    Gavel__Op op;
    Gavel__Op *ops[] = {&op};
    Gavel__Request request;
    Gavel__ClientFrame frame;
    char value[32];
    char key[32];
    int length;

    if (hall_chance(hall, HALL_STREAM_VISIT, 100)) {
        steal(station);
        return;
    }
    gavel__put_note__init(&put);
    gavel__op__init(&op);
    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    hall->visits++;
    length = snprintf(value, sizeof value, "%llu", (unsigned long long)(VISIT_BIT | hall->visits));
    (void)snprintf(key, sizeof key, "visit%llu", (unsigned long long)(hall->visits % 4)); /* it fits */
    put.group = (char *)(uintptr_t)hall_group_name(group);
    put.key = key;
    put.value.data = (uint8_t *)value;
    put.value.len = (size_t)length;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    request.tag = hall->visits;
    request.timeout_ms = (uint32_t)hall_between(hall, HALL_STREAM_VISIT, 100, 3000);
    request.n_ops = 1;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    forwarder_take(&station->forwarder, station_clock(station), VISIT_BIT | hall->visits, &frame);
}

void errand_visited(struct station *station, uint64_t visit, const Gavel__ClientFrame *frame)
{
    enum gavel_status status;

    ASSERT(frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY);
    if (visit == THIEF)
        return;
    status = (enum gavel_status)frame->reply->status;
    if (status == GAVEL_OK)
        status = (enum gavel_status)frame->reply->results[0]->status;
    judge_note_answered(station->hall->judge, VISIT_BIT | visit, status, frame->reply->status == GAVEL_OK);
    if (frame->reply->status != GAVEL_OK)
        hall_see(station->hall, HALL_SIGHT_UNKNOWN);
}
