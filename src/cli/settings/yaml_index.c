/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/settings/yaml_index.h"

#include "base/error.h"
#include "config/suggest.h"

#include <string.h>
#include <yaml.h>

#define CHILDREN "children"

struct walk {
    yaml_parser_t parser;
    const char *name;
    struct yaml_index index;
    struct gavel_error *error;
};

static int line_of(const yaml_event_t *event) { return (int)event->start_mark.line + 1; }

/* The next event; the caller deletes it. */
static enum gavel_status next(struct walk *walk, yaml_event_t *ret_event)
{
    const yaml_parser_t *parser = &walk->parser;

    if (yaml_parser_parse(&walk->parser, ret_event))
        return GAVEL_OK;
    if (parser->error == YAML_MEMORY_ERROR)
        return error_set(walk->error, GAVEL_ERR_NO_MEMORY, "out of memory");
    if (parser->error == YAML_READER_ERROR) /* which knows the byte, and no line */
        return error_set(walk->error, GAVEL_ERR_INVALID, "%s: byte %zu: %s; the file must be UTF-8 text",
                         walk->name, parser->problem_offset, parser->problem);
    return error_set(walk->error, GAVEL_ERR_INVALID, "%s:%d: this is not valid YAML: %s", walk->name,
                     (int)parser->problem_mark.line + 1,
                     parser->problem ? parser->problem : "unknown reason");
}

/* Keys that only a file of gaveld has, and that are often the first to be met. */
static bool is_of_gaveld(const char *key)
{
    static const char *const keys[] = {"node", "listen", "advertise", "api",
                                       "data", "peers",  "tls",       "timing"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static enum gavel_status unknown_key(struct walk *walk, const char *key, int line)
{
    const struct setting *meant = setting_meant(key);
    struct suggestion suggestion;

    suggestion_init(&suggestion, key);
    for (size_t i = 0; i < settings_count; i++)
        if (settings_table[i].key)
            suggestion_offer(&suggestion, settings_table[i].key);
    suggestion_offer(&suggestion, CHILDREN);
    if (meant && meant->key) /* a flag that is called otherwise here */
        suggestion.best = meant->key;
    if (is_of_gaveld(key))
        return error_set(
            walk->error, GAVEL_ERR_INVALID,
            "%s:%d: there is no key \"%.60s\"; if this is a file of gaveld, check it with `gaveld -c %s --check-config`",
            walk->name, line, key, walk->name);
    if (suggestion.best)
        return error_set(walk->error, GAVEL_ERR_INVALID,
                         "%s:%d: there is no key \"%.60s\"; did you mean \"%s\"?", walk->name, line, key,
                         suggestion.best);
    return error_set(walk->error, GAVEL_ERR_INVALID,
                     "%s:%d: there is no key \"%.60s\"; gavel.yaml(5) lists them", walk->name, line, key);
}

/* A plain ~, null or nothing at all: most likely a value that was forgotten. */
static bool is_null(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;

    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

static enum gavel_status take_value(struct walk *walk, const struct setting *setting)
{
    enum gavel_status status;
    yaml_event_t event;

    status = next(walk, &event);
    if (status != GAVEL_OK)
        return status;
    if (event.type != YAML_SCALAR_EVENT)
        status = error_set(walk->error, GAVEL_ERR_INVALID,
                           "%s:%d: %s must be one plain value, not a list or a mapping", walk->name,
                           line_of(&event), setting->key);
    else if (is_null(&event))
        status = error_set(walk->error, GAVEL_ERR_INVALID,
                           "%s:%d: %s has no value; give it one or remove the line", walk->name,
                           line_of(&event), setting->key);
    else if (strlen((const char *)event.data.scalar.value) != event.data.scalar.length)
        status = error_set(walk->error, GAVEL_ERR_INVALID, "%s:%d: %s has a NUL byte in its value",
                           walk->name, line_of(&event), setting->key);
    yaml_event_delete(&event);
    return status;
}

static enum gavel_status repeated(struct walk *walk, const char *key, int line, int first_line)
{
    return error_set(walk->error, GAVEL_ERR_INVALID, "%s:%d: %s is on line %d already; remove one of them",
                     walk->name, line, key, first_line);
}

/* The list of children, which is passed over. */
static enum gavel_status take_children(struct walk *walk, int line)
{
    int depth = 0;

    if (walk->index.children_line)
        return repeated(walk, CHILDREN, line, walk->index.children_line);
    walk->index.children_line = line;
    do {
        enum gavel_status status;
        yaml_event_t event;

        status = next(walk, &event);
        if (status != GAVEL_OK)
            return status;
        if (depth == 0 && event.type != YAML_SEQUENCE_START_EVENT)
            status = error_set(walk->error, GAVEL_ERR_INVALID,
                               "%s:%d: " CHILDREN " must be a list, each child a mapping with a command",
                               walk->name, line_of(&event));
        else if (event.type == YAML_ALIAS_EVENT)
            status = error_set(walk->error, GAVEL_ERR_INVALID,
                               "%s:%d: gavel reads no aliases such as *%.60s; write it out", walk->name,
                               line_of(&event), (const char *)event.data.alias.anchor);
        else if (event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT)
            depth++;
        else if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT)
            depth--;
        yaml_event_delete(&event);
        if (status != GAVEL_OK)
            return status;
    } while (depth > 0);
    return GAVEL_OK;
}

/* One key with its value; *ret_is_end when the mapping is over. */
static enum gavel_status take_pair(struct walk *walk, bool *ret_is_end)
{
    const struct setting *setting = NULL;
    enum gavel_status status;
    yaml_event_t event;
    int line;

    status = next(walk, &event);
    if (status != GAVEL_OK)
        return status;
    line = line_of(&event);
    if (event.type == YAML_MAPPING_END_EVENT) {
        *ret_is_end = true;
        goto out;
    }
    if (event.type != YAML_SCALAR_EVENT) {
        status = error_set(walk->error, GAVEL_ERR_INVALID, "%s:%d: a key must be one plain word", walk->name,
                           line);
        goto out;
    }
    if (strcmp((const char *)event.data.scalar.value, CHILDREN) == 0) {
        status = take_children(walk, line);
        goto out;
    }
    setting = setting_by_key((const char *)event.data.scalar.value);
    if (!setting) {
        status = unknown_key(walk, (const char *)event.data.scalar.value, line);
        goto out;
    }
    if (walk->index.lines[setting - settings_table]) {
        status = repeated(walk, setting->key, line, walk->index.lines[setting - settings_table]);
        goto out;
    }
    walk->index.lines[setting - settings_table] = line;
    walk->index.count++;
    status = take_value(walk, setting);
out:
    yaml_event_delete(&event);
    return status;
}

/* Nothing may follow the one document. */
static enum gavel_status take_end(struct walk *walk)
{
    for (;;) {
        enum gavel_status status;
        yaml_event_t event;
        yaml_event_type_t type;
        int line;

        status = next(walk, &event);
        if (status != GAVEL_OK)
            return status;
        type = event.type;
        line = line_of(&event);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return GAVEL_OK;
        if (type != YAML_DOCUMENT_END_EVENT)
            return error_set(walk->error, GAVEL_ERR_INVALID,
                             "%s:%d: a second document begins here; the file must have only one", walk->name,
                             line);
    }
}

/* Up to where the one mapping begins; *ret_is_empty if the file has no document, or an empty one. */
static enum gavel_status take_beginning(struct walk *walk, bool *ret_is_empty)
{
    for (;;) {
        enum gavel_status status;
        yaml_event_t event;
        yaml_event_type_t type;
        bool is_nothing;
        int line;

        status = next(walk, &event);
        if (status != GAVEL_OK)
            return status;
        type = event.type;
        line = line_of(&event);
        is_nothing = type == YAML_STREAM_END_EVENT || (type == YAML_SCALAR_EVENT && is_null(&event));
        yaml_event_delete(&event);
        if (is_nothing) { /* an empty document must not hide another one behind it */
            *ret_is_empty = true;
            return type == YAML_STREAM_END_EVENT ? GAVEL_OK : take_end(walk);
        }
        if (type == YAML_MAPPING_START_EVENT)
            return GAVEL_OK;
        if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT)
            return error_set(walk->error, GAVEL_ERR_INVALID,
                             "%s:%d: the file must be lines of the form `key: value`", walk->name, line);
    }
}

enum gavel_status yaml_index_make(const char *name, const char *bytes, size_t length,
                                  struct yaml_index *ret_index, struct gavel_error *error)
{
    struct walk walk = {.name = name, .error = error};
    bool is_empty = false, is_end = false;
    enum gavel_status status;

    if (!yaml_parser_initialize(&walk.parser))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    yaml_parser_set_input_string(&walk.parser, (const unsigned char *)bytes, length);
    status = take_beginning(&walk, &is_empty);
    while (status == GAVEL_OK && !is_empty && !is_end)
        status = take_pair(&walk, &is_end);
    if (status == GAVEL_OK && !is_empty)
        status = take_end(&walk);
    yaml_parser_delete(&walk.parser);
    if (status == GAVEL_OK)
        *ret_index = walk.index;
    return status;
}
