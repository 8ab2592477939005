/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FNV-1a, for look-ups and for detecting differences. It does not protect
 * against names that are chosen to collide. A hash can be continued:
 * hash_text(hash_text(HASH_BEGIN, "a"), "b") is the hash of "ab".
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

/* Without the terminating NUL. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * HASH_PRIME;
    return hash;
}

#endif
