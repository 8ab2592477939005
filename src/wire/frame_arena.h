/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory for one decoded frame: taken piece by piece, freed all at once. It has
 * a limit, so that no frame can make its reader allocate more than a small
 * multiple of its own length.
 */
#ifndef WIRE_FRAME_ARENA_H
#define WIRE_FRAME_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct frame_arena {
    struct arena_block *newest;
    size_t left;       /* bytes that may still be taken */
    bool is_exhausted; /* something was refused because of the limit, not for lack of memory */
};

/* `most` is the limit in bytes. Takes nothing yet. */
void frame_arena_init(struct frame_arena *arena, size_t most);

/* Aligned for any type. NULL if the limit is reached or memory runs out. */
void *frame_arena_take(struct frame_arena *arena, size_t size);

/* For protobuf-c; borrows the arena. What protobuf-c frees stays until the end. */
ProtobufCAllocator frame_arena_allocator(struct frame_arena *arena);

/* Frees everything that was taken: through the arena, or through the block that it has handed over. */
void frame_arena_done(struct frame_arena *arena);
struct arena_block *frame_arena_hand_over(struct frame_arena *arena);
void frame_arena_block_free(struct arena_block *newest);

#endif
