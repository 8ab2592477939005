/* SPDX-License-Identifier: Apache-2.0 */

/* The calls that change something: what they ask of the consensus thread, and how its answers come out. */
#include "api_frontend.h"

#include "os/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_transfer_asks_for_what_the_body_says(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer;
    struct request request;
    json_t *json;

    answer = http_ask(frontend, "/transfer",
                      "{\"target_leader_id\":\"n2\",\"timeout_ms\":1500,\"force\":true}", "");
    assert_int_equal(answer->code, 200);
    json = http_json(answer);
    assert_int_equal(json_object_size(json), 4);
    assert_true(json_is_true(json_object_get(json, "success")));
    assert_string_equal(json_string_value(json_object_get(json, "message")), "n2 leads");
    assert_string_equal(json_string_value(json_object_get(json, "old_leader_id")), "n1");
    assert_string_equal(json_string_value(json_object_get(json, "new_leader_id")), "n2");
    json_decref(json);
    api_frontend_last(frontend, &request);
    assert_int_equal(request.kind, REQUEST_TRANSFER);
    assert_string_equal(request.target, "n2");
    assert_int_equal(request.timeout_ms, 1500);
    assert_true(request.is_forced);
}

static void test_what_a_body_leaves_out_is_for_the_node_to_choose(void **state)
{
    static const char *const bodies[] = {"", "{}",
                                         "{\"target_leader_id\":null,\"timeout_ms\":null,\"force\":null}"};
    struct api_frontend *frontend = *state;
    struct request request;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        assert_int_equal(http_ask(frontend, "/transfer", bodies[i], "")->code, 200);
        api_frontend_last(frontend, &request);
        assert_string_equal(request.target, "");
        assert_int_equal(request.timeout_ms, 0);
        assert_false(request.is_forced);
    }
    assert_int_equal(http_ask(frontend, "/stepdown", "{}", "")->code, 200);
    api_frontend_last(frontend, &request);
    assert_int_equal(request.kind, REQUEST_STEP_DOWN);
}

static void test_members_are_added_with_all_that_is_said(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer;
    struct request request;

    api_frontend_answer(frontend, GAVEL_OK, "n4 is a member", "");
    answer = http_ask(
        frontend, "/members",
        "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"10.0.0.4:7400\",\"api_address\":\"[::1]:7500\","
        "\"priority\":255,\"witness\":true,\"learner\":true}",
        "");
    assert_int_equal(answer->code, 200);
    assert_string_equal(answer->body, "{\"success\":true,\"message\":\"n4 is a member\"}\n");
    api_frontend_last(frontend, &request);
    assert_int_equal(request.kind, REQUEST_MEMBER_ADD);
    assert_string_equal(request.target, "n4");
    assert_string_equal(request.address, "10.0.0.4:7400");
    assert_string_equal(request.api, "[::1]:7500");
    assert_int_equal(request.priority, 255);
    assert_true(request.is_witness);
    assert_true(request.is_learner);
}

static void test_members_are_removed_promoted_demoted(void **state)
{
    static const struct {
        const char *body;
        enum request_kind kind;
    } cases[] = {{"{\"action\":\"remove\",\"id\":\"n3\"}", REQUEST_MEMBER_REMOVE},
                 {"{\"action\":\"promote\",\"id\":\"n3\"}", REQUEST_MEMBER_PROMOTE},
                 {"{\"action\":\"demote\",\"id\":\"n3\"}", REQUEST_MEMBER_DEMOTE}};
    struct request request;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(http_ask(*state, "/members", cases[i].body, "")->code, 200);
        api_frontend_last(*state, &request);
        assert_int_equal(request.kind, cases[i].kind);
        assert_string_equal(request.target, "n3");
    }
}

static void test_each_status_has_its_code(void **state)
{
    static const struct {
        enum gavel_status status;
        long code;
    } cases[] = {{GAVEL_ERR_NO_LEADER, 503}, {GAVEL_ERR_LEADER_TRANSFER_FAILED, 409},
                 {GAVEL_ERR_INVALID, 400},   {GAVEL_ERR_NOT_FOUND, 404},
                 {GAVEL_ERR_STATE, 409},     {GAVEL_ERR_TIMEOUT, 504},
                 {GAVEL_ERR_STOPPED, 503},   {GAVEL_ERR_IO, 500}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        api_frontend_answer(*state, cases[i].status, "that is why", "");
        assert_string_equal(http_expect_error(*state, "/transfer", "{}", cases[i].code, cases[i].status),
                            "that is why");
    }
    api_frontend_answer(*state, GAVEL_ERR_STATE, "", "");
    assert_string_equal(http_expect_error(*state, "/stepdown", "{}", 409, GAVEL_ERR_STATE),
                        gavel_status_text(GAVEL_ERR_STATE));
}

static void test_a_follower_shows_the_way_to_the_leader(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer;
    char location[128];

    api_frontend_answer(frontend, GAVEL_ERR_NOT_LEADER, "n2 leads; ask it", "127.0.0.1:7502");
    (void)http_expect_error(frontend, "/members", "{\"action\":\"remove\",\"id\":\"n3\"}", 307,
                            GAVEL_ERR_NOT_LEADER);
    answer = http_ask(frontend, "/stepdown", "{}", "");
    assert_int_equal(answer->code, 307);
    assert_true(http_header(answer, "Location", location, sizeof location));
    assert_string_equal(location, "http://127.0.0.1:7502/stepdown");
    api_frontend_answer(frontend, GAVEL_ERR_NOT_LEADER, "n2 leads, and where its API is is not known", "");
    answer = http_ask(frontend, "/stepdown", "{}", "");
    assert_int_equal(answer->code, 503);
    assert_false(http_header(answer, "Location", location, sizeof location));
}

static void test_bad_bodies_name_what_is_wrong(void **state)
{
    static const struct {
        const char *path;
        const char *body;
        const char *word; /* of the message */
    } cases[] = {
        {"/transfer", "{", "line 1"},
        {"/transfer", "{\n\"force\" true}", "line 2, column"},
        {"/transfer", "[]", "object"},
        {"/transfer", "\"n2\"", "line 1"},
        {"/transfer", "{}{}", "line 1"},
        {"/transfer", "{\"force\":NaN}", "line 1"},
        {"/transfer", "{\"timeout_ms\":NaN}", "line 1"},
        {"/transfer", "{\"force\":true,\"force\":false}", "duplicate"},
        {"/transfer", "{\"target\":\"n2\"}", "\"target\""},
        {"/transfer", "{\"force\":1}", "\"force\" must be true or false"},
        {"/transfer", "{\"force\":\"yes\"}", "\"force\""},
        {"/transfer", "{\"timeout_ms\":-1}", "\"timeout_ms\" must be between"},
        {"/transfer", "{\"timeout_ms\":0}", "\"timeout_ms\""},
        {"/transfer", "{\"timeout_ms\":1.5}", "\"timeout_ms\" must be a whole number"},
        {"/transfer", "{\"timeout_ms\":1e3}", "\"timeout_ms\" must be a whole number"},
        {"/transfer", "{\"timeout_ms\":600001}", "\"timeout_ms\""},
        {"/transfer", "{\"timeout_ms\":99999999999999999999}", "line 1"},
        {"/transfer", "{\"timeout_ms\":9223372036854775807}", "\"timeout_ms\""},
        {"/transfer", "{\"timeout_ms\":1e999}", "line 1"},
        {"/transfer", "{\"timeout_ms\":\"1\"}", "\"timeout_ms\""},
        {"/transfer", "{\"target_leader_id\":5}", "\"target_leader_id\" must be a string"},
        {"/transfer", "{\"target_leader_id\":\"-n2\"}", "\"target_leader_id\""},
        {"/transfer", "{\"target_leader_id\":\"a b\"}", "\"target_leader_id\""},
        {"/transfer", "{\"target_leader_id\":\"\\u0000n2\"}", "line 1"},
        {"/transfer", "{\"target_leader_id\":\"\xff\"}", "line 1"},
        {"/stepdown", "{\"force\":true}", "\"force\""},
        {"/members", "{}", "\"action\" is missing"},
        {"/members", "{\"action\":\"add\"}", "\"id\" is missing"},
        {"/members", "{\"action\":null,\"id\":\"n4\"}", "\"action\" is missing"},
        {"/members", "{\"action\":\"dance\",\"id\":\"n4\"}", "\"action\""},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\"}", "\"address\" is missing"},
        {"/members", "{\"action\":\"add\",\"id\":\"\",\"address\":\"h:1\"}", "\"id\" is missing"},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"h\"}", "\"address\""},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"h:0\"}", "\"address\""},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"h:65536\"}", "\"address\""},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\",\"address\":\":1\"}", "\"address\""},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"h/x:1\"}", "\"address\""},
        {"/members",
         "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"h:1\",\"api_address\":\"a\\r\\nX: y:1\"}",
         "\"api_address\""},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"h:1\",\"priority\":256}",
         "\"priority\""},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"h:1\",\"priority\":-1}",
         "\"priority\""},
        {"/members", "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"h:1\",\"witness\":0}", "\"witness\""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *message = http_expect_error(*state, cases[i].path, cases[i].body, 400, GAVEL_ERR_INVALID);

        if (!strstr(message, cases[i].word))
            fail_msg("%s: \"%s\" says nothing of %s", cases[i].body, message, cases[i].word);
    }
    assert_int_equal(((struct api_frontend *)*state)->asked, 0);
}

static void test_an_address_that_is_too_long_is_refused(void **state)
{
    char body[512];
    char host[300];

    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    (void)snprintf(body, sizeof body, "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"%s:1\"}", host);
    (void)http_expect_error(*state, "/members", body, 400, GAVEL_ERR_INVALID);
    (void)snprintf(body, sizeof body, "{\"target_leader_id\":\"%.64s\"}", host);
    (void)http_expect_error(*state, "/transfer", body, 400, GAVEL_ERR_INVALID);
}

static void test_a_page_of_another_site_changes_nothing(void **state)
{
    struct api_frontend *frontend = *state;
    char origin[64];

    assert_int_equal(http_ask(frontend, "/stepdown", "{}", "Origin: https://evil.example")->code, 403);
    assert_int_equal(http_ask(frontend, "/stepdown", "{}", "Origin: null")->code, 403);
    assert_int_equal(frontend->asked, 0);
    (void)snprintf(origin, sizeof origin, "Origin: http://localhost:%u", api_port(frontend->api));
    assert_int_equal(http_ask(frontend, "/stepdown", "{}", origin)->code, 200);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "Origin: https://evil.example")->code, 200);
}

static void say_stepdown(int fd)
{
    raw_say(fd, "POST /stepdown HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
}

static void test_a_client_that_leaves_while_its_request_is_away_harms_nothing(void **state)
{
    struct api_frontend *frontend = *state;

    frontend->holds = true;
    for (int i = 0; i < 10; i++) {
        int fd = raw_open(frontend);
        struct linger at_once = {.l_onoff = 1};

        say_stepdown(fd);
        api_frontend_wait_asked(frontend, i + 1);
        if (i % 2) /* a reset instead of an orderly end */
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        (void)close(fd);
    }
    frontend->holds = false;
    assert_int_equal(http_ask(frontend, "/transfer", "{}", "")->code, 200);
    assert_int_equal(http_ask(frontend, "/leader", NULL, "")->code, 200);
}

static void test_only_so_many_requests_may_wait(void **state)
{
    struct api_frontend *frontend = *state;
    int fds[API_PENDING_MAX];
    char text[512];

    frontend->holds = true;
    for (int i = 0; i < API_PENDING_MAX; i++) {
        fds[i] = raw_open(frontend);
        say_stepdown(fds[i]);
    }
    api_frontend_wait_asked(frontend, API_PENDING_MAX);
    (void)http_expect_error(frontend, "/stepdown", "{}", 409, GAVEL_ERR_STATE);
    frontend->holds = false;
    for (int i = 0; i < API_PENDING_MAX; i++) {
        (void)raw_hear(fds[i], text, sizeof text, "\"success\":true", 10000, NULL);
        assert_non_null(strstr(text, "200 OK"));
        (void)close(fds[i]);
    }
}

static void test_what_is_under_way_is_answered_when_the_node_ends(void **state)
{
    struct api_frontend *frontend = *state;
    int fd = raw_open(frontend);
    char text[512];
    bool is_closed;

    frontend->holds = true;
    say_stepdown(fd);
    api_frontend_wait_asked(frontend, 1);
    api_frontend_answer(frontend, GAVEL_ERR_STOPPED, "this node is stopping", "");
    frontend->is_ending = true;
    (void)pthread_join(frontend->consensus, NULL);
    api_stop(frontend->api);
    frontend->api = NULL;
    (void)raw_hear(fd, text, sizeof text, NULL, 5000, &is_closed);
    assert_true(is_closed);
    assert_non_null(strstr(text, "503 Service Unavailable"));
    assert_non_null(strstr(text, "ERR_STOPPED"));
    (void)close(fd);
}

static void test_requests_that_nobody_read_are_answered_when_the_node_ends(void **state)
{
    struct api_frontend *frontend = *state;
    int fd = raw_open(frontend);
    char text[512];

    frontend->is_ending = true;
    (void)pthread_join(frontend->consensus, NULL);
    say_stepdown(fd);
    for (gavel_ns limit = clock_now() + 10 * NS_PER_S; clock_now() < limit;) {
        size_t count;

        (void)pthread_mutex_lock(&frontend->frontend.requests.mutex);
        count = frontend->frontend.requests.count;
        (void)pthread_mutex_unlock(&frontend->frontend.requests.mutex);
        if (count == 1)
            break;
        (void)poll(NULL, 0, 1);
    }
    api_stop(frontend->api);
    frontend->api = NULL;
    (void)raw_hear(fd, text, sizeof text, NULL, 5000, NULL);
    assert_non_null(strstr(text, "ERR_STOPPED"));
    (void)close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_frontend_setup, api_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_transfer_asks_for_what_the_body_says),
        TEST(test_what_a_body_leaves_out_is_for_the_node_to_choose),
        TEST(test_members_are_added_with_all_that_is_said),
        TEST(test_members_are_removed_promoted_demoted),
        TEST(test_each_status_has_its_code),
        TEST(test_a_follower_shows_the_way_to_the_leader),
        TEST(test_bad_bodies_name_what_is_wrong),
        TEST(test_an_address_that_is_too_long_is_refused),
        TEST(test_a_page_of_another_site_changes_nothing),
        TEST(test_a_client_that_leaves_while_its_request_is_away_harms_nothing),
        TEST(test_only_so_many_requests_may_wait),
        TEST(test_what_is_under_way_is_answered_when_the_node_ends),
        TEST(test_requests_that_nobody_read_are_answered_when_the_node_ends),
    };

    return cmocka_run_group_tests_name("api admin", tests, NULL, NULL);
}
