/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was last seen of each object. It saves requests, which cost money and
 * time: a leader renews with one PUT, a standby that looks gets "304, as
 * before", and of the candidates in a list only those are read that have
 * changed. It decides nothing: what is written is conditional on the ETag, and
 * a refusal is only given after a fresh look.
 */
#include "store/s3/s3.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 64
#define COUNT_MAX 16384 /* about 40 MB */

static uint64_t hash_of(const char *key)
{
    uint64_t hash = hash_text(HASH_BEGIN, key);

    return hash ^ hash >> 32;
}

static void free_entry(struct s3_entry *entry)
{
    free(entry->key);
    free(entry);
}

void s3_cache_done(struct s3_cache *cache)
{
    for (size_t i = 0; i < cache->capacity; i++) {
        while (cache->slots[i]) {
            struct s3_entry *entry = cache->slots[i];

            cache->slots[i] = entry->next;
            free_entry(entry);
        }
    }
    free(cache->slots);
    *cache = (struct s3_cache){0};
}

static bool grow(struct s3_cache *cache)
{
    size_t capacity = cache->capacity ? 2 * cache->capacity : CAPACITY_FIRST;
    struct s3_entry **slots;

    if (cache->count < cache->capacity)
        return true;
    slots = calloc(capacity, sizeof(struct s3_entry *));
    if (!slots)
        return false;
    for (size_t i = 0; i < cache->capacity; i++) {
        while (cache->slots[i]) {
            struct s3_entry *entry = cache->slots[i];
            struct s3_entry **slot = &slots[entry->hash & (capacity - 1)];

            cache->slots[i] = entry->next;
            entry->next = *slot;
            *slot = entry;
        }
    }
    free(cache->slots);
    cache->slots = slots;
    cache->capacity = capacity;
    return true;
}

struct s3_entry *s3_cache_get(struct s3_cache *cache, const char *key)
{
    uint64_t hash = hash_of(key);
    struct s3_entry *entry = cache->capacity ? cache->slots[hash & (cache->capacity - 1)] : NULL;

    while (entry && (entry->hash != hash || strcmp(entry->key, key) != 0))
        entry = entry->next;
    if (entry)
        return entry;
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->key = strdup(key);
    entry->hash = hash;
    if (!entry->key || !grow(cache)) {
        free_entry(entry);
        return NULL;
    }
    entry->next = cache->slots[hash & (cache->capacity - 1)];
    cache->slots[hash & (cache->capacity - 1)] = entry;
    cache->count++;
    return entry;
}

void s3_cache_drop(struct s3_cache *cache, struct s3_entry *entry)
{
    struct s3_entry **link = &cache->slots[entry->hash & (cache->capacity - 1)];

    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    if (entry->is_in_group)
        LIST_REMOVE(entry, in_group);
    cache->count--;
    free_entry(entry);
}

void s3_cache_trim(struct s3_cache *cache)
{
    if (cache->count > COUNT_MAX)
        s3_cache_done(cache);
}
