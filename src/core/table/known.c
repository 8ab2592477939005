/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A command from bytes, as the version of the table reads it that the leader wrote
 * into it (TABLE_VERSION in table.h).
 *
 * Bytes of clients go into the log as they are, also those that the leader does
 * not know: an older one carries what a newer client has said. Nodes that know
 * these fields, and nodes that skip them, would build different tables. So what is
 * newer than the number in the command is skipped by all of them: it is cut out
 * before anything is decoded, as if it were unknown here, too. It may even stand
 * beside an operation that is known, or be no valid field at all.
 */

#include "base/fields.h"
#include "core/table/step.h"

#include <stdlib.h>

/* Command.table_version, OpenSession.principal. */
enum { VERSION_NUMBER = 6, PRINCIPAL_NUMBER = 5 };

/* The last field that version 1 knows, of messages that have more today. */
static const struct {
    const ProtobufCMessageDescriptor *message;
    uint64_t last;
} first_version[] = {
    {&gavel__command__descriptor, VERSION_NUMBER},
    {&gavel__op__descriptor, 17},
    {&gavel__campaign__descriptor, 9},
    {&gavel__close_session__descriptor, 2},
    {&gavel__withdraw__descriptor, 3},
    {&gavel__release__descriptor, 8},
};

/* Who may use a session is no part of what replicas compare: whoever knows the field heeds it. */
static bool is_newer(const ProtobufCMessageDescriptor *message, const struct field *field)
{
    if (message == &gavel__open_session__descriptor && field->number == PRINCIPAL_NUMBER)
        return field->type != FIELD_EIGHT;
    for (size_t i = 0; i < sizeof first_version / sizeof *first_version; i++)
        if (first_version[i].message == message)
            return field->number > first_version[i].last;
    return false;
}

/* What a field is a message of; NULL: none. */
static const ProtobufCMessageDescriptor *inside(const ProtobufCMessageDescriptor *message,
                                                const struct field *field)
{
    const ProtobufCFieldDescriptor *known =
        field->type == FIELD_LENGTH && field->number <= UINT32_MAX
            ? protobuf_c_message_descriptor_get_field(message, (unsigned)field->number)
            : NULL;

    return known && known->type == PROTOBUF_C_TYPE_MESSAGE ? known->descriptor : NULL;
}

static size_t varint_size(uint64_t value)
{
    size_t size = 1;

    while (value >>= 7)
        size++;
    return size;
}

static uint8_t *varint_put(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* How much is left of a message, and the same as bytes. What is no field any more stays, for protobuf-c to
 * refuse. No message contains itself. */
static size_t size_of(const ProtobufCMessageDescriptor *message, struct field_bytes reader)
{
    struct field field;
    size_t size = 0;

    while (field_next(&reader, &field)) {
        const ProtobufCMessageDescriptor *submessage = inside(message, &field);

        if (is_newer(message, &field))
            continue;
        if (submessage) {
            size_t inner = size_of(submessage, field.body);

            size += varint_size(field.number << 3 | field.type) + varint_size(inner) + inner;
        } else {
            size += field.itself.left;
        }
    }
    return size + reader.left;
}

static uint8_t *put(const ProtobufCMessageDescriptor *message, struct field_bytes reader, uint8_t *at)
{
    struct field field;

    while (field_next(&reader, &field)) {
        const ProtobufCMessageDescriptor *submessage = inside(message, &field);

        if (is_newer(message, &field))
            continue;
        if (submessage) {
            at = varint_put(at, field.number << 3 | field.type);
            at = varint_put(at, size_of(submessage, field.body));
            at = put(submessage, field.body, at);
        } else {
            memcpy(at, field.itself.at, field.itself.left);
            at += field.itself.left;
        }
    }
    if (reader.left > 0)
        memcpy(at, reader.at, reader.left);
    return at + reader.left;
}

static bool has_newer(const ProtobufCMessageDescriptor *message, struct field_bytes reader)
{
    struct field field;

    while (field_next(&reader, &field)) {
        const ProtobufCMessageDescriptor *submessage = inside(message, &field);

        if (is_newer(message, &field) || (submessage && has_newer(submessage, field.body)))
            return true;
    }
    return false;
}

static uint64_t version_of(struct field_bytes command)
{
    uint64_t version = 0;
    struct field field;

    while (field_next(&command, &field))
        if (field.number == VERSION_NUMBER && field.type == FIELD_VARINT)
            version = field.value;
    return version;
}

enum gavel_status command_unpack(const uint8_t *bytes, size_t size, ProtobufCMessage **ret_message)
{
    const ProtobufCMessageDescriptor *command = &gavel__command__descriptor;
    struct field_bytes whole = {.at = bytes, .left = size};
    enum gavel_status status;
    uint8_t *older;

    if (version_of(whole) >= TABLE_VERSION || !has_newer(command, whole))
        return message_unpack(command, bytes, size, ret_message);
    size = size_of(command, whole);
    older = malloc(size + 1); /* of nothing at all, too */
    if (!older)
        return GAVEL_ERR_NO_MEMORY;
    (void)put(command, whole, older); /* the size is known */
    status = message_unpack(command, older, size, ret_message);
    free(older);
    return status;
}
