/* SPDX-License-Identifier: Apache-2.0 */

/* The makers of load and of single questions, against small servers in a thread. */
#include "bench/http/http_ask.h"
#include "bench/http/http_load.h"
#include "os/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_NS (60 * NS_PER_S)

/* A server that says the same to every request, one connection after the other. */
struct server {
    pthread_t thread;
    int listener;
    int control;
    uint16_t port;
    bool is_echo;
    const char *answer;  /* in two halves */
    int stall_ms;        /* before the first answer */
    unsigned per_answer; /* connections are closed after so many; 0: never */
};

/* True unless the server shall end. */
static bool await_input(const struct server *server, int fd)
{
    struct pollfd news[2] = {{.fd = server->control, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    while (poll(news, 2, -1) < 0 && errno == EINTR)
        ;
    return !news[0].revents;
}

static bool say(int fd, const char *text, size_t length)
{
    return send(fd, text, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static void serve_one(struct server *server, int fd)
{
    char buffer[LOAD_REQUEST_MAX];
    size_t half = strlen(server->answer) / 2;
    int yes = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* the halves shall not wait */
    for (unsigned said = 0; !server->per_answer || said < server->per_answer; said++) {
        if (!await_input(server, fd) || recv(fd, buffer, sizeof buffer, 0) <= 0)
            return;
        if (server->stall_ms)
            (void)poll(NULL, 0, server->stall_ms);
        server->stall_ms = 0;
        if (!say(fd, server->answer, half) || !say(fd, server->answer + half, strlen(server->answer) - half))
            return;
    }
}

static void *serve(void *user)
{
    struct server *server = user;

    if (server->is_echo)
        return load_echo_run(server->listener, server->control) != GAVEL_OK ? server : NULL;
    while (await_input(server, server->listener)) {
        int fd = accept(server->listener, NULL, NULL);
        if (fd < 0)
            continue;
        serve_one(server, fd);
        (void)close(fd);
    }
    return NULL;
}

static void start(struct server *server)
{
    server->listener = load_echo_listen(&server->port);
    server->control = eventfd(0, EFD_CLOEXEC);
    assert_true(server->listener >= 0 && server->control >= 0);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct server *server)
{
    void *failed;

    assert_int_equal(eventfd_write(server->control, 1), 0);
    assert_int_equal(pthread_join(server->thread, &failed), 0);
    assert_null(failed);
    (void)close(server->listener);
    (void)close(server->control);
}

static void test_a_fixed_rate_asks_exactly_so_often(void **state)
{
    struct server server = {.is_echo = true};
    struct load_result *result = load_result_new();

    (void)state;
    assert_non_null(result);
    start(&server);
    struct load_plan plan = {
        .port = server.port, .connections = 4, .kind = LOAD_ECHO, .rate = 1000, .duration = NS_PER_S / 5};
    load_plan_get(&plan, "/leader");
    assert_int_equal(load_run(&plan, result), GAVEL_OK);
    assert_int_equal(result->answers, 200);
    assert_int_equal(result->count, 200);
    assert_int_equal(result->failures, 0);
    assert_int_equal(result->unanswered, 0);
    assert_true(result->elapsed >= NS_PER_S / 1000 * 199);
    stop(&server);
    load_result_free(result);
}

static void test_a_closed_loop_asks_again_when_it_is_answered(void **state)
{
    struct server server = {.is_echo = true};
    struct load_result *result = load_result_new();

    (void)state;
    assert_non_null(result);
    start(&server);
    struct load_plan plan = {
        .port = server.port, .connections = 16, .kind = LOAD_ECHO, .duration = NS_PER_S / 10};
    load_plan_get(&plan, "/leader");
    assert_int_equal(load_run(&plan, result), GAVEL_OK);
    assert_true(result->answers > 16);
    assert_int_equal(result->answers, result->count);
    assert_int_equal(result->failures, 0);
    stop(&server);
    load_result_free(result);
}

static void test_requests_that_were_due_during_a_stall_all_tell_of_it(void **state)
{
    struct server server = {.answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", .stall_ms = 300};
    struct load_result *result = load_result_new();
    size_t slow = 0;

    (void)state;
    assert_non_null(result);
    start(&server);
    struct load_plan plan = {.port = server.port, .connections = 1, .rate = 1000, .duration = NS_PER_S / 2};
    load_plan_get(&plan, "/leader");
    assert_int_equal(load_run(&plan, result), GAVEL_OK);
    assert_int_equal(result->answers, 500);
    for (size_t i = 0; i < result->count; i++)
        slow += result->latencies[i] >= 100 * NS_PER_MS;
    assert_true(slow >= 200); /* those due in the first 200 ms */
    stop(&server);
    load_result_free(result);
}

/* It used to end the connection, and with the last one the benchmark, where a node knew no leader for a
 * moment. */
static void test_an_answer_that_is_not_200_is_a_failure_and_the_connection_goes_on(void **state)
{
    struct server server = {.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", .per_answer = 3};
    struct load_result *result = load_result_new();

    (void)state;
    assert_non_null(result);
    start(&server);
    struct load_plan plan = {.port = server.port, .connections = 1, .duration = LIMIT_NS};
    load_plan_get(&plan, "/leader");
    assert_int_equal(load_run(&plan, result), GAVEL_ERR_IO); /* its only connection is lost */
    assert_int_equal(result->failures, 4);                   /* three answers, and that */
    assert_int_equal(result->answers, 0);
    stop(&server);
    load_result_free(result);
}

static void test_a_load_on_nobody_fails(void **state)
{
    struct load_result *result = load_result_new();
    uint16_t port;
    int listener = load_echo_listen(&port);

    (void)state;
    assert_non_null(result);
    assert_true(listener >= 0);
    (void)close(listener); /* nobody listens there now */
    struct load_plan plan = {.port = port, .connections = 1, .kind = LOAD_ECHO, .duration = LIMIT_NS};
    load_plan_get(&plan, "/leader");
    assert_int_equal(load_run(&plan, result), GAVEL_ERR_IO);
    load_result_free(result);
}

static void test_a_line_hears_the_whole_answer_and_dials_again(void **state)
{
    struct server server = {.answer = "HTTP/1.1 404 No\r\nContent-Length: 10\r\n\r\n0123456789",
                            .per_answer = 1};
    struct http_answer *answer = malloc(sizeof *answer);
    struct http_line line;

    (void)state;
    assert_non_null(answer);
    start(&server);
    http_line_init(&line, server.port);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(http_line_get(&line, "/status", clock_now() + LIMIT_NS, answer), GAVEL_OK);
        assert_int_equal(answer->code, 404);
        assert_string_equal(answer->body, "0123456789");
    }
    http_line_close(&line);
    stop(&server);
    free(answer);
}

static void test_a_line_does_not_wait_for_ever(void **state)
{
    struct server server = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", .per_answer = 0};
    struct http_answer *answer = malloc(sizeof *answer);
    struct http_line line;

    (void)state;
    assert_non_null(answer);
    start(&server);
    http_line_init(&line, server.port);
    assert_int_equal(http_line_get(&line, "/status", clock_now() + 50 * NS_PER_MS, answer),
                     GAVEL_ERR_TIMEOUT);
    assert_int_equal(line.fd, -1);
    http_line_close(&line);
    stop(&server);
    free(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fixed_rate_asks_exactly_so_often),
        cmocka_unit_test(test_a_closed_loop_asks_again_when_it_is_answered),
        cmocka_unit_test(test_requests_that_were_due_during_a_stall_all_tell_of_it),
        cmocka_unit_test(test_an_answer_that_is_not_200_is_a_failure_and_the_connection_goes_on),
        cmocka_unit_test(test_a_load_on_nobody_fails),
        cmocka_unit_test(test_a_line_hears_the_whole_answer_and_dials_again),
        cmocka_unit_test(test_a_line_does_not_wait_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
