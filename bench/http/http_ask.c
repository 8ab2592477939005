/* SPDX-License-Identifier: Apache-2.0 */

/* Plain sockets: what is measured with this shall not be the time of a library. */
#include "bench/http/http_ask.h"

#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX 2048

void http_line_init(struct http_line *line, uint16_t port)
{
    *line = (struct http_line){.port = port, .fd = -1};
}

void http_line_close(struct http_line *line)
{
    if (line->fd >= 0)
        (void)close(line->fd); /* nothing of it is kept */
    line->fd = -1;
}

static bool is_connected(struct http_line *line)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(line->port)};
    int yes = 1;

    if (line->fd >= 0)
        return true;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line->fd < 0)
        return false;
    (void)setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* without it only slower */
    /* On loopback the kernel answers at once, also for a process that is frozen. */
    if (connect(line->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return true;
    http_line_close(line);
    return false;
}

enum gavel_status http_line_ask(struct http_line *line, const char *method, const char *path,
                                const char *body)
{
    char request[REQUEST_MAX];
    int length;

    if (body)
        length = snprintf(request, sizeof request,
                          "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\n\r\n%s",
                          method, path, (unsigned)line->port, strlen(body), body);
    else
        length = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", method,
                          path, (unsigned)line->port);
    if (length < 0 || (size_t)length >= sizeof request || !is_connected(line))
        return GAVEL_ERR_IO;
    if (send(line->fd, request, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) == length)
        return GAVEL_OK;
    http_line_close(line);
    return GAVEL_ERR_IO;
}

/* More bytes of the answer; 0: the connection has ended. Closes it after a failure. */
static enum gavel_status receive(struct http_line *line, gavel_ns until, char *buffer, size_t size,
                                 size_t *ret_got)
{
    struct pollfd news = {.fd = line->fd, .events = POLLIN};
    gavel_ns left = until - clock_now();
    struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    enum gavel_status status = GAVEL_ERR_TIMEOUT;

    if (left > 0 && ppoll(&news, 1, &timeout, NULL) > 0) {
        ssize_t got = recv(line->fd, buffer, size, MSG_DONTWAIT);
        if (got >= 0) {
            *ret_got = (size_t)got;
            return GAVEL_OK;
        }
        status = GAVEL_ERR_IO;
    }
    http_line_close(line);
    return status;
}

/* The length of head and body once the head is there; 0 before. Without a Content-Length there is no body. */
static size_t whole_length(const char *text, size_t *ret_head)
{
    static const char field[] = "\r\nContent-Length:";
    const char *end = strstr(text, "\r\n\r\n");

    if (!end)
        return 0;
    const char *length = strcasestr(text, field);
    *ret_head = (size_t)(end - text) + 4;
    return *ret_head + (length && length < end ? strtoul(length + strlen(field), NULL, 10) : 0);
}

/* 0: it is no answer of HTTP/1.1. */
static int status_code(const char *text)
{
    static const char version[] = "HTTP/1.1 ";

    return strncmp(text, version, strlen(version)) == 0 ? atoi(text + strlen(version)) : 0;
}

enum gavel_status http_line_hear(struct http_line *line, gavel_ns until, struct http_answer *ret_answer)
{
    size_t have = 0, want = 0, head = 0;
    char *text = ret_answer->body;

    while (!want || have < want) {
        size_t got = 0;
        if (line->fd < 0)
            return GAVEL_ERR_IO;
        enum gavel_status status = receive(line, until, text + have, HTTP_ANSWER_MAX - 1 - have, &got);
        if (status != GAVEL_OK)
            return status;
        have += got;
        text[have] = '\0';
        want = whole_length(text, &head);
        if (!got || have == HTTP_ANSWER_MAX - 1) {
            http_line_close(line); /* cut off, or longer than anything that is asked for here */
            return GAVEL_ERR_IO;
        }
    }
    ret_answer->code = status_code(text);
    if (strcasestr(text, "\r\nConnection: close"))
        http_line_close(line);
    memmove(text, text + head, have - head + 1);
    return GAVEL_OK;
}

enum gavel_status http_line_hear_event(struct http_line *line, const char *event, gavel_ns until,
                                       struct http_answer *ret_answer)
{
    size_t have = 0;
    char *text = ret_answer->body, field[64];

    (void)snprintf(field, sizeof field, "\nevent: %s\n", event);
    ret_answer->code = 0;
    text[0] = '\0';
    /* A node sends each event whole, as one chunk, so no head of a chunk is in the middle of it. */
    while (line->fd >= 0) {
        size_t got = 0;
        enum gavel_status status = receive(line, until, text + have, HTTP_ANSWER_MAX - 1 - have, &got);
        if (status != GAVEL_OK)
            return status;
        have += got;
        text[have] = '\0';
        ret_answer->code = status_code(text); /* 0: the head was read with an earlier event */
        if (strstr(text, field))
            return GAVEL_OK;
        if (!got || have == HTTP_ANSWER_MAX - 1 || (ret_answer->code && ret_answer->code != 200))
            http_line_close(line); /* it has ended, or is no stream */
    }
    return GAVEL_ERR_IO;
}

enum gavel_status http_line_get(struct http_line *line, const char *path, gavel_ns until,
                                struct http_answer *ret_answer)
{
    bool was_open = line->fd >= 0;
    enum gavel_status status = http_line_ask(line, "GET", path, NULL);

    if (status == GAVEL_OK)
        status = http_line_hear(line, until, ret_answer);
    if (status == GAVEL_ERR_IO && was_open) {
        http_line_close(line);
        status = http_line_ask(line, "GET", path, NULL);
        if (status == GAVEL_OK)
            status = http_line_hear(line, until, ret_answer);
    }
    return status;
}
