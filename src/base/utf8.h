/* SPDX-License-Identifier: Apache-2.0 */

/* One character of UTF-8 at a time; for names, which must be valid, and for log lines, which are made so. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads the character that a NUL-terminated string begins with. Returns how
 * many bytes it has (1 to 4), or 0 if they are not UTF-8: a stray or missing
 * continuation, an overlong form, a surrogate, or beyond U+10FFFF. Never
 * reads past the NUL. *ret_character is untouched on 0.
 */
size_t utf8_decode(const char *string, uint32_t *ret_character);

/* C0, DEL and C1: what would break a line or drive a terminal. */
static inline bool utf8_is_control(uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

#endif
