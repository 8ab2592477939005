/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A group of a cluster, made out of what a node says of it. The same words and
 * the same shapes as for a group of a store (leadership.h), so that whoever reads
 * the one can read the other. Functions of the answers alone; nothing is asked
 * here.
 */
#ifndef CLI_CLUSTER_GROUP_VIEW_H
#define CLI_CLUSTER_GROUP_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "held", "empty", "released", "expired", "dead", "done", as leadership_state_name() has them. */
const char *group_state(const json_t *group);

/* A sentence about a group that nobody leads. */
const char *group_state_text(const json_t *group);

/* What a group is that no node knows of: nobody has led it. The caller gets the object. */
json_t *group_unknown(const char *name);

/* The shape of leadership_json(), with what only a cluster knows besides. The caller gets the object. */
json_t *group_leadership_json(const json_t *group);

/* The shape of `gavel candidates --json` for a group with its candidates. The caller gets the object. */
json_t *group_candidates_json(const json_t *group);

/* "2026-11-16T11:00:00.000Z" in milliseconds since 1970; 0 if it is no such time. */
int64_t group_time(const char *text);

/*
 * A change of who leads, in the shape of `gavel watch --json`; NULL for a
 * change of something else. The caller gets the object.
 */
json_t *group_change_json(const char *kind, const json_t *change, int64_t now_wall_ms);

/* One sentence about such a change, without a full stop. Returns buffer; "" for a change of something
 * else. */
const char *group_change_words(const char *kind, const json_t *change, char *buffer, size_t size);

/*
 * The value of a note, from its base64. The caller frees it; it ends with a
 * NUL that does not count. NULL: not base64, or no memory.
 */
char *group_value(const json_t *note, size_t *ret_length);

/* Whether a value can be shown to a person: UTF-8 without a NUL. */
bool group_is_text(const char *bytes, size_t length);

/* Puts the value as `value`, or as `value_base64` if it is no text. */
void group_put_value(json_t *json, const char *bytes, size_t length);

#endif
