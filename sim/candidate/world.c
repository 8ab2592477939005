/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/world.h"

#include "base/assert.h"
#include "sim/candidate/network.h"

#include <string.h>

struct event *world_push(struct world *world, gavel_ns at, enum event_kind kind, unsigned slot)
{
    struct event *event;

    ASSERT(at >= world->now);
    event = heap_push(&world->heap, at, kind, slot);
    event->incarnation = world->processes[slot].incarnation;
    return event;
}

bool world_pop(struct world *world, struct event *ret_event)
{
    if (!heap_pop(&world->heap, ret_event))
        return false;
    world->now = ret_event->at;
    world->events++;
    world->hash = hash_add(world->hash, (uint64_t)ret_event->at);
    world->hash = hash_add(world->hash, ret_event->slot * 64U + ret_event->kind);
    return true;
}

void world_hurry(struct world *world, unsigned slot, gavel_ns at)
{
    heap_hurry(&world->heap, slot, at, world->now);
}

bool world_fault(struct world *world, enum stream stream, enum fault fault, unsigned per_mille)
{
    bool is_drawn = prng_chance(&world->streams[stream], per_mille);

    return is_drawn && world_has(world, fault);
}

static void empty(struct world *world)
{
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        process_done(&world->processes[i]);
    network_recall(world);
    heap_clear(&world->heap);
    world->now = 0;
    world->outage = OUTAGE_NONE;
    world->outage_until = 0;
    world->ambushed = NULL;
    world->next_session = 0;
    memset(&world->resource, 0, sizeof world->resource);
    memset(&world->referee, 0, sizeof world->referee);
    world->is_quiet = false;
    world->is_over = false;
    world->events = 0;
    world->hash = HASH_START;
}

/* Losses by a kill are where a takeover delay shows, so many of these runs have one. */
static void draw_guard(struct world *world)
{
    struct profile *profile = &world->profile;
    gavel_ms delay = world_between(world, STREAM_GUARD, 0, profile->worst.lease_ms);
    bool has_delay = prng_chance(&world->streams[STREAM_GUARD], 500);

    profile->is_guarded = prng_chance(&world->streams[STREAM_GUARD], 300);
    if (!profile->is_guarded || !has_delay)
        return;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        profile->settings[i].takeover_delay_ms = delay;
    profile->worst.takeover_delay_ms = delay;
}

void world_begin(struct world *world, uint64_t seed, unsigned candidates, gavel_ns duration, uint64_t without)
{
    struct prng root;

    empty(world);
    prng_seed(&root, seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
    for (unsigned i = 0; i < STREAM_COUNT; i++)
        prng_seed(&world->streams[i], prng_next(&root));
    profile_draw(&world->profile, &world->streams[STREAM_PROFILE], candidates, duration, without);
    if (prng_chance(&world->streams[STREAM_FINISH], 200))
        world->profile.faults |= FAULT_BIT(FAULT_FINISH) & ~without;
    cold_draw(world);
    draw_guard(world);
    world->profile.has_sessions = prng_chance(&world->streams[STREAM_SESSION], 500);
    sim_store_begin(world);
    granting_begin(world);
    cold_begin(world);
}

void world_done(struct world *world)
{
    empty(world);
    network_done(world);
    heap_done(&world->heap);
}
