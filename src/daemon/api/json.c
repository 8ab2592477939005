/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/api/json.h"

#include "base/log.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void api_reply_json(struct api_call *call, int code, json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

    if (text)
        api_reply(call, code, "application/json", text, strlen(text));
    else
        api_reply_error(call, 500, GAVEL_ERR_NO_MEMORY, "out of memory for the answer; ask again");
    free(text);
    json_decref(body);
}

json_t *json_u64(uint64_t number) { return json_integer((json_int_t)(number & INT64_MAX)); }

json_t *json_words(const char *text)
{
    json_t *words = json_string(text);
    char plain[1024];
    size_t length = 0;

    if (words)
        return words;
    for (; length < sizeof plain - 1 && text[length]; length++) {
        plain[length] = text[length];
        if (plain[length] < ' ' || plain[length] > '~')
            plain[length] = '?';
    }
    return json_stringn(plain, length);
}

json_t *json_text(const char *text) { return text[0] ? json_words(text) : json_null(); }

json_t *json_wall(int64_t wall_ms)
{
    char text[25];

    wall_time_format(wall_ms, text);
    return json_string(text);
}

json_t *json_hex(uint64_t number)
{
    char text[17];

    (void)snprintf(text, sizeof text, "%016" PRIx64, number);
    return json_string(text);
}

bool json_is_plain(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
            return false;
    return true;
}

json_t *json_base64(const uint8_t *bytes, size_t size)
{
    unsigned char *text = malloc(4 * ((size + 2) / 3) + 1);
    json_t *json = NULL;

    if (text) {
        (void)EVP_EncodeBlock(text, bytes, (int)size); /* values are small */
        json = json_string((const char *)text);
    }
    free(text);
    return json;
}

static const char *type_name(json_type type)
{
    switch (type) {
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "something else";
    }
}

static bool has_type(const json_t *value, json_type type)
{
    return type == JSON_TRUE ? json_is_boolean(value) : json_typeof(value) == type;
}

static const struct api_key *find(const struct api_key *keys, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

/* False: the call has been answered. */
static bool check_keys(struct api_call *call, json_t *body, const struct api_key *keys, size_t count)
{
    const char *name;
    json_t *value;

    json_object_foreach(body, name, value) {
        const struct api_key *key = find(keys, count, name);

        if (!key) {
            api_reply_error(call, 400, GAVEL_ERR_INVALID,
                            "\"%.64s\" is not a key of this call; the keys are in %s", name, "/openapi.json");
            return false;
        }
        if (!json_is_null(value) && !has_type(value, key->type)) {
            api_reply_error(call, 400, GAVEL_ERR_INVALID, "\"%s\" must be %s", name, type_name(key->type));
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        value = json_object_get(body, keys[i].name);
        if (keys[i].is_required && (!value || json_is_null(value))) {
            api_reply_error(call, 400, GAVEL_ERR_INVALID, "\"%s\" is missing", keys[i].name);
            return false;
        }
    }
    return true;
}

bool api_body_read(struct api_call *call, const struct api_key *keys, size_t count, json_t **ret_body)
{
    struct evbuffer *buffer = evhttp_request_get_input_buffer(call->http);
    size_t length = evbuffer_get_length(buffer);
    const char *bytes = length > 0 ? (const char *)evbuffer_pullup(buffer, -1) : "";
    json_error_t error = {0};
    json_t *body;

    if (length == 0 || !bytes)
        body = json_object();
    else
        body = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (!body) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "the body is not JSON: line %d, column %d: %s",
                        error.line, error.column, error.text);
        return false;
    }
    if (!json_is_object(body))
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "the body must be a JSON object, such as {}");
    else if (check_keys(call, body, keys, count)) {
        *ret_body = body;
        return true;
    }
    json_decref(body);
    return false;
}

const char *api_body_text(json_t *body, const char *key)
{
    const char *text = json_string_value(json_object_get(body, key));

    return text ? text : "";
}

bool api_body_flag(json_t *body, const char *key) { return json_is_true(json_object_get(body, key)); }

bool api_body_number(struct api_call *call, json_t *body, const char *key, int64_t least, int64_t most,
                     int64_t *ret_value)
{
    const json_t *value = json_object_get(body, key);
    int64_t number;

    if (!value || json_is_null(value))
        return true;
    number = json_integer_value(value);
    if (number < least || number > most) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "\"%s\" must be between %" PRId64 " and %" PRId64, key,
                        least, most);
        return false;
    }
    *ret_value = number;
    return true;
}
