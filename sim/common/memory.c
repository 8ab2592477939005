/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/memory.h"

#include <stdio.h>
#include <stdlib.h>

static void *surely(void *memory)
{
    if (memory)
        return memory;
    (void)fputs("gavel-sim: out of memory\n", stderr);
    exit(1);
}

void *zeroed(size_t count, size_t size) { return surely(calloc(count, size)); }

void *grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity > 0 ? *capacity * 2 : 64;
    return surely(reallocarray(items, *capacity, size));
}
