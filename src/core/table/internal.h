/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of this directory share: numbers as little-endian bytes; the hash; items. */
#ifndef CORE_TABLE_INTERNAL_H
#define CORE_TABLE_INTERNAL_H

#include "base/hash.h"
#include "core/table/table.h"

#include <string.h>

static inline void bytes_put(uint8_t *bytes, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
}

static inline uint64_t bytes_get(const uint8_t *bytes, size_t size)
{
    uint64_t number = 0;

    for (size_t i = 0; i < size; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

/* A number, and a string with its length, as a part of a hash. */
static inline uint64_t hash_number(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

static inline uint64_t hash_string(uint64_t hash, const char *string)
{
    size_t size = strlen(string);

    return hash_number(hash_bytes(hash, (const uint8_t *)string, size), size);
}

static inline uint64_t hash_process(uint64_t hash, const struct table_process *process)
{
    hash = hash_number(hash, (uint64_t)process->pid);
    hash = hash_number(hash, process->pid_ns);
    hash = hash_number(hash, process->start_ticks);
    return hash_string(hash, process->boot_id);
}

/* The finaliser of SplitMix64: spreads each bit over all of them, so that sums of hashes keep their worth. */
static inline uint64_t hash_mix(uint64_t hash)
{
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

/* A new item, for the caller to free; NULL if there is no memory. */
struct table_item *table_item_new(uint64_t revision, const uint8_t *key, size_t key_size,
                                  const uint8_t *value, size_t value_size);

/* Carries out a PUT or a DELETE. */
GAVEL_CHECKED enum gavel_status table_apply_plain(struct table *table, const struct table_command *command);

/* Below 0, 0, above 0. */
int table_key_compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size);

#endif
