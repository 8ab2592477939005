/* SPDX-License-Identifier: Apache-2.0 */

/* Candidates over HTTP: a stream is a session, and whoever loses the one loses the other. */
#include "api_listener.h"

#include "os/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 20000

static void wait_metric(struct api_desk *desk, const char *name, long value)
{
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    char line[64];

    (void)snprintf(line, sizeof line, "\ngavel_%s %ld\n", name, value);
    while (!strstr(http_ask(desk, "/metrics", NULL, "")->body, line))
        if (clock_now() >= limit)
            fail_msg("never was:%s", line);
}

static const char *post(struct api_desk *desk, const char *path, const char *session, const char *more,
                        long code)
{
    static char text[4096];
    char body[256];
    struct http_answer *answer;

    (void)snprintf(body, sizeof body, "{\"session\":\"%s\"%s}", session, more);
    answer = http_ask(desk, path, body, "");
    if (answer->code != code)
        fail_msg("%s %s: %ld instead of %ld: %s", path, body, answer->code, code, answer->body);
    (void)snprintf(text, sizeof text, "%.4000s", answer->body);
    return text;
}

static void test_the_first_leads_and_the_second_follows_when_it_leaves(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"address\":\"host:1\"");
    uint64_t epoch = listener_elected(a);
    struct listener *b = listener_campaign(*state, "g", "b", "");
    json_t *json = listener_next(b, "leader");

    assert_string_equal(json_string_value(json_object_get(json, "leader")), "a");
    assert_string_equal(json_string_value(json_object_get(json, "address")), "host:1");
    assert_int_equal(json_integer_value(json_object_get(json, "epoch")), epoch);
    json_decref(json);
    listener_leave(a); /* as a killed process does */
    assert_true(listener_elected(b) > epoch);
    wait_metric(*state, "sessions", 1);
    wait_metric(*state, "campaign_streams", 1);
    wait_metric(*state, "group_elections_total", 2);
    listener_leave(b);
    wait_metric(*state, "sessions", 0);
}

static void test_elected_tells_how_long_it_holds(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"ttl_ms\":30000");
    json_t *json = listener_next(a, "session");
    json_int_t remaining;

    assert_int_equal(json_integer_value(json_object_get(json, "ttl_ms")), 30000);
    assert_int_equal(json_string_length(json_object_get(json, "session")), 16);
    json_decref(json);
    json = listener_next(a, "elected");
    assert_string_equal(json_string_value(json_object_get(json, "group")), "g");
    assert_string_equal(json_string_value(json_object_get(json, "candidate")), "a");
    remaining = json_integer_value(json_object_get(json, "remaining_ms"));
    assert_true(remaining > 10000 && remaining < 27000); /* from the send, less a tenth for the way */
    json_decref(json);
    listener_leave(a);
}

static void test_what_is_told_of_a_short_time_to_live_leaves_time_for_the_way(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"ttl_ms\":190");
    json_t *json = listener_next(a, "elected");
    const json_t *remaining = json_object_get(json, "remaining_ms");

    assert_true(json_is_integer(remaining)); /* of a stream it is always known */
    assert_true(json_integer_value(remaining) >= 0 && json_integer_value(remaining) <= 170);
    json_decref(json);
    listener_leave(a);
}

static void test_the_node_keeps_the_session_while_the_stream_is_open(void **state)
{
    struct api_desk *desk = *state;
    struct listener *a = listener_campaign(desk, "g", "a", ",\"ttl_ms\":600");

    (void)listener_elected(a);
    for (int i = 0; i < 6; i++) { /* two whole times to live */
        json_t *json = listener_next(a, "alive");

        assert_true(json_integer_value(json_object_get(json, "remaining_ms")) > 0);
        json_decref(json);
    }
    assert_null(strstr(a->text, "event: demoted"));
    assert_true(desk->quorum.keep_alives >= 6);
    listener_leave(a);
}

static void test_past_the_deadline_it_leads_no_more_and_again_when_the_quorum_answers(void **state)
{
    struct api_desk *desk = *state;
    struct listener *a = listener_campaign(desk, "g", "a", ",\"ttl_ms\":400");
    uint64_t epoch = listener_elected(a);

    desk->quorum.holds = true; /* nobody is heard, and nobody expires */
    listener_expect(a, "demoted", "reason", "deadline");
    desk->quorum.holds = false;
    assert_int_equal(listener_elected(a), epoch);
    listener_leave(a);
}

static void test_a_session_that_expires_ends_the_stream(void **state)
{
    struct api_desk *desk = *state;
    struct listener *a = listener_campaign(desk, "g", "a", ",\"ttl_ms\":300,\"keepalive\":\"client\"");

    (void)listener_elected(a);
    listener_expect(a, "demoted", "reason", "expired");
    listener_expect(a, "ended", "reason", "expired");
    listener_wait_end(a);
    listener_leave(a);
}

static void test_a_client_that_keeps_itself_alive_leads_on(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"ttl_ms\":1500,\"keepalive\":\"client\"");
    gavel_ns until = clock_now() + 2 * NS_PER_S;
    char session[17];
    json_t *json;

    listener_session(a, session);
    (void)listener_elected(a);
    while (clock_now() < until) {
        assert_non_null(strstr(post(*state, "/groups/g/keepalive", session, "", 200), "\"ttl_ms\":1500"));
        json = listener_next(a, "alive"); /* it went through this node */
        assert_true(json_integer_value(json_object_get(json, "remaining_ms")) > 0);
        json_decref(json);
        (void)poll(NULL, 0, 200);
    }
    assert_null(strstr(a->text, "event: demoted"));
    listener_leave(a); /* the session lives on without the stream */
    (void)post(*state, "/groups/g/keepalive", session, "", 200);
    assert_int_equal(http_ask(*state, "/groups/g/leader?candidate=a", NULL, "")->code, 200);
}

static void test_who_resigns_leaves_and_who_stays_goes_to_the_end_of_the_queue(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", "");
    char session[17];
    char more[64];
    uint64_t epoch;
    struct listener *b;

    listener_session(a, session);
    epoch = listener_elected(a);
    b = listener_campaign(*state, "g", "b", "");
    listener_expect(b, "leader", "leader", "a");
    (void)snprintf(more, sizeof more, ",\"epoch\":%" PRIu64 ",\"stay\":true", epoch);
    (void)post(*state, "/groups/g/resign", session, more, 200);
    listener_expect(a, "demoted", "reason", "resigned");
    assert_true(listener_elected(b) > epoch);
    listener_expect(a, "leader", "leader", "b");
    listener_leave(b);
    assert_true(listener_elected(a) > epoch); /* it had stayed */
    listener_leave(a);
}

static void test_a_stale_epoch_cannot_resign(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", "");
    char session[17];
    char more[64];
    uint64_t epoch;

    listener_session(a, session);
    epoch = listener_elected(a);
    (void)snprintf(more, sizeof more, ",\"epoch\":%" PRIu64, epoch + 1);
    assert_non_null(strstr(post(*state, "/groups/g/resign", session, more, 409), "ERR_NOT_HOLDER"));
    assert_int_equal(http_ask(*state, "/groups/g/leader?candidate=a", NULL, "")->code, 200);
    (void)snprintf(more, sizeof more, ",\"epoch\":%" PRIu64, epoch);
    (void)post(*state, "/groups/g/resign", session, more, 200);
    listener_expect(a, "ended", "reason", "resigned");
    listener_wait_end(a);
    wait_metric(*state, "sessions", 0);
    (void)post(*state, "/groups/g/resign", session, more, 410);
    (void)post(*state, "/groups/g/keepalive", session, "", 410);
    listener_leave(a);
}

static void test_sessions_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "x", "0000000000000000", "123", "00000000000000AB", "0123456789abcdef0"};
    struct listener *a = listener_campaign(*state, "g", "a", "");
    char session[17];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)post(*state, "/groups/g/keepalive", bad[i], "", 400);
        (void)post(*state, "/groups/g/resign", bad[i], "", 400);
    }
    assert_non_null(strstr(post(*state, "/groups/g/keepalive", "0123456789abcdef", "", 410), "4122"));
    assert_non_null(strstr(post(*state, "/groups/g/resign", "0123456789abcdef", "", 410), "4122"));
    listener_session(a, session);
    (void)post(*state, "/groups/other/keepalive", session, "", 409); /* of another group */
    (void)post(*state, "/groups/other/resign", session, "", 409);
    (void)http_expect_error(*state, "/groups/g/keepalive", "{}", 400, GAVEL_ERR_INVALID);
    (void)http_expect_error(*state, "/groups/g/keepalive", "{\"session\":7}", 400, GAVEL_ERR_INVALID);
    listener_leave(a);
}

static void test_what_cannot_campaign_is_told_why(void **state)
{
    static const char *const bodies[] = {"{}",
                                         "{\"candidate\":\"\"}",
                                         "{\"candidate\":\"a\\nb\"}",
                                         "{\"candidate\":\"a\",\"policy\":\"best\"}",
                                         "{\"candidate\":\"a\",\"keepalive\":\"never\"}",
                                         "{\"candidate\":\"a\",\"ttl_ms\":99}",
                                         "{\"candidate\":\"a\",\"ttl_ms\":86400001}",
                                         "{\"candidate\":\"a\",\"priority\":2147483648}",
                                         "{\"candidate\":\"a\",\"eligible\":1}",
                                         "{\"candidate\":\"a\",\"nonsense\":1}",
                                         "[]",
                                         "{"};
    char long_body[2048] = "{\"candidate\":\"a\",\"metadata\":\"";

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        (void)http_expect_error(*state, "/groups/g/campaign", bodies[i], 400, GAVEL_ERR_INVALID);
    memset(long_body + strlen(long_body), 'x', TABLE_METADATA_BYTES_MAX + 1);
    strcat(long_body, "\"}");
    assert_true(http_ask(*state, "/groups/g/campaign", long_body, "")->code >= 400);
    assert_int_equal(http_ask(*state, "/groups/g", NULL, "")->code, 404); /* nothing of it stayed */
}

static void test_an_id_is_taken_by_one_session_only(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", "");

    (void)listener_elected(a);
    (void)http_expect_error(*state, "/groups/g/campaign", "{\"candidate\":\"a\"}", 409, GAVEL_ERR_ID_IN_USE);
    wait_metric(*state, "sessions", 1); /* the session of the other was closed again */
    listener_leave(a);
}

static void test_policies_choose_the_next(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"policy\":\"priority\",\"priority\":1");
    struct listener *b;
    struct listener *c;
    struct listener *d;

    (void)listener_elected(a);
    b = listener_campaign(*state, "g", "b", ",\"priority\":2");
    c = listener_campaign(*state, "g", "c", ",\"priority\":-3");
    d = listener_campaign(*state, "g", "d", ",\"priority\":9,\"eligible\":false,\"metadata\":\"x\"");
    listener_expect(d, "leader", "leader", "a");
    listener_expect(c, "leader", "leader", "a");
    listener_leave(a);
    (void)listener_elected(b);
    listener_expect(c, "leader", "leader", "b");
    listener_leave(b);
    (void)listener_elected(c);
    listener_leave(c);
    listener_expect(d, "leader", "leader", "b");
    listener_expect(d, "leader", "leader", "c");
    listener_expect(d, "leader", "leader", "");
    listener_leave(d);
}

/* The answer comes when nobody waits for it any more. */
static void test_a_client_that_leaves_before_the_answer_leaves_no_session(void **state)
{
    struct api_desk *desk = *state;
    struct pollfd asked = {.fd = desk->desk.errands.fd, .events = POLLIN};
    int fd = raw_open(desk);

    desk->quorum.holds = true;
    raw_say(fd,
            "POST /groups/g/campaign HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n{\"candidate\":\"a\"}");
    assert_int_equal(poll(&asked, 1, LIMIT_MS), 1);
    (void)close(fd);
    desk->quorum.holds = false;
    wait_metric(desk, "group_elections_total", 1); /* it was open for a moment */
    wait_metric(desk, "sessions", 0);
}

static void test_without_a_quorum_nobody_campaigns(void **state)
{
    struct api_desk *desk = *state;

    desk->quorum.is_leaderless = true;
    (void)http_expect_error(desk, "/groups/g/campaign", "{\"candidate\":\"a\"}", 503, GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(desk, "/groups/g/keepalive", "{\"session\":\"0123456789abcdef\"}", 503,
                            GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(desk, "/groups/g/transfer", "{}", 503, GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(desk, "/groups/g/resign", "{\"session\":\"0123456789abcdef\"}", 503,
                            GAVEL_ERR_NO_LEADER);
    desk->quorum.is_leaderless = false;
}

static void test_a_node_that_ends_says_so(void **state)
{
    struct api_desk *desk = *state;
    struct listener *a = listener_campaign(desk, "g", "a", "");

    (void)listener_elected(a);
    desk->is_ending = true;
    (void)pthread_join(desk->consensus, NULL);
    api_stop(desk->api);
    desk->api = NULL;
    listener_expect(a, "demoted", "reason", "stopping");
    listener_expect(a, "ended", "reason", "stopping");
    listener_wait_end(a);
    listener_leave(a);
}

/* Everything that the API has asked of the quorum before is done then. */
static void wait_quorum(struct api_desk *desk)
{
    assert_int_equal(http_ask_method(desk, "PUT", "/groups/other/notes/k", "v", "")->code, 200);
}

static bool leads(struct api_desk *desk, const char *candidate)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/groups/g/leader?candidate=%s", candidate);
    return http_ask(desk, path, NULL, "")->code == 200;
}

/* Told to stop it needs time for that: nobody else leads before it has closed its side. */
static void test_a_node_that_leaves_hands_nothing_on_before_the_client_has_closed(void **state)
{
    struct api_desk *desk = *state;
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    struct listener *a = listener_campaign(desk, "g", "a", ",\"ttl_ms\":60000");
    struct listener *b;

    (void)listener_elected(a);
    b = listener_campaign(desk, "g", "b", ",\"ttl_ms\":60000");
    listener_expect(b, "leader", "leader", "a");
    api_leave(desk->api);
    listener_expect(a, "demoted", "reason", "stopping");
    listener_expect(a, "ended", "reason", "stopping");
    listener_wait_end(a);
    assert_non_null(strstr(a->text, "\r\n0\r\n\r\n")); /* a whole answer */
    listener_expect(b, "ended", "reason", "stopping");
    listener_wait_end(b);
    wait_quorum(desk);
    wait_metric(desk, "sessions", 1);
    assert_true(leads(desk, "a"));
    assert_false(api_has_left(desk->api));
    listener_leave(a);
    wait_metric(desk, "sessions", 0);
    while (!api_has_left(desk->api))
        assert_true(clock_now() < limit);
    listener_leave(b);
}

static void test_a_node_that_ends_leaves_who_does_not_close_to_expire(void **state)
{
    struct api_desk *desk = *state;
    struct listener *a = listener_campaign(desk, "g", "a", ",\"ttl_ms\":60000");

    (void)listener_elected(a);
    api_leave(desk->api);
    listener_expect(a, "ended", "reason", "stopping");
    listener_wait_end(a);
    assert_true(leads(desk, "a"));
    api_stop(desk->api); /* the quorum goes on, and is told nothing */
    desk->is_ending = true;
    (void)pthread_join(desk->consensus, NULL);
    desk->api = NULL;
    api_quorum_turn(&desk->quorum);
    assert_int_equal(desk->desk.table.table.session_count, 1);
    listener_leave(a);
}

/* A process that is killed with something unread, or that wants it so. */
static void test_a_stream_that_the_client_resets_ends_the_session(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"ttl_ms\":60000");
    struct linger linger = {.l_onoff = 1};
    struct listener *b;

    (void)listener_elected(a);
    b = listener_campaign(*state, "g", "b", ",\"ttl_ms\":60000");
    listener_expect(b, "leader", "leader", "a");
    assert_int_equal(setsockopt(a->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    listener_leave(a);
    (void)listener_elected(b);
    listener_leave(b);
}

static bool is_kept(struct api_desk *desk, const char *session)
{
    char body[64];

    (void)snprintf(body, sizeof body, "{\"session\":\"%s\"}", session);
    return http_ask(desk, "/groups/g/keepalive", body, "")->code == 200;
}

/* It takes nothing: once the sockets are full its stream is cut. It may work on for as long as it was told,
 * and so the mandate stays until the session expires. */
static void test_a_candidate_that_does_not_read_is_cut_off_and_expires(void **state)
{
    struct api_desk *desk = *state;
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    struct listener *mute = listener_campaign(desk, "g", "mute", ",\"ttl_ms\":60000");
    char session[17];
    int little = 1;

    (void)setsockopt(mute->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    listener_session(mute, session);
    (void)listener_elected(mute);
    while (!strstr(http_ask(desk, "/metrics", NULL, "")->body, "gavel_http_connections_cut_total 1\n")) {
        for (int i = 0; i < 20; i++)
            assert_true(is_kept(desk, session)); /* each is told, and not heard */
        assert_true(clock_now() < limit);
    }
    wait_metric(desk, "campaign_streams", 0);
    wait_quorum(desk);
    assert_true(leads(desk, "mute"));
    assert_true(is_kept(desk, session));
    listener_leave(mute);
}

/* The kernel gives the connection up, for nothing is taken; also then it may be at work. */
static void test_a_connection_that_is_given_up_leaves_the_session_to_expire(void **state)
{
    struct api_desk *desk = *state;
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    struct listener *mute = listener_campaign(desk, "g", "mute", ",\"ttl_ms\":1000");
    char session[17];
    int little = 1;

    (void)setsockopt(mute->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    listener_session(mute, session);
    (void)listener_elected(mute);
    while (!strstr(http_ask(desk, "/metrics", NULL, "")->body, "\ngavel_campaign_streams 0\n")) {
        for (int i = 0; i < 10; i++)
            assert_true(is_kept(desk, session));
        (void)poll(NULL, 0, 20); /* slowly: before it would be cut */
        assert_true(clock_now() < limit);
    }
    wait_quorum(desk);
    assert_true(leads(desk, "mute"));
    listener_leave(mute);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_desk_setup, api_desk_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_leads_and_the_second_follows_when_it_leaves),
        TEST(test_elected_tells_how_long_it_holds),
        TEST(test_what_is_told_of_a_short_time_to_live_leaves_time_for_the_way),
        TEST(test_the_node_keeps_the_session_while_the_stream_is_open),
        TEST(test_past_the_deadline_it_leads_no_more_and_again_when_the_quorum_answers),
        TEST(test_a_session_that_expires_ends_the_stream),
        TEST(test_a_client_that_keeps_itself_alive_leads_on),
        TEST(test_who_resigns_leaves_and_who_stays_goes_to_the_end_of_the_queue),
        TEST(test_a_stale_epoch_cannot_resign),
        TEST(test_sessions_that_are_none_are_refused),
        TEST(test_what_cannot_campaign_is_told_why),
        TEST(test_an_id_is_taken_by_one_session_only),
        TEST(test_policies_choose_the_next),
        TEST(test_a_client_that_leaves_before_the_answer_leaves_no_session),
        TEST(test_without_a_quorum_nobody_campaigns),
        TEST(test_a_node_that_ends_says_so),
        TEST(test_a_node_that_leaves_hands_nothing_on_before_the_client_has_closed),
        TEST(test_a_node_that_ends_leaves_who_does_not_close_to_expire),
        TEST(test_a_stream_that_the_client_resets_ends_the_session),
        TEST(test_a_candidate_that_does_not_read_is_cut_off_and_expires),
        TEST(test_a_connection_that_is_given_up_leaves_the_session_to_expire),
    };

    return cmocka_run_group_tests_name("api campaign", tests, NULL, NULL);
}
