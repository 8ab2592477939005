/* SPDX-License-Identifier: Apache-2.0 */

#include "core/node/record_text.h"

#include <stdio.h>
#include <string.h>

/* Values within values that are skipped. */
#define DEPTH_MAX 16

void record_read(struct record_reader *reader, const uint8_t *bytes, size_t size)
{
    *reader = (struct record_reader){.at = (const char *)bytes, .end = (const char *)bytes + size};
}

static char peek(const struct record_reader *r)
{
    if (r->at == r->end)
        return '\0';
    return *r->at;
}

static void skip_space(struct record_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* After any space. */
static bool take(struct record_reader *r, char c)
{
    skip_space(r);
    if (peek(r) != c || r->at == r->end)
        return false;
    r->at++;
    return true;
}

static bool take_word(struct record_reader *r, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What follows a backslash; '\0' if it is bad, or no ASCII. */
static char unescape(struct record_reader *r, bool *is_bad)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    char c = peek(r);
    const char *found = c ? strchr(from, c) : NULL;
    int value = 0;

    r->at += r->at < r->end;
    if (found)
        return to[found - from];
    *is_bad = c != 'u' || r->end - r->at < 4;
    for (int i = 0; i < 4 && !*is_bad; i++) {
        int digit = digit_of(*r->at++);

        *is_bad = digit < 0;
        value = value * 16 + digit;
    }
    if (*is_bad || value >= 0x80)
        return '\0';
    return (char)value;
}

/* False: it is no text. `ret_fits`: all of it is in the buffer. */
static bool take_text(struct record_reader *r, char *buffer, size_t size, bool *ret_fits)
{
    size_t length = 0;
    bool is_bad = false;

    if (!take(r, '"'))
        return false;
    *ret_fits = true;
    while (r->at < r->end && *r->at != '"' && !is_bad) {
        char c = *r->at++;

        is_bad = (unsigned char)c < ' ';
        if (c == '\\')
            c = unescape(r, &is_bad);
        *ret_fits = *ret_fits && c != '\0' && length + 1 < size;
        if (*ret_fits)
            buffer[length++] = c;
    }
    buffer[*ret_fits ? length : 0] = '\0';
    return !is_bad && take(r, '"');
}

/* A fraction or an exponent makes it another kind of value. */
static bool take_number(struct record_reader *r, struct record_field *field)
{
    bool is_negative = peek(r) == '-';
    const char *begin;

    r->at += is_negative;
    begin = r->at;
    for (; peek(r) >= '0' && peek(r) <= '9'; r->at++) {
        int digit = *r->at - '0';

        if (field->number > (INT64_MAX - digit) / 10)
            return false;
        field->number = field->number * 10 + digit;
    }
    if (r->at == begin)
        return false;
    field->kind = RECORD_NUMBER;
    for (; peek(r) != '\0' && strchr(".eE+-0123456789", peek(r)); r->at++)
        field->kind = RECORD_OTHER;
    if (is_negative)
        field->number = -field->number;
    return true;
}

/* A value whose content does not matter: its brackets must match, and its texts must end. */
static bool skip_nested(struct record_reader *r)
{
    char closing[DEPTH_MAX];
    size_t depth = 0;

    do {
        char c = peek(r);
        char text[1];
        bool fits;

        if (c == '"') {
            if (!take_text(r, text, sizeof text, &fits))
                return false;
            continue;
        }
        if (r->at == r->end || ((c == '{' || c == '[') && depth == DEPTH_MAX))
            return false;
        if (c == '{' || c == '[')
            closing[depth++] = c == '{' ? '}' : ']';
        else if ((c == '}' || c == ']') && c != closing[--depth])
            return false;
        r->at++;
    } while (depth > 0);
    return true;
}

static bool take_value(struct record_reader *r, struct record_field *field)
{
    bool fits = true;

    skip_space(r);
    field->kind = RECORD_OTHER;
    switch (peek(r)) {
    case '"':
        if (!take_text(r, field->text, sizeof field->text, &fits))
            return false;
        if (fits)
            field->kind = RECORD_TEXT;
        return true;
    case '{':
    case '[':
        return skip_nested(r);
    case 't':
        field->kind = RECORD_TRUE;
        return take_word(r, "true");
    case 'f':
        return take_word(r, "false");
    case 'n':
        return take_word(r, "null");
    default:
        return take_number(r, field);
    }
}

static bool is_at_end(struct record_reader *r)
{
    if (!take(r, '}'))
        return false;
    skip_space(r);
    r->is_bad = r->at != r->end;
    r->is_over = true;
    return true;
}

bool record_next(struct record_reader *r, struct record_field *ret_field)
{
    struct record_field field = {0};
    bool fits = true;

    if (r->is_bad || r->is_over)
        return false;
    if (!r->has_begun)
        r->is_bad = !take(r, '{');
    if (r->is_bad || is_at_end(r))
        return false;
    r->is_bad = (r->has_begun && !take(r, ',')) || !take_text(r, field.name, sizeof field.name, &fits) ||
                !take(r, ':') || !take_value(r, &field);
    r->has_begun = true;
    if (r->is_bad)
        return false;
    *ret_field = field;
    return true;
}

static size_t put(char *buffer, size_t size, size_t length, const char *text)
{
    size_t more = strlen(text);

    if (length + more < size)
        memcpy(buffer + length, text, more + 1);
    return length + more;
}

size_t record_put_text(char *buffer, size_t size, size_t length, const char *text)
{
    length = put(buffer, size, length, "\"");
    for (; *text; text++) {
        char one[8] = {*text};

        if (*text == '"' || *text == '\\')
            (void)snprintf(one, sizeof one, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            (void)snprintf(one, sizeof one, "\\u%04X", (unsigned)*text);
        length = put(buffer, size, length, one);
    }
    return put(buffer, size, length, "\"");
}
