/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The items, in order of their keys, and what a command does to them.
 *
 * The digest is kept up to date by adding the hash of an item that comes and
 * taking away that of one that goes, so that comparing replicas after every
 * command costs nothing.
 */

#include "core/table/table.h"

#include "base/assert.h"
#include "core/table/step.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

void table_done(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->items[i]);
    free(table->items);
    notes_done(table);
    groups_done(table);
    sessions_done(table);
    history_free(table->history);
    free(table->session_slots.free);
    free(table->group_slots.free);
    ASSERT(RB_EMPTY(&table->notes));
    ASSERT(RB_EMPTY(&table->sessions));
    *table = (struct table){0};
}

int table_key_compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);

    if (order != 0)
        return order;
    return (a_size > b_size) - (a_size < b_size);
}

static uint64_t hash_item(const struct table_item *item)
{
    uint8_t head[16];
    uint64_t hash;

    bytes_put(head, item->revision, 8);
    bytes_put(head + 8, item->key_size, 4);
    bytes_put(head + 12, item->value_size, 4);
    hash = hash_bytes(HASH_BEGIN, head, sizeof head);
    return hash_mix(hash_bytes(hash, item->bytes, (size_t)item->key_size + item->value_size));
}

struct table_item *table_item_new(uint64_t revision, const uint8_t *key, size_t key_size,
                                  const uint8_t *value, size_t value_size)
{
    struct table_item *item = malloc(sizeof *item + key_size + value_size);

    if (!item)
        return NULL;
    item->revision = revision;
    item->key_size = (uint32_t)key_size;
    item->value_size = (uint32_t)value_size;
    memcpy(item->bytes, key, key_size);
    if (value_size > 0)
        memcpy(item->bytes + key_size, value, value_size);
    item->hash = hash_item(item);
    return item;
}

static size_t bytes_of(const struct table_item *item) { return (size_t)item->key_size + item->value_size; }

/* Where the key is, or where it would stand. */
static size_t find(const struct table *table, const uint8_t *key, size_t key_size, bool *ret_is_there)
{
    size_t low = 0;
    size_t high = table->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct table_item *item = table->items[middle];
        int order = table_key_compare(item->bytes, item->key_size, key, key_size);

        if (order == 0) {
            *ret_is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    ASSERT(low <= table->count);
    *ret_is_there = false;
    return low;
}

const struct table_item *table_find(const struct table *table, const uint8_t *key, size_t key_size)
{
    bool is_there;
    size_t at = find(table, key, key_size, &is_there);

    return is_there ? table->items[at] : NULL;
}

static enum gavel_status grow(struct table *table)
{
    size_t capacity = table->capacity > 0 ? table->capacity * 2 : FIRST_CAPACITY;
    struct table_item **items;

    if (table->count < table->capacity)
        return GAVEL_OK;
    items = realloc(table->items, capacity * sizeof *items);
    if (!items)
        return GAVEL_ERR_NO_MEMORY;
    table->items = items;
    table->capacity = capacity;
    ASSERT(table->count < table->capacity);
    return GAVEL_OK;
}

static void count_in(struct table *table, const struct table_item *item)
{
    table->bytes += bytes_of(item);
    table->contents += item->hash;
}

static void count_out(struct table *table, const struct table_item *item)
{
    ASSERT(table->bytes >= bytes_of(item));
    table->bytes -= bytes_of(item);
    table->contents -= item->hash;
}

static enum gavel_status put(struct table *table, const struct table_command *command)
{
    bool is_there;
    size_t at = find(table, command->key, command->key_size, &is_there);
    size_t freed = is_there ? bytes_of(table->items[at]) : 0;
    struct table_item *item;

    if (!is_there && table->count == TABLE_ITEMS_MAX)
        return GAVEL_ERR_STORE_FULL;
    if (table->bytes - freed + command->key_size + command->value_size > TABLE_BYTES_MAX)
        return GAVEL_ERR_STORE_FULL;
    if (!is_there && grow(table) != GAVEL_OK)
        return GAVEL_ERR_NO_MEMORY;
    item = table_item_new(table->revision + 1, command->key, command->key_size, command->value,
                          command->value_size);
    if (!item)
        return GAVEL_ERR_NO_MEMORY;
    if (is_there) {
        count_out(table, table->items[at]);
        free(table->items[at]);
    } else {
        memmove(table->items + at + 1, table->items + at, (table->count - at) * sizeof(struct table_item *));
        table->count++;
    }
    ASSERT(at < table->count);
    ASSERT(table->count <= table->capacity);
    table->items[at] = item;
    count_in(table, item);
    return GAVEL_OK;
}

static void delete (struct table *table, const struct table_command *command)
{
    bool is_there;
    size_t at = find(table, command->key, command->key_size, &is_there);

    if (!is_there)
        return;
    ASSERT(at < table->count);
    count_out(table, table->items[at]);
    free(table->items[at]);
    table->count--;
    memmove(table->items + at, table->items + at + 1, (table->count - at) * sizeof(struct table_item *));
}

enum gavel_status table_apply_plain(struct table *table, const struct table_command *command)
{
    enum gavel_status status = GAVEL_OK;

    if (command->kind == TABLE_PUT)
        status = put(table, command);
    else
        delete (table, command);
    if (status == GAVEL_OK)
        table->revision++;
    return status;
}

void table_account(struct table *table, uint64_t *hash, size_t *weight, uint64_t new_hash, size_t new_weight)
{
    ASSERT(table->bytes >= *weight);
    table->contents += new_hash - *hash;
    table->bytes += new_weight - *weight;
    *hash = new_hash;
    *weight = new_weight;
}

bool table_has_room(const struct table *table, size_t more)
{
    return table->bytes <= TABLE_BYTES_MAX && more <= TABLE_BYTES_MAX - table->bytes;
}

uint64_t table_digest(const struct table *table)
{
    return hash_mix(table->contents + hash_mix(table->revision + 1));
}
