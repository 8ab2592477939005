/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that is given back in one go: for what is read and put together from
 * many small parts, and then lives as long as the whole.
 */
#ifndef CONFIG_ARENA_H
#define CONFIG_ARENA_H

#include <stddef.h>

struct arena_block;

/* Zeroed, it is an empty one. */
struct arena {
    struct arena_block *blocks;
};

/* Zeroed memory for anything; NULL if there is none left. */
void *arena_take(struct arena *arena, size_t size);

/* A text that lives as long as the arena; NULL if there is no memory left. */
char *arena_text(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Gives everything back. Safe on an empty one. */
void arena_done(struct arena *arena);

#endif
