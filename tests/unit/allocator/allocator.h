/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that counts, and that runs out when it is told to. Link with
 * allocator_args; every malloc, calloc and realloc of the program then comes
 * through here.
 */
#ifndef UNIT_ALLOCATOR_H
#define UNIT_ALLOCATOR_H

#include <stdint.h>

struct allocator {
    uint64_t calls;      /* that asked for memory */
    uint64_t bytes;      /* that they asked for, all in all */
    uint64_t fail_after; /* so many calls more succeed, then none; UINT64_MAX: all do */
};

/* One per program: the C library knows only one heap. */
extern struct allocator allocator;

#endif
