/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FNV-1a, to find things and to see whether they differ; no protection against
 * those who make up names that collide. The hash of a beginning can be gone on
 * with: hash_text(hash_text(HASH_BEGIN, "a"), "b") is that of "ab".
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * HASH_PRIME;
    return hash;
}

/* Without its end. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * HASH_PRIME;
    return hash;
}

#endif
