/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that is freed all at once: for a structure that is built from many
 * small parts, which live as long as the whole.
 */
#ifndef CONFIG_ARENA_H
#define CONFIG_ARENA_H

#include <stddef.h>

struct arena_block;

/* Zeroed, it is empty. */
struct arena {
    struct arena_block *blocks;
};

/* Zeroed memory, aligned for any type; NULL: no memory. */
void *arena_take(struct arena *arena, size_t size);

/* A text that lives as long as the arena; NULL: no memory. */
char *arena_text(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Frees everything. Safe on an empty one. */
void arena_done(struct arena *arena);

#endif
