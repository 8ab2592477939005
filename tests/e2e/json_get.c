/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-get PATH…: reads JSON from stdin, one document per line, and prints
 * the value at each path, one line per document, tab between paths. A path is
 * keys and positions separated by dots: `candidates.0.candidate`; `#` at its
 * end is the length of an array; `.` is the document itself.
 *
 * Fails if a line is not JSON, has a key twice, or lacks a path; and if there
 * is no line at all, so that a test cannot pass on nothing.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const json_t *step(const json_t *at, const char *name)
{
    char *end;
    unsigned long position;

    if (json_is_object(at))
        return json_object_get(at, name);
    position = strtoul(name, &end, 10);
    return json_is_array(at) && *name && !*end ? json_array_get(at, position) : NULL;
}

static int print_value(const json_t *value)
{
    char *text;

    if (json_is_string(value))
        return printf("%s", json_string_value(value)) < 0;
    text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!text || printf("%s", text) < 0)
        return 1;
    free(text);
    return 0;
}

static int print_path(const json_t *root, const char *path)
{
    char copy[256];
    char *rest = copy;
    const json_t *at = root;

    snprintf(copy, sizeof(copy), "%s", path);
    for (char *name = strsep(&rest, "."); name && at; name = strsep(&rest, ".")) {
        if (strcmp(name, "#") == 0 && json_is_array(at))
            return printf("%zu", json_array_size(at)) < 0;
        if (*name)
            at = step(at, name);
    }
    if (!at) {
        fprintf(stderr, "json-get: there is no %s\n", path);
        return 1;
    }
    return print_value(at);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;
    int lines = 0, code = 0;

    while (!code && getline(&line, &size, stdin) > 0) {
        json_error_t error;
        json_t *root = json_loads(line, JSON_REJECT_DUPLICATES, &error);

        lines++;
        if (!root) {
            fprintf(stderr, "json-get: line %d is not JSON: %s: %s", lines, error.text, line);
            code = 1;
        }
        for (int i = 1; !code && i < argc; i++) {
            code = print_path(root, argv[i]);
            if (!code)
                putchar(i + 1 < argc ? '\t' : '\n');
        }
        json_decref(root);
    }
    free(line);
    if (!lines)
        fprintf(stderr, "json-get: there is nothing to read\n");
    return code || !lines;
}
