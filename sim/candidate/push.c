/* SPDX-License-Identifier: Apache-2.0 */

/* A store with sessions shows its record, when it has changed, to all of them that take part. */

#include "sim/candidate/network.h"
#include "sim/candidate/world.h"

#include <string.h>

/* To one session. */
static void push_one(struct world *world, const struct standing *standing, gavel_ns delay)
{
    struct message *message = network_message(world);
    struct event *event = world_push(world, world->now + delay, EVENT_REPLY, standing->slot);

    message->kind = MESSAGE_PUSH;
    message->session = standing->session;
    message->slot = standing->slot;
    message->incarnation = standing->incarnation;
    memset(&message->reply, 0, sizeof message->reply);
    message->reply.found = world->store.is_found;
    message->reply.record = world->store.record;
    message->reply.record.process = (struct process_id){0};
    message->reply.session = standing->session;
    message->reply.revision = world->granting.revision;
    message->reply.is_ours = world->store.record.held && world->granting.holder_session == standing->session;
    event->incarnation = standing->incarnation;
    event->message = message;
}

/* Late, lost, repeated and out of order; what was lost is looked for after a keep-alive. */
void network_push_to(struct world *world, const struct standing *standing)
{
    const struct process *process = &world->processes[standing->slot];
    gavel_ns lease = ns_from_ms(world->profile.settings[standing->slot].lease_ms);
    gavel_ns delay =
        world_between(world, STREAM_SESSION, NETWORK_FASTEST, network_calm_delay(world, standing->slot));
    gavel_ns late = world_between(world, STREAM_SESSION, 0, 2 * lease);
    bool is_late = world_fault(world, STREAM_SESSION, FAULT_DELAY, 150);
    bool is_lost = world_fault(world, STREAM_SESSION, FAULT_LOSS, world->profile.loss_per_mille);
    bool is_repeated = world_fault(world, STREAM_SESSION, FAULT_DUPLICATE, 150);

    if (is_repeated)
        push_one(world, standing, delay + late);
    if (!is_lost && !process_is_cut(process, world->now) && !network_is_away(world))
        push_one(world, standing, is_late ? delay + late : delay);
}

void network_push(struct world *world)
{
    for (size_t i = 0; i < world->granting.standing_count; i++)
        network_push_to(world, &world->granting.standings[i]);
}
