/* SPDX-License-Identifier: Apache-2.0 */

#include "base/message.h"

#include "base/assert.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The formats below are pieces of one that the compiler has checked where the message is written. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

#define ELLIPSIS "…"
#define ELLIPSIS_BYTES (sizeof ELLIPSIS - 1)
#define SPEC_MAX 24 /* "%-10.200s"; ours are short */

struct writer {
    char *buffer;
    size_t size;
    size_t length;
    bool is_cut;
};

/* How a conversion begins in the format, and where it ends. */
struct spec {
    char text[SPEC_MAX];
    size_t length;
    char longness; /* of "ll", "l", "z", "j", "t": the letter, 'L' for "ll"; 0 without */
    char kind;     /* the last letter */
    int precision; /* -1: none, or given by an argument */
};

/* The first byte of a character, not one that follows in it. */
static bool begins_character(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

/* How much of a text stays if it is cut to `room` bytes with its ellipsis: whole words, unless one fills half
 * of it. */
static size_t cut(const char *text, size_t room)
{
    size_t keep = room > ELLIPSIS_BYTES ? room - ELLIPSIS_BYTES : 0, at;

    while (keep > 0 && !begins_character(text[keep]))
        keep--;
    for (at = keep; at > keep / 2; at--) {
        if (text[at] == ' ')
            return at;
        if (strchr("/,;:&?", text[at - 1]))
            return at;
    }
    return keep;
}

static void put(struct writer *w, const char *text, size_t length)
{
    size_t room = w->size - 1 - w->length;

    if (w->is_cut)
        return;
    w->is_cut = length > room;
    length = length < room ? length : room;
    memcpy(w->buffer + w->length, text, length);
    w->length += length;
    w->buffer[w->length] = '\0';
}

static void put_text(struct writer *w, const struct spec *spec, const char *text)
{
    size_t most = (size_t)spec->precision, length;

    if (!text)
        text = "(null)";
    length = strnlen(text, spec->precision < 0 ? SIZE_MAX : most + 1);
    if (spec->precision < 0 || length <= most) {
        put(w, text, length);
    } else if (most < MESSAGE_CUT_LEAST) {
        put(w, text, most);
    } else {
        put(w, text, cut(text, most));
        put(w, ELLIPSIS, ELLIPSIS_BYTES);
    }
}

/* "%-5.3lu" at the beginning of the format. */
static struct spec read_spec(const char *format)
{
    struct spec spec = {.precision = -1};
    size_t at = 1 + strspn(format + 1, "-+ #0123456789*");

    if (format[at] == '.') {
        spec.precision = format[at + 1] == '*' ? -1 : atoi(format + at + 1);
        at += 1 + strspn(format + at + 1, "0123456789*");
    }
    if (format[at] == 'l' && format[at + 1] == 'l') {
        spec.longness = 'L';
        at += 2;
    } else if (strchr("lzjt", format[at]) && format[at]) {
        spec.longness = format[at++];
    } else {
        at += strspn(format + at, "h");
    }
    spec.kind = format[at];
    spec.length = at + 1;
    ASSERT(spec.kind != '\0');
    ASSERT(spec.length < sizeof spec.text);
    memcpy(spec.text, format, spec.length);
    spec.text[spec.length] = '\0';
    return spec;
}

/* One of whole numbers. Signedness does not matter to how it is passed. */
static void write_number(char *piece, size_t size, const struct spec *spec, va_list *arguments)
{
    switch (spec->longness) {
    case 'L':
        (void)snprintf(piece, size, spec->text, va_arg(*arguments, long long));
        break;
    case 'l':
        (void)snprintf(piece, size, spec->text, va_arg(*arguments, long));
        break;
    case 'z':
        (void)snprintf(piece, size, spec->text, va_arg(*arguments, size_t));
        break;
    case 'j':
        (void)snprintf(piece, size, spec->text, va_arg(*arguments, intmax_t));
        break;
    case 't':
        (void)snprintf(piece, size, spec->text, va_arg(*arguments, ptrdiff_t));
        break;
    default:
        (void)snprintf(piece, size, spec->text, va_arg(*arguments, int));
    }
}

/* Puts the value of a star into the conversion, and makes it exact. */
static void resolve_stars(struct spec *spec, va_list *arguments)
{
    char text[SPEC_MAX + 24];
    char *star;

    while ((star = strchr(spec->text, '*'))) {
        (void)snprintf(text, sizeof text, "%.*s%d%s", (int)(star - spec->text), spec->text,
                       va_arg(*arguments, int), star + 1);
        ASSERT(strlen(text) < sizeof spec->text);
        memcpy(spec->text, text, strlen(text) + 1);
    }
}

static void convert(struct writer *w, struct spec *spec, va_list *arguments)
{
    bool is_exact = strchr(spec->text, '*') != NULL;
    const char *text;
    char piece[1024];

    resolve_stars(spec, arguments);
    switch (spec->kind) {
    case '%':
        put(w, "%", 1);
        return;
    case 's':
        text = va_arg(*arguments, const char *);
        if (!is_exact && (spec->text[1] == 's' || spec->text[1] == '.')) {
            put_text(w, spec, text);
            return;
        }
        (void)snprintf(piece, sizeof piece, spec->text, text);
        break;
    case 'f':
    case 'g':
    case 'e':
        (void)snprintf(piece, sizeof piece, spec->text, va_arg(*arguments, double));
        break;
    case 'p':
        (void)snprintf(piece, sizeof piece, spec->text, va_arg(*arguments, void *));
        break;
    default:
        write_number(piece, sizeof piece, spec, arguments);
    }
    put(w, piece, strlen(piece));
}

void message_write(char *buffer, size_t size, const char *format, va_list arguments)
{
    struct writer w = {.buffer = buffer, .size = size};
    va_list rest;

    ASSERT(size > 0);
    buffer[0] = '\0';
    va_copy(rest, arguments);
    while (*format) {
        size_t literal = strcspn(format, "%");
        struct spec spec;

        put(&w, format, literal);
        format += literal;
        if (!*format)
            break;
        spec = read_spec(format);
        format += spec.length;
        convert(&w, &spec, &rest);
    }
    va_end(rest);
    if (w.is_cut && size > 2 * ELLIPSIS_BYTES)
        memcpy(buffer + cut(buffer, size - 1), ELLIPSIS, sizeof ELLIPSIS);
}
