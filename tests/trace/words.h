/* SPDX-License-Identifier: Apache-2.0 */

/* The words of a command, for both kinds of stage. */
#ifndef TRACE_WORDS_H
#define TRACE_WORDS_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define WORDS_MAX 32

/* Splits `text` in place at its spaces; the words are borrowed from it. */
size_t words_split(char *text, char *words[static WORDS_MAX]);

/* "50ms", "2s", "1h"; a number alone is in seconds. */
gavel_ns words_duration(const char *text);

/* The same with a unit that must be there, and not below zero; otherwise false, and `out` says why. */
bool words_take_duration(FILE *out, const char *text, gavel_ns *ret_duration);

#endif
