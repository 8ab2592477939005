/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands as bytes: one form for each command, so that equal commands are
 * equal bytes.
 *
 *   version (1) · kind (1) · key size (2) · value size (4) · key · value
 */

#include "base/assert.h"
#include "core/table/internal.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 1 };

static bool is_sound(const struct table_command *command)
{
    if (command->kind == TABLE_OPS)
        return command->key_size == 0 && command->value_size > 0 &&
               command->value_size <= TABLE_OPS_BYTES_MAX;
    if (command->kind != TABLE_PUT && command->kind != TABLE_DELETE)
        return false;
    if (command->key_size == 0 || command->key_size > TABLE_KEY_BYTES_MAX)
        return false;
    return command->value_size <= (command->kind == TABLE_PUT ? TABLE_VALUE_BYTES_MAX : 0);
}

size_t table_command_size(const struct table_command *command)
{
    return is_sound(command) ? TABLE_COMMAND_HEAD_BYTES + command->key_size + command->value_size : 0;
}

static void encode_head(const struct table_command *command, uint8_t *bytes)
{
    bytes[0] = VERSION;
    bytes[1] = (uint8_t)command->kind;
    bytes_put(bytes + 2, command->key_size, 2);
    bytes_put(bytes + 4, command->value_size, 4);
}

void table_command_encode(const struct table_command *command, uint8_t *bytes)
{
    ASSERT(is_sound(command));
    encode_head(command, bytes);
    if (command->key_size > 0)
        memcpy(bytes + TABLE_COMMAND_HEAD_BYTES, command->key, command->key_size);
    if (command->value_size > 0)
        memcpy(bytes + TABLE_COMMAND_HEAD_BYTES + command->key_size, command->value, command->value_size);
}

enum gavel_status table_command_decode(const uint8_t *bytes, size_t size, struct table_command *ret_command)
{
    struct table_command command;

    if (size < TABLE_COMMAND_HEAD_BYTES || bytes[0] != VERSION)
        return GAVEL_ERR_INVALID;
    if (bytes[1] < TABLE_PUT || bytes[1] > TABLE_OPS)
        return GAVEL_ERR_INVALID;
    command = (struct table_command){
        .kind = (enum table_command_kind)bytes[1],
        .key = bytes + TABLE_COMMAND_HEAD_BYTES,
        .key_size = bytes_get(bytes + 2, 2),
        .value_size = bytes_get(bytes + 4, 4),
    };
    if (!is_sound(&command) || size != table_command_size(&command))
        return GAVEL_ERR_INVALID;
    if (command.value_size > 0)
        command.value = command.key + command.key_size;
    *ret_command = command;
    return GAVEL_OK;
}

/* ---- operations ---- */

/* Of Command.ops: its number, and that a length follows. */
#define OPS_KEY (4u << 3 | 2u)

static size_t varint_size(size_t value)
{
    size_t size = 1;

    while (value >>= 7)
        size++;
    return size;
}

static uint8_t *varint_put(uint8_t *at, size_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static size_t op_size(const Gavel__Command *message, const struct table_packed *packed, size_t which)
{
    return packed[which].bytes ? packed[which].size : gavel__op__get_packed_size(message->ops[which]);
}

static uint8_t *op_put(uint8_t *at, const Gavel__Command *message, const struct table_packed *packed,
                       size_t which)
{
    size_t size = op_size(message, packed, which);

    at = varint_put(at, OPS_KEY);
    at = varint_put(at, size);
    if (packed[which].bytes)
        memcpy(at, packed[which].bytes, size);
    else
        (void)gavel__op__pack(message->ops[which], at); /* the size is known */
    return at + size;
}

enum gavel_status table_ops_encode(const Gavel__Command *message, uint8_t **ret_bytes, size_t *ret_size)
{
    struct table_command command = {.kind = TABLE_OPS,
                                    .value_size = gavel__command__get_packed_size(message)};
    uint8_t *bytes;

    if (message->n_ops == 0 || message->n_ops > TABLE_OPS_MAX || !is_sound(&command))
        return GAVEL_ERR_INVALID;
    bytes = malloc(table_command_size(&command));
    if (!bytes)
        return GAVEL_ERR_NO_MEMORY;
    *ret_size = table_command_size(&command);
    /* The protobuf is written where it belongs, behind the head. */
    gavel__command__pack(message, bytes + TABLE_COMMAND_HEAD_BYTES);
    encode_head(&command, bytes);
    *ret_bytes = bytes;
    return GAVEL_OK;
}

static bool has_any(const struct table_packed *packed, size_t count)
{
    for (size_t i = 0; packed && i < count; i++)
        if (packed[i].bytes)
            return true;
    return false;
}

/* As protobuf-c would pack the whole: what is before the operations, these, and what comes after them. */
enum gavel_status table_ops_encode_packed(const Gavel__Command *message, const struct table_packed *packed,
                                          uint8_t **ret_bytes, size_t *ret_size)
{
    Gavel__Command before = *message;
    Gavel__Command after = GAVEL__COMMAND__INIT;
    struct table_command command = {.kind = TABLE_OPS};
    uint8_t *bytes, *at;
    size_t whole;

    if (message->n_ops == 0 || message->n_ops > TABLE_OPS_MAX)
        return GAVEL_ERR_INVALID;
    if (!has_any(packed, message->n_ops))
        return table_ops_encode(message, ret_bytes, ret_size);
    before.n_ops = 0;
    before.generation = 0;
    before.table_version = 0;
    before.session_revision = 0;
    after.generation = message->generation;
    after.table_version = message->table_version;
    after.session_revision = message->session_revision;
    command.value_size = gavel__command__get_packed_size(&before) + gavel__command__get_packed_size(&after);
    for (size_t i = 0; i < message->n_ops; i++) {
        size_t size = op_size(message, packed, i);

        command.value_size += varint_size(OPS_KEY) + varint_size(size) + size;
    }
    whole = table_command_size(&command);
    if (whole == 0)
        return GAVEL_ERR_INVALID;
    bytes = malloc(whole);
    if (!bytes)
        return GAVEL_ERR_NO_MEMORY;
    encode_head(&command, bytes);
    at = bytes + TABLE_COMMAND_HEAD_BYTES;
    at += gavel__command__pack(&before, at);
    for (size_t i = 0; i < message->n_ops; i++)
        at = op_put(at, message, packed, i);
    at += gavel__command__pack(&after, at);
    ASSERT(at == bytes + whole);
    *ret_size = whole;
    *ret_bytes = bytes;
    return GAVEL_OK;
}
