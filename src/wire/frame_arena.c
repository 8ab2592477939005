/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/frame_arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

/* Enough for a heartbeat or a vote in one piece. */
#define BLOCK_BYTES 2048

struct arena_block {
    struct arena_block *older;
    size_t used;
    size_t size;
    alignas(max_align_t) uint8_t bytes[];
};

void frame_arena_init(struct frame_arena *arena, size_t most) { *arena = (struct frame_arena){.left = most}; }

static struct arena_block *add_block(struct frame_arena *arena, size_t size)
{
    size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    struct arena_block *block = malloc(sizeof *block + room);

    if (!block)
        return NULL;
    block->older = arena->newest;
    block->used = 0;
    block->size = room;
    arena->newest = block;
    return block;
}

void *frame_arena_take(struct frame_arena *arena, size_t size)
{
    const size_t unit = alignof(max_align_t);
    struct arena_block *block = arena->newest;
    void *taken;

    if (size > arena->left) {
        arena->is_exhausted = true;
        return NULL;
    }
    size = (size + unit - 1) / unit * unit;
    if (!block || block->size - block->used < size)
        block = add_block(arena, size);
    if (!block)
        return NULL;
    arena->left -= size < arena->left ? size : arena->left;
    taken = block->bytes + block->used;
    block->used += size;
    return taken;
}

static void *take(void *arena, size_t size) { return frame_arena_take(arena, size); }

static void keep(void *arena, void *taken)
{
    (void)arena; /* everything goes at once, in frame_arena_done() */
    (void)taken;
}

ProtobufCAllocator frame_arena_allocator(struct frame_arena *arena)
{
    return (ProtobufCAllocator){.alloc = take, .free = keep, .allocator_data = arena};
}

struct arena_block *frame_arena_hand_over(struct frame_arena *arena)
{
    struct arena_block *newest = arena->newest;

    arena->newest = NULL;
    return newest;
}

void frame_arena_block_free(struct arena_block *newest)
{
    while (newest) {
        struct arena_block *older = newest->older;

        free(newest);
        newest = older;
    }
}

void frame_arena_done(struct frame_arena *arena) { frame_arena_block_free(frame_arena_hand_over(arena)); }
