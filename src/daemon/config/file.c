/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The YAML file. Its mappings are read by the table of settings; settings with parts
 * (peers, children) have a reader here. Every key must be known and occur once, and
 * every error names its line.
 */
#include "base/error.h"
#include "config/suggest.h"
#include "config/whole_file.h"
#include "config/words.h"
#include "config/yaml_node.h"
#include "daemon/config/draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct config_section {
    const char *name;
    bool is_former; /* a name it once had: read with a warning, and suggested to nobody */
    enum gavel_status (*read)(struct node_reader *reader, const yaml_node_t *value,
                              struct config_draft *draft);
};

static enum gavel_status read_peers(struct node_reader *reader, const yaml_node_t *value,
                                    struct config_draft *draft);
static enum gavel_status read_tls(struct node_reader *reader, const yaml_node_t *value,
                                  struct config_draft *draft);
static enum gavel_status read_timing(struct node_reader *reader, const yaml_node_t *value,
                                     struct config_draft *draft);
static enum gavel_status read_leader_commands(struct node_reader *reader, const yaml_node_t *value,
                                              struct config_draft *draft);
static enum gavel_status read_coordinator(struct node_reader *reader, const yaml_node_t *value,
                                          struct config_draft *draft);
static enum gavel_status read_children(struct node_reader *reader, const yaml_node_t *value,
                                       struct config_draft *draft);

/* What `leader_commands` was called until 0.6. */
#define FORMER_LEADER_COMMANDS "coordinator"

/* The keys that are no single values, by the section they stand in. */
static const struct config_section top_parts[] = {{"peers", false, read_peers},
                                                  {"tls", false, read_tls},
                                                  {"timing", false, read_timing},
                                                  {"leader_commands", false, read_leader_commands},
                                                  {FORMER_LEADER_COMMANDS, true, read_coordinator},
                                                  {0}};
static const struct config_section leader_commands_parts[] = {{"children", false, read_children}, {0}};
static const struct config_section no_parts[] = {{0}};
#define PARTS_MAX 5

static enum gavel_status unknown_key(struct node_reader *reader, const yaml_node_t *key, const char *section,
                                     const struct config_section *parts)
{
    const char *word = (const char *)key->data.scalar.value;
    const struct config_setting *elsewhere = config_setting_by_name(word);
    struct suggestion suggestion;

    suggestion_init(&suggestion, word);
    for (size_t i = 0; i < CONFIG_SETTINGS_COUNT; i++)
        if (strcmp(config_settings[i].section, section) == 0)
            suggestion_offer(&suggestion, config_settings[i].key);
    for (; parts->name; parts++)
        if (!parts->is_former)
            suggestion_offer(&suggestion, parts->name);
    for (size_t i = 0; i < CONFIG_SETTINGS_COUNT; i++) /* a time without its unit */
        if (strcmp(config_settings[i].section, section) == 0 && *word &&
            strncmp(config_settings[i].key, word, strlen(word)) == 0 &&
            strcmp(config_settings[i].key + strlen(word), "_ms") == 0)
            suggestion.best = config_settings[i].key;
    if (suggestion.best)
        return node_wrong(reader, key, "there is no key \"%.60s\"; did you mean \"%s\"?", word,
                          suggestion.best);
    for (size_t i = 0; !elsewhere && i < CONFIG_SETTINGS_COUNT; i++)
        if (strcmp(config_settings[i].key, word) == 0)
            elsewhere = &config_settings[i];
    if (elsewhere && *elsewhere->section)
        return node_wrong(reader, key, "\"%.60s\" is written as %s: {%s: …}", word, elsewhere->section,
                          elsewhere->key);
    if (elsewhere)
        return node_wrong(reader, key, "\"%.60s\" belongs at the top level, not in %s", word, section);
    return node_wrong(reader, key, "there is no key \"%.60s\"; gaveld.yaml(5) lists them", word);
}

static enum gavel_status repeated(struct node_reader *reader, const yaml_node_t *key, int line)
{
    return node_wrong(reader, key, "%.60s is on line %d already; remove one of them",
                      (const char *)key->data.scalar.value, line);
}

static enum gavel_status read_setting(struct node_reader *reader, const yaml_node_t *key,
                                      const yaml_node_t *value, const struct config_setting *setting,
                                      struct config_draft *draft)
{
    size_t id = (size_t)(setting - config_settings);
    struct gavel_error cause = {0};
    const char *text = "";

    if (config_is_set(draft, (enum config_id)id))
        return repeated(reader, key, draft->origins[id].line);
    if (node_text(reader, value, setting->key, &text) != GAVEL_OK)
        return reader->error->status;
    draft->origins[id].source = CONFIG_FILE;
    draft->origins[id].line = node_line(key);
    if (config_value_read(draft, setting, text, &cause) != GAVEL_OK)
        return node_wrong(reader, value, "%s: %s", setting->key, cause.message);
    return GAVEL_OK;
}

static enum gavel_status read_mapping(struct node_reader *reader, const yaml_node_t *node,
                                      const char *section, const struct config_section *parts,
                                      struct config_draft *draft)
{
    int lines[PARTS_MAX] = {0};
    enum gavel_status status = GAVEL_OK;

    if (node->type != YAML_MAPPING_NODE)
        return node_wrong(reader, node, "%s must be lines of the form `key: value`",
                          *section ? section : "the file");
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top && status == GAVEL_OK; pair++) {
        const yaml_node_t *key = node_at(reader, pair->key), *value = node_at(reader, pair->value);
        const struct config_setting *setting;
        size_t i = 0;

        if (key->type != YAML_SCALAR_NODE)
            return node_wrong(reader, key, "a key must be one plain word");
        setting = config_setting_by_key(section, (const char *)key->data.scalar.value);
        while (!setting && parts[i].name && strcmp(parts[i].name, (const char *)key->data.scalar.value) != 0)
            i++;
        if (setting)
            status = read_setting(reader, key, value, setting, draft);
        else if (!parts[i].name)
            status = unknown_key(reader, key, section, parts);
        else if (lines[i])
            status = repeated(reader, key, lines[i]);
        else
            status = parts[i].read(reader, value, draft);
        if (!setting && parts[i].name)
            lines[i] = node_line(key);
    }
    return status;
}

static enum gavel_status read_tls(struct node_reader *reader, const yaml_node_t *value,
                                  struct config_draft *draft)
{
    return read_mapping(reader, value, "tls", no_parts, draft);
}

static enum gavel_status read_timing(struct node_reader *reader, const yaml_node_t *value,
                                     struct config_draft *draft)
{
    return read_mapping(reader, value, "timing", no_parts, draft);
}

static enum gavel_status read_children(struct node_reader *reader, const yaml_node_t *value,
                                       struct config_draft *draft)
{
    draft->children_line = node_line(value);
    return run_file_read_list(reader, value, &draft->config.children);
}

static enum gavel_status read_leader_commands(struct node_reader *reader, const yaml_node_t *value,
                                              struct config_draft *draft)
{
    enum gavel_status status;

    if (draft->config.has_leader_commands)
        return node_wrong(
            reader, value,
            "leader_commands is given already, perhaps by its former name " FORMER_LEADER_COMMANDS
            "; remove one of them");
    status = read_mapping(reader, value, "leader_commands", leader_commands_parts, draft);

    if (status == GAVEL_OK && draft->config.children.count == 0)
        status = node_wrong(reader, value, "leader_commands has no children; list them, or remove it");
    draft->config.has_leader_commands = true;
    return status;
}

static enum gavel_status read_coordinator(struct node_reader *reader, const yaml_node_t *value,
                                          struct config_draft *draft)
{
    config_warn(draft, "%.200s:%d: " FORMER_LEADER_COMMANDS " is called leader_commands now; rename it",
                draft->config.file, node_line(value));
    return read_leader_commands(reader, value, draft);
}

static enum gavel_status read_peer_name(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct daemon_peer *peer = user;
    const char *text = "";

    if (node_text(reader, value, "name", &text) != GAVEL_OK)
        return reader->error->status;
    if (!peer_name_is_good(text))
        return node_wrong(
            reader, value,
            "name: \"%.80s\" is not a valid name; use 1 to %d letters, digits, '.', '-' and '_', the first a letter or a digit",
            text, PEER_NAME_MAX);
    (void)snprintf(peer->name, sizeof peer->name, "%s", text); /* a good one fits */
    return GAVEL_OK;
}

static enum gavel_status read_address(struct node_reader *reader, const yaml_node_t *value, const char *what,
                                      const char *port, char ret_address[PEER_ADDRESS_MAX + 1])
{
    struct gavel_error cause = {0};
    const char *text = "";

    if (node_text(reader, value, what, &text) != GAVEL_OK)
        return reader->error->status;
    if (config_address_read(text, port, ret_address, &cause) != GAVEL_OK)
        return node_wrong(reader, value, "%s: %s", what, cause.message);
    if (config_address_is_any(ret_address))
        return node_wrong(reader, value, "%s: nobody can be reached at %s; write the address of that machine",
                          what, ret_address);
    return GAVEL_OK;
}

static enum gavel_status read_peer_address(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    return read_address(reader, value, "address", CONFIG_PEER_PORT, ((struct daemon_peer *)user)->address);
}

static enum gavel_status read_peer_api(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    return read_address(reader, value, "api", CONFIG_API_PORT, ((struct daemon_peer *)user)->api);
}

static enum gavel_status read_peer_priority(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct gavel_error cause = {0};
    const char *text = "";

    if (node_text(reader, value, "priority", &text) != GAVEL_OK)
        return reader->error->status;
    return config_priority_read(text, &((struct daemon_peer *)user)->priority, &cause)
               ? node_wrong(reader, value, "priority: %s", cause.message)
               : GAVEL_OK;
}

static enum gavel_status read_peer_witness(struct node_reader *reader, const yaml_node_t *value, void *user)
{
    struct gavel_error cause = {0};
    const char *text = "";

    if (node_text(reader, value, "witness", &text) != GAVEL_OK)
        return reader->error->status;
    return word_read_bool(text, &((struct daemon_peer *)user)->is_witness, &cause)
               ? node_wrong(reader, value, "witness: %s", cause.message)
               : GAVEL_OK;
}

static const struct node_key peer_keys[] = {{"name", read_peer_name},       {"address", read_peer_address},
                                            {"api", read_peer_api},         {"priority", read_peer_priority},
                                            {"witness", read_peer_witness}, {0}};

static enum gavel_status read_peers(struct node_reader *reader, const yaml_node_t *value,
                                    struct config_draft *draft)
{
    struct daemon_config *config = &draft->config;
    const yaml_node_item_t *items;

    if (value->type != YAML_SEQUENCE_NODE)
        return node_wrong(reader, value, "peers must be a list, each peer a mapping with name and address");
    draft->peers_line = node_line(value);
    for (items = value->data.sequence.items.start; items < value->data.sequence.items.top; items++) {
        const yaml_node_t *node = node_at(reader, *items);
        struct daemon_peer *peer = &config->peers[config->peer_count];

        if (config->peer_count == RAFT_VOTERS_MAX)
            return node_wrong(reader, node,
                              "a new cluster has at most %d voters; remove this and those that follow",
                              RAFT_VOTERS_MAX);
        if (node_mapping(reader, node, "a peer", peer_keys, peer) != GAVEL_OK)
            return reader->error->status;
        if (!peer->name[0] || !peer->address[0])
            return node_wrong(reader, node, "this peer has no %s", peer->name[0] ? "address" : "name");
        draft->peer_lines[config->peer_count++] = node_line(node);
    }
    return config->peer_count > 0
               ? GAVEL_OK
               : node_wrong(reader, value, "peers is an empty list; name at least this node, or remove it");
}

/* The first document; whether another one follows. */
static enum gavel_status read_document(struct node_reader *reader, yaml_parser_t *parser,
                                       struct config_draft *draft)
{
    const yaml_node_t *root;
    enum gavel_status status = GAVEL_OK;

    if (!yaml_parser_load(parser, &reader->document))
        return error_set(reader->error, GAVEL_ERR_INVALID, "%.200s:%d: this is not valid YAML: %s",
                         reader->name, (int)parser->problem_mark.line + 1,
                         parser->problem ? parser->problem : "unknown reason");
    root = yaml_document_get_root_node(&reader->document);
    if (root)
        status = read_mapping(reader, root, "", top_parts, draft);
    yaml_document_delete(&reader->document);
    if (status != GAVEL_OK || !root)
        return status;
    if (!yaml_parser_load(parser, &reader->document))
        return error_set(reader->error, GAVEL_ERR_INVALID, "%.200s:%d: this is not valid YAML: %s",
                         reader->name, (int)parser->problem_mark.line + 1,
                         parser->problem ? parser->problem : "unknown reason");
    root = yaml_document_get_root_node(&reader->document);
    if (root)
        status = node_wrong(reader, root, "a second document begins here; the file must have only one");
    yaml_document_delete(&reader->document);
    return status;
}

enum gavel_status config_file_read(struct config_draft *draft, const char *file)
{
    struct node_reader reader = {.name = file,
                                 .manual = "gaveld.yaml(5)",
                                 .arena = &draft->config.children.arena,
                                 .error = draft->error};
    enum gavel_status status;
    yaml_parser_t parser;
    size_t length = 0;
    char *bytes = NULL;

    if (strlen(file) >= sizeof draft->config.file)
        return error_set(draft->error, GAVEL_ERR_INVALID, "the path of the configuration file is too long");
    (void)snprintf(draft->config.file, sizeof draft->config.file, "%s", file); /* it fits */
    status = whole_file_read(file, &bytes, &length, draft->error);
    if (status != GAVEL_OK)
        return status;
    if (yaml_parser_initialize(&parser)) {
        yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
        status = read_document(&reader, &parser, draft);
        yaml_parser_delete(&parser);
    } else {
        status = error_set(draft->error, GAVEL_ERR_NO_MEMORY, "out of memory");
    }
    free(bytes);
    return status;
}
