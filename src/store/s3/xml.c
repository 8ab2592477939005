/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The few elements of an answer that matter, found by name. By hand: errors
 * and lists are flat, their elements have no attributes that matter and never
 * contain one of their own name, and what is not found only makes a message
 * vaguer or a list fail. A parser of all of XML (libxml2, expat) would be the
 * largest thing this driver links, for six names, with entities and namespaces
 * that nobody sends.
 */
#include "store/s3/s3.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTITY_MAX 8 /* bytes, with the ';' */

/* The first tag of that name: "<name>" or "<name …>"; a closing one begins with a slash. NULL: none. */
static const char *find_tag(struct s3_span in, const char *name, const char **ret_after)
{
    size_t length = strlen(name);
    const char *end;

    if (in.length == 0)
        return NULL;
    end = in.at + in.length;
    for (const char *at = in.at; (at = memchr(at, '<', (size_t)(end - at))); at++) {
        const char *close;

        if ((size_t)(end - at) < length + 2 || strncmp(at + 1, name, length) != 0)
            continue;
        if (at[1 + length] != '>' && at[1 + length] != '/' && !isspace((unsigned char)at[1 + length]))
            continue;
        close = memchr(at, '>', (size_t)(end - at));
        if (!close)
            return NULL;
        *ret_after = close + 1;
        return at;
    }
    return NULL;
}

bool s3_xml_find(struct s3_span in, const char *name, struct s3_span *ret_content, struct s3_span *ret_rest)
{
    char closing[64];
    const char *content;
    const char *after;
    const char *last;
    const char *end;

    if (!find_tag(in, name, &content))
        return false;
    end = in.at + in.length;
    if (content[-2] == '/') { /* "<name/>" */
        *ret_content = (struct s3_span){content, 0};
        *ret_rest = (struct s3_span){content, (size_t)(end - content)};
        return true;
    }
    (void)snprintf(closing, sizeof closing, "/%s", name);
    last = find_tag((struct s3_span){content, (size_t)(end - content)}, closing, &after);
    if (!last)
        return false;
    *ret_content = (struct s3_span){content, (size_t)(last - content)};
    *ret_rest = (struct s3_span){after, (size_t)(end - after)};
    return true;
}

/* The character that an entity stands for; NUL: none that we know, it stays as it is. Only ASCII is
 * expected. */
static char entity(const char *text, size_t length)
{
    static const struct {
        const char *name;
        char character;
    } known[] = {{"amp;", '&'}, {"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}};
    char *end;
    long number;

    if (length == 0 || length > ENTITY_MAX)
        return '\0';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length && strncmp(text, known[i].name, length) == 0)
            return known[i].character;
    if (length < 3 || text[0] != '#')
        return '\0';
    number = text[1] == 'x' || text[1] == 'X' ? strtol(text + 2, &end, 16) : strtol(text + 1, &end, 10);
    if (end != text + length - 1 || number <= 0 || number >= 128)
        return '\0';
    return (char)number;
}

bool s3_xml_text(struct s3_span in, const char *name, char *ret_text, size_t size)
{
    struct s3_span content;
    struct s3_span rest;
    size_t used = 0;

    if (!s3_xml_find(in, name, &content, &rest))
        return false;
    for (size_t i = 0; i < content.length; i++) {
        char character = content.at[i];

        if (character == '&') {
            const char *end = memchr(content.at + i, ';', content.length - i);
            size_t length = end ? (size_t)(end - (content.at + i)) : 0; /* with the ';', without the '&' */
            char meant = entity(content.at + i + 1, length);

            if (meant) {
                character = meant;
                i += length;
            }
        }
        if (used + 1 >= size)
            return false;
        ret_text[used++] = character;
    }
    ret_text[used] = '\0';
    return true;
}
