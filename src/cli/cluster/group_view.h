/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A group of a cluster, made from a node's answer. It has the same words and
 * shapes as a group of a store (leadership.h), so that a reader of one can read
 * the other. These functions only use the answers; they ask no node.
 */
#ifndef CLI_CLUSTER_GROUP_VIEW_H
#define CLI_CLUSTER_GROUP_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "held", "empty", "released", "expired", "dead", "done", as from leadership_state_name(). */
const char *group_state(const json_t *group);

/* A sentence about a group without a leader. */
const char *group_state_text(const json_t *group);

/* A group that no node knows: it has never had a leader. The caller owns the object. */
json_t *group_unknown(const char *name);

/* The shape of leadership_json(), plus what only a cluster knows. The caller owns the object. */
json_t *group_leadership_json(const json_t *group);

/* The shape of `gavel candidates --json` for a group with its candidates. The caller owns the object. */
json_t *group_candidates_json(const json_t *group);

/* "2026-11-16T11:00:00.000Z" in milliseconds since 1970; 0 if it is not such a time. */
int64_t group_time(const char *text);

/*
 * A change of leader, in the shape of `gavel watch --json`; NULL for any other
 * change. The caller owns the object.
 */
json_t *group_change_json(const char *kind, const json_t *change, int64_t now_wall_ms);

/* One sentence about such a change, without a full stop. Returns buffer; "" for any other change. */
const char *group_change_words(const char *kind, const json_t *change, char *buffer, size_t size);

/*
 * The value of a note, from its base64. The caller frees it; it ends with a
 * NUL that does not count. NULL: not base64, or no memory.
 */
char *group_value(const json_t *note, size_t *ret_length);

/* Whether a value can be shown to a person: UTF-8 without a NUL. */
bool group_is_text(const char *bytes, size_t length);

/* Puts the value as `value`, or as `value_base64` if it is not text. */
void group_put_value(json_t *json, const char *bytes, size_t length);

#endif
