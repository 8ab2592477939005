/* SPDX-License-Identifier: Apache-2.0 */

/* Requests that a node forwards to the leader, and the answers: lost, late, doubled, and out of order. */
#include "sim/session/world.h"

#include "wire/client.h"

#include <stdlib.h>

static void push(struct service *from, unsigned to, gavel_ns at, bool is_answer, uint64_t number,
                 uint64_t incarnation, const uint8_t *bytes, size_t size)
{
    struct packet *packet = packet_new(from->testbed, bytes, size);

    packet->from = from->host->slot;
    packet->is_answer = is_answer;
    packet->number = number;
    packet->incarnation = incarnation;
    testbed_push_packet(from->testbed, at, TESTBED_FORWARDED, to, packet);
}

bool forwarded_send(struct service *from, uint64_t to, bool is_answer, uint64_t number, uint64_t incarnation,
                    const uint8_t *bytes, size_t size, bool may_double)
{
    struct testbed *testbed = from->testbed;
    struct cluster *cluster = testbed->cluster;
    const struct link *link = &cluster->network.links[from->host->slot][to - 1];
    gavel_ns *newest = &testbed->forwarded_newest[from->host->slot][to - 1];
    gavel_ns tail = testbed_length(testbed, TESTBED_STREAM_NET, 2 * NS_PER_MS, 2 * NS_PER_S);
    gavel_ns again = testbed_length(testbed, TESTBED_STREAM_NET, 100 * NS_PER_US, NS_PER_S);
    bool is_unsent =
        testbed_chance(testbed, TESTBED_STREAM_NET, 50) && testbed_has(testbed, CLIENT_FAULT_UNSENT);
    bool is_lost = testbed_chance(testbed, TESTBED_STREAM_NET, testbed->profile.loss_per_mille);
    bool is_late = testbed_chance(testbed, TESTBED_STREAM_NET, testbed->profile.late_per_mille);
    bool is_twice = testbed_chance(testbed, TESTBED_STREAM_NET, testbed->profile.twice_per_mille);
    bool is_told = testbed_chance(testbed, TESTBED_STREAM_NET, 500);
    gavel_ns at = cluster->now + link->base +
                  testbed_between(testbed, TESTBED_STREAM_NET, 1, 1 + testbed->profile.cluster.jitter);

    if (is_unsent)
        return false;
    if (cluster->now < link->cut_until && link->cut_kinds == ALL_KINDS)
        return !is_told;
    if (is_lost && testbed_has(testbed, CLIENT_FAULT_LOST))
        return true;
    if (is_late && testbed_has(testbed, CLIENT_FAULT_LATE))
        at += tail;
    else
        *newest = at = ns_max(at, *newest + 1);
    if (is_twice && may_double && testbed_has(testbed, CLIENT_FAULT_TWICE))
        push(from, (unsigned)to - 1, at + again, is_answer, number, incarnation, bytes, size);
    push(from, (unsigned)to - 1, at, is_answer, number, incarnation, bytes, size);
    return true;
}

static void take(struct service *service, const struct packet *packet)
{
    gavel_ns now = service_clock(service);
    bool is_working = raft_is_working(&service->host->raft, now);
    int64_t wall_ms = testbed_wall_ms(service->testbed);
    Gavel__ClientFrame *frame;
    const char *reason;

    if (packet->is_answer && packet->incarnation != service->host->raft.state.incarnation)
        return; /* for whom we were before */
    if (client_frame_unpack(packet->bytes, packet->size, &frame, &reason) != GAVEL_OK)
        return;
    if (packet->is_answer)
        forwarder_reply(&service->forwarder, now, packet->number, frame);
    else if (packet->number != NUMBER_OF_DEATHS)
        frontend_take(&service->frontend, now, is_working, wall_ms,
                      (struct frontend_ticket){.origin = packet->from + 1,
                                               .tag = packet->number,
                                               .incarnation = packet->incarnation},
                      frame);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST)
        frontend_report_deaths(&service->frontend, now, wall_ms,
                               (const Gavel__Op *const *)frame->request->ops, frame->request->n_ops);
    client_frame_free(frame);
}

/* A node that has restarted hears what was sent to it before, too. */
void forwarded_take(struct testbed *testbed, const struct event *event)
{
    struct packet *packet = (struct packet *)(uintptr_t)event->nonce.low;
    struct service *service = &testbed->services[event->slot];
    struct event now = *event;
    enum put_off put_off;

    now.incarnation = testbed->cluster->hosts[event->slot].life;
    put_off = service_put_off(testbed, &now, true);
    if (put_off == PUT_OFF)
        return;
    if (put_off == NOT_PUT_OFF)
        take(service, packet);
    packet_free(testbed, packet);
    if (put_off == NOT_PUT_OFF)
        service_settle(service);
}
