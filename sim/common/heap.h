/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Future events in the order of their instants; those of one instant in the
 * order in which they were pushed.
 */
#ifndef SIM_COMMON_HEAP_H
#define SIM_COMMON_HEAP_H

#include "base/request.h"
#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message; /* each kind of world has its own */

struct event {
    gavel_ns at;
    uint64_t sequence;
    unsigned kind; /* each kind of world has its own */
    unsigned slot;
    uint64_t incarnation; /* of the process in the slot; an event for an earlier one is void */
    union {
        struct message *message;
        uint64_t number;
        struct nonce nonce;
    };
};

struct heap {
    struct event *items;
    size_t count;
    size_t capacity;
    uint64_t sequence;
};

/* Adds an event and returns it, so that the caller can fill it in; valid until the next call. */
struct event *heap_push(struct heap *heap, gavel_ns at, unsigned kind, unsigned slot);

/* Puts an event off to a later instant: whom it is for cannot take it now. */
void heap_defer(struct heap *heap, const struct event *event, gavel_ns at);

/* The earliest, taken off; false if there is none. */
bool heap_pop(struct heap *heap, struct event *ret_event);

/* Moves the events of this slot from `at` to `now`. */
void heap_hurry(struct heap *heap, unsigned slot, gavel_ns at, gavel_ns now);

/* Empties it; the memory is used again. */
void heap_clear(struct heap *heap);

/* Frees it. Safe on a zeroed one. */
void heap_done(struct heap *heap);

/* FNV-1a, by words: two runs with the same hash were identical. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t hash_add(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x100000001b3);
}

#endif
