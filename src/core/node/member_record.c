/* SPDX-License-Identifier: Apache-2.0 */

#include "core/node/member_record.h"

#include "base/assert.h"
#include "core/node/record_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "gavel/member/"
#define PREFIX_BYTES (sizeof(PREFIX) - 1)
#define KEY_BYTES (PREFIX_BYTES + PEER_NAME_MAX + 1)

bool member_record_is_key(const uint8_t *key, size_t size)
{
    return size > PREFIX_BYTES && memcmp(key, PREFIX, PREFIX_BYTES) == 0;
}

static enum gavel_status encode(const struct table_command *command, uint8_t **ret_bytes, size_t *ret_size)
{
    size_t size = table_command_size(command);
    uint8_t *bytes = size > 0 ? malloc(size) : NULL;

    if (!bytes)
        return GAVEL_ERR_NO_MEMORY;
    table_command_encode(command, bytes);
    *ret_bytes = bytes;
    *ret_size = size;
    return GAVEL_OK;
}

/* Each of the texts may double by its escapes. */
#define VALUE_BYTES (2 * (PEER_NAME_MAX + 2 * PEER_ADDRESS_MAX) + 320)

static const char *word(bool flag) { return flag ? "true" : "false"; }

/* The fields in the order of their names: the same record is always the same bytes. */
static size_t write_value(const struct member_record *record, char value[VALUE_BYTES])
{
    size_t length = (size_t)snprintf(value, VALUE_BYTES, "{\"address\":");

    length = record_put_text(value, VALUE_BYTES, length, record->address);
    length += (size_t)snprintf(value + length, VALUE_BYTES - length, ",\"api\":");
    length = record_put_text(value, VALUE_BYTES, length, record->api);
    length += (size_t)snprintf(value + length, VALUE_BYTES - length, ",\"generation\":%" PRId64,
                               (int64_t)record->generation);
    if (record->incarnation > 0) /* as long as it was not heard, the text is that of 0.6.0 */
        length += (size_t)snprintf(value + length, VALUE_BYTES - length, ",\"incarnation\":%" PRId64,
                                   (int64_t)record->incarnation);
    length += (size_t)snprintf(value + length, VALUE_BYTES - length,
                               ",\"learned\":%s,\"name\":", word(record->is_learned));
    length = record_put_text(value, VALUE_BYTES, length, record->name);
    length += (size_t)snprintf(value + length, VALUE_BYTES - length, ",\"priority\":%d", record->priority);
    if (record->incarnation > 0)
        length += (size_t)snprintf(value + length, VALUE_BYTES - length, ",\"table_version\":%" PRIu32,
                                   record->table_version);
    length += (size_t)snprintf(value + length, VALUE_BYTES - length, ",\"voter\":%s,\"witness\":%s}",
                               word(record->is_voter), word(record->is_witness));
    ASSERT(length < VALUE_BYTES); /* names and addresses are printable: a backslash before each at most */
    return length;
}

enum gavel_status member_record_put(const struct member_record *record, uint8_t **ret_bytes, size_t *ret_size)
{
    char key[KEY_BYTES];
    char value[VALUE_BYTES];
    struct table_command command = {
        .kind = TABLE_PUT,
        .key = (const uint8_t *)key,
        .key_size = (size_t)snprintf(key, sizeof key, PREFIX "%s", record->name),
        .value = (const uint8_t *)value,
        .value_size = write_value(record, value),
    };

    return encode(&command, ret_bytes, ret_size);
}

enum gavel_status member_record_delete(const char *name, uint8_t **ret_bytes, size_t *ret_size)
{
    char key[KEY_BYTES];
    struct table_command command = {.kind = TABLE_DELETE,
                                    .key = (const uint8_t *)key,
                                    .key_size = (size_t)snprintf(key, sizeof key, PREFIX "%s", name)};

    return encode(&command, ret_bytes, ret_size);
}

/* What a record has, bit by bit: a field that stands there twice is no record of ours. */
enum { HAS_NAME = 1, HAS_ADDRESS = 2, HAS_API = 4, HAS_PRIORITY = 8 };

static bool is_printable(const char *text)
{
    while (*text >= ' ' && *text <= '~')
        text++;
    return !*text;
}

static bool take_text(const struct record_field *field, char *buffer, size_t size, unsigned bit,
                      unsigned *has)
{
    if (field->kind != RECORD_TEXT || strlen(field->text) >= size || !is_printable(field->text) || *has & bit)
        return false;
    (void)snprintf(buffer, size, "%s", field->text);
    *has |= bit;
    return true;
}

static bool take_priority(const struct record_field *field, uint8_t *priority, unsigned *has)
{
    if (field->kind != RECORD_NUMBER || field->number < 0 || field->number > UINT8_MAX || *has & HAS_PRIORITY)
        return false;
    *priority = (uint8_t)field->number;
    *has |= HAS_PRIORITY;
    return true;
}

/* 0 if it is none of these. */
static uint64_t number_up_to(const struct record_field *field, uint64_t most)
{
    bool is_good = field->kind == RECORD_NUMBER && field->number >= 0 && (uint64_t)field->number <= most;

    return is_good ? (uint64_t)field->number : 0;
}

static bool take_field(const struct record_field *field, struct member_record *record, unsigned *has)
{
    bool is_true = field->kind == RECORD_TRUE;

    if (strcmp(field->name, "name") == 0)
        return take_text(field, record->name, sizeof record->name, HAS_NAME, has);
    if (strcmp(field->name, "address") == 0)
        return take_text(field, record->address, sizeof record->address, HAS_ADDRESS, has);
    if (strcmp(field->name, "api") == 0)
        return take_text(field, record->api, sizeof record->api, HAS_API, has);
    if (strcmp(field->name, "priority") == 0)
        return take_priority(field, &record->priority, has);
    if (strcmp(field->name, "witness") == 0)
        record->is_witness = is_true;
    else if (strcmp(field->name, "voter") == 0)
        record->is_voter = is_true;
    else if (strcmp(field->name, "learned") == 0)
        record->is_learned = is_true;
    else if (strcmp(field->name, "generation") == 0)
        record->generation = field->kind == RECORD_NUMBER ? (uint64_t)field->number : 0;
    else if (strcmp(field->name, "table_version") == 0)
        record->table_version = (uint32_t)number_up_to(field, UINT32_MAX);
    else if (strcmp(field->name, "incarnation") == 0)
        record->incarnation = number_up_to(field, RAFT_NUMBER_MAX);
    return true;
}

/* Entries of the log were checked when they were proposed, but a table is read like any other input. */
static bool decode(const uint8_t *value, size_t size, struct member_record *ret_record)
{
    struct member_record record = {0};
    struct record_reader reader;
    struct record_field field;
    unsigned has = 0;

    record_read(&reader, value, size);
    while (record_next(&reader, &field))
        if (!take_field(&field, &record, &has))
            return false;
    if (reader.is_bad || (has & (HAS_NAME | HAS_ADDRESS | HAS_API)) != (HAS_NAME | HAS_ADDRESS | HAS_API) ||
        !peer_name_is_good(record.name))
        return false;
    *ret_record = record;
    return true;
}

bool member_record_find(const struct table *table, const char *name, struct member_record *ret_record)
{
    char key[KEY_BYTES];
    int size = snprintf(key, sizeof key, PREFIX "%s", name);
    const struct table_item *item;

    if (size < 0 || (size_t)size >= sizeof key)
        return false;
    item = table_find(table, (const uint8_t *)key, (size_t)size);
    return item && decode(table_item_value(item), item->value_size, ret_record);
}

size_t member_records(const struct table *table, struct member_record ret_records[RAFT_MEMBERS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < table->count && count < RAFT_MEMBERS_MAX; i++)
        if (member_record_is_key(table_item_key(table->items[i]), table->items[i]->key_size) &&
            decode(table_item_value(table->items[i]), table->items[i]->value_size, &ret_records[count]))
            count++;
    return count;
}

bool member_record_of_command(const uint8_t *bytes, size_t size, struct member_record *ret_record)
{
    struct table_command command;

    return table_command_decode(bytes, size, &command) == GAVEL_OK && command.kind == TABLE_PUT &&
           member_record_is_key(command.key, command.key_size) &&
           decode(command.value, command.value_size, ret_record);
}
