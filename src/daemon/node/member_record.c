/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/member_record.h"

#include "net/seal.h"

#include <jansson.h>
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

enum gavel_status member_record_put(const struct member_record *record, uint8_t **ret_bytes, size_t *ret_size)
{
    char key[KEY_BYTES];
    json_t *object = json_pack("{s:s, s:s, s:s, s:i, s:b, s:b, s:b, s:I}", "name", record->name, "address",
                               record->address, "api", record->api, "priority", record->priority, "witness",
                               record->is_witness, "voter", record->is_voter, "learned", record->is_learned,
                               "generation", (json_int_t)record->generation);
    char *value = object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    json_decref(object);
    if (value) {
        struct table_command command = {.kind = TABLE_PUT,
                                        .key = (const uint8_t *)key,
                                        .key_size =
                                            (size_t)snprintf(key, sizeof key, PREFIX "%s", record->name),
                                        .value = (const uint8_t *)value,
                                        .value_size = strlen(value)};

        status = encode(&command, ret_bytes, ret_size);
    }
    free(value);
    return status;
}

enum gavel_status member_record_delete(const char *name, uint8_t **ret_bytes, size_t *ret_size)
{
    char key[KEY_BYTES];
    struct table_command command = {.kind = TABLE_DELETE,
                                    .key = (const uint8_t *)key,
                                    .key_size = (size_t)snprintf(key, sizeof key, PREFIX "%s", name)};

    return encode(&command, ret_bytes, ret_size);
}

static bool take_text(const json_t *object, const char *key, char *buffer, size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (!text || strlen(text) >= size)
        return false;
    (void)snprintf(buffer, size, "%s", text);
    return true;
}

/* Entries of the log were checked by whoever proposed them, but a table is read like any other input. */
static bool decode(const uint8_t *value, size_t size, struct member_record *ret_record)
{
    struct member_record record = {0};
    json_t *object = json_loadb((const char *)value, size, JSON_REJECT_DUPLICATES, NULL);
    json_int_t priority = json_integer_value(json_object_get(object, "priority"));
    bool is_good = take_text(object, "name", record.name, sizeof record.name) &&
                   take_text(object, "address", record.address, sizeof record.address) &&
                   take_text(object, "api", record.api, sizeof record.api) &&
                   peer_name_is_good(record.name) && priority >= 0 && priority <= UINT8_MAX;

    record.priority = (uint8_t)priority;
    record.is_witness = json_is_true(json_object_get(object, "witness"));
    record.is_voter = json_is_true(json_object_get(object, "voter"));
    record.is_learned = json_is_true(json_object_get(object, "learned"));
    record.generation = (uint64_t)json_integer_value(json_object_get(object, "generation"));
    json_decref(object);
    if (!is_good)
        return false;
    record.id = seal_id_of_name("node", record.name);
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
