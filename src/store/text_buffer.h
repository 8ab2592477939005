/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A text that grows. Initialize it to {0}. A caller that takes `bytes` frees
 * them and need not call text_buffer_done().
 */
#ifndef STORE_TEXT_BUFFER_H
#define STORE_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct text_buffer {
    char *bytes; /* ends with a NUL; NULL until something is added, and when out of memory */
    size_t length;
    size_t capacity;
    bool is_short; /* out of memory: nothing more is added */
};

void text_buffer_add(struct text_buffer *text, const char *bytes, size_t length);
void text_buffer_print(struct text_buffer *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_buffer_done(struct text_buffer *text);

#endif
