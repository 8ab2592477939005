/* SPDX-License-Identifier: Apache-2.0 */

/* Server-sent events: what happens comes at once, and a reader that comes back misses nothing. */
#include "api_frontend.h"

#include "os/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000

/* Opens a stream, and has seen that it is open. */
static int open_stream(struct api_frontend *frontend, const char *query, const char *header)
{
    char request[512];
    char text[1024];
    int fd = raw_open(frontend);

    (void)snprintf(request, sizeof request, "GET /events%s HTTP/1.1\r\nHost: h\r\n%s\r\n", query, header);
    raw_say(fd, request);
    /* Byte by byte, so that nothing of the stream itself is taken. */
    for (size_t length = 0; length < 4 || strcmp(text + length - 4, "\r\n\r\n") != 0; length++)
        if (length > sizeof text - 2 || raw_hear(fd, text + length, 2, NULL, LIMIT_MS, NULL) != 1)
            fail_msg("no stream: %s", text);
    assert_non_null(strstr(text, "text/event-stream"));
    return fd;
}

/* Waits until the frontend serves so many; the count is read in passing, as a test may. */
static void wait_streams(struct api_frontend *frontend, size_t count)
{
    char line[64];
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);

    (void)snprintf(line, sizeof line, "\ngavel_event_streams %zu\n", count);
    while (!strstr(http_ask(frontend, "/metrics", NULL, "")->body, line))
        assert_true(clock_now() < limit);
}

static void test_an_event_comes_at_once_and_whole(void **state)
{
    struct api_frontend *frontend = *state;
    char text[4096];
    char wanted[128];
    const char *data;
    json_error_t error;
    json_t *json;
    uint64_t id;
    int fd;

    (void)api_frontend_put(frontend, JOURNAL_STARTED, "n1", "before the reader came");
    fd = open_stream(frontend, "", "");
    wait_streams(frontend, 1);
    id = api_frontend_put(frontend, JOURNAL_LEADER_CHANGED, "n2", "\"quoted\"\nand broken");
    (void)raw_hear(fd, text, sizeof text, "lease_epoch", LIMIT_MS, NULL);
    assert_null(strstr(text, "before the reader came"));
    (void)snprintf(wanted, sizeof wanted, "id: %" PRIu64 "\nevent: leader_changed\ndata: {", id);
    assert_non_null(strstr(text, wanted));
    data = strstr(text, "data: ") + 6;
    json = json_loads(data, JSON_DISABLE_EOF_CHECK, &error);
    assert_non_null(json);
    (void)snprintf(wanted, sizeof wanted, "%" PRIu64, id);
    assert_string_equal(json_string_value(json_object_get(json, "id")), wanted);
    assert_string_equal(json_string_value(json_object_get(json, "node")), "n2");
    assert_string_equal(json_string_value(json_object_get(json, "text")), "\"quoted\"\nand broken");
    assert_true(json_is_null(json_object_get(json, "previous")));
    json_decref(json);
    (void)close(fd);
}

static void test_a_reader_goes_on_where_it_was(void **state)
{
    struct api_frontend *frontend = *state;
    uint64_t first = api_frontend_put(frontend, JOURNAL_STARTED, "n1", "one");
    char header[64];
    char query[64];
    char text[4096];
    int fd;

    (void)api_frontend_put(frontend, JOURNAL_PEER_UP, "n2", "two");
    (void)api_frontend_put(frontend, JOURNAL_PEER_UP, "n3", "three");
    (void)snprintf(header, sizeof header, "Last-Event-ID: %" PRIu64 "\r\n", first);
    fd = open_stream(frontend, "?after=0", header); /* the header is newer than the address */
    (void)raw_hear(fd, text, sizeof text, "three", LIMIT_MS, NULL);
    assert_null(strstr(text, "one"));
    assert_non_null(strstr(text, "two"));
    (void)close(fd);
    (void)snprintf(query, sizeof query, "?after=%" PRIu64, first);
    fd = open_stream(frontend, query, "");
    (void)raw_hear(fd, text, sizeof text, "three", LIMIT_MS, NULL);
    assert_null(strstr(text, "one"));
    assert_null(strstr(text, "missed"));
    (void)close(fd);
}

static void test_after_zero_tells_all_that_is_kept(void **state)
{
    struct api_frontend *frontend = *state;
    char text[4096];
    int fd;

    (void)api_frontend_put(frontend, JOURNAL_STARTED, "n1", "one");
    (void)api_frontend_put(frontend, JOURNAL_PEER_UP, "n2", "two");
    fd = open_stream(frontend, "?after=0", "");
    (void)raw_hear(fd, text, sizeof text, "two", LIMIT_MS, NULL);
    assert_non_null(strstr(text, "one"));
    (void)close(fd);
}

static void test_names_choose_events(void **state)
{
    struct api_frontend *frontend = *state;
    char text[4096];
    int fd;

    (void)api_frontend_put(frontend, JOURNAL_STARTED, "n1", "one");
    (void)api_frontend_put(frontend, JOURNAL_PEER_UP, "n2", "two");
    (void)api_frontend_put(frontend, JOURNAL_SPLIT_BRAIN, "n3", "three");
    fd = open_stream(frontend, "?after=0&names=started,split_brain", "");
    (void)raw_hear(fd, text, sizeof text, "three", LIMIT_MS, NULL);
    assert_non_null(strstr(text, "one"));
    assert_null(strstr(text, "two"));
    (void)close(fd);
}

static void test_a_reader_that_was_away_too_long_is_told(void **state)
{
    struct api_frontend *frontend = *state;
    static char text[1 << 20];
    char query[64];
    uint64_t first = api_frontend_put(frontend, JOURNAL_STARTED, "n1", "the first");
    int fd;

    for (int i = 0; i < JOURNAL_ENTRIES_KEPT + 10; i++)
        (void)api_frontend_put(frontend, JOURNAL_PEER_UP, "n2", "noise");
    (void)api_frontend_put(frontend, JOURNAL_PEER_DOWN, "n2", "the last");
    (void)snprintf(query, sizeof query, "?after=%" PRIu64, first);
    fd = open_stream(frontend, query, "");
    (void)raw_hear(fd, text, sizeof text, "the last", LIMIT_MS, NULL);
    assert_non_null(strstr(text, "the last"));
    assert_non_null(strstr(text, "event: missed\ndata: {"));
    assert_null(strstr(strstr(text, "event: missed") + 1, "event: missed")); /* once */
    (void)close(fd);
}

static void test_what_cannot_be_asked_for_is_refused(void **state)
{
    static const char *const paths[] = {"/events?after=x",          "/events?after=-1",
                                        "/events?after=",           "/events?names=nothing",
                                        "/events?names=started,,x", "/events?after=99999999999999999999999"};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        (void)http_expect_error(*state, paths[i], NULL, 400, GAVEL_ERR_INVALID);
    assert_int_equal(http_ask(*state, "/events", NULL, "Last-Event-ID: abc")->code, 400);
}

/* Journal and socket buffers are bounded; what a reader does not take stays in the journal. */
static void test_a_reader_that_does_not_read_costs_little_and_can_go_on(void **state)
{
    struct api_frontend *frontend = *state;
    static char text[8 << 20];
    char long_text[PEER_TEXT_MAX + 1];
    int fd = open_stream(frontend, "", "");
    size_t length;

    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    wait_streams(frontend, 1);
    for (int i = 0; i < 20; i++) {
        for (int j = 0; j < JOURNAL_ENTRIES_KEPT; j++)
            (void)api_frontend_put(frontend, JOURNAL_PEER_UP, "n2", long_text);
        assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
    }
    (void)api_frontend_put(frontend, JOURNAL_PEER_DOWN, "n2", "the last");
    length = raw_hear(fd, text, sizeof text, NULL, 0, NULL);
    (void)length;
    (void)raw_hear(fd, text, sizeof text, "the last", LIMIT_MS, NULL);
    assert_non_null(strstr(text, "the last"));
    (void)close(fd);
}

static void test_a_reader_that_leaves_is_forgotten(void **state)
{
    struct api_frontend *frontend = *state;

    for (int i = 0; i < 20; i++) {
        int fd = open_stream(frontend, "", "");
        struct linger at_once = {.l_onoff = 1};

        if (i % 2)
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        (void)close(fd);
    }
    wait_streams(frontend, 0);
    (void)api_frontend_put(frontend, JOURNAL_PEER_UP, "n2", "to nobody");
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
}

static void test_what_a_reader_sends_is_not_kept(void **state)
{
    struct api_frontend *frontend = *state;
    int fd = open_stream(frontend, "", "");
    static char noise[64 * 1024];
    size_t sent = 0;
    char text[2048];

    memset(noise, 'G', sizeof noise);
    for (int i = 0; i < 1000; i++) {
        ssize_t n = send(fd, noise, sizeof noise, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0)
            break;
        sent += (size_t)n;
    }
    assert_true(sent < 1000 * sizeof noise); /* it stopped taking more */
    (void)api_frontend_put(frontend, JOURNAL_PEER_UP, "n2", "still served");
    (void)raw_hear(fd, text, sizeof text, "still served", LIMIT_MS, NULL);
    assert_non_null(strstr(text, "still served"));
    (void)close(fd);
}

static void test_streams_end_in_order_when_the_node_ends(void **state)
{
    struct api_frontend *frontend = *state;
    int fd = open_stream(frontend, "", "");
    char text[1024];
    bool is_closed;

    wait_streams(frontend, 1);
    frontend->is_ending = true;
    (void)pthread_join(frontend->consensus, NULL);
    api_stop(frontend->api);
    frontend->api = NULL;
    (void)raw_hear(fd, text, sizeof text, NULL, LIMIT_MS, &is_closed);
    assert_true(is_closed);
    assert_non_null(strstr(text, "\r\n0\r\n\r\n")); /* the last chunk, not a cut */
    (void)close(fd);
}

static void test_only_so_many_readers_are_served(void **state)
{
    struct api_frontend *frontend = *state;
    static int fds[API_STREAMS_MAX];

    for (int i = 0; i < API_STREAMS_MAX; i++) {
        fds[i] = raw_open(frontend);
        raw_say(fds[i], "GET /events HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    wait_streams(frontend, API_STREAMS_MAX);
    (void)http_expect_error(frontend, "/events", NULL, 503, GAVEL_ERR_STATE);
    for (int i = 0; i < API_STREAMS_MAX; i++)
        (void)close(fds[i]);
    wait_streams(frontend, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_frontend_setup, api_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_event_comes_at_once_and_whole),
        TEST(test_a_reader_goes_on_where_it_was),
        TEST(test_after_zero_tells_all_that_is_kept),
        TEST(test_names_choose_events),
        TEST(test_a_reader_that_was_away_too_long_is_told),
        TEST(test_what_cannot_be_asked_for_is_refused),
        TEST(test_a_reader_that_does_not_read_costs_little_and_can_go_on),
        TEST(test_a_reader_that_leaves_is_forgotten),
        TEST(test_what_a_reader_sends_is_not_kept),
        TEST(test_streams_end_in_order_when_the_node_ends),
        TEST(test_only_so_many_readers_are_served),
    };

    return cmocka_run_group_tests_name("api events", tests, NULL, NULL);
}
