/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The service of a node: its forwarder and its frontend, with the callbacks
 * that src/daemon/node/consensus_sessions.c gives them. After every step of the
 * node service_settle() brings everything to rest.
 *
 * A node may die while its service proposes something. Then the service finishes
 * what it is doing before it is cleared.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "sim/common/memory.h"
#include "wire/client.h"

#include <stdlib.h>
#include <string.h>

#define TICK (100 * NS_PER_MS)
#define CLIENTS_SILENCE (250 * NS_PER_MS)
#define SETTLE_TURNS 64

gavel_ns service_clock(const struct service *service)
{
    return host_clock(service->testbed->cluster, service->host);
}

static bool is_working(const struct service *service)
{
    return raft_is_working(&service->host->raft, service_clock(service));
}

/* ---- hands of the forwarder ---- */

static bool deliver(void *user, uint64_t host, uint64_t number, const Gavel__ClientFrame *frame,
                    const uint8_t *bytes, size_t size)
{
    struct service *service = user;

    if (service->is_over)
        return false;
    if (host != service->host->id)
        /* Connections between nodes double nothing; a write without a session counts on that. */
        return forwarded_send(
            service, host, false, number, service->host->raft.state.incarnation, bytes, size,
            frame->what_case != GAVEL__CLIENT_FRAME__WHAT_REQUEST || frame->request->session != 0);
    frontend_take(&service->frontend, service_clock(service), is_working(service),
                  testbed_wall_ms(service->testbed), (struct frontend_ticket){.tag = number}, frame);
    return true;
}

static void answer(void *user, uint64_t client, uint64_t tag, const Gavel__ClientFrame *frame)
{
    struct service *service = user;
    struct connection *connection;

    (void)tag; /* the frame has it */
    if (service->is_over)
        return;
    if (client & SESSIONLESS_BIT) {
        sessionless_answered(service, client & ~SESSIONLESS_BIT, frame);
        return;
    }
    connection = connection_find(service->testbed, client);
    if (connection && connection->is_up && connection->host_life == service->host->life)
        connection_send_down(service->testbed, connection, frame);
}

/* ---- hands of the frontend ---- */

static enum gavel_status propose(void *user, const uint8_t *const *commands, const size_t *sizes,
                                 size_t count, uint64_t *ret_first, uint64_t *ret_term)
{
    struct service *service = user;
    struct raft_entry entries[256];
    struct raft_event event = {.kind = RAFT_PROPOSE,
                               .propose = {.entries = entries, .count = (uint32_t)count}};
    enum gavel_status status;

    if (service->is_over)
        return GAVEL_ERR_STOPPED;
    ASSERT(count <= sizeof entries / sizeof *entries);
    for (size_t i = 0; i < count; i++)
        entries[i] =
            (struct raft_entry){.kind = RAFT_ENTRY_DATA, .data = commands[i], .size = (uint32_t)sizes[i]};
    *ret_first = raft_log_last(&service->host->raft.log) + 1;
    *ret_term = service->host->raft.state.term;
    status = host_step(service->testbed->cluster, service->host, &event);
    return service->is_over ? GAVEL_ERR_STOPPED : status;
}

static void reply(void *user, struct frontend_ticket ticket, const Gavel__ClientFrame *frame)
{
    struct service *service = user;
    struct own_answer *own;
    uint8_t *bytes;
    size_t size;

    if (service->is_over)
        return;
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT && frame->kept->status == GAVEL_OK &&
        !is_working(service))
        session_referee_has_no_lease(service->testbed->referee, service->host->label);
    if (ticket.origin != 0) {
        if (client_frame_pack(frame, &bytes, &size) != GAVEL_OK)
            return;
        (void)forwarded_send(service, ticket.origin, true, ticket.tag, ticket.incarnation,
                             bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES, true);
        free(bytes); /* what is lost is asked again */
        return;
    }
    own = zeroed(1, sizeof *own);
    own->number = ticket.tag;
    own->frame = client_frame_copy(frame);
    ASSERT(own->frame);
    STAILQ_INSERT_TAIL(&service->own_answers, own, link);
}

/* ---- life ---- */

static void drop_own_answers(struct service *service)
{
    struct own_answer *own;

    while ((own = STAILQ_FIRST(&service->own_answers))) {
        STAILQ_REMOVE_HEAD(&service->own_answers, link);
        client_frame_free(own->frame);
        free(own);
    }
}

static void take_counts(struct service *service)
{
    struct testbed *testbed = service->testbed;

    testbed->seen[SESSION_SIGHT_STALLS] += service->frontend.counts.stalls;
    testbed->seen[SESSION_SIGHT_REPEATS] += service->frontend.counts.repeated;
    service->frontend.counts.stalls = service->frontend.counts.repeated = 0;
}

void service_clear(struct service *service)
{
    if (service->is_up) {
        take_counts(service);
        drop_own_answers(service);
        frontend_done(&service->frontend);
        forwarder_done(&service->forwarder);
    }
    *service = (struct service){0};
}

void service_started(struct testbed *testbed, struct host *host)
{
    struct service *service = &testbed->services[host->slot];
    enum gavel_status status;

    service_clear(service);
    *service = (struct service){.testbed = testbed, .host = host, .is_up = true, .timer_at = NEVER};
    STAILQ_INIT(&service->own_answers);
    status = table_keep_history(&host->table);
    ASSERT(status == GAVEL_OK);
    host->table.clock = &service->applying_at;
    frontend_init(&service->frontend, &host->table,
                  &(struct frontend_hands){.propose = propose, .reply = reply, .user = service},
                  host->raft.settings.drift_ppm);
    forwarder_init(&service->forwarder,
                   &(struct forwarder_hands){.deliver = deliver, .answer = answer, .user = service});
    service->alive_at = service_clock(service);
    testbed_push(testbed, testbed->cluster->now + testbed_between(testbed, TESTBED_STREAM_SERVICE, 1, TICK),
                 TESTBED_SERVICE_TICK, host->slot, 0);
}

void service_ended(struct testbed *testbed, struct host *host)
{
    struct service *service = &testbed->services[host->slot];

    connection_node_died(testbed, host->slot);
    if (service->depth > 0)
        service->is_over = true;
    else
        service_clear(service);
}

static void enter(struct service *service) { service->depth++; }

static void leave(struct service *service)
{
    if (--service->depth == 0 && service->is_over)
        service_clear(service);
}

void service_claimed(struct testbed *testbed, struct host *host)
{
    struct service *service = &testbed->services[host->slot];

    service->frontend.generation = host->raft.state.generation;
    frontend_open(&service->frontend, host->raft.state.term, service_clock(service));
}

void service_stopped(struct testbed *testbed, struct host *host)
{
    struct service *service = &testbed->services[host->slot];

    take_counts(service);
    frontend_close(&service->frontend);
}

void service_apply(struct testbed *testbed, struct host *host, raft_index index,
                   const struct raft_entry *entry)
{
    struct service *service = &testbed->services[host->slot];
    struct table_result *results = NULL;
    size_t count = 0;
    enum gavel_status status;

    service->applying_at = service_clock(service);
    status = table_apply_ops(&host->table, index, entry->data, entry->size, &results, &count);
    session_referee_applied(testbed->referee, testbed->cluster->now, index, &host->table, entry->data,
                            entry->size, status, results, count);
    if (status != GAVEL_ERR_NO_MEMORY)
        frontend_applied(&service->frontend, service->applying_at, is_working(service), index, entry->term,
                         status, results, count);
    free(results);
}

/* ---- time ---- */

static void arm(struct service *service)
{
    struct cluster *cluster = service->testbed->cluster;
    gavel_ns wake = ns_min(frontend_wake_at(&service->frontend), forwarder_wake_at(&service->forwarder));
    gavel_ns at;

    if (wake == NEVER)
        return;
    at = ns_max(clock_real(&service->host->clock, wake), cluster->now) +
         testbed_between(service->testbed, TESTBED_STREAM_SERVICE, 1000,
                         1000 + service->testbed->profile.cluster.timer_late);
    if (service->timer_at <= at)
        return;
    service->timer_at = at;
    testbed_push(service->testbed, at, TESTBED_SERVICE_TIMER, service->host->slot, ++service->timer);
}

static bool take_own_answer(struct service *service)
{
    struct own_answer *own = STAILQ_FIRST(&service->own_answers);

    if (!own || service->is_over)
        return false;
    STAILQ_REMOVE_HEAD(&service->own_answers, link);
    forwarder_reply(&service->forwarder, service_clock(service), own->number, own->frame);
    client_frame_free(own->frame);
    free(own);
    return true;
}

void service_settle(struct service *service)
{
    if (service->is_settling || service->is_over || !service->is_up)
        return;
    enter(service);
    service->is_settling = true;
    forwarder_leader(&service->forwarder, service_clock(service), service->host->raft.leader,
                     service->host->raft.state.term);
    for (int turn = 0; turn < SETTLE_TURNS && !service->is_over; turn++) {
        frontend_flush(&service->frontend, service_clock(service));
        if (!take_own_answer(service))
            break;
        while (take_own_answer(service))
            continue;
    }
    if (!service->is_over) {
        watch_pump(service);
        arm(service);
    }
    service->is_settling = false;
    leave(service);
}

static void tick(struct service *service)
{
    gavel_ns now = service_clock(service);

    frontend_tick(&service->frontend, now, is_working(service), now - service->alive_at > CLIENTS_SILENCE,
                  testbed_wall_ms(service->testbed));
    if (!service->is_over)
        forwarder_tick(&service->forwarder, service_clock(service));
}

enum put_off service_put_off(struct testbed *testbed, const struct event *event, bool is_lost_in_sleep)
{
    struct cluster *cluster = testbed->cluster;
    const struct host *host = &cluster->hosts[event->slot];
    gavel_ns until = ns_max(host->frozen_until, host->stalled_until);

    if (!host_is_up(host) || event->incarnation != host->life || !testbed->services[event->slot].is_up)
        return VOID;
    if (cluster->now >= until)
        return NOT_PUT_OFF;
    if (until == NEVER || (is_lost_in_sleep && host->loses_inbox))
        return VOID;
    heap_defer(&cluster->heap, event, until);
    return PUT_OFF;
}

static void take_tick(struct service *service)
{
    struct testbed *testbed = service->testbed;

    testbed_push(testbed, testbed->cluster->now + TICK, TESTBED_SERVICE_TICK, service->host->slot, 0);
    deaths_report(service);
    tick(service);
    if (!service->is_over && testbed->cluster->now >= service->numb_until)
        service->alive_at = service_clock(service);
}

void service_take(struct testbed *testbed, const struct event *event)
{
    unsigned kind = event->nonce.high & 0xff;
    struct service *service = &testbed->services[event->slot];
    enum put_off put_off;

    if (kind == TESTBED_FORWARDED) {
        forwarded_take(testbed, event);
        return;
    }
    put_off = service_put_off(testbed, event, false);
    if (put_off != NOT_PUT_OFF)
        return;
    enter(service);
    switch (kind) {
    case TESTBED_SERVICE_TIMER:
        if (event->nonce.low != service->timer)
            break;
        service->timer_at = NEVER;
        tick(service);
        break;
    case TESTBED_SERVICE_TICK:
        take_tick(service);
        break;
    case TESTBED_SESSIONLESS:
        sessionless_ask(service);
        break;
    default:
        service->dead[service->dead_count++ % DEAD_MAX] = (int32_t)event->nonce.low;
        deaths_report(service);
        break;
    }
    if (!service->is_over)
        service_settle(service);
    leave(service);
}
