/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/json_out.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    char *copy;

    if (json)
        return json;
    copy = strdup(text);
    if (!copy)
        return NULL;
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    json = json_string(copy);
    free(copy);
    return json;
}

void json_put(json_t *object, const char *key, json_t *value)
{
    if (!value || json_object_set_new(object, key, value))
        abort();
}

void json_put_text(json_t *object, const char *key, const char *text)
{
    json_put(object, key, text_json(text));
}

void json_put_text_or_null(json_t *object, const char *key, const char *text)
{
    json_put(object, key, *text ? text_json(text) : json_null());
}

void json_put_number(json_t *object, const char *key, int64_t number)
{
    json_put(object, key, json_integer(number));
}

void json_put_real(json_t *object, const char *key, double number)
{
    json_put(object, key, json_real(number));
}

void json_put_bool(json_t *object, const char *key, bool value)
{
    json_put(object, key, json_boolean(value));
}

void json_put_time(json_t *object, const char *key, int64_t wall_ms)
{
    char text[25];

    if (wall_ms)
        wall_time_format(wall_ms, text);
    json_put(object, key, wall_ms ? json_string(text) : json_null());
}

char *json_line(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    char *line = NULL;

    if (!text || asprintf(&line, "%s\n", text) < 0)
        abort();
    free(text);
    json_decref(object);
    return line;
}

const char *json_get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

void json_print_line(json_t *object)
{
    char *line = json_line(object);

    fputs(line, stdout); /* cli_finish() looks whether it arrived */
    free(line);
}
