/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which names groups and candidates may have. The rules are generous on purpose
 * (spaces, quotes, slashes and every script are fine), but a name must print on one
 * line, be storable as text, and be told from others by a person.
 */
#include "base/error.h"
#include "base/record.h"
#include "base/utf8.h"

#include <string.h>

enum gavel_status name_check(const char *what, const char *name, struct gavel_error *error)
{
    size_t length;
    size_t at = 0;

    if (!name || !name[0])
        return error_set(error, GAVEL_ERR_INVALID, "the %s is empty; give it 1 to %d bytes", what,
                         NAME_MAX_BYTES);
    length = strlen(name);
    if (length > NAME_MAX_BYTES)
        return error_set(error, GAVEL_ERR_INVALID, "the %s has %zu bytes; shorten it to at most %d", what,
                         length, NAME_MAX_BYTES);
    while (at < length) {
        uint32_t c;
        size_t bytes = utf8_decode(name + at, &c);

        if (bytes == 0)
            return error_set(error, GAVEL_ERR_INVALID,
                             "the %s is not valid UTF-8 at byte %zu (0x%02x); encode it as UTF-8", what,
                             at + 1, (unsigned)(unsigned char)name[at]);
        if (utf8_is_control(c))
            return error_set(error, GAVEL_ERR_INVALID,
                             "the %s has a control character (U+%04X) at byte %zu; leave it out", what,
                             (unsigned)c, at + 1);
        at += bytes;
    }
    return GAVEL_OK;
}
