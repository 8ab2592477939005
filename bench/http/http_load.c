/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One thread and one epoll set. A connection is idle or waits for its answer;
 * who is idle stands in a stack.
 */
#include "bench/http/http_load.h"

#include "base/assert.h"
#include "os/clock.h"
#include "wire/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long answers may still come when the last request has been sent. */
#define GRACE_NS (2 * NS_PER_S)

struct line {
    int fd; /* -1: ended */
    gavel_ns asked_at;
    size_t have;
    size_t want; /* bytes of the whole answer; 0: not known yet */
    bool is_judged;
    char answer[LOAD_ANSWER_MAX];
};

struct load {
    const struct load_plan *plan;
    struct load_result *result;
    size_t request_bytes;
    int epoll;
    unsigned open; /* connections that have not ended */
    unsigned idle_count;
    unsigned idle[LOAD_CONNECTIONS_MAX];
    struct line lines[LOAD_CONNECTIONS_MAX];
};

struct load_result *load_result_new(void)
{
    void *memory = mmap(NULL, sizeof(struct load_result), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void load_result_free(struct load_result *result)
{
    if (result)
        (void)munmap(result, sizeof *result); /* fails only for an address that is none */
}

void load_plan_get(struct load_plan *plan, const char *path)
{
    (void)snprintf(plan->request, sizeof plan->request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", path,
                   (unsigned)plan->port);
}

void load_plan_put(struct load_plan *plan, const char *path, const char *body)
{
    (void)snprintf(plan->request, sizeof plan->request,
                   "PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Length: %zu\r\n\r\n%s", path,
                   (unsigned)plan->port, strlen(body), body);
}

/* Blocking to connect, since the other side is on this machine; not afterwards. */
static int dial(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* without it only slower */
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* The greeting and the answer to it, while the connection still blocks. */
static bool greet(const struct load_plan *plan, int fd)
{
    uint8_t length[CLIENT_LENGTH_BYTES];
    char welcome[LOAD_ANSWER_MAX];

    if (plan->kind != LOAD_FRAMES)
        return true;
    if (send(fd, plan->greeting, plan->greeting_bytes, MSG_NOSIGNAL) != (ssize_t)plan->greeting_bytes ||
        recv(fd, length, sizeof length, MSG_WAITALL) != (ssize_t)sizeof length)
        return false;
    size_t size = client_frame_length(length);
    return size <= sizeof welcome && recv(fd, welcome, size, MSG_WAITALL) == (ssize_t)size;
}

static enum gavel_status open_lines(struct load *load)
{
    for (unsigned i = 0; i < load->plan->connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        int fd = dial(load->plan->port);
        if (fd < 0)
            return GAVEL_ERR_IO;
        load->lines[i].fd = fd;
        load->open++;
        if (!greet(load->plan, fd))
            return GAVEL_ERR_IO;
        if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
            return GAVEL_ERR_IO;
        load->idle[load->idle_count++] = i;
    }
    return GAVEL_OK;
}

static void end_line(struct load *load, struct line *line)
{
    (void)close(line->fd);
    line->fd = -1;
    load->open--;
    load->result->failures++;
}

static void ask(struct load *load, gavel_ns at)
{
    struct line *line = &load->lines[load->idle[--load->idle_count]];

    line->asked_at = at;
    line->have = line->want = 0;
    /* It fits: nothing else is on its way on this connection. */
    if (send(line->fd, load->plan->request, load->request_bytes, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)load->request_bytes)
        end_line(load, line);
}

/* How long the answer is whose head has come; 0: the head is not there yet; SIZE_MAX: it is none. */
static size_t answer_length(struct line *line)
{
    static const char version[] = "HTTP/1.1 ", field[] = "\r\nContent-Length:";

    line->answer[line->have] = '\0';
    const char *end = strstr(line->answer, "\r\n\r\n");
    if (!end)
        return line->have == LOAD_ANSWER_MAX - 1 ? SIZE_MAX : 0;
    const char *length = strcasestr(line->answer, field);
    if (strncmp(line->answer, version, strlen(version)) != 0 || !length || length > end)
        return SIZE_MAX;
    size_t body = strtoul(length + strlen(field), NULL, 10);
    size_t head = (size_t)(end - line->answer) + 4;
    return body > LOAD_ANSWER_MAX - 1 - head ? SIZE_MAX : head + body;
}

/* The same of a frame. */
static size_t frame_length(const struct line *line)
{
    uint8_t bytes[CLIENT_LENGTH_BYTES];

    if (line->have < sizeof bytes)
        return 0;
    memcpy(bytes, line->answer, sizeof bytes);
    size_t length = client_frame_length(bytes);
    return length > LOAD_ANSWER_MAX - 1 - sizeof bytes ? SIZE_MAX : sizeof bytes + length;
}

static size_t whole_length(const struct load *load, struct line *line)
{
    switch (load->plan->kind) {
    case LOAD_ECHO:
        return load->request_bytes;
    case LOAD_FRAMES:
        return frame_length(line);
    default:
        return answer_length(line);
    }
}

/* All answers on a connection are alike, and to look into each would be load of another kind. */
static bool is_good(const struct load *load, struct line *line)
{
    bool is_first = !line->is_judged;

    line->is_judged = true;
    return !is_first || !load->plan->judge || load->plan->judge(line->answer, line->have);
}

/* A node that has no leader just now says so by 503; the next answer on this connection may be another. */
static bool is_refusal(const struct load *load, const struct line *line)
{
    static const char ok[] = "HTTP/1.1 200";

    return load->plan->kind == LOAD_HTTP && strncmp(line->answer, ok, strlen(ok)) != 0;
}

static void hear(struct load *load, unsigned number)
{
    struct line *line = &load->lines[number];
    struct load_result *result = load->result;
    ssize_t got = recv(line->fd, line->answer + line->have, LOAD_ANSWER_MAX - 1 - line->have, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        end_line(load, line);
        return;
    }
    line->have += (size_t)got;
    if (!line->want)
        line->want = whole_length(load, line);
    if (line->want == SIZE_MAX || (line->want && line->have > line->want)) {
        end_line(load, line); /* no answer, or more than was asked for */
        return;
    }
    if (!line->want || line->have < line->want)
        return;
    if (is_refusal(load, line)) {
        result->failures++;
        load->idle[load->idle_count++] = number;
        return;
    }
    if (!is_good(load, line)) {
        end_line(load, line);
        return;
    }
    if (result->count < LOAD_SAMPLES_MAX)
        result->latencies[result->count++] = clock_now() - line->asked_at;
    result->answers++;
    load->idle[load->idle_count++] = number;
}

static void await(struct load *load, gavel_ns until)
{
    struct epoll_event events[LOAD_CONNECTIONS_MAX];
    gavel_ns left = ns_max(until - clock_now(), 0);
    struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    int ready = epoll_pwait2(load->epoll, events, LOAD_CONNECTIONS_MAX, &timeout, NULL);

    for (int i = 0; i < ready; i++)
        hear(load, events[i].data.u32);
}

static void run_closed(struct load *load, gavel_ns began)
{
    gavel_ns until = began + load->plan->duration;

    while (clock_now() < until && load->open) {
        while (load->idle_count && load->open)
            ask(load, clock_now());
        await(load, until);
    }
    load->result->elapsed = clock_now() - began;
}

static void run_fixed(struct load *load, gavel_ns began)
{
    uint64_t total = (uint64_t)(load->plan->duration / NS_PER_MS) * load->plan->rate / 1000, sent = 0;
    gavel_ns give_up_at = began + load->plan->duration + GRACE_NS, now;

    while ((now = clock_now()) < give_up_at && load->open) {
        gavel_ns due = began + (gavel_ns)(sent * (uint64_t)NS_PER_S / load->plan->rate);
        if (sent == total && load->idle_count == load->open)
            break;
        if (sent < total && due <= now && load->idle_count) {
            ask(load, due);
            sent++;
            continue;
        }
        await(load, sent < total && load->idle_count ? due : give_up_at);
    }
    load->result->elapsed = clock_now() - began;
    uint64_t over = load->result->answers + load->result->failures;
    load->result->unanswered = total > over ? total - over : 0;
}

enum gavel_status load_run(const struct load_plan *plan, struct load_result *result)
{
    struct load *load = calloc(1, sizeof *load);
    enum gavel_status status = GAVEL_ERR_IO;

    ASSERT(plan->connections > 0 && plan->connections <= LOAD_CONNECTIONS_MAX);
    if (!load)
        return GAVEL_ERR_NO_MEMORY;
    *load = (struct load){.plan = plan,
                          .result = result,
                          .request_bytes = plan->request_bytes ? plan->request_bytes : strlen(plan->request),
                          .epoll = epoll_create1(EPOLL_CLOEXEC)};
    for (unsigned i = 0; i < LOAD_CONNECTIONS_MAX; i++)
        load->lines[i].fd = -1;
    result->answers = result->failures = result->unanswered = 0;
    result->count = 0;
    (void)prctl(PR_SET_TIMERSLACK, 1); /* only less precise without it */
    if (load->epoll >= 0)
        status = open_lines(load);
    if (status == GAVEL_OK) {
        gavel_ns began = clock_now();
        if (plan->rate)
            run_fixed(load, began);
        else
            run_closed(load, began);
        if (!load->open)
            status = GAVEL_ERR_IO;
    }
    for (unsigned i = 0; i < LOAD_CONNECTIONS_MAX; i++)
        if (load->lines[i].fd >= 0)
            (void)close(load->lines[i].fd);
    if (load->epoll >= 0)
        (void)close(load->epoll);
    free(load);
    return status;
}
