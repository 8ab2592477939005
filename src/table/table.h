/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The replicated state machine: a key-value table that committed entries of
 * the log build, command by command.
 *
 * Everything depends on the log alone. Two tables that were given the same
 * entries are the same, byte by byte of their snapshots, however each came by
 * them; table_digest() compares them in one number. That is also why a command
 * that cannot be carried out is refused by a rule that all replicas share
 * (bytes that are no command, a table that is full) and changes nothing.
 *
 * Ownership: a zeroed struct is an empty table. It owns its items; what is
 * given in is copied, what is given out is borrowed until the next change.
 */
#ifndef TABLE_H
#define TABLE_H

#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_KEY_BYTES_MAX 512
#define TABLE_VALUE_BYTES_MAX (256u * 1024)
#define TABLE_ITEMS_MAX (1u << 20)
/* All keys and values together, so that a snapshot stays within what can be sent. */
#define TABLE_BYTES_MAX (512u << 20)

enum table_command_kind {
    TABLE_PUT = 1,
    TABLE_DELETE, /* of a key that is not there is no mistake, and counts */
};

/* Keys have at least one byte; values may be empty. Any byte may stand in them. */
struct table_command {
    enum table_command_kind kind;
    const uint8_t *key;
    size_t key_size;
    const uint8_t *value; /* PUT */
    size_t value_size;
};

#define TABLE_COMMAND_HEAD_BYTES 8
#define TABLE_COMMAND_BYTES_MAX (TABLE_COMMAND_HEAD_BYTES + TABLE_KEY_BYTES_MAX + TABLE_VALUE_BYTES_MAX)

/* The length of the command as bytes; 0 if it cannot be one, by its kind or its sizes. */
size_t table_command_size(const struct table_command *command);

/* Writes table_command_size() bytes, which must not be 0. */
void table_command_encode(const struct table_command *command, uint8_t *bytes);

/* Borrows from bytes. ERR_INVALID for bytes that table_command_encode() cannot have made. */
GAVEL_CHECKED enum gavel_status table_command_decode(const uint8_t *bytes, size_t size,
                                                     struct table_command *ret_command);

struct table_item {
    uint64_t revision; /* that put it */
    uint64_t hash;
    uint32_t key_size;
    uint32_t value_size;
    uint8_t bytes[]; /* key, then value */
};

static inline const uint8_t *table_item_key(const struct table_item *item) { return item->bytes; }
static inline const uint8_t *table_item_value(const struct table_item *item)
{
    return item->bytes + item->key_size;
}

struct table {
    uint64_t index;            /* of the newest entry that was applied, or refused */
    uint64_t revision;         /* how many commands were applied */
    struct table_item **items; /* in order of key: bytes, and the shorter first */
    size_t count;
    size_t capacity;
    size_t bytes;      /* of all keys and values */
    uint64_t contents; /* the sum of the hashes of all items */
};

/* Frees what the table owns, and empties it. Safe on a zeroed struct. */
void table_done(struct table *table);

/*
 * Applies one command; indexes grow from call to call, with gaps where entries were for others.
 *
 * ERR_INVALID if the bytes are no command, ERR_STORE_FULL if there is no room by the limits above: nothing is
 * changed but the index, on every replica alike. ERR_NO_MEMORY: nothing at all is changed, and the caller
 * must try again or stop, for the other replicas go on.
 */
GAVEL_CHECKED enum gavel_status table_apply(struct table *table, uint64_t index, const uint8_t *bytes,
                                            size_t size);

/* NULL if there is no such key. */
const struct table_item *table_find(const struct table *table, const uint8_t *key, size_t key_size);

/* One number for the contents and the revision: equal for equal tables, and but for a chance of one in 2^64
 * different for others. */
uint64_t table_digest(const struct table *table);

/* The whole table as bytes, handed over to the caller, who frees them. The same bytes for the same table.
 * ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status table_snapshot_encode(const struct table *table, uint8_t **ret_bytes,
                                                      size_t *ret_size);

/* Replaces the contents of the table. ERR_STORE_DAMAGED for bytes that table_snapshot_encode() cannot have
 * made, ERR_NO_MEMORY; the table is untouched then. */
GAVEL_CHECKED enum gavel_status table_snapshot_decode(struct table *table, const uint8_t *bytes, size_t size);

#endif
