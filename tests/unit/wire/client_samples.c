/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each frame is laid out from what protoc-c says of it: every field gets a
 * value, most messages that may be repeated stand there twice, and of a oneof
 * each member in turn. So a field that is added is in the samples at once.
 */
#include "client_samples.h"

#include "base/assert.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void *fresh(size_t size)
{
    void *memory = calloc(1, size);

    ASSERT(memory);
    return memory;
}

static ProtobufCMessage *make(const ProtobufCMessageDescriptor *what, unsigned turn);

/* One value, written to `place`. */
static void fill(void *place, const ProtobufCFieldDescriptor *field, unsigned turn)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        char *text = fresh(strlen(field->name) + 2);

        text[0] = (char)('a' + turn % 26);
        strcpy(text + 1, field->name);
        *(char **)place = text;
        break;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData *bytes = place;

        bytes->len = 3;
        bytes->data = fresh(bytes->len);
        bytes->data[1] = (uint8_t)turn;
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)place = make(field->descriptor, turn);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)place = 1;
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_ENUM:
        *(uint32_t *)place = field->type == PROTOBUF_C_TYPE_ENUM ? 1 : UINT32_MAX - turn;
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_FIXED64:
        *(uint64_t *)place = UINT64_C(0x8000000000000001) + turn;
        break;
    default:
        ASSERT(!"a type that no frame had before");
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING ? sizeof(void *)
                                                                                           : sizeof(uint64_t);
}

/* Of operations there is one of each kind. Two of what has groups in it would make seeds that take long. */
static size_t count_of(const ProtobufCFieldDescriptor *field)
{
    if (field->descriptor == &gavel__op__descriptor)
        return gavel__op__descriptor.n_fields;
    return field->descriptor == &gavel__group__descriptor ||
                   field->descriptor == &gavel__op_result__descriptor
               ? 1
               : 2;
}

static ProtobufCMessage *make(const ProtobufCMessageDescriptor *what, unsigned turn)
{
    ProtobufCMessage *message = fresh(what->sizeof_message);
    uint8_t *start = (uint8_t *)message;

    protobuf_c_message_init(what, message);
    for (unsigned i = 0; i < what->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &what->fields[i];
        bool is_of_oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;

        if (is_of_oneof && i != turn % what->n_fields)
            continue;
        if (is_of_oneof)
            *(uint32_t *)(void *)(start + field->quantifier_offset) = field->id;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t count = count_of(field);
            uint8_t *items = fresh(count * size_of(field));

            for (unsigned j = 0; j < count; j++)
                fill(items + j * size_of(field), field, j);
            *(size_t *)(void *)(start + field->quantifier_offset) = count;
            *(void **)(void *)(start + field->offset) = items;
        } else {
            fill(start + field->offset, field, turn);
        }
    }
    return message;
}

Gavel__ClientFrame *client_sample_make(size_t which, const char **ret_name)
{
    ASSERT(which < CLIENT_SAMPLE_COUNT);
    ASSERT(gavel__client_frame__descriptor.n_fields == CLIENT_SAMPLE_COUNT);
    *ret_name = gavel__client_frame__descriptor.fields[which].name;
    return (Gavel__ClientFrame *)make(&gavel__client_frame__descriptor, (unsigned)which);
}
