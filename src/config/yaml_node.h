/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads nested parts of the configuration file: nodes of a libyaml document,
 * each of which knows its line. Errors are reported as "file:line: …".
 */
#ifndef CONFIG_YAML_NODE_H
#define CONFIG_YAML_NODE_H

#include "config/arena.h"

#include <gavel/settings.h>

#include <yaml.h>

struct node_reader {
    const char *name;   /* of the file */
    const char *manual; /* the man page that lists its keys; NULL: gavel.yaml(5) */
    yaml_document_t document;
    struct arena *arena; /* holds the texts that are read */
    struct gavel_error *error;
};

/* A key of a mapping and what reads its value. */
struct node_key {
    const char *name;
    enum gavel_status (*read)(struct node_reader *reader, const yaml_node_t *value, void *user);
};

#define NODE_KEYS_MAX 16

int node_line(const yaml_node_t *node);

/* ERR_INVALID: "file:line: " and what is wrong with that node. */
GAVEL_CHECKED enum gavel_status node_wrong(const struct node_reader *reader, const yaml_node_t *node,
                                           const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A scalar that is present, though it may be ""; `what` is its name in messages. */
GAVEL_CHECKED enum gavel_status node_text(struct node_reader *reader, const yaml_node_t *node,
                                          const char *what, const char **ret_text);

/* A duration from `least` to 30 days. */
GAVEL_CHECKED enum gavel_status node_duration(struct node_reader *reader, const yaml_node_t *node,
                                              const char *what, gavel_ms least, gavel_ms *ret_ms);

/*
 * Reads a mapping by a table of its keys, which ends with a NULL name; unknown
 * and repeated keys are errors.
 */
GAVEL_CHECKED enum gavel_status node_mapping(struct node_reader *reader, const yaml_node_t *node,
                                             const char *what, const struct node_key *keys, void *user);

/* The nodes of a pair or an item; never NULL in a document that was loaded. */
const yaml_node_t *node_at(struct node_reader *reader, int index);

#endif
