/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The whole table as bytes, and back.
 *
 *   "gvtb" (4) · version (4) · index (8) · revision (8) · count (8)
 *   for each item, in order of key: revision (8) · key size (4) · value size (4) · key · value
 *   messages Item (snapshot_write.c)
 *   hash of all before (8)
 *
 * Version 1 had no messages.
 *
 * The hash finds accidents. It proves nothing against somebody who means harm,
 * so each number is checked as if there were none.
 */

#include "base/assert.h"
#include "core/table/step.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 2, VERSION_MIN = 1, HEAD_BYTES = 32, ITEM_HEAD_BYTES = 16, HASH_BYTES = 8 };

static const uint8_t magic[4] = {'g', 'v', 't', 'b'};

/* Head and plain items. */
static size_t items_size(const struct table *table)
{
    size_t size = HEAD_BYTES + table->count * ITEM_HEAD_BYTES;

    for (size_t i = 0; i < table->count; i++)
        size += (size_t)table->items[i]->key_size + table->items[i]->value_size;
    return size;
}

enum gavel_status table_snapshot_encode(const struct table *table, uint8_t **ret_bytes, size_t *ret_size)
{
    size_t before = items_size(table);
    size_t size;
    uint8_t *bytes;
    uint8_t *at;
    enum gavel_status status = snapshot_messages_encode(table, before, HASH_BYTES, &bytes, &size);

    if (status != GAVEL_OK)
        return status;
    size += before + HASH_BYTES;
    at = bytes + HEAD_BYTES;
    memcpy(bytes, magic, sizeof magic);
    bytes_put(bytes + 4, VERSION, 4);
    bytes_put(bytes + 8, table->index, 8);
    bytes_put(bytes + 16, table->revision, 8);
    bytes_put(bytes + 24, table->count, 8);
    for (size_t i = 0; i < table->count; i++) {
        const struct table_item *item = table->items[i];
        size_t length = (size_t)item->key_size + item->value_size;

        bytes_put(at, item->revision, 8);
        bytes_put(at + 8, item->key_size, 4);
        bytes_put(at + 12, item->value_size, 4);
        memcpy(at + ITEM_HEAD_BYTES, item->bytes, length);
        at += ITEM_HEAD_BYTES + length;
    }
    ASSERT(at == bytes + before);
    bytes_put(bytes + size - HASH_BYTES, hash_mix(hash_bytes(HASH_BEGIN, bytes, size - HASH_BYTES)),
              HASH_BYTES);
    *ret_bytes = bytes;
    *ret_size = size;
    return GAVEL_OK;
}

/* Reads the item at *offset and puts it behind the last; `end` is where items end. */
static enum gavel_status read_item(struct table *table, const uint8_t *bytes, size_t end, size_t *offset)
{
    const uint8_t *at = bytes + *offset;
    const struct table_item *before = table->count > 0 ? table->items[table->count - 1] : NULL;
    struct table_item *item;
    uint64_t revision;
    size_t key_size;
    size_t value_size;

    if (end - *offset < ITEM_HEAD_BYTES)
        return GAVEL_ERR_STORE_DAMAGED;
    revision = bytes_get(at, 8);
    key_size = bytes_get(at + 8, 4);
    value_size = bytes_get(at + 12, 4);
    if (revision == 0 || revision > table->revision)
        return GAVEL_ERR_STORE_DAMAGED;
    if (key_size == 0 || key_size > TABLE_KEY_BYTES_MAX || value_size > TABLE_VALUE_BYTES_MAX)
        return GAVEL_ERR_STORE_DAMAGED;
    if (key_size + value_size > end - *offset - ITEM_HEAD_BYTES)
        return GAVEL_ERR_STORE_DAMAGED;
    at += ITEM_HEAD_BYTES;
    if (before && table_key_compare(before->bytes, before->key_size, at, key_size) >= 0)
        return GAVEL_ERR_STORE_DAMAGED;
    item = table_item_new(revision, at, key_size, at + key_size, value_size);
    if (!item)
        return GAVEL_ERR_NO_MEMORY;
    table->items[table->count++] = item;
    table->bytes += key_size + value_size;
    table->contents += item->hash;
    *offset += ITEM_HEAD_BYTES + key_size + value_size;
    return GAVEL_OK;
}

/* The head says what follows; nothing is allocated before it is believed. */
static enum gavel_status read_head(const uint8_t *bytes, size_t size, struct table *ret_table)
{
    uint64_t count;
    size_t end;

    if (size < HEAD_BYTES + HASH_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return GAVEL_ERR_STORE_DAMAGED;
    end = size - HASH_BYTES;
    if (bytes_get(bytes + 4, 4) < VERSION_MIN || bytes_get(bytes + 4, 4) > VERSION)
        return GAVEL_ERR_STORE_DAMAGED;
    if (bytes_get(bytes + end, HASH_BYTES) != hash_mix(hash_bytes(HASH_BEGIN, bytes, end)))
        return GAVEL_ERR_STORE_DAMAGED;
    count = bytes_get(bytes + 24, 8);
    /* An item is a head and at least one byte of key. */
    if (count > TABLE_ITEMS_MAX || count > (end - HEAD_BYTES) / (ITEM_HEAD_BYTES + 1))
        return GAVEL_ERR_STORE_DAMAGED;
    *ret_table = (struct table){
        .index = bytes_get(bytes + 8, 8),
        .revision = bytes_get(bytes + 16, 8),
        .capacity = count,
    };
    /* Each change puts at most one item; in version 1 each entry was one change. */
    if (count > ret_table->revision)
        return GAVEL_ERR_STORE_DAMAGED;
    if (bytes_get(bytes + 4, 4) == VERSION_MIN && ret_table->revision > ret_table->index)
        return GAVEL_ERR_STORE_DAMAGED;
    return GAVEL_OK;
}

enum gavel_status table_snapshot_decode(struct table *table, const uint8_t *bytes, size_t size)
{
    struct table fresh;
    enum gavel_status status = read_head(bytes, size, &fresh);
    size_t offset = HEAD_BYTES;

    if (status != GAVEL_OK)
        return status;
    if (fresh.capacity > 0) {
        fresh.items = calloc(fresh.capacity, sizeof *fresh.items);
        if (!fresh.items)
            return GAVEL_ERR_NO_MEMORY;
    }
    while (status == GAVEL_OK && fresh.count < fresh.capacity)
        status = read_item(&fresh, bytes, size - HASH_BYTES, &offset);
    if (status == GAVEL_OK && bytes_get(bytes + 4, 4) > VERSION_MIN) {
        status = snapshot_messages_decode(&fresh, bytes + offset, size - HASH_BYTES - offset);
        offset = size - HASH_BYTES;
    }
    /* It may weigh more than TABLE_BYTES_MAX, since not everything is refused then. */
    if (status == GAVEL_OK && offset != size - HASH_BYTES)
        status = GAVEL_ERR_STORE_DAMAGED;
    if (status != GAVEL_OK) {
        table_done(&fresh);
        return status;
    }
    table_exchange(table, &fresh);
    table_done(&fresh);
    return GAVEL_OK;
}
