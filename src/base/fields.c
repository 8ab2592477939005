/* SPDX-License-Identifier: Apache-2.0 */

#include "base/fields.h"

static bool read_varint(struct field_bytes *bytes, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && bytes->left > 0; shift += 7) {
        uint8_t byte = *bytes->at++;

        bytes->left--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool read_body(struct field_bytes *bytes, uint64_t size, struct field_bytes *ret_body)
{
    if (size > bytes->left)
        return false;
    *ret_body = (struct field_bytes){.at = bytes->at, .left = (size_t)size};
    bytes->at += size;
    bytes->left -= (size_t)size;
    return true;
}

static bool read_rest(struct field_bytes *bytes, struct field *field)
{
    uint64_t size;

    switch (field->type) {
    case FIELD_VARINT:
        return read_varint(bytes, &field->value);
    case FIELD_EIGHT:
        return read_body(bytes, 8, &field->body);
    case FIELD_FOUR:
        return read_body(bytes, 4, &field->body);
    case FIELD_LENGTH:
        return read_varint(bytes, &size) && read_body(bytes, size, &field->body);
    default:
        return false;
    }
}

bool field_next(struct field_bytes *bytes, struct field *ret_field)
{
    struct field_bytes at = *bytes;
    struct field field = {.itself = *bytes};
    uint64_t key;

    if (!read_varint(&at, &key))
        return false;
    field.number = key >> 3;
    field.type = key & 7;
    if (!read_rest(&at, &field))
        return false;
    field.itself.left -= at.left;
    *bytes = at;
    *ret_field = field;
    return true;
}
