/* SPDX-License-Identifier: Apache-2.0 */

/* Requests that a node forwards to the leader, and the answers: lost, late, doubled, and out of order. */
#include "sim/session/world.h"

#include "wire/client.h"

static void push(struct service *from, gavel_ns at, const struct node_forwarded *forwarded)
{
    struct packet *packet = packet_new(from->testbed, forwarded->bytes, forwarded->size);

    packet->from = from->host->slot;
    packet->is_answer = forwarded->is_answer;
    packet->is_silence = forwarded->is_silence;
    packet->number = forwarded->number;
    packet->incarnation = forwarded->incarnation;
    testbed_push_packet(from->testbed, at, TESTBED_FORWARDED, (unsigned)forwarded->peer - 1, packet);
}

/* Connections between nodes double nothing; a write without a session counts on that. */
static bool may_double(const struct node_forwarded *forwarded)
{
    Gavel__ClientFrame *frame;
    const char *reason;
    bool may;

    if (forwarded->is_answer || forwarded->is_silence || forwarded->number == NODE_NUMBER_OF_DEATHS)
        return true;
    if (client_frame_unpack(forwarded->bytes, forwarded->size, &frame, &reason) != GAVEL_OK)
        return false;
    may = frame->what_case != GAVEL__CLIENT_FRAME__WHAT_REQUEST || frame->request->session != 0;
    client_frame_free(frame);
    return may;
}

/* The newest opening of each program is kept: a stopped node that goes on may still have a copy of it. */
static void keep_opening(struct service *from, const struct node_forwarded *forwarded)
{
    struct testbed *testbed = from->testbed;
    Gavel__ClientFrame *frame;
    const Gavel__Request *request;
    const char *reason;

    if (forwarded->is_answer || forwarded->is_silence || forwarded->number == NODE_NUMBER_OF_DEATHS ||
        client_frame_unpack(forwarded->bytes, forwarded->size, &frame, &reason) != GAVEL_OK)
        return;
    request = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST ? frame->request : NULL;
    if (request && request->session != 0 && request->principal - 1 < PROGRAMS_MAX &&
        request->ops[0]->what_case == GAVEL__OP__WHAT_OPEN_SESSION) {
        struct packet **opening = &testbed->openings[request->principal - 1];

        if (*opening)
            packet_free(testbed, *opening);
        *opening = packet_new(testbed, forwarded->bytes, forwarded->size);
        (*opening)->from = from->host->slot;
        (*opening)->number = forwarded->number;
        (*opening)->incarnation = forwarded->incarnation;
        testbed->opened[request->principal - 1] = request->session;
    }
    client_frame_free(frame);
}

void forwarded_reopen(struct testbed *testbed, const struct program *program)
{
    const struct packet *opening = testbed->openings[program->index];
    const struct host *leader = cluster_leader(testbed->cluster);
    gavel_ns soon = testbed_between(testbed, TESTBED_STREAM_REOPEN, 0, 20 * NS_PER_MS);
    struct packet *copy;

    if (!opening || !leader || !program->is_alive || program->is_closing ||
        client_session(program->client) != testbed->opened[program->index] ||
        !session_referee_has_expired(testbed->referee, testbed->opened[program->index]))
        return;
    copy = packet_new(testbed, opening->bytes, opening->size);
    copy->from = opening->from;
    copy->number = opening->number;
    copy->incarnation = opening->incarnation;
    testbed_push_packet(testbed, testbed->cluster->now + soon, TESTBED_FORWARDED, leader->slot, copy);
}

bool forwarded_send(struct service *from, const struct node_forwarded *forwarded)
{
    struct testbed *testbed = from->testbed;
    struct cluster *cluster = testbed->cluster;
    unsigned to = (unsigned)forwarded->peer - 1;
    const struct link *link = &cluster->network.links[from->host->slot][to];
    gavel_ns *newest = &testbed->forwarded_newest[from->host->slot][to];
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

    if (forwarded->is_silence && host_loss_hides(testbed, from->host->slot, to))
        return true;
    keep_opening(from, forwarded);
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
    if (is_twice && testbed_has(testbed, CLIENT_FAULT_TWICE) && may_double(forwarded))
        push(from, at + again, forwarded);
    push(from, at, forwarded);
    return true;
}

static void take(struct service *service, const struct packet *packet)
{
    service_feed(service, (struct node_event){.kind = NODE_FORWARDED,
                                              .forwarded = {.peer = packet->from + 1,
                                                            .is_answer = packet->is_answer,
                                                            .is_silence = packet->is_silence,
                                                            .number = packet->number,
                                                            .incarnation = packet->incarnation,
                                                            .bytes = packet->bytes,
                                                            .size = packet->size}});
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
}
