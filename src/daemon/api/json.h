/* SPDX-License-Identifier: Apache-2.0 */

/* JSON of the API: making answers, and reading bodies strictly. */
#ifndef DAEMON_API_JSON_H
#define DAEMON_API_JSON_H

#include "daemon/api/internal.h"

#include <jansson.h>

/* Ends the call with a document, and takes it over. NULL: memory ran out, and the client is told so. */
void api_reply_json(struct api_call *call, int code, json_t *body);

/* Fits a signed integer: terms, indices and epochs stay below 2^62. */
json_t *json_u64(uint64_t number);
/* Text that may come from others: what is not UTF-8 becomes '?'. */
json_t *json_words(const char *text);
/* The same; null for "". */
json_t *json_text(const char *text);
/* "2026-11-15T12:00:00.123Z" */
json_t *json_wall(int64_t wall_ms);
/* 16 digits, for ids and digests: not every language has integers of 64 bits. */
json_t *json_hex(uint64_t number);

/* Whether it needs no escapes in a JSON string; for answers that are made without a tree. */
bool json_is_plain(const char *text);
/* Bytes as base64. */
json_t *json_base64(const uint8_t *bytes, size_t size);

/* stream.c: one event; takes the data over (NULL: no memory, and it is lost). id NULL: none. */
void api_stream_tell(struct api_stream *stream, const char *id, const char *event, json_t *data);

/* A key that a body may have. */
struct api_key {
    const char *name;
    json_type type; /* JSON_TRUE stands for both booleans */
    bool is_required;
};

/*
 * The body of a POST as an object with these keys and no others. An empty body is {}; null counts as a
 * missing key. False: the call has been answered, with the line of the mistake or the key that is wrong.
 */
bool api_body_read(struct api_call *call, const struct api_key *keys, size_t count, json_t **ret_body);

/* From a body that was read: the value, or the default if the key is missing. */
const char *api_body_text(json_t *body, const char *key);
bool api_body_flag(json_t *body, const char *key);
/* False: the call has been answered. *ret_value is untouched if the key is missing. */
bool api_body_number(struct api_call *call, json_t *body, const char *key, int64_t least, int64_t most,
                     int64_t *ret_value);

#endif
