/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON for --json. Out of memory while making a few small objects aborts:
 * half an answer would be worse, and nothing is lost.
 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Text that is not UTF-8 has its bad bytes replaced by '?'. */
void json_put_text(json_t *object, const char *key, const char *text);
void json_put_text_or_null(json_t *object, const char *key, const char *text); /* null for "" */
void json_put_number(json_t *object, const char *key, int64_t number);
void json_put_real(json_t *object, const char *key, double number);
void json_put_bool(json_t *object, const char *key, bool value);
void json_put_time(json_t *object, const char *key, int64_t wall_ms); /* ISO 8601; null for 0 */
void json_put(json_t *object, const char *key, json_t *value);        /* hands value over */

/* A text of an answer; "" for null, for another type, or if it is absent. */
const char *json_get_text(const json_t *object, const char *key);

/* One line on stdout. Hands the object over. */
void json_print_line(json_t *object);

/* One line, with its newline; the caller frees it. Hands the object over. */
char *json_line(json_t *object);

#endif
