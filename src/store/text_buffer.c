/* SPDX-License-Identifier: Apache-2.0 */

#include "store/text_buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 256

static void fail(struct text_buffer *text)
{
    free(text->bytes);
    *text = (struct text_buffer){.is_short = true};
}

void text_buffer_add(struct text_buffer *text, const char *bytes, size_t length)
{
    if (text->is_short)
        return;
    if (text->length + length + 1 > text->capacity) {
        size_t capacity = 2 * (text->length + length) + FIRST_BYTES;
        char *grown = realloc(text->bytes, capacity);

        if (!grown) {
            fail(text);
            return;
        }
        text->bytes = grown;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_buffer_print(struct text_buffer *text, const char *format, ...)
{
    va_list arguments;
    char *line = NULL;
    int length;

    va_start(arguments, format);
    length = vasprintf(&line, format, arguments);
    va_end(arguments);
    if (length < 0) {
        fail(text);
        return;
    }
    text_buffer_add(text, line, (size_t)length);
    free(line);
}

void text_buffer_done(struct text_buffer *text)
{
    free(text->bytes);
    *text = (struct text_buffer){0};
}
