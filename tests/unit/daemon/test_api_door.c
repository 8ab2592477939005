/* SPDX-License-Identifier: Apache-2.0 */

/* Who may come in: where the API listens, the token, TLS; and reading them again. */
#include "api_frontend.h"

#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TOKEN "0123456789abcdef-first"
#define OTHER "0123456789abcdef-other"

static void write_file(const char *file, const char *text)
{
    FILE *out = fopen(file, "we");

    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void set_token(struct api_frontend *frontend, const char *text)
{
    (void)snprintf(frontend->config->token, sizeof frontend->config->token, "%s/token", frontend->directory);
    write_file(frontend->config->token, text);
}

/* Runs a command in the frontend's directory. */
static void run(struct api_frontend *frontend, const char *command)
{
    char line[1024];

    (void)snprintf(line, sizeof line, "cd '%s' && { %s; } >log 2>&1 || { cat log >&2; exit 1; }",
                   frontend->directory, command);
    assert_int_equal(system(line), 0);
}

static void make_certificates(struct api_frontend *frontend)
{
    struct daemon_config *config = frontend->config;

    run(frontend,
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /O=test/CN=ca "
        "-keyout ca.key -out ca.crt && "
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /O=test/CN=n1 "
        "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout n1.key -out n1.csr && "
        "openssl x509 -req -in n1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy "
        "-out n1.crt");
    (void)snprintf(config->tls_ca, sizeof config->tls_ca, "%s/ca.crt", frontend->directory);
    (void)snprintf(config->tls_cert, sizeof config->tls_cert, "%s/n1.crt", frontend->directory);
    (void)snprintf(config->tls_key, sizeof config->tls_key, "%s/n1.key", frontend->directory);
    config->has_tls = config->has_api_tls = true;
}

static const char *expect_refusal(struct api_frontend *frontend, enum gavel_status status)
{
    static struct gavel_error error;
    struct api *api = NULL;

    memset(&error, 0, sizeof error);
    assert_int_equal(api_start(&frontend->frontend, &api, &error), status);
    assert_null(api);
    return error.message;
}

static void listen_on(struct api_frontend *frontend, const char *address)
{
    (void)snprintf(frontend->config->api_listen, sizeof frontend->config->api_listen, "%s", address);
}

static void test_beyond_loopback_it_needs_tls_or_a_token(void **state)
{
    static const char *const open[] = {"0.0.0.0:0", ":0", "[::]:0"};
    struct api_frontend *frontend = *state;

    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        listen_on(frontend, open[i]);
        assert_non_null(strstr(expect_refusal(frontend, GAVEL_ERR_INVALID), "token"));
    }
    set_token(frontend, TOKEN "\n");
    listen_on(frontend, "0.0.0.0:0");
    api_frontend_start(frontend);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 401);
}

static void test_addresses_that_cannot_be_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:123456", "300.1.1.1:1"};
    struct api_frontend *frontend = *state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        listen_on(frontend, bad[i]);
        (void)expect_refusal(frontend, GAVEL_ERR_INVALID);
    }
}

static void test_a_port_that_is_taken_is_said(void **state)
{
    struct api_frontend *frontend = *state;
    char address[32];

    api_frontend_start(frontend);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", api_port(frontend->api));
    listen_on(frontend, address);
    assert_non_null(strstr(expect_refusal(frontend, GAVEL_ERR_IO), address));
}

static void test_without_the_token_nothing_but_health_is_told(void **state)
{
    static const char *const wrong[] = {"",
                                        "Authorization: " TOKEN,
                                        "Authorization: Basic " TOKEN,
                                        "Authorization: Bearer",
                                        "Authorization: Bearer x",
                                        "Authorization: Bearer " TOKEN "x",
                                        "Authorization: Bearer 0123456789abcdef-firsu",
                                        "Authorization: Bearer 0123456789abcdef-firs"};
    struct api_frontend *frontend = *state;
    char value[32];

    set_token(frontend, TOKEN "\n");
    api_frontend_start(frontend);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct http_answer *answer = http_ask(frontend, "/leader", NULL, wrong[i]);

        assert_int_equal(answer->code, 401);
        assert_true(http_header(answer, "WWW-Authenticate", value, sizeof value));
        assert_string_equal(value, "Bearer");
    }
    for (size_t i = 0; i < api_route_count(); i++) {
        const struct api_route *route = api_route_at(i);

        if (route->needs_token)
            (void)http_expect_error(frontend, route->path, route->method == EVHTTP_REQ_POST ? "{}" : NULL,
                                    401, GAVEL_ERR_DENIED);
        else
            assert_int_equal(http_ask(frontend, route->path, NULL, "")->code, 200);
    }
    assert_int_equal(frontend->asked, 0);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "Authorization: Bearer " TOKEN)->code, 200);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "authorization: bearer  " TOKEN)->code, 200);
}

static void test_a_token_that_is_none_is_refused(void **state)
{
    struct api_frontend *frontend = *state;
    char text[400];

    set_token(frontend, "");
    (void)expect_refusal(frontend, GAVEL_ERR_INVALID);
    set_token(frontend, "short\n");
    (void)expect_refusal(frontend, GAVEL_ERR_INVALID);
    set_token(frontend, "0123456789abcdef with blanks\n");
    (void)expect_refusal(frontend, GAVEL_ERR_INVALID);
    (void)snprintf(text, sizeof text, "%0300d\n", 0);
    set_token(frontend, text);
    (void)expect_refusal(frontend, GAVEL_ERR_INVALID);
    assert_int_equal(unlink(frontend->config->token), 0);
    assert_non_null(strstr(expect_refusal(frontend, GAVEL_ERR_IO), frontend->config->token));
}

static void wait_code(struct api_frontend *frontend, const char *header, long code)
{
    gavel_ns limit = clock_now() + 10 * NS_PER_S;

    while (http_ask(frontend, "/leader", NULL, header)->code != code)
        assert_true(clock_now() < limit);
}

static void test_a_new_token_counts_after_a_reload(void **state)
{
    struct api_frontend *frontend = *state;

    set_token(frontend, TOKEN "\n");
    api_frontend_start(frontend);
    write_file(frontend->config->token, OTHER "\n");
    assert_int_equal(http_ask(frontend, "/leader", NULL, "Authorization: Bearer " OTHER)->code, 401);
    api_reload(frontend->api);
    wait_code(frontend, "Authorization: Bearer " OTHER, 200);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "Authorization: Bearer " TOKEN)->code, 401);
    frontend->frontend.log.level =
        LOG_ERROR + 1; /* it says so, and that is not for the output of this test */
    write_file(frontend->config->token, "bad\n");
    api_reload(frontend->api);
    for (int i = 0; i < 20; i++) /* the old one stays */
        assert_int_equal(http_ask(frontend, "/leader", NULL, "Authorization: Bearer " OTHER)->code, 200);
}

static void test_tls_is_served(void **state)
{
    struct api_frontend *frontend = *state;
    char location[64];
    char text[64];
    struct http_answer *answer;
    bool is_closed;
    int fd;

    make_certificates(frontend);
    api_frontend_start(frontend);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
    assert_int_equal(http_ask(frontend, "/transfer", "{}", "")->code, 200);
    api_frontend_answer(frontend, GAVEL_ERR_NOT_LEADER, "n2 leads", "127.0.0.1:7502");
    answer = http_ask(frontend, "/transfer", "{}", "");
    assert_true(http_header(answer, "Location", location, sizeof location));
    assert_string_equal(location, "https://127.0.0.1:7502/transfer");
    fd = raw_open(frontend);
    raw_say(fd, "GET /leader HTTP/1.1\r\nHost: h\r\n\r\n");
    (void)raw_hear(fd, text, sizeof text, NULL, 10000, &is_closed);
    assert_true(is_closed);
    assert_null(strstr(text, "HTTP"));
    (void)close(fd);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
}

static void test_beyond_loopback_tls_alone_is_for_reading(void **state)
{
    struct api_frontend *frontend = *state;

    make_certificates(frontend);
    listen_on(frontend, "0.0.0.0:0");
    api_frontend_start(frontend);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
    assert_int_equal(http_ask(frontend, "/transfer", "{}", "")->code, 403);
    assert_int_equal(http_ask(frontend, "/stepdown", "{}", "")->code, 403);
}

static void test_a_new_certificate_counts_after_a_reload(void **state)
{
    struct api_frontend *frontend = *state;

    make_certificates(frontend);
    api_frontend_start(frontend);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
    frontend->frontend.log.level = LOG_ERROR + 1;
    write_file(frontend->config->tls_cert, "nonsense\n");
    api_reload(frontend->api);
    for (int i = 0; i < 5; i++)
        assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
    make_certificates(frontend); /* a new CA too: whoever trusts only it gets in after the reload alone */
    api_reload(frontend->api);
    for (gavel_ns limit = clock_now() + 10 * NS_PER_S;;) {
        char line[PATH_MAX + 128];

        (void)snprintf(line, sizeof line, "curl -sf --cacert '%s' https://localhost:%u/leader >/dev/null",
                       frontend->config->tls_ca, api_port(frontend->api));
        if (system(line) == 0)
            break;
        assert_true(clock_now() < limit);
    }
}

static void test_a_certificate_that_cannot_be_read_is_said(void **state)
{
    struct api_frontend *frontend = *state;
    struct gavel_error error = {0};
    struct api *api = NULL;

    make_certificates(frontend);
    assert_int_equal(unlink(frontend->config->tls_cert), 0);
    assert_int_not_equal(api_start(&frontend->frontend, &api, &error), GAVEL_OK);
    assert_non_null(strstr(error.message, frontend->config->tls_cert));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_frontend_setup_stopped, api_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_beyond_loopback_it_needs_tls_or_a_token),
        TEST(test_addresses_that_cannot_be_are_refused),
        TEST(test_a_port_that_is_taken_is_said),
        TEST(test_without_the_token_nothing_but_health_is_told),
        TEST(test_a_token_that_is_none_is_refused),
        TEST(test_a_new_token_counts_after_a_reload),
        TEST(test_tls_is_served),
        TEST(test_beyond_loopback_tls_alone_is_for_reading),
        TEST(test_a_new_certificate_counts_after_a_reload),
        TEST(test_a_certificate_that_cannot_be_read_is_said),
    };

    return cmocka_run_group_tests_name("api door", tests, NULL, NULL);
}
