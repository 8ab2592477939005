/* SPDX-License-Identifier: Apache-2.0 */

/* Clients that mean harm, or know no better. Whatever they do, the next one is served. */
#include "api_frontend.h"

#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000

/* What comes back for some bytes on a new connection, whose other half stays open. */
static const char *say(struct api_frontend *frontend, const char *bytes, size_t length)
{
    static char text[4096];
    int fd = raw_open(frontend);

    for (size_t sent = 0; sent < length;) {
        ssize_t n = send(fd, bytes + sent, length - sent, MSG_NOSIGNAL);

        if (n < 0)
            break; /* closed already: the answer is there */
        sent += (size_t)n;
    }
    (void)raw_hear(fd, text, sizeof text, "}}", LIMIT_MS, NULL);
    (void)close(fd);
    return text;
}

static void expect(struct api_frontend *frontend, const char *bytes, const char *line)
{
    const char *text = say(frontend, bytes, strlen(bytes));

    if (strncmp(text, line, strlen(line)) != 0)
        fail_msg("%.60s: \"%.200s\" instead of \"%s\"", bytes, text, line);
    if (!strstr(text, "{\"error\":{\"code\":"))
        fail_msg("%.60s: no error in JSON: %s", bytes, text);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
}

static void test_what_is_no_http_gets_an_error_in_json(void **state)
{
    expect(*state, "garbage\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "GET\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "GET /leader\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "GET /leader HTTP/9.9\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "GET /leader FTP/1.1\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "GET /leader HTTP/1.1\r\nno colon here\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 hello\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 501 ");
    expect(*state, "get /leader HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 501 ");
    expect(*state, "POST /transfer HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "POST /transfer HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 400 ");
    expect(*state, "POST /transfer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
           "HTTP/1.1 413 ");
}

static void test_zero_bytes_are_no_http_either(void **state)
{
    static const char zeros[1024];

    (void)say(*state, zeros, sizeof zeros);
    (void)say(*state, "GET /leader\0 HTTP/1.1\r\n\r\n", 26);
    assert_int_equal(http_ask(*state, "/leader", NULL, "")->code, 200);
}

static void test_a_body_that_is_too_large_is_refused(void **state)
{
    size_t size = API_BODY_MAX + 1;
    char *body = malloc(size + 1);

    assert_non_null(body);
    memset(body, ' ', size);
    body[size] = '\0';
    (void)http_expect_error(*state, "/transfer", body, 413, GAVEL_ERR_TOO_LARGE);
    body[size - 3] = '{';
    body[size - 2] = '}';
    body[size - 1] = '\0';
    assert_int_equal(http_ask(*state, "/transfer", body, "")->code, 200); /* this one just fits */
    free(body);
    expect(*state, "POST /transfer HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999999\r\n\r\n",
           "HTTP/1.1 413 ");
    expect(*state, "POST /transfer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
           "HTTP/1.1 413 ");
}

static void test_a_chunked_body_is_a_body(void **state)
{
    struct api_frontend *frontend = *state;
    struct request request;
    int fd = raw_open(frontend);
    char text[1024];

    raw_say(fd, "POST /transfer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                "b\r\n{\"target_le\r\ne\r\nader_id\":\"n3\"}\r\n0\r\n\r\n");
    (void)raw_hear(fd, text, sizeof text, "success", LIMIT_MS, NULL);
    assert_non_null(strstr(text, "200 OK"));
    api_frontend_last(frontend, &request);
    assert_string_equal(request.target, "n3");
    (void)close(fd);
}

static void test_headers_and_addresses_have_limits(void **state)
{
    struct api_frontend *frontend = *state;
    char *text = malloc(64 * 1024);
    char header[API_HEADERS_MAX + 64];

    assert_non_null(text);
    (void)snprintf(text, 64 * 1024, "/leader?%0*d", (int)API_URI_MAX, 0);
    (void)http_expect_error(frontend, text, NULL, 414, GAVEL_ERR_INVALID);
    (void)snprintf(header, sizeof header, "X: %0*d", (int)API_HEADERS_MAX, 0);
    assert_int_equal(http_ask(frontend, "/leader", NULL, header)->code, 431);
    (void)snprintf(text, 64 * 1024, "GET /leader HTTP/1.1\r\nX: %0*d\r\n\r\n", 60 * 1024, 0);
    expect(frontend, text, "HTTP/1.1 4");
    (void)snprintf(text, 64 * 1024, "GET /%0*d HTTP/1.1\r\n\r\n", 60 * 1024, 0);
    expect(frontend, text, "HTTP/1.1 4");
    free(text);
}

static void test_requests_one_after_the_other_without_waiting(void **state)
{
    struct api_frontend *frontend = *state;
    char text[16384];
    char request[4096] = "";
    int fd = raw_open(frontend);
    int answers = 0;

    for (int i = 0; i < 20; i++)
        (void)strcat(request, "GET /leader HTTP/1.1\r\nHost: h\r\n\r\n");
    (void)strcat(request, "GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    raw_say(fd, request);
    (void)raw_hear(fd, text, sizeof text, NULL, LIMIT_MS, NULL);
    for (const char *at = text; (at = strstr(at, "HTTP/1.1 200 OK")); at++)
        answers++;
    assert_int_equal(answers, 21);
    (void)close(fd);
}

static void test_requests_behind_one_that_waits_are_served_in_order(void **state)
{
    struct api_frontend *frontend = *state;
    char text[4096];
    int fd = raw_open(frontend);

    frontend->holds = true;
    raw_say(fd, "POST /stepdown HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
    api_frontend_wait_asked(frontend, 1);
    raw_say(fd, "GET /leader HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200); /* the loop has turned since */
    frontend->holds = false;
    (void)raw_hear(fd, text, sizeof text, "\"term\"", LIMIT_MS, NULL);
    assert_non_null(strstr(text, "\"success\":true"));
    assert_non_null(strstr(text, "\"leader_id\""));
    (void)close(fd);
}

/* A byte each half second keeps every time-out of single reads from coming. */
static void test_a_request_that_trickles_in_is_cut_off(void **state)
{
    struct api_frontend *frontend = *state;
    static const char request[] = "GET /leader HTTP/1.1\r\nX: 0123456789012345678901234567890123456789";
    int fd = raw_open(frontend);
    gavel_ns began = clock_now();
    bool is_closed = false;
    char text[64];

    for (size_t i = 0; i < sizeof request - 1 && !is_closed; i++) {
        char message[2] = {request[i], '\0'};

        raw_say(fd, message);
        (void)raw_hear(fd, text, sizeof text, NULL, 500, &is_closed);
    }
    assert_true(is_closed);
    assert_in_range(ms_from_ns(clock_now() - began), API_REQUEST_S * 1000 - 500,
                    API_REQUEST_S * 1000 + LIMIT_MS);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
    (void)close(fd);
}

static void test_two_thousand_idle_connections_keep_nobody_out(void **state)
{
    struct api_frontend *frontend = *state;
    static int fds[2000];
    gavel_ns began;

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        fds[i] = raw_open(frontend);
    began = clock_now();
    for (int i = 0; i < 20; i++)
        assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
    assert_true(clock_now() - began < ns_from_ms(LIMIT_MS));
    assert_non_null(strstr(http_ask(frontend, "/metrics", NULL, "")->body, "\ngavel_http_connections 200"));
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        (void)close(fds[i]);
}

static struct rlimit limit_descriptors(struct api_frontend *frontend, rlim_t most)
{
    struct rlimit before;
    struct rlimit few;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = most, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    frontend->api->fd_limit = (int)most; /* as if it had started with it; nobody is connected yet */
    return before;
}

/* Idle connections go, so that others get in and the node keeps some for itself. */
static void test_descriptors_are_kept_for_the_node(void **state)
{
    struct api_frontend *frontend = *state;
    struct rlimit before = limit_descriptors(frontend, 500);
    int spare[API_SPARE_FDS / 2];
    char text[64];
    bool is_closed;
    int fds[200]; /* client and server are one process here: each connection takes two */

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        fds[i] = raw_open(frontend);
    (void)raw_hear(fds[0], text, sizeof text, NULL, LIMIT_MS, &is_closed);
    assert_true(is_closed);
    for (size_t i = 0; i < sizeof spare / sizeof *spare; i++) {
        spare[i] = dup(STDERR_FILENO);
        assert_true(spare[i] >= 0);
    }
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
    for (size_t i = 0; i < sizeof spare / sizeof *spare; i++)
        (void)close(spare[i]);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        (void)close(fds[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static bool becomes_stream(int fd)
{
    char text[2048] = "";

    raw_say(fd, "GET /events HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    (void)raw_hear(fd, text, sizeof text, "retry", LIMIT_MS, NULL);
    return strstr(text, "retry");
}

/* Streams are not idle and do not go for others; then the others do not get in, and the node keeps its
 * own. */
static void test_streams_do_not_take_the_descriptors_of_the_node(void **state)
{
    struct api_frontend *frontend = *state;
    struct rlimit before = limit_descriptors(frontend, 500);
    int spare[API_SPARE_FDS / 4];
    int fds[260];
    size_t count = 0;

    for (; count < sizeof fds / sizeof *fds; count++) {
        fds[count] = raw_open(frontend);
        if (!becomes_stream(fds[count]))
            break;
    }
    assert_in_range(count, 50, 240);
    for (size_t i = 0; i < sizeof spare / sizeof *spare; i++) {
        spare[i] = dup(STDERR_FILENO);
        assert_true(spare[i] >= 0);
    }
    for (size_t i = 0; i < sizeof spare / sizeof *spare; i++)
        (void)close(spare[i]);
    for (size_t i = 0; i <= count; i++)
        (void)close(fds[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Whether a descriptor from `least` on is that of the node, and not one of these of its clients. */
static bool has_lent(int least, int most, const int *fds, size_t count)
{
    for (int fd = least; fd < most; fd++) {
        bool is_ours = false;

        for (size_t i = 0; i < count; i++)
            is_ours = is_ours || fds[i] == fd;
        if (!is_ours && fcntl(fd, F_GETFD) >= 0)
            return true;
    }
    return false;
}

/* An idle connection makes room for the next, which keeps its own descriptor and becomes a stream. However
 * many there are, what the node needs for itself is not lent. */
static void test_streams_do_not_creep_into_the_descriptors_of_the_node(void **state)
{
    enum { LIMIT = 500, IDLE = API_SPARE_FDS * 3 / 4 };
    struct api_frontend *frontend = *state;
    struct rlimit before = limit_descriptors(frontend, LIMIT);
    int fds[IDLE + 300];
    size_t count = 0;

    for (; count < IDLE; count++)
        fds[count] = raw_open(frontend);
    do {
        assert_true(count < sizeof fds / sizeof *fds);
        fds[count] = raw_open(frontend);
    } while (becomes_stream(fds[count++]));
    assert_in_range(count, IDLE + 20, IDLE + 250);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code,
                     200); /* whoever asks and goes is served */
    assert_false(has_lent(LIMIT - API_SPARE_FDS / 2, LIMIT, fds, count));
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static gavel_ms cpu_ms(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* The connection that cannot be accepted stays readable; a loop that tries again and again would spin. */
static void test_no_descriptor_left_means_waiting_not_spinning(void **state)
{
    struct api_frontend *frontend = *state;
    struct rlimit before = limit_descriptors(frontend, 300);
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(api_port(frontend->api))};
    int taken[300];
    int count = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[512];
    gavel_ms used;

    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while ((taken[count] = dup(STDERR_FILENO)) >= 0)
        count++;
    assert_int_equal(errno, EMFILE);
    assert_int_equal(connect(fd, (struct sockaddr *)&there, sizeof there), 0);
    raw_say(fd, "GET /leader HTTP/1.1\r\nHost: h\r\n\r\n");
    used = cpu_ms();
    assert_int_equal(raw_hear(fd, text, sizeof text, NULL, 1000, NULL), 0);
    assert_true(cpu_ms() - used < 500);
    while (count-- > 0)
        (void)close(taken[count]);
    (void)raw_hear(fd, text, sizeof text, "leader_id", LIMIT_MS, NULL);
    assert_non_null(strstr(text, "leader_id"));
    (void)close(fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_frontend_setup, api_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_no_http_gets_an_error_in_json),
        TEST(test_zero_bytes_are_no_http_either),
        TEST(test_a_body_that_is_too_large_is_refused),
        TEST(test_a_chunked_body_is_a_body),
        TEST(test_headers_and_addresses_have_limits),
        TEST(test_requests_one_after_the_other_without_waiting),
        TEST(test_requests_behind_one_that_waits_are_served_in_order),
        TEST(test_a_request_that_trickles_in_is_cut_off),
        TEST(test_two_thousand_idle_connections_keep_nobody_out),
        TEST(test_descriptors_are_kept_for_the_node),
        TEST(test_streams_do_not_take_the_descriptors_of_the_node),
        TEST(test_streams_do_not_creep_into_the_descriptors_of_the_node),
        TEST(test_no_descriptor_left_means_waiting_not_spinning),
    };

    return cmocka_run_group_tests_name("api hostile", tests, NULL, NULL);
}
