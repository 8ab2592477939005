/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/loop/timers.h"

#include "base/assert.h"

#include <stdlib.h>

void timers_done(struct timers *timers)
{
    if (!timers)
        return;
    free(timers->heap);
    *timers = (struct timers){0};
}

enum gavel_status timers_reserve(struct timers *timers, size_t count)
{
    struct timer **heap;
    size_t capacity = timers->capacity > 0 ? timers->capacity : 16;

    if (count <= timers->capacity)
        return GAVEL_OK;
    while (capacity < count)
        capacity *= 2;
    heap = realloc(timers->heap, capacity * sizeof(struct timer *));
    if (!heap)
        return GAVEL_ERR_NO_MEMORY;
    timers->heap = heap;
    timers->capacity = capacity;
    return GAVEL_OK;
}

static void put(struct timers *timers, size_t index, struct timer *timer)
{
    timers->heap[index] = timer;
    timer->index = index;
}

static void sift_up(struct timers *timers, size_t index)
{
    struct timer *timer = timers->heap[index];

    while (index > 0) {
        size_t parent = (index - 1) / 2;

        if (timers->heap[parent]->at <= timer->at)
            break;
        put(timers, index, timers->heap[parent]);
        index = parent;
    }
    put(timers, index, timer);
}

static void sift_down(struct timers *timers, size_t index)
{
    struct timer *timer = timers->heap[index];

    for (;;) {
        size_t child = 2 * index + 1;

        if (child >= timers->count)
            break;
        if (child + 1 < timers->count && timers->heap[child + 1]->at < timers->heap[child]->at)
            child++;
        if (timers->heap[child]->at >= timer->at)
            break;
        put(timers, index, timers->heap[child]);
        index = child;
    }
    put(timers, index, timer);
}

static void take_out(struct timers *timers, struct timer *timer)
{
    size_t index = timer->index;
    struct timer *last = timers->heap[timers->count - 1];

    timers->count--;
    timer->index = TIMER_OUT;
    timer->at = NEVER;
    if (last == timer)
        return;
    put(timers, index, last);
    sift_up(timers, index);
    sift_down(timers, last->index);
}

void timers_set(struct timers *timers, struct timer *timer, gavel_ns at)
{
    if (at == NEVER) {
        if (timer->index != TIMER_OUT)
            take_out(timers, timer);
        return;
    }
    if (timer->index == TIMER_OUT) {
        ASSERT(timers->count < timers->capacity);
        timer->at = at;
        put(timers, timers->count++, timer);
        sift_up(timers, timer->index);
    } else if (at < timer->at) {
        timer->at = at;
        sift_up(timers, timer->index);
    } else {
        timer->at = at;
        sift_down(timers, timer->index);
    }
}

struct timer *timers_first(const struct timers *timers) { return timers->count > 0 ? timers->heap[0] : NULL; }

/* Nothing below one that is not due is due, so this costs as much as there is due. */
static void visit_below(const struct timers *timers, size_t index, gavel_ns now,
                        void (*visit)(struct timer *timer, void *argument), void *argument)
{
    if (index >= timers->count || timers->heap[index]->at > now)
        return;
    visit(timers->heap[index], argument);
    visit_below(timers, 2 * index + 1, now, visit, argument);
    visit_below(timers, 2 * index + 2, now, visit, argument);
}

void timers_visit_due(const struct timers *timers, gavel_ns now,
                      void (*visit)(struct timer *timer, void *argument), void *argument)
{
    visit_below(timers, 0, now, visit, argument);
}
