/* SPDX-License-Identifier: Apache-2.0 */

/* The calls that only look, and what all calls share. */
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

static void test_leader_is_told_by_every_node(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer = http_ask(frontend, "/leader", NULL, "");
    char type[64];

    assert_int_equal(answer->code, 200);
    assert_string_equal(answer->body,
                        "{\"leader_id\":\"n1\",\"leader_address\":\"127.0.0.1:7501\",\"term\":7}\n");
    assert_true(http_header(answer, "Content-Type", type, sizeof type));
    assert_string_equal(type, "application/json");
    api_frontend_follow(frontend);
    answer = http_ask(frontend, "/leader", NULL, "");
    assert_string_equal(answer->body,
                        "{\"leader_id\":\"n2\",\"leader_address\":\"127.0.0.1:7502\",\"term\":7}\n");
}

static void test_a_leader_that_told_no_address_has_null(void **state)
{
    struct api_frontend *frontend = *state;

    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.members[0].api[0] = '\0';
    (void)pthread_mutex_unlock(&frontend->mutex);
    api_frontend_follow(frontend);
    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.members[1].api[0] = '\0';
    (void)pthread_mutex_unlock(&frontend->mutex);
    api_frontend_follow(frontend);
    assert_string_equal(http_ask(frontend, "/leader", NULL, "")->body,
                        "{\"leader_id\":\"n2\",\"leader_address\":null,\"term\":7}\n");
}

static void test_an_address_that_would_break_json_does_not(void **state)
{
    struct api_frontend *frontend = *state;
    json_t *json;

    (void)pthread_mutex_lock(&frontend->mutex);
    (void)snprintf(frontend->view.members[1].api, sizeof frontend->view.members[1].api, "h\"\\\n\xff:1");
    (void)pthread_mutex_unlock(&frontend->mutex);
    api_frontend_follow(frontend);
    json = http_json(http_ask(frontend, "/leader", NULL, ""));
    assert_string_equal(json_string_value(json_object_get(json, "leader_address")), "h\"\\??:1");
    json_decref(json);
}

static void test_without_a_leader_reads_are_stale(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer;
    char value[16];
    json_t *json;

    answer = http_ask(frontend, "/status", NULL, "");
    assert_false(http_header(answer, "Gavel-Stale", value, sizeof value));
    api_frontend_orphan(frontend);
    (void)http_expect_error(frontend, "/leader", NULL, 503, GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(frontend, "/ready", NULL, 503, GAVEL_ERR_NO_LEADER);
    answer = http_ask(frontend, "/status", NULL, "");
    assert_int_equal(answer->code, 200);
    assert_true(http_header(answer, "Gavel-Stale", value, sizeof value));
    assert_string_equal(value, "true");
    json = http_json(answer);
    assert_true(json_is_true(json_object_get(json, "stale")));
    assert_true(json_is_null(json_object_get(json, "leader_id")));
    json_decref(json);
    json = http_json(http_ask(frontend, "/members", NULL, ""));
    assert_true(json_is_true(json_object_get(json, "stale")));
    assert_int_equal(json_array_size(json_object_get(json, "members")), 3);
    json_decref(json);
}

static void test_a_lease_that_lapsed_is_not_told(void **state)
{
    struct api_frontend *frontend = *state;
    struct view view;
    json_t *json;

    frontend->is_silent = true;
    view_read(&frontend->frontend.view, &view);
    view.deadline = clock_now() - 1;
    do /* the consensus thread may have been in the middle of publishing */
        view_publish(&frontend->frontend.view, &view);
    while (http_ask(frontend, "/leader", NULL, "")->code != 503);
    json = http_json(http_ask(frontend, "/status", NULL, ""));
    assert_true(json_is_true(json_object_get(json, "is_leader")));
    assert_true(json_is_false(json_object_get(json, "has_lease")));
    assert_true(json_is_null(json_object_get(json, "lease_remaining_ms")));
    assert_true(json_is_true(json_object_get(json, "stale")));
    json_decref(json);
}

static void test_health_fails_when_the_consensus_thread_is_silent(void **state)
{
    struct api_frontend *frontend = *state;
    struct view view;

    assert_int_equal(http_ask(frontend, "/health", NULL, "")->code, 200);
    frontend->is_silent = true;
    view_read(&frontend->frontend.view, &view);
    view.at = clock_now() - ns_from_ms(API_SILENCE_MS + 1);
    do
        view_publish(&frontend->frontend.view, &view);
    while (http_ask(frontend, "/health", NULL, "")->code == 200);
    (void)http_expect_error(frontend, "/health", NULL, 503, GAVEL_ERR_TIMEOUT);
}

static void test_ready_says_whom_it_follows(void **state)
{
    struct api_frontend *frontend = *state;
    json_t *json = http_json(http_ask(frontend, "/ready", NULL, ""));

    assert_string_equal(json_string_value(json_object_get(json, "leader_id")), "n1");
    json_decref(json);
}

/* Waits for the fake consensus thread to publish what was changed. */
static void await_ready(struct api_frontend *frontend, int code)
{
    while (http_ask(frontend, "/ready", NULL, "")->code != code)
        continue;
}

static void test_ready_fails_while_the_disk_hangs(void **state)
{
    struct api_frontend *frontend = *state;
    json_t *json;

    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.is_disk_hung = true;
    frontend->view.write_since = clock_now() - 3 * NS_PER_S;
    (void)pthread_mutex_unlock(&frontend->mutex);
    await_ready(frontend, 503);
    (void)http_expect_error(frontend, "/ready", NULL, 503, GAVEL_ERR_TIMEOUT);
    json = http_json(http_ask(frontend, "/status", NULL, ""));
    assert_true(json_is_true(json_object_get(json, "disk_hangs")));
    assert_true(json_integer_value(json_object_get(json, "oldest_write_ms")) >= 3000);
    assert_true(json_is_false(json_object_get(json, "commits_hang")));
    json_decref(json);
    assert_int_equal(http_ask(frontend, "/health", NULL, "")->code,
                     200); /* it would not help to restart it */
    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.is_disk_hung = false;
    (void)pthread_mutex_unlock(&frontend->mutex);
    await_ready(frontend, 200);
}

static void test_ready_fails_on_a_leader_that_commits_nothing(void **state)
{
    struct api_frontend *frontend = *state;
    json_t *json;

    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.is_commit_hung = true;
    frontend->view.uncommitted_since = clock_now() - 2 * NS_PER_S;
    (void)pthread_mutex_unlock(&frontend->mutex);
    await_ready(frontend, 503);
    (void)http_expect_error(frontend, "/ready", NULL, 503, GAVEL_ERR_TIMEOUT);
    json = http_json(http_ask(frontend, "/status", NULL, ""));
    assert_true(json_is_true(json_object_get(json, "commits_hang")));
    assert_true(json_integer_value(json_object_get(json, "oldest_uncommitted_ms")) >= 2000);
    json_decref(json);
}

static void test_ready_fails_on_a_follower_whose_leader_says_so(void **state)
{
    struct api_frontend *frontend = *state;

    api_frontend_follow(frontend);
    assert_int_equal(http_ask(frontend, "/ready", NULL, "")->code, 200);
    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.members[1].status.term = frontend->view.term;
    frontend->view.members[1].status.commit_hangs_ms = 1500;
    (void)pthread_mutex_unlock(&frontend->mutex);
    await_ready(frontend, 503);
    (void)http_expect_error(frontend, "/ready", NULL, 503, GAVEL_ERR_TIMEOUT);
    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.members[1].status.term--; /* of another leadership: no news */
    (void)pthread_mutex_unlock(&frontend->mutex);
    await_ready(frontend, 200);
}

static void put_election(struct api_frontend *frontend, raft_term term, enum raft_result result)
{
    struct journal_election record = {.started_wall_ms = 1000, .ended_wall_ms = 1007};

    record.election = (struct raft_election){.term = term,
                                             .candidate = 100,
                                             .result = result,
                                             .started_at = NS_PER_MS,
                                             .ended_at = 7 * NS_PER_MS + NS_PER_MS / 2,
                                             .ballot_count = 2};
    record.election.ballots[0] = (struct raft_ballot){.voter = 100, .candidate = 100, .reason = RAFT_GRANTED};
    record.election.ballots[1] = (struct raft_ballot){.voter = 101, .candidate = 0, .reason = RAFT_LEASE};
    (void)snprintf(record.candidate, sizeof record.candidate, "n1");
    (void)snprintf(record.names[0].voter, sizeof record.names[0].voter, "n1");
    (void)snprintf(record.names[0].vote, sizeof record.names[0].vote, "n1");
    (void)snprintf(record.names[1].voter, sizeof record.names[1].voter, "n2");
    journal_put_election(frontend->frontend.journal, &record);
}

static void test_elections_come_newest_first_with_their_votes(void **state)
{
    struct api_frontend *frontend = *state;
    json_t *json;
    json_t *first;
    json_t *vote;

    put_election(frontend, 5, RAFT_WON);
    put_election(frontend, 6, RAFT_TIMED_OUT);
    json = http_json(http_ask(frontend, "/elections", NULL, ""));
    assert_int_equal(json_array_size(json_object_get(json, "elections")), 2);
    first = json_array_get(json_object_get(json, "elections"), 0);
    assert_int_equal(json_integer_value(json_object_get(first, "term")), 6);
    assert_string_equal(json_string_value(json_object_get(first, "result")), "timed_out");
    assert_float_equal(json_real_value(json_object_get(first, "duration_ms")), 6.5, 1e-9);
    vote = json_array_get(json_object_get(first, "votes"), 1);
    assert_string_equal(json_string_value(json_object_get(vote, "voter")), "n2");
    assert_true(json_is_null(json_object_get(vote, "vote")));
    assert_string_equal(json_string_value(json_object_get(vote, "reason")), "LEASE");
    json_decref(json);
    json = http_json(http_ask(frontend, "/elections?limit=1", NULL, ""));
    assert_int_equal(json_array_size(json_object_get(json, "elections")), 1);
    json_decref(json);
}

static void test_a_limit_that_cannot_be_is_refused(void **state)
{
    static const char *const paths[] = {"/elections?limit=0",
                                        "/elections?limit=-1",
                                        "/elections?limit=129",
                                        "/elections?limit=x",
                                        "/elections?limit=",
                                        "/elections?limit=1e3",
                                        "/elections?limit=99999999999999999999"};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        (void)http_expect_error(*state, paths[i], NULL, 400, GAVEL_ERR_INVALID);
}

/* promtool is what the issue asks for; it is in tools/packages.txt. */
static void test_metrics_pass_promtool(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer;
    FILE *promtool;
    char type[64];

    (void)http_ask(frontend, "/nothing", NULL, "");
    answer = http_ask(frontend, "/metrics", NULL, "");
    assert_int_equal(answer->code, 200);
    assert_true(http_header(answer, "Content-Type", type, sizeof type));
    assert_string_equal(type, "text/plain; version=0.0.4; charset=utf-8");
    promtool = popen("promtool check metrics >&2", "w");
    assert_non_null(promtool);
    assert_int_equal(fwrite(answer->body, 1, answer->length, promtool), answer->length);
    assert_int_equal(pclose(promtool), 0);
}

static void expect_line(const struct http_answer *answer, const char *line)
{
    char whole[256];

    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    if (!strstr(answer->body, whole))
        fail_msg("no line \"%s\" in:\n%s", line, answer->body);
}

static void test_metrics_have_what_people_look_for(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer;

    (void)http_ask(frontend, "/leader", NULL, "");
    (void)http_ask(frontend, "/nothing", NULL, "");
    answer = http_ask(frontend, "/metrics", NULL, "");
    expect_line(answer, "gavel_election_count_total 4");
    expect_line(answer, "gavel_election_success_rate 0.75");
    expect_line(answer, "gavel_election_duration_seconds_bucket{le=\"0.005\"} 0");
    expect_line(answer, "gavel_election_duration_seconds_bucket{le=\"0.01\"} 3");
    expect_line(answer, "gavel_election_duration_seconds_bucket{le=\"+Inf\"} 4");
    expect_line(answer, "gavel_election_duration_seconds_sum 5.2");
    expect_line(answer, "gavel_election_duration_seconds_count 4");
    expect_line(answer, "gavel_failover_count_total 1");
    expect_line(answer, "gavel_leader_transfer_count_total 0");
    expect_line(answer, "gavel_split_brain_detected_total 0");
    expect_line(answer, "gavel_current_leader_id{leader_id=\"n1\"} 1");
    expect_line(answer, "gavel_current_term 7");
    expect_line(answer, "gavel_peer_healthy{peer=\"n2\"} 1");
    expect_line(answer, "gavel_peer_healthy{peer=\"n3\"} 0");
    expect_line(answer, "gavel_http_requests_total{method=\"GET\",path=\"/leader\",code=\"200\"} 1");
    expect_line(answer, "gavel_http_requests_total{method=\"other\",path=\"other\",code=\"404\"} 1");
    api_frontend_orphan(frontend);
    assert_null(strstr(http_ask(frontend, "/metrics", NULL, "")->body, "gavel_current_leader_id{"));
}

static void test_an_unknown_path_gets_the_list_of_paths(void **state)
{
    const char *message = http_expect_error(*state, "/leaders", NULL, 404, GAVEL_ERR_NOT_FOUND);

    for (size_t i = 0; i < api_route_count(); i++)
        assert_true(strstr(message, api_route_at(i)->path) || strchr(api_route_at(i)->path, '{'));
    assert_non_null(strstr(message, "/openapi.json"));
    (void)http_expect_error(*state, "/", NULL, 404, GAVEL_ERR_NOT_FOUND);
    (void)http_expect_error(*state, "/leader/", NULL, 404, GAVEL_ERR_NOT_FOUND);
    (void)http_expect_error(*state, "/../leader", NULL, 404, GAVEL_ERR_NOT_FOUND);
}

static void test_a_wrong_method_gets_the_right_ones(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer;
    char allow[32];

    (void)http_expect_error(frontend, "/leader", "{}", 405, GAVEL_ERR_INVALID);
    (void)http_expect_error(frontend, "/transfer", NULL, 405, GAVEL_ERR_INVALID);
    answer = http_ask_method(frontend, "DELETE", "/members", NULL, "");
    assert_int_equal(answer->code, 405);
    assert_true(http_header(answer, "Allow", allow, sizeof allow));
    assert_string_equal(allow, "GET, POST");
    assert_int_equal(http_ask_method(frontend, "OPTIONS", "/leader", NULL, "")->code, 405);
    assert_int_equal(http_ask_method(frontend, "TRACE", "/leader", NULL, "")->code, 405);
}

static void test_head_is_get_without_a_body(void **state)
{
    struct api_frontend *frontend = *state;
    struct http_answer *answer = http_ask_method(frontend, "HEAD", "/leader", NULL, "");
    char length[16];

    assert_int_equal(answer->code, 200);
    assert_int_equal(answer->length, 0);
    assert_true(http_header(answer, "Content-Length", length, sizeof length));
    assert_int_equal(http_ask_method(frontend, "HEAD", "/events", NULL, "")->code, 405);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_leader_is_told_by_every_node, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_a_leader_that_told_no_address_has_null, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_an_address_that_would_break_json_does_not, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_without_a_leader_reads_are_stale, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_a_lease_that_lapsed_is_not_told, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_health_fails_when_the_consensus_thread_is_silent,
                                        api_frontend_setup, api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_ready_says_whom_it_follows, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_ready_fails_while_the_disk_hangs, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_ready_fails_on_a_leader_that_commits_nothing, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_ready_fails_on_a_follower_whose_leader_says_so,
                                        api_frontend_setup, api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_elections_come_newest_first_with_their_votes, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_a_limit_that_cannot_be_is_refused, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_metrics_pass_promtool, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_metrics_have_what_people_look_for, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_an_unknown_path_gets_the_list_of_paths, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_method_gets_the_right_ones, api_frontend_setup,
                                        api_frontend_teardown),
        cmocka_unit_test_setup_teardown(test_head_is_get_without_a_body, api_frontend_setup,
                                        api_frontend_teardown),
    };

    return cmocka_run_group_tests_name("api read", tests, NULL, NULL);
}
