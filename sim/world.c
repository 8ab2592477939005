/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/world.h"

#include "base/assert.h"
#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

static size_t sift_up(struct heap *heap, size_t i)
{
    struct event event = heap->items[i];

    while (i > 0 && is_before(&event, &heap->items[(i - 1) / 2])) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = event;
    return i;
}

static void sift_down(struct heap *heap, size_t i)
{
    struct event event = heap->items[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && is_before(&heap->items[child + 1], &heap->items[child]))
            child++;
        if (!is_before(&heap->items[child], &event))
            break;
        heap->items[i] = heap->items[child];
        i = child;
    }
    heap->items[i] = event;
}

static void reserve(struct heap *heap)
{
    size_t capacity = heap->capacity ? heap->capacity * 2 : 256;
    struct event *items;

    if (heap->count < heap->capacity)
        return;
    items = realloc(heap->items, capacity * sizeof *items);
    ASSERT(items); /* a simulator without memory has nothing to tell */
    heap->items = items;
    heap->capacity = capacity;
}

struct event *world_push(struct world *world, gavel_ns at, enum event_kind kind, unsigned slot)
{
    struct heap *heap = &world->heap;
    size_t i = heap->count;

    ASSERT(at >= world->now);
    reserve(heap);
    heap->items[heap->count++] = (struct event){
        .at = at,
        .sequence = heap->sequence++,
        .kind = kind,
        .slot = slot,
        .incarnation = world->processes[slot].incarnation,
    };
    return &heap->items[sift_up(heap, i)];
}

void world_defer(struct world *world, const struct event *event, gavel_ns at)
{
    struct event *later = world_push(world, at, event->kind, event->slot);
    uint64_t sequence = later->sequence;

    *later = *event;
    later->at = at;
    later->sequence = sequence;
}

bool world_pop(struct world *world, struct event *ret_event)
{
    struct heap *heap = &world->heap;

    if (heap->count == 0)
        return false;
    *ret_event = heap->items[0];
    heap->items[0] = heap->items[--heap->count];
    if (heap->count > 0)
        sift_down(heap, 0);
    world->now = ret_event->at;
    world->events++;
    world->hash = (world->hash ^ (uint64_t)ret_event->at) * UINT64_C(0x100000001b3);
    world->hash =
        (world->hash ^ (ret_event->slot * 64U + (unsigned)ret_event->kind)) * UINT64_C(0x100000001b3);
    return true;
}

void world_hurry(struct world *world, unsigned slot, gavel_ns at)
{
    struct heap *heap = &world->heap;

    for (size_t i = 0; i < heap->count; i++)
        if (heap->items[i].slot == slot && heap->items[i].at == at)
            heap->items[i].at = world->now;
    for (size_t i = heap->count / 2; i > 0; i--)
        sift_down(heap, i - 1);
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
    world->heap.count = 0;
    world->heap.sequence = 0;
    world->now = 0;
    world->outage = OUTAGE_NONE;
    world->outage_until = 0;
    world->ambushed = NULL;
    memset(&world->resource, 0, sizeof world->resource);
    memset(&world->referee, 0, sizeof world->referee);
    world->is_quiet = false;
    world->is_over = false;
    world->events = 0;
    world->hash = UINT64_C(0xcbf29ce484222325);
}

void world_begin(struct world *world, uint64_t seed, unsigned candidates, gavel_ns duration, unsigned without)
{
    struct prng root;

    empty(world);
    prng_seed(&root, seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
    for (unsigned i = 0; i < STREAM_COUNT; i++)
        prng_seed(&world->streams[i], prng_next(&root));
    profile_draw(&world->profile, &world->streams[STREAM_PROFILE], candidates, duration, without);
    if (prng_chance(&world->streams[STREAM_FINISH], 200))
        world->profile.faults |= FAULT_BIT(FAULT_FINISH) & ~without;
    sim_store_begin(world);
}

void world_done(struct world *world)
{
    empty(world);
    network_done(world);
    free(world->heap.items);
    world->heap = (struct heap){0};
}
