/* SPDX-License-Identifier: Apache-2.0 */

#include "config/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct arena_block {
    struct arena_block *next;
    max_align_t bytes[]; /* aligned for anything */
};

void *arena_take(struct arena *arena, size_t size)
{
    struct arena_block *block = calloc(1, sizeof *block + size);

    if (!block)
        return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

char *arena_text(struct arena *arena, const char *format, ...)
{
    va_list list;
    char *text;
    int length;

    va_start(list, format);
    length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    text = length < 0 ? NULL : arena_take(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(list, format);
    (void)vsnprintf(text, (size_t)length + 1, format, list); /* its length is known */
    va_end(list);
    return text;
}

void arena_done(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;

        arena->blocks = block->next;
        free(block);
    }
}
