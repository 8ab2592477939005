/* SPDX-License-Identifier: Apache-2.0 */

/* HTTP calls against a small server on loopback that does as the path says: what becomes of each. */
#include "store/http.h"

#include "os/clock.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */

struct server {
    pthread_t thread;
    int fd;
    int port;
    int kept[64]; /* connections that are never answered, open until the end */
    size_t kept_count;
};

static void send_text(int fd, const char *text) { (void)!write(fd, text, strlen(text)); }

/* One request on a connection of its own. */
static void answer(struct server *server, int fd)
{
    char request[4096] = {0};
    size_t size = 0;
    ssize_t got;

    while (!strstr(request, "\r\n\r\n") && (got = read(fd, request + size, sizeof request - 1 - size)) > 0)
        size += (size_t)got;
    if (strncmp(request, "GET /huge", 9) == 0)
        send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nx");
    if (strncmp(request, "GET /once", 9) == 0)
        send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell");
    if ((strncmp(request, "GET /silent", 11) == 0 || strncmp(request, "GET /huge", 9) == 0 ||
         strncmp(request, "GET /once", 9) == 0) &&
        server->kept_count < 64) {
        server->kept[server->kept_count++] = fd;
        return;
    }
    if (strncmp(request, "GET /half", 9) == 0)
        send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal");
    else if (strncmp(request, "PUT ", 4) == 0)
        send_text(fd, "HTTP/1.1 412 Precondition Failed\r\nETag: \"abc\"\r\nContent-Length: 2\r\n\r\nno");
    else if (strncmp(request, "GET /cut", 8) != 0)
        send_text(fd, "HTTP/1.1 200 OK\r\neTag:  \"x y\" \r\nContent-Length: 4\r\n\r\nwell");
    (void)close(fd);
}

static void *serve(void *user)
{
    struct server *server = user;
    int fd;

    while ((fd = accept(server->fd, NULL, NULL)) >= 0)
        answer(server, fd);
    return NULL;
}

static int set_up(void **state)
{
    struct server *server = calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    assert_non_null(server);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->fd, 64), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
    *state = server;
    return 0;
}

static int tear_down(void **state)
{
    struct server *server = *state;

    (void)shutdown(server->fd, SHUT_RDWR); /* ends accept() */
    (void)pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->kept_count; i++)
        (void)close(server->kept[i]);
    (void)close(server->fd);
    free(server);
    return 0;
}

static struct http *open_http(void)
{
    struct http *http = NULL;

    assert_int_equal(http_new(&(struct http_settings){0}, &http), GAVEL_OK);
    return http;
}

/* One call of that path; the caller ends it. */
static struct http_call call(const struct server *server, const char *method, const char *path,
                             gavel_ns limit)
{
    struct http *http = open_http();
    char url[64];
    struct http_call made = {.method = method, .url = url, .give_up_at = clock_now() + limit};

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server->port, path);
    http_run(http, &made, 1);
    made.url = NULL;
    if (made.fate == HTTP_ANSWERED)
        assert_string_equal(http_own_address(http), "127.0.0.1");
    http_free(http);
    return made;
}

static void test_an_answer_has_status_body_and_etag(void **state)
{
    struct http_call got = call(*state, "GET", "/", LIMIT);

    assert_int_equal(got.fate, HTTP_ANSWERED);
    assert_int_equal(got.status, 200);
    assert_string_equal(got.answer, "well");
    assert_int_equal(got.answer_size, 4);
    assert_string_equal(got.etag, "\"x y\"");
    http_call_done(&got);
    got = call(*state, "PUT", "/", LIMIT);
    assert_int_equal(got.fate, HTTP_ANSWERED); /* also a refusal is an answer */
    assert_int_equal(got.status, 412);
    http_call_done(&got);
}

static void test_a_server_that_is_not_there_has_certainly_done_nothing(void **state)
{
    struct server gone = {.port = 1};
    struct http_call got = call(&gone, "GET", "/", LIMIT);

    (void)state;
    assert_int_equal(got.fate, HTTP_NOT_SENT);
    assert_true(got.error[0]);
    assert_string_equal(http_advice(&got), "; look whether the server runs, and where");
    got = call(*state, "GET", "/", 0);
    assert_int_equal(got.fate, HTTP_NOT_SENT);
}

static void test_silence_ends_with_the_deadline_and_nobody_knows(void **state)
{
    gavel_ns began = clock_now();
    struct http_call got = call(*state, "GET", "/silent", 200 * NS_PER_MS);

    assert_int_equal(got.fate, HTTP_UNKNOWN);
    assert_true(clock_now() - began >= 190 * NS_PER_MS);
    assert_true(clock_now() - began < LIMIT);
    http_call_done(&got);
}

static void test_an_answer_that_breaks_off_or_is_too_long_is_none(void **state)
{
    static const char *const paths[] = {"/half", "/cut", "/huge"};

    for (size_t i = 0; i < 3; i++) {
        gavel_ns began = clock_now();
        struct http_call got = call(*state, "GET", paths[i], LIMIT);

        assert_int_equal(got.fate, HTTP_UNKNOWN);
        assert_true(clock_now() - began < LIMIT); /* it is not the deadline that ends it */
        assert_true(got.error[0]);
        http_call_done(&got);
    }
}

static void test_calls_go_side_by_side(void **state)
{
    enum { MANY = 20 };
    const struct server *server = *state;
    struct http *http = open_http();
    struct http_call calls[MANY] = {0};
    char urls[MANY][64];
    gavel_ns began = clock_now();

    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(urls[i], sizeof urls[i], "http://127.0.0.1:%d/%s", server->port,
                       i % 2 ? "" : "silent");
        calls[i] = (struct http_call){.method = "GET", .url = urls[i], .give_up_at = began + 5 * NS_PER_S};
    }
    http_run(http, calls, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(calls[i].fate, i % 2 ? HTTP_ANSWERED : HTTP_UNKNOWN);
        http_call_done(&calls[i]);
    }
    assert_true(clock_now() - began < 45 * NS_PER_S); /* one after the other they would need fifty seconds */
    http_free(http);
}

static void *cancel(void *user)
{
    http_cancel(user);
    return NULL;
}

static void test_another_thread_can_end_what_is_under_way(void **state)
{
    const struct server *server = *state;
    struct http *http = open_http();
    char url[64];
    struct http_call one = {.method = "GET", .url = url, .give_up_at = NEVER};
    pthread_t thread;

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/silent", server->port);
    assert_int_equal(pthread_create(&thread, NULL, cancel, http), 0);
    http_run(http, &one, 1);
    assert_int_not_equal(one.fate, HTTP_ANSWERED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    http_free(http);
}

static bool count_bytes(void *user, const char *bytes, size_t size)
{
    size_t *total = user;

    (void)bytes;
    *total += size;
    return *total < 3;
}

static void test_an_answer_without_end_is_handed_over_in_pieces(void **state)
{
    const struct server *server = *state;
    struct http *http = open_http();
    size_t total = 0;
    char url[64];
    struct http_call one = {.method = "GET",
                            .url = url,
                            .give_up_at = clock_now() + LIMIT,
                            .on_bytes = count_bytes,
                            .user = &total};

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/half", server->port);
    http_run(http, &one, 1);
    assert_int_equal(total, 3);
    assert_null(one.answer);
    http_free(http);
}

/* A route that is lost, or a firewall that forgets: all connections of before are dead, new ones are not. */
static void test_connections_that_have_fallen_silent_cost_one_call(void **state)
{
    const struct server *server = *state;
    struct http *http = open_http();
    struct http_call calls[4] = {0};
    char once[64];
    char url[64];

    (void)snprintf(once, sizeof once, "http://127.0.0.1:%d/once", server->port);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", server->port);
    for (size_t i = 0; i < 4; i++)
        calls[i] = (struct http_call){.method = "GET", .url = once, .give_up_at = clock_now() + LIMIT};
    http_run(http, calls, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(calls[i].fate, HTTP_ANSWERED);
        http_call_done(&calls[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        struct http_call again = {
            .method = "GET", .url = url, .give_up_at = clock_now() + (i ? LIMIT : 200 * NS_PER_MS)};

        http_run(http, &again, 1);
        assert_int_equal(again.fate, i ? HTTP_ANSWERED : HTTP_UNKNOWN);
        http_call_done(&again);
    }
    http_free(http);
}

/* Reads a second request on the connection of the first, and is gone. */
static void *vanish(void *user)
{
    struct server *server = user;
    char request[4096];
    int fd = accept(server->fd, NULL, NULL);

    (void)!read(fd, request, sizeof request);
    send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell");
    (void)!read(fd, request, sizeof request); /* it may well do what is asked there */
    (void)close(server->fd);
    (void)close(fd);
    return NULL;
}

/* libcurl then asks once more, on a new connection, and is told that nobody is there. */
static void test_a_server_that_dies_with_a_request_may_have_done_it(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct server server = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    socklen_t size = sizeof address;
    struct http *http = open_http();
    char url[64];

    (void)state;
    assert_int_equal(bind(server.fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server.fd, 1), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(pthread_create(&server.thread, NULL, vanish, &server), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    for (int i = 0; i < 2; i++) {
        struct http_call one = {
            .method = "PUT", .url = url, .body = "x", .body_size = 1, .give_up_at = clock_now() + LIMIT};

        http_run(http, &one, 1);
        assert_int_equal(one.fate, i == 0 ? HTTP_ANSWERED : HTTP_UNKNOWN);
        http_call_done(&one);
    }
    assert_int_equal(pthread_join(server.thread, NULL), 0);
    http_free(http);
}

struct relay {
    char urls[3][64];
    int next;
};

static bool go_on(struct http_call *call)
{
    struct relay *relay = call->user;

    assert_int_equal(call->fate, HTTP_ANSWERED);
    http_call_done(call);
    call->url = relay->urls[relay->next++];
    return relay->next <= 3;
}

static void test_a_call_that_is_over_goes_on_with_another(void **state)
{
    const struct server *server = *state;
    struct http *http = open_http();
    struct relay relays[2] = {0};
    struct http_call calls[2];

    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 3; k++)
            (void)snprintf(relays[i].urls[k], sizeof relays[i].urls[k], "http://127.0.0.1:%d/%zu",
                           server->port, k);
        calls[i] = (struct http_call){.method = "GET",
                                      .url = relays[i].urls[0],
                                      .give_up_at = clock_now() + LIMIT,
                                      .user = &relays[i],
                                      .on_done = go_on};
    }
    http_run(http, calls, 2);
    assert_int_equal(relays[0].next, 4);
    assert_int_equal(relays[1].next, 4);
    http_free(http);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_an_answer_has_status_body_and_etag),
        TEST(test_a_server_that_is_not_there_has_certainly_done_nothing),
        TEST(test_silence_ends_with_the_deadline_and_nobody_knows),
        TEST(test_an_answer_that_breaks_off_or_is_too_long_is_none),
        TEST(test_calls_go_side_by_side),
        TEST(test_another_thread_can_end_what_is_under_way),
        TEST(test_an_answer_without_end_is_handed_over_in_pieces),
        TEST(test_connections_that_have_fallen_silent_cost_one_call),
        TEST(test_a_server_that_dies_with_a_request_may_have_done_it),
        TEST(test_a_call_that_is_over_goes_on_with_another),
    };

    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
