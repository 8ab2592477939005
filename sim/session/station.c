/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The station of a node: its forwarder and its frontend with their hands, wired as
 * src/daemon/node/consensus_sessions.c wires them. After every step of the node
 * station_settle() brings everything to rest.
 *
 * A node may die while its station proposes something. What the station has in
 * its hands then is put down first.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "wire/client.h"

#include <stdlib.h>
#include <string.h>

#define TICK (100 * NS_PER_MS)
#define CLIENTS_SILENCE (250 * NS_PER_MS)
#define SETTLE_TURNS 64

gavel_ns station_clock(const struct station *station)
{
    return node_clock(station->hall->quorum, station->node);
}

static bool is_working(const struct station *station)
{
    return raft_is_working(&station->node->raft, station_clock(station));
}

/* ---- hands of the forwarder ---- */

static bool deliver(void *user, uint64_t node, uint64_t number, const Gavel__ClientFrame *frame,
                    const uint8_t *bytes, size_t size)
{
    struct station *station = user;

    if (station->is_over)
        return false;
    if (node != station->node->id)
        /* Connections between nodes double nothing; a write without a session counts on that. */
        return errand_send(station, node, false, number, station->node->raft.state.incarnation, bytes, size,
                           frame->what_case != GAVEL__CLIENT_FRAME__WHAT_REQUEST ||
                               frame->request->session != 0);
    frontend_take(&station->frontend, station_clock(station), is_working(station),
                  hall_wall_ms(station->hall), (struct frontend_ticket){.tag = number}, frame);
    return true;
}

static void answer(void *user, uint64_t client, uint64_t tag, const Gavel__ClientFrame *frame)
{
    struct station *station = user;
    struct wire *wire;

    (void)tag; /* the frame has it */
    if (station->is_over)
        return;
    if (client & VISIT_BIT) {
        errand_visited(station, client & ~VISIT_BIT, frame);
        return;
    }
    wire = wire_find(station->hall, client);
    if (wire && wire->is_up && wire->node_life == station->node->life)
        wire_send_down(station->hall, wire, frame);
}

/* ---- hands of the frontend ---- */

static enum gavel_status propose(void *user, const uint8_t *const *commands, const size_t *sizes,
                                 size_t count, uint64_t *ret_first, uint64_t *ret_term)
{
    struct station *station = user;
    struct raft_entry entries[256];
    struct raft_event event = {.kind = RAFT_PROPOSE,
                               .propose = {.entries = entries, .count = (uint32_t)count}};
    enum gavel_status status;

    if (station->is_over)
        return GAVEL_ERR_STOPPED;
    ASSERT(count <= sizeof entries / sizeof *entries);
    for (size_t i = 0; i < count; i++)
        entries[i] =
            (struct raft_entry){.kind = RAFT_ENTRY_DATA, .data = commands[i], .size = (uint32_t)sizes[i]};
    *ret_first = raft_log_last(&station->node->raft.log) + 1;
    *ret_term = station->node->raft.state.term;
    status = node_step(station->hall->quorum, station->node, &event);
    return station->is_over ? GAVEL_ERR_STOPPED : status;
}

static void reply(void *user, struct frontend_ticket ticket, const Gavel__ClientFrame *frame)
{
    struct station *station = user;
    struct own_answer *own;
    uint8_t *bytes;
    size_t size;

    if (station->is_over)
        return;
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT && frame->kept->status == GAVEL_OK &&
        !is_working(station))
        judge_has_no_lease(station->hall->judge, station->node->label);
    if (ticket.origin != 0) {
        if (client_frame_pack(frame, &bytes, &size) != GAVEL_OK)
            return;
        (void)errand_send(station, ticket.origin, true, ticket.tag, ticket.incarnation,
                          bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES, true);
        free(bytes); /* what is lost is asked again */
        return;
    }
    own = calloc(1, sizeof *own);
    ASSERT(own);
    own->number = ticket.tag;
    own->frame = client_frame_copy(frame);
    ASSERT(own->frame);
    STAILQ_INSERT_TAIL(&station->own_answers, own, link);
}

/* ---- life ---- */

static void drop_own_answers(struct station *station)
{
    struct own_answer *own;

    while ((own = STAILQ_FIRST(&station->own_answers))) {
        STAILQ_REMOVE_HEAD(&station->own_answers, link);
        client_frame_free(own->frame);
        free(own);
    }
}

static void take_counts(struct station *station)
{
    struct hall *hall = station->hall;

    hall->seen[HALL_SIGHT_STALLS] += station->frontend.counts.stalls;
    hall->seen[HALL_SIGHT_REPEATS] += station->frontend.counts.repeated;
    station->frontend.counts.stalls = station->frontend.counts.repeated = 0;
}

void station_clear(struct station *station)
{
    if (station->is_up) {
        take_counts(station);
        drop_own_answers(station);
        frontend_done(&station->frontend);
        forwarder_done(&station->forwarder);
    }
    *station = (struct station){0};
}

void station_started(struct hall *hall, struct node *node)
{
    struct station *station = &hall->stations[node->slot];
    enum gavel_status status;

    station_clear(station);
    *station = (struct station){.hall = hall, .node = node, .is_up = true, .timer_at = NEVER};
    STAILQ_INIT(&station->own_answers);
    status = table_keep_history(&node->table);
    ASSERT(status == GAVEL_OK);
    node->table.clock = &station->applying_at;
    frontend_init(&station->frontend, &node->table,
                  &(struct frontend_hands){.propose = propose, .reply = reply, .user = station},
                  node->raft.settings.drift_ppm);
    forwarder_init(&station->forwarder,
                   &(struct forwarder_hands){.deliver = deliver, .answer = answer, .user = station});
    station->alive_at = station_clock(station);
    hall_push(hall, hall->quorum->now + hall_between(hall, HALL_STREAM_STATION, 1, TICK), HALL_TICK,
              node->slot, 0);
}

void station_ended(struct hall *hall, struct node *node)
{
    struct station *station = &hall->stations[node->slot];

    wire_node_died(hall, node->slot);
    if (station->depth > 0)
        station->is_over = true;
    else
        station_clear(station);
}

static void enter(struct station *station) { station->depth++; }

static void leave(struct station *station)
{
    if (--station->depth == 0 && station->is_over)
        station_clear(station);
}

void station_claimed(struct hall *hall, struct node *node)
{
    struct station *station = &hall->stations[node->slot];

    station->frontend.generation = node->raft.state.generation;
    frontend_open(&station->frontend, node->raft.state.term, station_clock(station));
}

void station_stopped(struct hall *hall, struct node *node)
{
    struct station *station = &hall->stations[node->slot];

    take_counts(station);
    frontend_close(&station->frontend);
}

void station_apply(struct hall *hall, struct node *node, raft_index index, const struct raft_entry *entry)
{
    struct station *station = &hall->stations[node->slot];
    struct table_result *results = NULL;
    size_t count = 0;
    enum gavel_status status;

    station->applying_at = station_clock(station);
    status = table_apply_ops(&node->table, index, entry->data, entry->size, &results, &count);
    judge_applied(hall->judge, hall->quorum->now, index, &node->table, entry->data, entry->size, status,
                  results, count);
    if (status != GAVEL_ERR_NO_MEMORY)
        frontend_applied(&station->frontend, station->applying_at, is_working(station), index, entry->term,
                         status, results, count);
    free(results);
}

/* ---- time ---- */

static void arm(struct station *station)
{
    struct quorum *quorum = station->hall->quorum;
    gavel_ns wake = ns_min(frontend_wake_at(&station->frontend), forwarder_wake_at(&station->forwarder));
    gavel_ns at;

    if (wake == NEVER)
        return;
    at = ns_max(clock_real(&station->node->clock, wake), quorum->now) +
         hall_between(station->hall, HALL_STREAM_STATION, 1000,
                      1000 + station->hall->profile.quorum.timer_late);
    if (station->timer_at <= at)
        return;
    station->timer_at = at;
    hall_push(station->hall, at, HALL_STATION, station->node->slot, ++station->timer);
}

static bool take_own_answer(struct station *station)
{
    struct own_answer *own = STAILQ_FIRST(&station->own_answers);

    if (!own || station->is_over)
        return false;
    STAILQ_REMOVE_HEAD(&station->own_answers, link);
    forwarder_reply(&station->forwarder, station_clock(station), own->number, own->frame);
    client_frame_free(own->frame);
    free(own);
    return true;
}

void station_settle(struct station *station)
{
    if (station->is_settling || station->is_over || !station->is_up)
        return;
    enter(station);
    station->is_settling = true;
    forwarder_leader(&station->forwarder, station_clock(station), station->node->raft.leader,
                     station->node->raft.state.term);
    for (int turn = 0; turn < SETTLE_TURNS && !station->is_over; turn++) {
        frontend_flush(&station->frontend, station_clock(station));
        if (!take_own_answer(station))
            break;
        while (take_own_answer(station))
            continue;
    }
    if (!station->is_over) {
        lookout_pump(station);
        arm(station);
    }
    station->is_settling = false;
    leave(station);
}

static void tick(struct station *station)
{
    gavel_ns now = station_clock(station);

    frontend_tick(&station->frontend, now, is_working(station), now - station->alive_at > CLIENTS_SILENCE,
                  hall_wall_ms(station->hall));
    if (!station->is_over)
        forwarder_tick(&station->forwarder, station_clock(station));
}

enum put_off station_put_off(struct hall *hall, const struct event *event, bool is_lost_in_sleep)
{
    struct quorum *quorum = hall->quorum;
    const struct node *node = &quorum->nodes[event->slot];
    gavel_ns until = ns_max(node->frozen_until, node->stalled_until);

    if (!node_is_up(node) || event->incarnation != node->life || !hall->stations[event->slot].is_up)
        return VOID;
    if (quorum->now >= until)
        return NOT_PUT_OFF;
    if (until == NEVER || (is_lost_in_sleep && node->loses_inbox))
        return VOID;
    quorum_defer(quorum, event, until);
    return PUT_OFF;
}

static void take_tick(struct station *station)
{
    struct hall *hall = station->hall;

    hall_push(hall, hall->quorum->now + TICK, HALL_TICK, station->node->slot, 0);
    errand_mourn(station);
    tick(station);
    if (!station->is_over && hall->quorum->now >= station->numb_until)
        station->alive_at = station_clock(station);
}

void station_take(struct hall *hall, const struct event *event)
{
    unsigned kind = event->nonce.high & 0xff;
    struct station *station = &hall->stations[event->slot];
    enum put_off put_off;

    if (kind == HALL_ERRAND) {
        errand_take(hall, event);
        return;
    }
    put_off = station_put_off(hall, event, false);
    if (put_off != NOT_PUT_OFF)
        return;
    enter(station);
    switch (kind) {
    case HALL_STATION:
        if (event->nonce.low != station->timer)
            break;
        station->timer_at = NEVER;
        tick(station);
        break;
    case HALL_TICK:
        take_tick(station);
        break;
    case HALL_VISIT:
        errand_visit(station);
        break;
    default:
        station->dead[station->dead_count++ % DEAD_MAX] = (int32_t)event->nonce.low;
        errand_mourn(station);
        break;
    }
    if (!station->is_over)
        station_settle(station);
    leave(station);
}
