/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The service of a node: the threads and timers that src/daemon puts around
 * node_step() for clients. It brings their frames in and the answers out, and
 * reports deaths; the node decides.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "wire/client.h"

#define TICK (100 * NS_PER_MS)
#define CLIENTS_SILENCE (250 * NS_PER_MS)

gavel_ns service_clock(const struct service *service)
{
    return host_clock(service->testbed->cluster, service->host);
}

void service_feed(struct service *service, struct node_event event)
{
    (void)host_feed(service->testbed->cluster, service->host, event); /* what is refused is answered */
}

/* As the threads of gaveld do: what goes to the leader is packed here (daemon/shared/forwarding.c). */
void service_ask(struct service *service, uint64_t client, const Gavel__ClientFrame *frame)
{
    struct forwarder_question question = {0};
    struct node_event event = {.kind = NODE_CLIENT, .client = {.id = client, .frame = frame}};
    const char *reason;

    if ((frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST ||
         frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ASK) &&
        forwarder_question_pack(frame, &question, &reason) == GAVEL_OK)
        event.client.question = &question;
    service_feed(service, event);
    forwarder_question_done(&question);
}

/* ---- what the node tells ---- */

void service_answer(struct testbed *testbed, struct host *host, const struct forwarder_answer *answer)
{
    struct service *service = &testbed->services[host->slot];
    struct connection *connection;

    ASSERT(answer->frame);
    if (answer->client & SESSIONLESS_BIT) {
        sessionless_answered(service, answer->client & ~SESSIONLESS_BIT, answer->frame);
        return;
    }
    connection = connection_find(testbed, answer->client);
    if (connection && connection->is_up && connection->host_life == host->life)
        connection_send_down(testbed, connection, answer->frame);
}

static void take_counts(struct testbed *testbed, const struct host *host)
{
    struct frontend *frontend = &testbed->services[host->slot].host->node.frontend;

    testbed->seen[SESSION_SIGHT_STALLS] += frontend->counts.stalls;
    testbed->seen[SESSION_SIGHT_REPEATS] += frontend->counts.repeated;
    frontend->counts.stalls = frontend->counts.repeated = 0;
}

void service_clear(struct service *service) { *service = (struct service){0}; }

void service_started(struct testbed *testbed, struct host *host)
{
    struct service *service = &testbed->services[host->slot];
    enum gavel_status status;

    *service = (struct service){.testbed = testbed, .host = host, .is_up = true, .timer_at = NEVER};
    status = table_keep_history(&host->table);
    ASSERT(status == GAVEL_OK);
    service->alive_at = service_clock(service);
    host->node.frontend.retention = testbed->profile.retention;
    host->node.frontend.close_part = testbed->profile.close_part;
    host->node.never_marks =
        testbed->profile.is_mixed && testbed_chance(testbed, TESTBED_STREAM_SERVICE, 400);
    testbed_push(testbed, testbed->cluster->now + testbed_between(testbed, TESTBED_STREAM_SERVICE, 1, TICK),
                 TESTBED_SERVICE_TICK, host->slot, 0);
}

void service_ended(struct testbed *testbed, struct host *host)
{
    connection_node_died(testbed, host->slot);
    take_counts(testbed, host);
    service_clear(&testbed->services[host->slot]);
}

void service_stopped(struct testbed *testbed, const struct host *host) { take_counts(testbed, host); }

/* ---- time ---- */

static void arm(struct service *service)
{
    struct cluster *cluster = service->testbed->cluster;
    gavel_ns wake = node_tick_at(&service->host->node);
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

void service_settle(struct service *service)
{
    if (!service->is_up)
        return;
    watch_pump(service);
    arm(service);
}

static void tick(struct service *service)
{
    bool is_stalled = service_clock(service) - service->alive_at > CLIENTS_SILENCE;

    service_feed(service, (struct node_event){.kind = NODE_TICK, .tick = {.is_stalled = is_stalled}});
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
    if (service->is_up)
        tick(service);
    if (service->is_up && testbed->cluster->now >= service->numb_until)
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
}
