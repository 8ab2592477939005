/* SPDX-License-Identifier: Apache-2.0 */

#include "config/run_file.h"

#include "base/error.h"
#include "base/record.h"
#include "config/run_environment.h"
#include "config/words.h"
#include "config/yaml_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LENGTH_MAX 64
#define READY_FD_MIN 3
#define READY_FD_MAX 255
#define BLANKS " \t\r\n"

static enum gavel_status no_memory(const struct node_reader *reader)
{
    return error_set(reader->error, GAVEL_ERR_NO_MEMORY, "out of memory");
}

const char *run_child_default_name(struct arena *arena, char *const *command)
{
    bool is_shell =
        strcmp(command[0], "/bin/sh") == 0 && command[1] && strcmp(command[1], "-c") == 0 && command[2];
    const char *word = is_shell ? command[2] + strspn(command[2], BLANKS) : command[0];
    size_t length = is_shell ? strcspn(word, BLANKS ";|&<>()") : strlen(word);
    const char *begin = word;

    for (size_t i = 0; i + 1 < length; i++)
        if (word[i] == '/')
            begin = word + i + 1;
    length -= (size_t)(begin - word);
    length = length < NAME_LENGTH_MAX ? length : NAME_LENGTH_MAX;
    return length ? arena_text(arena, "%.*s", (int)length, begin) : arena_text(arena, "sh");
}

static enum gavel_status read_name(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;
    struct gavel_error cause = {0};

    if (node_text(reader, value, "name", &child->name) != GAVEL_OK)
        return reader->error->status;
    if (name_check("name", child->name, &cause) != GAVEL_OK)
        return node_wrong(reader, value, "%s", cause.message);
    if (strlen(child->name) > NAME_LENGTH_MAX)
        return node_wrong(reader, value, "the name of a child has at most %d bytes", NAME_LENGTH_MAX);
    return GAVEL_OK;
}

/* A line for the shell. */
static enum gavel_status read_shell_command(struct node_reader *reader, const yaml_node_t *value,
                                            const char *what, char **list)
{
    const char *text = "";

    if (node_text(reader, value, what, &text) != GAVEL_OK)
        return reader->error->status;
    if (!text[strspn(text, BLANKS)])
        return node_wrong(reader, value, "%s is empty; write a program, or remove the child", what);
    list[0] = arena_text(reader->arena, "/bin/sh");
    list[1] = arena_text(reader->arena, "-c");
    list[2] = arena_text(reader->arena, "%s", text);
    return list[0] && list[1] && list[2] ? GAVEL_OK : no_memory(reader);
}

/* A text for sh -c, or a list: the program and its arguments. */
static enum gavel_status read_command_of(struct node_reader *reader, const yaml_node_t *value,
                                         const char *what, char ***ret_command)
{
    bool is_list = value->type == YAML_SEQUENCE_NODE;
    size_t count = is_list ? (size_t)(value->data.sequence.items.top - value->data.sequence.items.start) : 3;
    char **list = arena_take(reader->arena, (count + 1) * sizeof *list);
    enum gavel_status status = GAVEL_OK;

    if (!list)
        return no_memory(reader);
    if (value->type == YAML_MAPPING_NODE)
        return node_wrong(reader, value, "%s must be a text for the shell, or a list: [program, argument, …]",
                          what);
    if (is_list && count == 0)
        return node_wrong(reader, value, "%s is an empty list; its first word is the program", what);
    if (!is_list)
        status = read_shell_command(reader, value, what, list);
    for (size_t i = 0; is_list && i < count && status == GAVEL_OK; i++) {
        const yaml_node_t *item = node_at(reader, value->data.sequence.items.start[i]);
        const char *text = "";

        status = node_text(reader, item, "a word of the command", &text);
        if (status == GAVEL_OK && i == 0 && !*text)
            status = node_wrong(reader, item, "%s begins with an empty word; it must be the program", what);
        if (status == GAVEL_OK && !(list[i] = arena_text(reader->arena, "%s", text)))
            status = no_memory(reader);
    }
    if (status == GAVEL_OK)
        *ret_command = list;
    return status;
}

static enum gavel_status read_command(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;

    return read_command_of(reader, value, "command", &child->command);
}

/* A text that says nothing if it is empty. */
static enum gavel_status read_full_text(struct node_reader *reader, const yaml_node_t *value,
                                        const char *what, const char **ret_text)
{
    if (node_text(reader, value, what, ret_text) != GAVEL_OK)
        return reader->error->status;
    return **ret_text ? GAVEL_OK : node_wrong(reader, value, "%s is empty; remove the line", what);
}

static enum gavel_status read_directory(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;

    return read_full_text(reader, value, "directory", &child->directory);
}

static enum gavel_status read_user(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;

    return read_full_text(reader, value, "user", &child->user);
}

/* One variable; `list` has those before it. */
static enum gavel_status read_variable(struct node_reader *reader, const yaml_node_pair_t *pair, char **list,
                                       size_t position)
{
    const yaml_node_t *key = node_at(reader, pair->key), *value = node_at(reader, pair->value);
    const char *name = "", *text = "";

    if (node_text(reader, key, "the name of a variable", &name) != GAVEL_OK)
        return reader->error->status;
    if (!*name || strchr(name, '='))
        return node_wrong(reader, key, "\"%.60s\" cannot be the name of a variable", name);
    if (run_environment_is_reserved(name))
        return node_wrong(reader, key, "%s is set by gavel itself; remove the line", name);
    if (position > 0 && run_environment_value(list, name))
        return node_wrong(reader, key, "the variable %.60s is given twice; remove one of them", name);
    if (value->type == YAML_SCALAR_NODE && !*(const char *)value->data.scalar.value &&
        value->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return node_wrong(reader, value, "the variable %.60s has no value; write \"\" for an empty one",
                          name);
    if (node_text(reader, value, "the value of a variable", &text) != GAVEL_OK)
        return reader->error->status;
    list[position] = arena_text(reader->arena, "%s=%s", name, text);
    return list[position] ? GAVEL_OK : no_memory(reader);
}

static enum gavel_status read_environment(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;
    enum gavel_status status = GAVEL_OK;
    size_t count;

    if (value->type != YAML_MAPPING_NODE)
        return node_wrong(reader, value, "environment must be a mapping: {NAME: value, …}");
    count = (size_t)(value->data.mapping.pairs.top - value->data.mapping.pairs.start);
    child->environment = arena_take(reader->arena, (count + 1) * sizeof *child->environment);
    if (!child->environment)
        return no_memory(reader);
    for (size_t i = 0; i < count && status == GAVEL_OK; i++)
        status = read_variable(reader, &value->data.mapping.pairs.start[i], child->environment, i);
    return status;
}

static enum gavel_status read_grace(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;

    return node_duration(reader, value, "grace", 0, &child->grace_ms);
}

static enum gavel_status read_term_signal(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;
    struct gavel_error cause = {0};
    const char *text = "";

    if (node_text(reader, value, "term_signal", &text) != GAVEL_OK)
        return reader->error->status;
    return signal_parse(text, &child->term_signal, &cause)
               ? node_wrong(reader, value, "term_signal: %s", cause.message)
               : GAVEL_OK;
}

static enum gavel_status read_on_exit(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;
    struct gavel_error cause = {0};
    const char *text = "";

    if (node_text(reader, value, "on_exit", &text) != GAVEL_OK)
        return reader->error->status;
    child->has_on_exit = true;
    return on_exit_parse(text, &child->on_exit, &cause)
               ? node_wrong(reader, value, "on_exit: %s", cause.message)
               : GAVEL_OK;
}

static enum gavel_status read_ready_command(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;

    return read_command_of(reader, value, "command", &child->ready_command);
}

static enum gavel_status read_ready_fd(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;
    const char *text = "";
    long number;

    if (node_text(reader, value, "fd", &text) != GAVEL_OK)
        return reader->error->status;
    number = strlen(text) <= 3 && strspn(text, "0123456789") == strlen(text) ? strtol(text, NULL, 10) : -1;
    if (!*text || number < READY_FD_MIN || number > READY_FD_MAX)
        return node_wrong(
            reader, value,
            "fd: \"%.60s\" is not a number from %d to %d; the child writes to it when it is ready", text,
            READY_FD_MIN, READY_FD_MAX);
    child->ready_fd = (int)number;
    return GAVEL_OK;
}

static enum gavel_status read_ready_timeout(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;

    return node_duration(reader, value, "timeout", 1, &child->ready_timeout_ms);
}

static const struct node_key ready_keys[] = {
    {"command", read_ready_command},
    {"fd", read_ready_fd},
    {"timeout", read_ready_timeout},
    {0},
};

static enum gavel_status read_ready(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct run_child *child = user;

    if (node_mapping(reader, value, "ready", ready_keys, user) != GAVEL_OK)
        return reader->error->status;
    if (!child->ready_command == !child->ready_fd)
        return node_wrong(reader, value, "ready needs either a command or an fd");
    child->ready = child->ready_command ? READY_BY_COMMAND : READY_BY_FD;
    return GAVEL_OK;
}

static const struct node_key child_keys[] = {
    {"name", read_name},
    {"command", read_command},
    {"directory", read_directory},
    {"user", read_user},
    {"environment", read_environment},
    {"grace", read_grace},
    {"term_signal", read_term_signal},
    {"on_exit", read_on_exit},
    {"ready", read_ready},
    {0},
};

/* Names tell children apart in messages, so no two may share one. */
static enum gavel_status check_name(struct node_reader *reader, const yaml_node_t *node,
                                    const struct run_file *file, struct run_child *child)
{
    bool has_name = child->name != NULL;

    if (!has_name)
        child->name = run_child_default_name(reader->arena, child->command);
    if (!child->name)
        return no_memory(reader);
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->children[i].name, child->name) == 0)
            return node_wrong(reader, node, "the child on line %d is called \"%.60s\", too; %s",
                              file->children[i].line, child->name,
                              has_name ? "choose another name" : "give this one a name");
    return GAVEL_OK;
}

static enum gavel_status read_child(struct node_reader *reader, const yaml_node_t *node,
                                    struct run_file *file)
{
    struct run_child *child = &file->children[file->count];

    *child =
        (struct run_child){.line = node_line(node), .grace_ms = -1, .ready_timeout_ms = RUN_READY_TIMEOUT_MS};
    if (node_mapping(reader, node, "a child", child_keys, child) != GAVEL_OK)
        return reader->error->status;
    if (!child->command)
        return node_wrong(reader, node, "this child has no command");
    if (check_name(reader, node, file, child) != GAVEL_OK)
        return reader->error->status;
    file->count++;
    return GAVEL_OK;
}

enum gavel_status run_file_read_list(struct node_reader *reader, const yaml_node_t *node,
                                     struct run_file *file)
{
    bool is_list = node->type == YAML_SEQUENCE_NODE;
    const yaml_node_item_t *items = is_list ? node->data.sequence.items.start : NULL;
    size_t count = is_list ? (size_t)(node->data.sequence.items.top - items) : 0;
    enum gavel_status status = GAVEL_OK;

    if (!is_list)
        return node_wrong(reader, node, "children must be a list, each child a mapping with a command");
    if (count == 0)
        return node_wrong(reader, node, "children is an empty list; name at least one, or remove it");
    if (count > CHILDREN_MAX)
        return node_wrong(reader, node_at(reader, items[CHILDREN_MAX]),
                          "%zu children are too many; at most %d", count, CHILDREN_MAX);
    for (size_t i = 0; i < count && status == GAVEL_OK; i++)
        status = read_child(reader, node_at(reader, items[i]), file);
    return status;
}

/* The value of `children` in the one mapping of the file; yaml_index_make() has seen that it is a list. */
static enum gavel_status find_children(struct node_reader *reader, struct run_file *file)
{
    const yaml_node_t *root = yaml_document_get_root_node(&reader->document);

    if (!root || root->type != YAML_MAPPING_NODE)
        return GAVEL_OK;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *key = node_at(reader, pair->key), *value = node_at(reader, pair->value);

        if (key->type == YAML_SCALAR_NODE && value->type == YAML_SEQUENCE_NODE &&
            strcmp((const char *)key->data.scalar.value, "children") == 0)
            return run_file_read_list(reader, value, file);
    }
    return GAVEL_OK;
}

enum gavel_status run_file_read(const char *name, const char *bytes, size_t length, struct run_file *ret_file,
                                struct gavel_error *error)
{
    struct gavel_error own = {0}; /* so that there is one to look at */
    struct node_reader reader = {.name = name, .arena = &ret_file->arena, .error = error ? error : &own};
    enum gavel_status status;
    yaml_parser_t parser;

    *ret_file = (struct run_file){0};
    if (!yaml_parser_initialize(&parser))
        return no_memory(&reader);
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
    if (yaml_parser_load(&parser, &reader.document)) {
        status = find_children(&reader, ret_file);
        yaml_document_delete(&reader.document);
    } else {
        status =
            error_set(error, GAVEL_ERR_INVALID, "%s:%d: this is not valid YAML: %s", name,
                      (int)parser.problem_mark.line + 1, parser.problem ? parser.problem : "unknown reason");
    }
    yaml_parser_delete(&parser);
    return status;
}

void run_file_done(struct run_file *file)
{
    arena_done(&file->arena);
    *file = (struct run_file){0};
}
