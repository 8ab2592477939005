/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/heap.h"

#include "base/assert.h"
#include "sim/common/memory.h"

#include <stdlib.h>

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

struct event *heap_push(struct heap *heap, gavel_ns at, unsigned kind, unsigned slot)
{
    size_t i = heap->count;

    heap->items = grow(heap->items, heap->count, &heap->capacity, sizeof *heap->items);
    heap->items[heap->count++] =
        (struct event){.at = at, .sequence = heap->sequence++, .kind = kind, .slot = slot};
    return &heap->items[sift_up(heap, i)];
}

void heap_defer(struct heap *heap, const struct event *event, gavel_ns at)
{
    struct event *later;
    uint64_t sequence;

    ASSERT(at >= event->at);
    later = heap_push(heap, at, event->kind, event->slot);
    sequence = later->sequence;
    *later = *event;
    later->at = at;
    later->sequence = sequence;
}

bool heap_pop(struct heap *heap, struct event *ret_event)
{
    if (heap->count == 0)
        return false;
    *ret_event = heap->items[0];
    heap->items[0] = heap->items[--heap->count];
    if (heap->count > 0)
        sift_down(heap, 0);
    return true;
}

void heap_hurry(struct heap *heap, unsigned slot, gavel_ns at, gavel_ns now)
{
    for (size_t i = 0; i < heap->count; i++)
        if (heap->items[i].slot == slot && heap->items[i].at == at)
            heap->items[i].at = now;
    for (size_t i = heap->count / 2; i > 0; i--)
        sift_down(heap, i - 1);
}

void heap_clear(struct heap *heap)
{
    heap->count = 0;
    heap->sequence = 0;
}

void heap_done(struct heap *heap)
{
    free(heap->items);
    *heap = (struct heap){0};
}
