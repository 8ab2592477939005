/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks over the fields of a message and into its submessages, guided by the
 * descriptors of protoc-c. No message contains itself, so it goes only as deep as
 * client.proto does. Unknown fields are skipped.
 */

#include "wire/client_survey.h"

#include "base/utf8.h"
#include "core/table/table.h"
#include "wire/client.h"

#include <stdbool.h>
#include <string.h>

static const char malformed[] = "bytes that are not a frame";

/* Fields of client.proto: ClientFrame.request and Request.ops. */
enum { REQUEST_NUMBER = 4, OPS_NUMBER = 5 };

enum wire_type { WIRE_VARINT, WIRE_EIGHT, WIRE_LENGTH, WIRE_FOUR = 5 };

struct reader {
    const uint8_t *at;
    size_t left;
};

struct counts {
    size_t ops;
    size_t sessions;
};

static bool read_varint(struct reader *reader, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && reader->left > 0; shift += 7) {
        uint8_t byte = *reader->at++;

        reader->left--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool read_bytes(struct reader *reader, uint64_t size, struct reader *ret_bytes)
{
    if (size > reader->left)
        return false;
    *ret_bytes = (struct reader){.at = reader->at, .left = (size_t)size};
    reader->at += size;
    reader->left -= (size_t)size;
    return true;
}

/* What a field holds; of a varint nothing is kept. */
static bool read_body(struct reader *reader, unsigned type, struct reader *ret_body)
{
    uint64_t number;

    *ret_body = (struct reader){0};
    switch (type) {
    case WIRE_VARINT:
        return read_varint(reader, &number);
    case WIRE_EIGHT:
        return read_bytes(reader, 8, ret_body);
    case WIRE_FOUR:
        return read_bytes(reader, 4, ret_body);
    case WIRE_LENGTH:
        return read_varint(reader, &number) && read_bytes(reader, number, ret_body);
    default:
        return false;
    }
}

static bool is_text(struct reader text)
{
    while (text.left > 0) {
        char window[5] = {0}; /* the longest character, and a NUL */
        uint32_t character;
        size_t length;

        memcpy(window, text.at, text.left < 4 ? text.left : 4);
        length = window[0] != '\0' ? utf8_decode(window, &character) : 0;
        if (length == 0)
            return false;
        text.at += length;
        text.left -= length;
    }
    return true;
}

static const char *count(const ProtobufCMessageDescriptor *message, const ProtobufCFieldDescriptor *field,
                         unsigned type, size_t size, struct counts *counts)
{
    if (field->descriptor == &gavel__op__descriptor && ++counts->ops > TABLE_OPS_MAX)
        return "more operations than a request may have";
    if (message == &gavel__keep_alive__descriptor && field->label == PROTOBUF_C_LABEL_REPEATED) {
        counts->sessions += type == WIRE_LENGTH ? size / sizeof(uint64_t) : 1;
        if (counts->sessions > CLIENT_SESSIONS_MAX)
            return "more sessions than a keep-alive may have";
    }
    return NULL;
}

static const char *survey(const ProtobufCMessageDescriptor *message, struct reader reader,
                          struct counts *counts)
{
    uint64_t seen = 0; /* messages that may stand there once, by the place of their field; a oneof is one */

    while (reader.left > 0) {
        const ProtobufCFieldDescriptor *field;
        struct reader body;
        const char *reason;
        uint64_t key;

        if (!read_varint(&reader, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX ||
            !read_body(&reader, key & 7, &body))
            return malformed;
        field = protobuf_c_message_descriptor_get_field(message, (unsigned)(key >> 3));
        if (!field)
            continue;
        if (field->type == PROTOBUF_C_TYPE_STRING && !is_text(body))
            return "text that is not UTF-8";
        reason = count(message, field, key & 7, body.left, counts);
        if (reason)
            return reason;
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            bool is_of_oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
            unsigned place = is_of_oneof ? 63 : (unsigned)(field - message->fields) % 63;

            if (seen & UINT64_C(1) << place)
                return "the same thing is said twice";
            seen |= UINT64_C(1) << place;
        }
        if ((key & 7) != WIRE_LENGTH)
            return malformed;
        reason = survey(field->descriptor, body, counts);
        if (reason)
            return reason;
    }
    return NULL;
}

const char *client_survey(const uint8_t *bytes, size_t size)
{
    struct counts counts = {0};

    return survey(&gavel__client_frame__descriptor, (struct reader){.at = bytes, .left = size}, &counts);
}

/* The next field with this number that has a length; false: there is none. */
static bool next_field(struct reader *reader, uint64_t number, struct reader *ret_body)
{
    uint64_t key;

    while (reader->left > 0) {
        if (!read_varint(reader, &key) || !read_body(reader, key & 7, ret_body))
            return false;
        if (key >> 3 == number && (key & 7) == WIRE_LENGTH)
            return true;
    }
    return false;
}

size_t client_survey_ops(const uint8_t *bytes, size_t size, struct table_packed *ret_ops, size_t most)
{
    struct reader frame = {.at = bytes, .left = size};
    struct reader request, op;
    size_t count = 0;

    if (!next_field(&frame, REQUEST_NUMBER, &request))
        return 0;
    for (; next_field(&request, OPS_NUMBER, &op); count++)
        if (count < most)
            ret_ops[count] = (struct table_packed){.bytes = op.at, .size = op.left};
    return count;
}
