/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/network.h"

#include "base/assert.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/world.h"
#include "sim/common/memory.h"

#include <stdlib.h>
#include <string.h>

struct message *network_message(struct world *world)
{
    struct message *message = world->free_messages;

    if (message) {
        world->free_messages = message->next_free;
    } else {
        message = zeroed(1, sizeof *message);
        message->next = world->all_messages;
        world->all_messages = message;
    }
    message->is_void = false;
    message->kind = MESSAGE_CALL;
    message->session = 0;
    return message;
}

void network_free(struct world *world, struct message *message)
{
    message->next_free = world->free_messages;
    world->free_messages = message;
}

void network_recall(struct world *world)
{
    world->free_messages = NULL;
    for (struct message *message = world->all_messages; message; message = message->next)
        network_free(world, message);
}

void network_done(struct world *world)
{
    while (world->all_messages) {
        struct message *message = world->all_messages;

        world->all_messages = message->next;
        free(message);
    }
    world->free_messages = NULL;
}

static const struct gavel_settings *settings_of(const struct world *world, unsigned slot)
{
    return &world->profile.settings[slot];
}

gavel_ns network_calm_delay(const struct world *world, unsigned slot)
{
    return ns_min(ns_from_ms(settings_of(world, slot)->call_timeout_ms) / 8, 5 * NS_PER_MS);
}

/* One way through the network: mostly quick, sometimes about a time-out late, sometimes leases. */
static gavel_ns draw_delay(struct world *world, unsigned slot)
{
    gavel_ns calm = network_calm_delay(world, slot);
    gavel_ns delay = world_between(world, STREAM_NETWORK, NETWORK_FASTEST, ns_max(calm, NETWORK_FASTEST));
    gavel_ns timeout = ns_from_ms(settings_of(world, slot)->call_timeout_ms);
    gavel_ns lease = ns_from_ms(settings_of(world, slot)->lease_ms);
    gavel_ns late = prng_chance(&world->streams[STREAM_NETWORK], 700)
                        ? world_between(world, STREAM_NETWORK, 0, timeout)
                        : world_between(world, STREAM_NETWORK, 0, 3 * lease);

    if (world_fault(world, STREAM_NETWORK, FAULT_DELAY, world->profile.delay_per_mille))
        delay += late;
    else if (world->outage == OUTAGE_SLOW && world->now < world->outage_until)
        delay += late;
    return delay;
}

/* What becomes of reads, heartbeats and listings would drown the story. */
static bool is_told(enum store_op op) { return op != STORE_READ && op < STORE_HEARTBEAT; }

bool network_is_away(const struct world *world)
{
    return world->outage == OUTAGE_AWAY && world->now < world->outage_until;
}

static bool is_renewal(const struct message *message)
{
    return message->kind == MESSAGE_KEEP ||
           (message->kind == MESSAGE_CALL && message->request.op == STORE_RENEW);
}

/*
 * The last renewal before a leader loses the store is where its deadline and
 * the wait of the others are decided. Its answer comes late; the others have
 * asked before it was sent, and see it as soon as it is there.
 */
static gavel_ns spring_ambush(struct world *world, const struct message *message)
{
    struct process *process = &world->processes[message->slot];
    gavel_ns timeout = ns_from_ms(settings_of(world, message->slot)->call_timeout_ms);
    gavel_ns late = world_between(world, STREAM_NETWORK, timeout / 2, timeout - timeout / 16);

    if (world->ambushed != process || !is_renewal(message) || message->reply.status != GAVEL_OK)
        return 0;
    world->ambushed = NULL;
    process->is_cut_one_way = false;
    process->cut_from = world->now + late + network_calm_delay(world, message->slot);
    process->cut_until = process->cut_from + 2 * ns_from_ms(settings_of(world, message->slot)->lease_ms);
    TRACE(world, process, "gets a late answer to its last renewal, and then loses the store");
    return late;
}

/* Those who look while somebody is being ambushed. */
static gavel_ns delay_of_onlookers(struct world *world, const struct message *message)
{
    gavel_ns timeout = ns_from_ms(settings_of(world, message->slot)->call_timeout_ms);
    gavel_ns late = world_between(world, STREAM_NETWORK, timeout / 2, timeout - timeout / 16);
    bool looks_on = world->ambushed && world->ambushed->slot != message->slot && !world->is_quiet;

    return looks_on && message->request.op == STORE_READ ? late : 0;
}

/* An answer on its way back, or nothing. */
static void send_reply(struct world *world, struct message *message)
{
    const struct process *process = &world->processes[message->slot];
    bool is_lost = world_fault(world, STREAM_NETWORK, FAULT_LOSS, world->profile.loss_per_mille);
    bool is_mute = world->outage == OUTAGE_MUTE && world->now < world->outage_until;
    gavel_ns delay = draw_delay(world, message->slot);
    gavel_ns ambush = spring_ambush(world, message);
    gavel_ns timeout = ns_from_ms(settings_of(world, message->slot)->call_timeout_ms);

    if (ambush > 0)
        delay = ambush;
    else if (process_fades(process, world->now))
        delay += world_between(world, STREAM_NETWORK, timeout / 2, timeout);
    if (ambush == 0 && (is_lost || is_mute || process_is_cut(process, world->now))) {
        if (is_told(message->request.op))
            TRACE(world, process, "the answer to %s is lost", store_op_name(message->request.op));
        network_free(world, message);
        return;
    }
    struct event *event = world_push(world, world->now + delay, EVENT_REPLY, message->slot);

    event->incarnation = message->incarnation;
    event->message = message;
}

static enum gavel_status draw_failure(struct world *world)
{
    static const enum gavel_status statuses[] = {GAVEL_ERR_STORE_UNAVAILABLE, GAVEL_ERR_TIMEOUT, GAVEL_ERR_IO,
                                                 GAVEL_ERR_STORE_FULL};

    return statuses[prng_below(&world->streams[STREAM_NETWORK], sizeof statuses / sizeof *statuses)];
}

static void fail_at_once(struct world *world, struct message *message, enum gavel_status status)
{
    memset(&message->reply, 0, sizeof message->reply);
    message->reply.status = status;
    if (is_told(message->request.op))
        TRACE_DETAIL(world, &world->processes[message->slot], "%s fails: %s",
                     store_op_name(message->request.op), gavel_status_name(status));
    send_reply(world, message);
}

/* A mandate changes hands by few calls; a fault that met all calls alike would seldom meet these. */
static gavel_ns delay_of_hand_overs(struct world *world, const struct message *message)
{
    gavel_ns timeout = ns_from_ms(settings_of(world, message->slot)->call_timeout_ms);
    gavel_ns late = world_between(world, STREAM_NETWORK, timeout / 2, 4 * timeout);
    /* A release of "whichever epoch my nonce got" is the one that could end too much. */
    bool is_vague = message->request.op == STORE_RELEASE && message->request.record.epoch == 0;
    bool is_late = world_fault(world, STREAM_NETWORK, FAULT_DELAY, is_vague ? 800 : 150);

    return is_late && (message->request.op == STORE_CLAIM || message->request.op == STORE_RELEASE) ? late : 0;
}

static bool is_write(const struct message *message)
{
    return message->kind == MESSAGE_CALL && message->request.op != STORE_READ &&
           message->request.op != STORE_CANDIDATES;
}

static void travel(struct world *world, struct message *message)
{
    gavel_ns delay = draw_delay(world, message->slot) + delay_of_onlookers(world, message) +
                     delay_of_hand_overs(world, message);

    gavel_ns at = world->now + delay;
    struct process *process = &world->processes[message->slot];

    if (world->profile.has_sessions && is_write(message)) /* none of a session overtakes another */
        at = process->written_at = ns_max(at, process->written_at);
    world_push(world, at, EVENT_APPLY, message->slot)->message = message;
}

/* The request leaves the process, unless its time is over: then nobody would begin it. */
static void send(struct world *world, struct message *message)
{
    const struct process *process = &world->processes[message->slot];
    bool is_duplicate =
        world_fault(world, STREAM_NETWORK, FAULT_DUPLICATE, world->profile.duplicate_per_mille);
    bool is_lost = world_fault(world, STREAM_NETWORK, FAULT_LOSS, world->profile.loss_per_mille);

    if (clock_local(&process->clock, world->now) >= message->request.give_up_at) {
        network_free(world, message);
        return;
    }
    /* A session is opened once, and carries out its writes once. */
    if (world->profile.has_sessions && (is_write(message) || message->kind == MESSAGE_OPEN))
        is_duplicate = false;
    if (is_duplicate) {
        struct message *copy = network_message(world);

        copy->kind = message->kind;
        copy->session = message->session;
        copy->slot = message->slot;
        copy->incarnation = message->incarnation;
        copy->call = message->call;
        copy->wall_ms = message->wall_ms;
        copy->sent_at = message->sent_at;
        copy->request = message->request;
        travel(world, copy);
    }
    if (is_lost || network_is_away(world) ||
        (process_is_cut(process, world->now) && !process->is_cut_one_way)) {
        if (is_told(message->request.op))
            TRACE(world, process, "the %s is lost on its way", store_op_name(message->request.op));
        network_free(world, message);
        return;
    }
    travel(world, message);
}

/* A request reaches the store. */
static void arrive(struct world *world, struct message *message)
{
    bool fails = world_fault(world, STREAM_NETWORK, FAULT_FAILURE, world->profile.failure_per_mille);
    bool is_applied = prng_chance(&world->streams[STREAM_NETWORK], 500);
    enum gavel_status status = draw_failure(world);

    if (message->is_void || network_is_away(world)) {
        network_free(world, message);
        return;
    }
    if (world->outage == OUTAGE_REFUSES && world->now < world->outage_until) {
        fail_at_once(world, message, status);
        return;
    }
    if (fails && !is_applied) {
        fail_at_once(world, message, status);
        return;
    }
    sim_store_apply(world, message);
    if (fails)
        fail_at_once(world, message, status);
    else
        send_reply(world, message);
}

void network_call(struct world *world, struct process *process, uint64_t call,
                  const struct store_request *request)
{
    struct message *message = network_message(world);
    bool is_held_up = world_fault(world, STREAM_NETWORK, FAULT_STALL, 30);
    gavel_ns hold_up = world_between(world, STREAM_NETWORK, 0,
                                     ns_from_ms(settings_of(world, process->slot)->call_timeout_ms));

    message->slot = process->slot;
    message->incarnation = process->incarnation;
    message->call = call;
    message->request = *request;
    message->request.group = "group"; /* the request outlives the candidate that lent the name */
    message->sent_at = clock_local(&process->clock, world->now);
    message->wall_ms = ms_from_ns(message->sent_at);
    message->session = process->session.number;
    if (world->profile.has_sessions && message->session == 0 && request->op == STORE_HEARTBEAT) {
        network_forget(world, process);
        process->waiting = message;
        return;
    }
    if (!is_held_up) {
        send(world, message);
        return;
    }
    world_push(world, world->now + hold_up, EVENT_SEND, process->slot)->message = message;
}

void network_forget(struct world *world, struct process *process)
{
    if (process->waiting)
        network_free(world, process->waiting);
    process->waiting = NULL;
}

void network_flush(struct world *world, struct process *process)
{
    struct message *message = process->waiting;

    process->waiting = NULL;
    if (!message)
        return;
    message->session = process->session.number;
    message->sent_at = clock_local(&process->clock, world->now);
    send(world, message);
}

void network_session(struct world *world, struct process *process, enum message_kind kind, uint64_t number)
{
    struct message *message = network_message(world);

    memset(&message->request, 0, sizeof message->request);
    message->kind = kind;
    message->session = number;
    message->slot = process->slot;
    message->incarnation = process->incarnation;
    message->sent_at = clock_local(&process->clock, world->now);
    message->request.give_up_at = NEVER;
    send(world, message);
}

void network_take(struct world *world, const struct event *event)
{
    struct process *process = &world->processes[event->slot];

    if (event->kind == EVENT_APPLY) {
        arrive(world, event->message);
    } else if (!process->is_alive || process->incarnation != event->incarnation || event->message->is_void) {
        network_free(world, event->message);
    } else if (process_is_frozen(process, world->now)) {
        heap_defer(&world->heap, event, process->frozen_until);
    } else {
        send(world, event->message);
    }
}

void network_ring(struct world *world, struct process *process, const char *address)
{
    for (unsigned i = 0; i < world->profile.slots; i++) {
        struct process *other = &world->processes[i];
        bool is_lost = world_fault(world, STREAM_NETWORK, FAULT_BELL, 300);
        bool is_late = world_fault(world, STREAM_NETWORK, FAULT_BELL, 100);
        gavel_ns delay = world_between(world, STREAM_NETWORK, NETWORK_FASTEST, NS_PER_MS);

        if (strcmp(other->address, address) != 0 || !other->is_alive || is_lost)
            continue;
        if (is_late)
            delay += world_between(world, STREAM_NETWORK, 0, 2 * NS_PER_S);
        TRACE(world, process, "rings the doorbell of %s", other->label);
        (void)world_push(world, world->now + delay, EVENT_BELL, i);
    }
}

void network_ring_all(struct world *world, struct process *process)
{
    const struct peers *peers = &process->candidate.peers;

    for (size_t i = 0; i < peers->count; i++)
        if (peers->items[i].is_active && strcmp(peers->items[i].address, process->address) != 0)
            network_ring(world, process, peers->items[i].address);
}

void network_write(struct world *world, struct process *process, uint64_t epoch)
{
    gavel_ns delay = world_between(world, STREAM_WORK, NETWORK_FASTEST, 2 * NS_PER_MS);
    gavel_ns late = world_between(world, STREAM_WORK, 0, 3 * ns_from_ms(world->profile.worst.lease_ms));

    if (world_fault(world, STREAM_WORK, FAULT_DELAY, 100))
        delay += late;
    world_push(world, world->now + delay, EVENT_WRITE, process->slot)->number = epoch;
}

void network_settle(struct world *world)
{
    for (size_t i = 0; i < world->heap.count; i++) {
        const struct event *event = &world->heap.items[i];

        if (event->kind != EVENT_SEND && event->kind != EVENT_APPLY && event->kind != EVENT_REPLY)
            continue;
        if (event->at > world->now + network_calm_delay(world, event->slot))
            event->message->is_void = true;
    }
    for (unsigned i = 0; i < world->profile.slots; i++) {
        struct process *process = &world->processes[i];

        process->cut_until = 0;
        process->written_at = ns_min(process->written_at, world->now + network_calm_delay(world, i));
    }
    world->outage = OUTAGE_NONE;
    world->ambushed = NULL;
}
