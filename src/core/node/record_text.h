/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The text of a record: one JSON object, read field by field. Only what a
 * record needs: texts of ASCII, whole numbers, true and false. Any other value,
 * also of a field that a newer program has added, is skipped.
 */
#ifndef CORE_NODE_RECORD_TEXT_H
#define CORE_NODE_RECORD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest text that is kept, with its NUL: an address. */
#define RECORD_TEXT_BYTES 256
#define RECORD_NAME_BYTES 32

enum record_kind {
    RECORD_TEXT,
    RECORD_NUMBER,
    RECORD_TRUE,
    RECORD_OTHER, /* false, null, a fraction, an array, an object, a text that is too long */
};

struct record_field {
    char name[RECORD_NAME_BYTES]; /* "" if it is longer */
    enum record_kind kind;
    char text[RECORD_TEXT_BYTES];
    int64_t number;
};

struct record_reader {
    const char *at;
    const char *end;
    bool is_bad; /* this is no JSON object */
    bool has_begun;
    bool is_over;
};

void record_read(struct record_reader *reader, const uint8_t *bytes, size_t size);

/* The next field; false at the end, or if the text is bad. */
bool record_next(struct record_reader *reader, struct record_field *ret_field);

/* Appends `text` as a JSON string; returns the new length, which may exceed the size, as snprintf() does. */
size_t record_put_text(char *buffer, size_t size, size_t length, const char *text);

#endif
