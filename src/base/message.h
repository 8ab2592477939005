/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages for people. What is too long for them is cut after a whole word, and
 * an ellipsis says so: half a path looks like a path, and sends people to a
 * place that is not there.
 */
#ifndef BASE_MESSAGE_H
#define BASE_MESSAGE_H

#include <stdarg.h>
#include <stddef.h>

/* A smaller precision takes a part of a text that is meant, such as the day of a time: no ellipsis then. */
#define MESSAGE_CUT_LEAST 30

/*
 * Writes like vsnprintf(3), but of a text that is longer than its precision
 * (`%.200s`) as many whole words as fit there with the ellipsis, and likewise of
 * the message if the buffer is too small. `%.*s` is exact. There are no %n and
 * no wide characters.
 */
void message_write(char *buffer, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
