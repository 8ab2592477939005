/* SPDX-License-Identifier: Apache-2.0 */

#include "allocator.h"

#include <stdbool.h>
#include <stddef.h>

struct allocator allocator = {.fail_after = UINT64_MAX};

/* The linker's --wrap decides these names. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool is_out_of_memory(size_t size)
{
    allocator.calls++;
    allocator.bytes += size;
    if (allocator.fail_after == UINT64_MAX)
        return false;
    if (allocator.fail_after == 0)
        return true;
    allocator.fail_after--;
    return false;
}

void *__wrap_malloc(size_t size) { return is_out_of_memory(size) ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t count, size_t size)
{
    return is_out_of_memory(count * size) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return is_out_of_memory(size) ? NULL : __real_realloc(old, size);
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
