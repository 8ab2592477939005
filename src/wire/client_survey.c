/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks over the fields of a message and into its submessages, guided by the
 * descriptors of protoc-c. No message contains itself, so it goes only as deep as
 * client.proto does. Unknown fields are skipped.
 */

#include "wire/client_survey.h"

#include "base/fields.h"
#include "base/utf8.h"
#include "core/table/table.h"
#include "wire/client.h"

#include <stdbool.h>
#include <string.h>

static const char malformed[] = "bytes that are not a frame";

/* Fields of client.proto: ClientFrame.request and Request.ops. */
enum { REQUEST_NUMBER = 4, OPS_NUMBER = 5 };

struct counts {
    size_t ops;
    size_t sessions;
};

static bool is_text(struct field_bytes text)
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
        counts->sessions += type == FIELD_LENGTH ? size / sizeof(uint64_t) : 1;
        if (counts->sessions > CLIENT_SESSIONS_MAX)
            return "more sessions than a keep-alive may have";
    }
    return NULL;
}

static const char *survey(const ProtobufCMessageDescriptor *message, struct field_bytes reader,
                          struct counts *counts)
{
    uint64_t seen = 0; /* messages that may stand there once, by the place of their field; a oneof is one */

    while (reader.left > 0) {
        const ProtobufCFieldDescriptor *field;
        struct field read;
        const char *reason;

        if (!field_next(&reader, &read) || read.number == 0 || read.number > UINT32_MAX)
            return malformed;
        field = protobuf_c_message_descriptor_get_field(message, (unsigned)read.number);
        if (!field)
            continue;
        if (field->type == PROTOBUF_C_TYPE_STRING && !is_text(read.body))
            return "text that is not UTF-8";
        reason = count(message, field, read.type, read.body.left, counts);
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
        if (read.type != FIELD_LENGTH)
            return malformed;
        reason = survey(field->descriptor, read.body, counts);
        if (reason)
            return reason;
    }
    return NULL;
}

const char *client_survey(const uint8_t *bytes, size_t size)
{
    struct counts counts = {0};

    return survey(&gavel__client_frame__descriptor, (struct field_bytes){.at = bytes, .left = size}, &counts);
}

/* The next field with this number that has a length; false: there is none. */
static bool find_next(struct field_bytes *reader, uint64_t number, struct field_bytes *ret_body)
{
    struct field field;

    while (field_next(reader, &field)) {
        if (field.number == number && field.type == FIELD_LENGTH) {
            *ret_body = field.body;
            return true;
        }
    }
    return false;
}

size_t client_survey_ops(const uint8_t *bytes, size_t size, struct table_packed *ret_ops, size_t most)
{
    struct field_bytes frame = {.at = bytes, .left = size};
    struct field_bytes request, op;
    size_t count = 0;

    if (!find_next(&frame, REQUEST_NUMBER, &request))
        return 0;
    for (; find_next(&request, OPS_NUMBER, &op); count++)
        if (count < most)
            ret_ops[count] = (struct table_packed){.bytes = op.at, .size = op.left};
    return count;
}
