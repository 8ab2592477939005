/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fields of a message of Protocol Buffers as they stand in its bytes, one
 * after the other, for code that has to look at bytes before protobuf-c decodes
 * them. Nothing is copied: everything points into the bytes of the message.
 */
#ifndef BASE_FIELDS_H
#define BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type { FIELD_VARINT, FIELD_EIGHT, FIELD_LENGTH, FIELD_FOUR = 5 };

struct field_bytes {
    const uint8_t *at;
    size_t left;
};

struct field {
    uint64_t number;
    unsigned type;
    uint64_t value;            /* of a varint */
    struct field_bytes body;   /* of the others */
    struct field_bytes itself; /* with its key */
};

/* Takes the next field off the bytes. False, and nothing taken, at the end, or if what follows is no field:
 * then something is left. */
bool field_next(struct field_bytes *bytes, struct field *ret_field);

#endif
