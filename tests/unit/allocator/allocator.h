/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An allocator that counts, and that runs out of memory on demand. Link with
 * allocator_args; every malloc, calloc and realloc of the program then comes
 * through here.
 */
#ifndef UNIT_ALLOCATOR_H
#define UNIT_ALLOCATOR_H

#include <stdint.h>

struct allocator {
    uint64_t calls;      /* that asked for memory */
    uint64_t bytes;      /* that they asked for in total */
    uint64_t fail_after; /* how many more calls succeed; UINT64_MAX: all */
};

/* One per program: the C library knows only one heap. */
extern struct allocator allocator;

#endif
