/* SPDX-License-Identifier: Apache-2.0 */

/*
 * knock WHAT PORT [COUNT]: what strangers do to a port on loopback.
 *
 *     idle     opens COUNT connections and says nothing on them until its own input ends; prints how many are
 *              open, then how many the other side has left open
 *     garbage  COUNT connections, each with something else that is no frame; waits until each is closed
 *     loris    COUNT connections, each with a request that never ends, a byte at a time; until all are closed
 *     obituary COUNT datagrams of the size of an obituary, and of others
 *
 * The exit code is 1 if what is to be closed is not closed within 30 s, and 2 if it could not knock.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 60000
#define COUNT_MAX 20000

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail on Linux */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The same bytes in every run. */
static uint32_t scramble(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static struct sockaddr_in address_of(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int dial(int port)
{
    struct sockaddr_in address = address_of(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) {
        fprintf(stderr, "knock: port %d: %s\n", port, strerror(errno));
        exit(2);
    }
    return fd;
}

/* Whether the other side has closed it. What it says is thrown away. */
static bool is_closed(int fd)
{
    char sink[4096];
    ssize_t n = recv(fd, sink, sizeof sink, MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static bool await_closed(int fd, int64_t deadline)
{
    while (!is_closed(fd)) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};

        if (now_ms() > deadline)
            return false;
        (void)poll(&wait, 1, 100);
    }
    return true;
}

static int idle(int port, int count)
{
    static int fds[COUNT_MAX];
    int left = 0;

    for (int i = 0; i < count; i++)
        fds[i] = dial(port);
    printf("%d open\n", count);
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    for (int i = 0; i < count; i++)
        left += !is_closed(fds[i]);
    printf("%d left\n", left);
    return 0;
}

/* Something else each time: noise, lengths that are too large or too small, frames cut short, HTTP, TLS. */
static size_t write_garbage(int which, uint32_t *state, uint8_t *bytes, size_t size)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    static const uint8_t tls[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03};
    size_t length = 1 + scramble(state) % (size - 1);
    uint32_t head;

    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)scramble(state);
    switch (which % 7) {
    case 0:
        return length;
    case 1:
        memset(bytes, 0xff, 4); /* four gigabytes are to follow */
        return length < 4 ? 4 : length;
    case 2:
        memset(bytes, 0, 4);
        return 4;
    case 3:
        head = htonl((uint32_t)length);
        memcpy(bytes, &head, 4);
        return length < 4 ? 4 : length; /* four bytes short */
    case 4:
        head = htonl(64);
        memcpy(bytes, &head, 4);
        return 4 + 64 <= size ? 4 + 64 : 4; /* a whole frame of noise */
    case 5:
        memcpy(bytes, http, sizeof http - 1);
        return sizeof http - 1;
    default:
        memcpy(bytes, tls, sizeof tls);
        return sizeof tls;
    }
}

static int garbage(int port, int count)
{
    static int fds[COUNT_MAX];
    uint32_t state = 2463534242;
    uint8_t bytes[512] = {0};
    int64_t deadline;

    for (int i = 0; i < count; i++) {
        size_t length = write_garbage(i, &state, bytes, sizeof bytes);

        fds[i] = dial(port);
        (void)send(fds[i], bytes, length, MSG_NOSIGNAL); /* it may close before we are done */
    }
    deadline = now_ms() + LIMIT_MS;
    for (int i = 0; i < count; i++) {
        if (!await_closed(fds[i], deadline)) {
            fprintf(stderr, "knock: connection %d is still open\n", i);
            return 1;
        }
        close(fds[i]);
    }
    printf("%d closed\n", count);
    return 0;
}

static int loris(int port, int count)
{
    static const char head[] = "GET /leader HTTP/1.1\r\nHost: x\r\nX-Slow: ";
    static int fds[COUNT_MAX];
    int64_t began = now_ms();
    int left = count;

    for (int i = 0; i < count; i++) {
        fds[i] = dial(port);
        (void)send(fds[i], head, sizeof head - 1, MSG_NOSIGNAL);
    }
    printf("%d open\n", count);
    fflush(stdout);
    while (left > 0) {
        if (now_ms() - began > LIMIT_MS) {
            fprintf(stderr, "knock: %d connections are still open\n", left);
            return 1;
        }
        (void)poll(NULL, 0, 200);
        for (int i = 0; i < count; i++) {
            if (fds[i] >= 0 && (is_closed(fds[i]) || send(fds[i], "x", 1, MSG_NOSIGNAL) < 0)) {
                close(fds[i]);
                fds[i] = -1;
                left--;
            }
        }
    }
    printf("%d closed after %lld ms\n", count, (long long)(now_ms() - began));
    return 0;
}

static int obituary(int port, int count)
{
    struct sockaddr_in address = address_of(port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint32_t state = 88172645;
    uint8_t bytes[1024];

    for (int i = 0; fd >= 0 && i < count; i++) {
        size_t length = i % 2 ? 80 : scramble(&state) % sizeof bytes;

        for (size_t k = 0; k < length; k++)
            bytes[k] = (uint8_t)scramble(&state);
        (void)sendto(fd, bytes, length, 0, (struct sockaddr *)&address, sizeof address); /* may be lost */
    }
    close(fd);
    return fd < 0 ? 2 : 0;
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    int count = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;
    int port = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;

    if (argc < 3 || count < 1 || count > COUNT_MAX) {
        fprintf(stderr, "knock: usage: knock idle|garbage|loris|obituary PORT [COUNT]\n");
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* without it dial() fails, and says so */
    }
    if (strcmp(argv[1], "idle") == 0)
        return idle(port, count);
    if (strcmp(argv[1], "garbage") == 0)
        return garbage(port, count);
    if (strcmp(argv[1], "loris") == 0)
        return loris(port, count);
    if (strcmp(argv[1], "obituary") == 0)
        return obituary(port, count);
    fprintf(stderr, "knock: what is \"%s\"?\n", argv[1]);
    return 2;
}
