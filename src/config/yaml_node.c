/* SPDX-License-Identifier: Apache-2.0 */

#include "config/yaml_node.h"

#include "base/assert.h"
#include "base/error.h"
#include "config/duration.h"
#include "config/suggest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_MS (INT64_C(30) * 24 * 3600 * 1000)

int node_line(const yaml_node_t *node) { return (int)node->start_mark.line + 1; }

const yaml_node_t *node_at(struct node_reader *reader, int index)
{
    const yaml_node_t *node = yaml_document_get_node(&reader->document, index);

    ASSERT(node != NULL);
    return node;
}

enum gavel_status node_wrong(const struct node_reader *reader, const yaml_node_t *node, const char *format,
                             ...)
{
    char message[400];
    va_list list;

    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return error_set(reader->error, GAVEL_ERR_INVALID, "%s:%d: %s", reader->name, node_line(node), message);
}

/* A plain ~, null or nothing at all: most likely a value that was forgotten. */
static bool is_null(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;

    return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

enum gavel_status node_text(struct node_reader *reader, const yaml_node_t *node, const char *what,
                            const char **ret_text)
{
    const char *text;

    if (node->type != YAML_SCALAR_NODE)
        return node_wrong(reader, node, "%s must be one plain value, not a list or a mapping", what);
    if (is_null(node))
        return node_wrong(reader, node, "%s has no value; give it one or remove the line", what);
    text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length)
        return node_wrong(reader, node, "%s has a NUL byte in its value", what);
    text = arena_text(reader->arena, "%s", text);
    if (!text)
        return error_set(reader->error, GAVEL_ERR_NO_MEMORY, "out of memory");
    *ret_text = text;
    return GAVEL_OK;
}

enum gavel_status node_duration(struct node_reader *reader, const yaml_node_t *node, const char *what,
                                gavel_ms least, gavel_ms *ret_ms)
{
    struct gavel_error cause = {0};
    const char *text = "";
    gavel_ms ms = 0;

    if (node_text(reader, node, what, &text) != GAVEL_OK)
        return reader->error->status;
    if (duration_parse(text, &ms, &cause) != GAVEL_OK)
        return node_wrong(reader, node, "%s: %s", what, cause.message);
    if (ms < least || ms > LONGEST_MS)
        return node_wrong(reader, node, "%s: it must be from %" PRId64 " ms to 30 days", what, least);
    *ret_ms = ms;
    return GAVEL_OK;
}

static enum gavel_status unknown_key(struct node_reader *reader, const yaml_node_t *node, const char *what,
                                     const struct node_key *keys)
{
    const char *word = (const char *)node->data.scalar.value;
    struct suggestion suggestion;

    suggestion_init(&suggestion, word);
    for (const struct node_key *key = keys; key->name; key++)
        suggestion_offer(&suggestion, key->name);
    if (suggestion.best)
        return node_wrong(reader, node, "%s has no key \"%.60s\"; did you mean \"%s\"?", what, word,
                          suggestion.best);
    return node_wrong(reader, node, "%s has no key \"%.60s\"; %s lists them", what, word,
                      reader->manual ? reader->manual : "gavel.yaml(5)");
}

enum gavel_status node_mapping(struct node_reader *reader, const yaml_node_t *node, const char *what,
                               const struct node_key *keys, void *user)
{
    int lines[NODE_KEYS_MAX] = {0};
    enum gavel_status status = GAVEL_OK;

    if (node->type != YAML_MAPPING_NODE)
        return node_wrong(reader, node, "%s must be lines of the form `key: value`", what);
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top && status == GAVEL_OK; pair++) {
        const yaml_node_t *key = node_at(reader, pair->key);
        size_t i = 0;

        if (key->type != YAML_SCALAR_NODE)
            return node_wrong(reader, key, "a key of %s must be one plain word", what);
        while (keys[i].name && strcmp(keys[i].name, (const char *)key->data.scalar.value) != 0)
            i++;
        if (!keys[i].name)
            return unknown_key(reader, key, what, keys);
        ASSERT(i < NODE_KEYS_MAX);
        if (lines[i])
            return node_wrong(reader, key, "%s is on line %d already; remove one of them", keys[i].name,
                              lines[i]);
        lines[i] = node_line(key);
        status = keys[i].read(reader, node_at(reader, pair->value), user);
    }
    return status;
}
