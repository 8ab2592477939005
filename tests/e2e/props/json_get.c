/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-get PATH…: reads JSON from stdin, one document per line, and prints
 * the value at each path, one line per document, tab between paths. A path is
 * keys and positions separated by dots: `candidates.0.candidate`; `#` at its
 * end is the length of an array; `.` is the document itself.
 *
 * json-get --from PORT TARGET PATH…: the document is the body of what a server
 * on that port of this machine answers to GET TARGET, whatever its code; for
 * what tests ask hundreds of times, since curl takes ten times as long to
 * start. Whoever has not answered within five seconds does not.
 *
 * Fails if a line is not JSON, has a key twice, or lacks a path; and if there
 * is no line at all, so that a test cannot pass on nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

    snprintf(copy, sizeof copy, "%s", path);
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

/* Asks a server; returns what it answers as a file to read, after its head, or NULL. */
static FILE *ask(const char *port, const char *target)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t size = 0;
    int is_body = 0;

    alarm(5);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!file || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        dprintf(fd, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n", target, port) < 0) {
        fprintf(stderr, "json-get: cannot ask port %s: %s\n", port, strerror(errno));
        return NULL;
    }
    while (!is_body && getline(&line, &size, file) > 0) {
        if (strncasecmp(line, "Transfer-Encoding:", 18) == 0) {
            fprintf(stderr, "json-get: cannot read an answer in pieces\n");
            break;
        }
        is_body = strcmp(line, "\r\n") == 0;
    }
    free(line);
    return is_body ? file : NULL;
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;
    int lines = 0, code = 0, first = 1;
    FILE *input = stdin;

    if (argc > 3 && strcmp(argv[1], "--from") == 0) {
        input = ask(argv[2], argv[3]);
        first = 4;
    }
    if (!input)
        return 1;
    while (!code && getline(&line, &size, input) > 0) {
        json_error_t error;
        json_t *root = json_loads(line, JSON_REJECT_DUPLICATES, &error);

        lines++;
        if (!root) {
            fprintf(stderr, "json-get: line %d is not JSON: %s: %s", lines, error.text, line);
            code = 1;
        }
        for (int i = first; !code && i < argc; i++) {
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
