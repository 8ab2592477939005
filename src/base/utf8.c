/* SPDX-License-Identifier: Apache-2.0 */

/* Decoding as in RFC 3629: each length has a smallest character, so that no character has two spellings. */
#include "base/utf8.h"

size_t utf8_decode(const char *string, uint32_t *ret_character)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)string;
    uint32_t c;
    size_t length;

    if (s[0] < 0x80) {
        *ret_character = s[0];
        return 1;
    }
    if ((s[0] & 0xe0) == 0xc0) {
        length = 2;
        c = s[0] & 0x1f;
    } else if ((s[0] & 0xf0) == 0xe0) {
        length = 3;
        c = s[0] & 0x0f;
    } else if ((s[0] & 0xf8) == 0xf0) {
        length = 4;
        c = s[0] & 0x07;
    } else {
        return 0;
    }
    /* A NUL is no continuation, so this stops at the end of the string. */
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < smallest[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret_character = c;
    return length;
}
