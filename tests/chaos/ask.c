/* SPDX-License-Identifier: Apache-2.0 */

#include "ask.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX (1u << 20)

int64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t); /* cannot fail on Linux */
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t now_ms(void) { return now_ns() / 1000000; }

static bool is_ready(int fd, short events, int64_t deadline_ms)
{
    int64_t left = deadline_ms - now_ms();
    struct pollfd wait = {.fd = fd, .events = events};

    return left > 0 && poll(&wait, 1, (int)left) == 1;
}

static bool send_all(int fd, const char *text, int64_t deadline_ms)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t n;

        if (!is_ready(fd, POLLOUT, deadline_ms))
            return false;
        n = send(fd, text, left, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return false;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Until the other side closes; NULL if it does not in time. The caller frees it. */
static char *receive_all(int fd, int64_t deadline_ms)
{
    char *answer = malloc(ANSWER_MAX);
    size_t length = 0;

    while (answer && length + 1 < ANSWER_MAX && is_ready(fd, POLLIN, deadline_ms)) {
        ssize_t n = recv(fd, answer + length, ANSWER_MAX - length - 1, 0);

        if (n == 0) {
            answer[length] = '\0';
            return answer;
        }
        if (n < 0 && errno != EAGAIN)
            break;
        length += n > 0 ? (size_t)n : 0;
    }
    free(answer);
    return NULL;
}

static char *converse(const struct ask *q)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)q->port)};
    int64_t deadline_ms = now_ms() + q->limit_ms;
    int fd = net_socket(q->net, q->node);
    const char *body = q->body ? q->body : "";
    char text[2048], *answer = NULL;

    if (fd < 0)
        return NULL;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             q->method, q->path, q->port, strlen(body), body);
    if ((connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS) &&
        send_all(fd, text, deadline_ms))
        answer = receive_all(fd, deadline_ms);
    close(fd);
    return answer;
}

int ask(const struct ask *q, json_t **ret_json)
{
    char *answer = converse(q), *body;
    int code = 0;

    if (ret_json)
        *ret_json = NULL;
    if (!answer)
        return 0;
    if (sscanf(answer, "HTTP/1.%*d %d", &code) != 1)
        code = 0;
    body = strstr(answer, "\r\n\r\n");
    if (ret_json && body)
        *ret_json = json_loads(body + 4, 0, NULL);
    free(answer);
    return code;
}
