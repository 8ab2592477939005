/* SPDX-License-Identifier: Apache-2.0 */

/* Decodes UTF-8 by the character, for names, which must be valid, and log lines, which are made valid. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads the first character of a NUL-terminated string. Returns its length in
 * bytes (1 to 4), or 0 if it is not valid UTF-8: a stray or missing
 * continuation, an overlong form, a surrogate, or beyond U+10FFFF. Never
 * reads past the NUL. *ret_character is untouched on 0.
 */
size_t utf8_decode(const char *string, uint32_t *ret_character);

/* C0, DEL and C1: characters that would break a line or control a terminal. */
static inline bool utf8_is_control(uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

#endif
