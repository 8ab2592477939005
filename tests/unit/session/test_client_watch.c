/* SPDX-License-Identifier: Apache-2.0 */

/* Watches, questions and connections of a client: what outlives a connection, and which one is next. */

#include "scripted.h"

#include <string.h>

#define REQUEST GAVEL__CLIENT_FRAME__WHAT_REQUEST
#define KEEP_ALIVE GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE
#define ASK GAVEL__CLIENT_FRAME__WHAT_ASK
#define WATCH GAVEL__CLIENT_FRAME__WHAT_WATCH
#define UNWATCH GAVEL__CLIENT_FRAME__WHAT_UNWATCH

#define LIST(...) ((const uint64_t[]){__VA_ARGS__, 0})

static int set_up(void **state)
{
    static struct scripted s;
    struct client_settings settings = scripted_settings(3);

    scripted_begin(&s, &settings);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    scripted_end(*state);
    return 0;
}

/* The changes that were told in the newest step, by their revisions. */
static void expect_changes(const struct scripted *s, const uint64_t *revisions)
{
    size_t count = 0;

    for (; revisions[count] != 0; count++) {
        const struct client_action *action = scripted_find(s, CLIENT_DO_CHANGE, count);

        assert_non_null(action);
        assert_int_equal(action->change->revision, revisions[count]);
    }
    assert_null(scripted_find(s, CLIENT_DO_CHANGE, count));
}

/* Another connection, with the session that there is. */
static void connect_again(struct scripted *s)
{
    scripted_event(s, CLIENT_LOST);
    while (scripted_count(s, CLIENT_DO_CONNECT) == 0)
        scripted_pass(s, client_wake_at(s->client));
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    assert_int_equal(client_state(s->client), CLIENT_UP);
}

static void test_a_watch_goes_on_where_the_caller_stands(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_watch(s, 1, "g", 0);
    assert_string_equal(scripted_sent(s, WATCH)->watch->group, "g");
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_revision, 0);
    {
        uint64_t wire = scripted_tag(s, WATCH);

        scripted_changes(s, wire, 40, NULL);
        assert_int_equal(scripted_find(s, CLIENT_DO_WATCHING, 0)->revision, 40);
        scripted_changes(s, wire, 43, LIST(41, 42));
        expect_changes(s, LIST(41, 42));
    }
    connect_again(s);
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_revision, 43);
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_part, UINT32_MAX);
    {
        uint64_t wire = scripted_tag(s, WATCH);

        /* This node is behind: what it tells first is known. */
        scripted_changes(s, wire, 41, NULL);
        assert_int_equal(scripted_find(s, CLIENT_DO_WATCHING, 0)->revision, 43);
        scripted_changes(s, wire, 0, LIST(41, 42));
        assert_int_equal(scripted_count(s, CLIENT_DO_CHANGE), 0);
        scripted_changes(s, wire, 44, LIST(44));
        expect_changes(s, LIST(44));
    }
}

static void test_a_watch_begins_where_the_caller_says(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_watch(s, 1, "g", 10);
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_revision, 10);
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_part, UINT32_MAX);
    {
        uint64_t wire = scripted_tag(s, WATCH);

        /* The node stands at 90 already; what lies between is still to come. */
        scripted_changes(s, wire, 90, NULL);
        assert_int_equal(scripted_find(s, CLIENT_DO_WATCHING, 0)->revision, 10);
        scripted_changes(s, wire, 90, LIST(11, 50, 90));
        expect_changes(s, LIST(11, 50, 90));
    }
}

static void test_changes_out_of_order_end_the_connection(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_watch(s, 1, "g", 0);
    scripted_changes(s, scripted_tag(s, WATCH), 1, NULL);
    connect_again(s);
    scripted_changes(s, scripted_tag(s, WATCH), 0, LIST(5, 5));
    scripted_expect_dropped(s, "out of order");
    expect_changes(s, LIST(5)); /* once */
}

static void test_what_is_forgotten_is_told_as_a_gap_and_watched_from_there(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_watch(s, 1, "g", 10);
    scripted_ended(s, scripted_tag(s, WATCH), GAVEL_ERR_FORGOTTEN, 500);
    assert_int_equal(scripted_find(s, CLIENT_DO_GAP, 0)->revision, 500);
    assert_int_equal(scripted_find(s, CLIENT_DO_GAP, 0)->token, 1);
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_revision, 500);
    {
        uint64_t wire = scripted_tag(s, WATCH);

        scripted_changes(s, wire, 500, NULL);
        scripted_changes(s, wire, 501, LIST(501));
        expect_changes(s, LIST(501));
    }
}

static void test_a_node_that_is_behind_and_has_forgotten_makes_no_gap(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_watch(s, 1, "g", 100);
    scripted_ended(s, scripted_tag(s, WATCH), GAVEL_ERR_FORGOTTEN, 60);
    assert_int_equal(scripted_count(s, CLIENT_DO_GAP), 0);
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_revision, 60);
    {
        uint64_t wire = scripted_tag(s, WATCH);

        scripted_changes(s, wire, 60, NULL);
        scripted_changes(s, wire, 101, LIST(80, 100, 101));
        expect_changes(s, LIST(101));
    }
}

static void test_a_node_that_forgets_again_and_again_is_asked_slowly(void **state)
{
    struct scripted *s = *state;
    gavel_ns begin = s->now;

    scripted_up(s);
    scripted_watch(s, 1, "g", 10);
    for (uint64_t i = 0; i < 12; i++) {
        scripted_ended(s, scripted_tag(s, WATCH), GAVEL_ERR_FORGOTTEN, 500 + i);
        while (!scripted_sent(s, WATCH)) {
            if (scripted_sent(s, KEEP_ALIVE))
                scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
            else
                scripted_pass(s, client_wake_at(s->client));
        }
    }
    assert_true(s->now - begin > 250 * NS_PER_MS);
}

static void test_a_watch_that_is_refused_tells_why_and_is_asked_for_again(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_watch(s, 1, "g", 10);
    scripted_ended(s, scripted_tag(s, WATCH), GAVEL_ERR_INVALID, 0);
    assert_int_equal(scripted_find(s, CLIENT_DO_GAP, 0)->status, GAVEL_ERR_INVALID);
    assert_null(scripted_sent(s, WATCH));
    scripted_pass(s, s->now + 5 * NS_PER_MS);
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_revision, 10);
}

static void test_a_watch_from_the_beginning_of_an_empty_table_may_have_missed_something(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_watch(s, 1, "g", 0);
    scripted_changes(s, scripted_tag(s, WATCH), 0, NULL);
    assert_int_equal(scripted_count(s, CLIENT_DO_WATCHING), 1);
    connect_again(s);
    scripted_changes(s, scripted_tag(s, WATCH), 3, NULL);
    assert_int_equal(scripted_find(s, CLIENT_DO_GAP, 0)->revision, 3);
}

static void test_a_watch_that_was_ended_tells_no_more(void **state)
{
    struct scripted *s = *state;
    struct client_event event = {.kind = CLIENT_UNWATCH, .now = s->now};
    uint64_t wire;

    scripted_up(s);
    scripted_watch(s, 1, "g", 0);
    wire = scripted_tag(s, WATCH);
    scripted_changes(s, wire, 10, NULL);
    event.watch.watch = 1;
    s->actions = client_step(s->client, &event);
    assert_int_equal(scripted_sent(s, UNWATCH)->unwatch->watch, wire);
    scripted_changes(s, wire, 11, LIST(11)); /* was on its way */
    assert_int_equal(s->actions->count, 0);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    scripted_changes(s, wire + 1, 11, LIST(11));
    scripted_expect_dropped(s, "a watch that does not exist");
}

static void test_the_watch_of_a_session_follows_to_the_next_session(void **state)
{
    struct scripted *s = *state;
    uint64_t wire, opening;

    scripted_watch_session(s, 1);
    assert_int_equal(s->actions->count, 0);
    scripted_up(s);
    assert_int_equal(scripted_sent(s, WATCH)->watch->session, SESSION);
    wire = scripted_tag(s, WATCH);
    scripted_changes(s, wire, 10, NULL);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, SESSION);
    assert_int_equal(scripted_sent(s, UNWATCH)->unwatch->watch, wire);
    assert_null(scripted_sent(s, WATCH));
    opening = scripted_tag(s, REQUEST);
    scripted_submit(s, 7, 1, 0, NEVER);
    scripted_reply(s, opening, GAVEL_OK, 1);
    assert_int_equal(scripted_sent(s, WATCH)->watch->session, client_session(s->client));
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_revision, 10);
    /* Before the request: what it changes is watched. */
    assert_int_equal(scripted_find(s, CLIENT_DO_SEND, 0)->frame->what_case, WATCH);
    assert_int_equal(scripted_find(s, CLIENT_DO_SEND, 1)->frame->what_case, REQUEST);
}

static void test_the_end_of_our_session_in_a_watch_is_believed(void **state)
{
    struct scripted *s = *state;
    uint64_t wire;

    s->session_revision = 20;
    scripted_watch_session(s, 1);
    scripted_up(s);
    wire = scripted_tag(s, WATCH);
    scripted_session_ended(s, wire, SESSION, 10); /* of one before it, under the same id */
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 0);
    scripted_session_ended(s, wire, SESSION + 1, 30);
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 0);
    scripted_session_ended(s, wire, SESSION, 31);
    assert_int_equal(scripted_find(s, CLIENT_DO_CHANGE, 0)->revision, 31);
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 1);
    assert_int_equal(client_session_number(s->client), 0);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(scripted_sent(s, WATCH)->watch->session, client_session(s->client));
    assert_int_equal(scripted_sent(s, WATCH)->watch->after_revision, 31);
}

static void test_who_does_not_know_which_session_is_its_own_asks_whether_it_has_ended(void **state)
{
    struct scripted *s = *state;
    uint64_t wire;

    scripted_watch_session(s, 1);
    scripted_up(s);
    wire = scripted_tag(s, WATCH);
    scripted_session_ended(s, wire, SESSION, 31);
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 0);
    assert_non_null(scripted_sent(s, KEEP_ALIVE));
}

static void test_questions_are_put_again_on_the_next_connection(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_ask(s, 1, NEVER);
    assert_string_equal(scripted_sent(s, ASK)->ask->group, "g");
    connect_again(s);
    scripted_answer(s, scripted_tag(s, ASK), GAVEL_OK);
    assert_int_equal(scripted_find(s, CLIENT_DO_ANSWER, 0)->token, 1);
    assert_non_null(scripted_find(s, CLIENT_DO_ANSWER, 0)->answer);
}

static void test_a_question_is_given_up_in_time_and_its_late_answer_is_no_mistake(void **state)
{
    struct scripted *s = *state;
    uint64_t tag;

    scripted_up(s);
    scripted_ask(s, 1, s->now + 50 * NS_PER_MS);
    tag = scripted_tag(s, ASK);
    scripted_pass(s, s->now + 50 * NS_PER_MS);
    assert_int_equal(scripted_find(s, CLIENT_DO_ANSWER, 0)->status, GAVEL_ERR_TIMEOUT);
    assert_null(scripted_find(s, CLIENT_DO_ANSWER, 0)->answer);
    scripted_answer(s, tag, GAVEL_OK);
    assert_int_equal(s->actions->count, 0);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    scripted_answer(s, tag + 100, GAVEL_OK);
    scripted_expect_dropped(s, "it answers what was not asked");
}

static void test_a_question_without_a_leader_is_put_again_shortly(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_ask(s, 1, NEVER);
    scripted_answer(s, scripted_tag(s, ASK), GAVEL_ERR_NOT_LEADER);
    assert_int_equal(scripted_count(s, CLIENT_DO_ANSWER), 0);
    assert_int_equal(client_wake_at(s->client), s->now + 5 * NS_PER_MS);
    scripted_pass(s, s->now + 5 * NS_PER_MS);
    scripted_answer(s, scripted_tag(s, ASK), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(scripted_find(s, CLIENT_DO_ANSWER, 0)->status, GAVEL_ERR_NOT_FOUND);
    assert_null(scripted_find(s, CLIENT_DO_ANSWER, 0)->answer);
}

static void test_a_node_that_answers_no_question_is_left(void **state)
{
    struct scripted *s = *state;
    gavel_ns asked_at;

    scripted_up(s);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    scripted_ask(s, 1, NEVER);
    asked_at = s->now;
    while (client_state(s->client) == CLIENT_UP) {
        scripted_pass(s, client_wake_at(s->client));
        if (scripted_sent(s, KEEP_ALIVE))
            scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    }
    assert_int_equal(s->now, asked_at + 2 * NS_PER_S);
    assert_non_null(strstr(client_trouble(s->client), "a question had no answer"));
}

static void test_without_a_session_a_client_asks_and_watches_only(void **state)
{
    struct client_settings settings = scripted_settings(1);
    struct scripted s;

    (void)state;
    settings.ttl_ms = 0;
    scripted_begin(&s, &settings);
    scripted_event(&s, CLIENT_CONNECTED);
    scripted_welcome(&s, "test", 1);
    assert_int_equal(client_state(s.client), CLIENT_UP);
    assert_int_equal(s.actions->count, 0);
    assert_int_equal(client_session(s.client), 0);
    scripted_submit(&s, 1, 1, 0, NEVER);
    assert_int_equal(scripted_find(&s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_STATE);
    scripted_ask(&s, 2, NEVER);
    scripted_answer(&s, scripted_tag(&s, ASK), GAVEL_OK);
    assert_int_equal(scripted_count(&s, CLIENT_DO_ANSWER), 1);
    assert_int_equal(client_wake_at(s.client), NEVER);
    scripted_event(&s, CLIENT_CLOSE);
    assert_int_equal(scripted_count(&s, CLIENT_DO_CLOSED), 1);
    scripted_end(&s);
}

/* The address that the newest step connects to; time passes until there is one. */
static size_t next_address(struct scripted *s)
{
    while (scripted_count(s, CLIENT_DO_CONNECT) == 0)
        scripted_pass(s, client_wake_at(s->client));
    return scripted_find(s, CLIENT_DO_CONNECT, 0)->which;
}

static void test_each_address_is_tried_the_near_ones_first_and_rounds_grow_apart(void **state)
{
    struct client_settings settings = scripted_settings(5);
    bool starts[5] = {false};

    (void)state;
    settings.near_count = 2;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct scripted s;
        gavel_ns longest = 0;

        settings.seed = seed;
        scripted_begin(&s, &settings);
        starts[next_address(&s)] = true;
        for (size_t round = 0; round < 12; round++) {
            unsigned seen = 0;
            gavel_ns before = s.now;

            for (size_t i = 0; i < 5; i++) {
                size_t which = next_address(&s);

                assert_int_equal(which < 2, i < 2);
                assert_true(i == 0 || s.now == before);
                longest = i == 0 ? ns_max(longest, s.now - before) : longest;
                before = s.now;
                seen |= 1u << which;
                scripted_event(&s, CLIENT_LOST);
            }
            assert_int_equal(seen, 31);
        }
        assert_in_range(longest, 250 * NS_PER_MS, 500 * NS_PER_MS);
        scripted_end(&s);
    }
    assert_true(starts[0]);
    assert_true(starts[1]);
    assert_false(starts[2] || starts[3] || starts[4]);
}

static void test_a_node_that_welcomes_and_misbehaves_is_not_tried_without_a_pause(void **state)
{
    struct client_settings settings = scripted_settings(1);
    struct scripted s;
    gavel_ns begin;

    (void)state;
    scripted_begin(&s, &settings);
    begin = s.now;
    for (size_t i = 0; i < 12; i++) {
        (void)next_address(&s);
        scripted_event(&s, CLIENT_CONNECTED);
        scripted_welcome(&s, "test", 1);
        scripted_kept(&s, 12345, GAVEL_OK, 0);
        assert_int_equal(client_state(s.client), CLIENT_AWAY);
    }
    assert_true(s.now - begin > NS_PER_S);
    scripted_end(&s);
}

static void test_a_node_that_does_not_greet_is_left_after_a_while(void **state)
{
    struct scripted *s = *state;

    scripted_event(s, CLIENT_CONNECTED);
    scripted_pass(s, s->now + NS_PER_S - 1);
    assert_int_equal(client_state(s->client), CLIENT_GREETING);
    scripted_pass(s, s->now + 1);
    scripted_expect_dropped(s, "no greeting");
    assert_int_equal(scripted_count(s, CLIENT_DO_CONNECT), 1);
}

static void test_a_refusal_is_told_in_the_words_of_the_node(void **state)
{
    struct scripted *s = *state;
    Gavel__ClientRefusal refusal;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    gavel__client_refusal__init(&refusal);
    scripted_event(s, CLIENT_CONNECTED);
    refusal.text = (char *)(uintptr_t) "no room for another client";
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REFUSAL;
    frame.refusal = &refusal;
    scripted_frame(s, &frame);
    scripted_expect_dropped(s, "no room for another client");
    (void)next_address(s);
    scripted_event(s, CLIENT_CONNECTED);
    refusal.text = (char *)(uintptr_t) "\033[31mred\n\xff";
    scripted_frame(s, &frame);
    scripted_expect_dropped(s, "?[31mred??");
}

static void test_a_node_of_another_cluster_or_version_is_left(void **state)
{
    struct scripted *s = *state;

    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 2);
    scripted_expect_dropped(s, "speaks version 2");
    (void)next_address(s);
    scripted_up(s);
    scripted_event(s, CLIENT_LOST);
    (void)next_address(s);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "other", 1);
    scripted_expect_dropped(s, "belongs to the cluster other");
}

static void test_a_frame_of_a_kind_that_is_not_known_is_skipped(void **state)
{
    struct scripted *s = *state;
    Gavel__ClientFrame unknown = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Unwatch unwatch = GAVEL__UNWATCH__INIT;

    scripted_up(s);
    scripted_frame(s, &unknown);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    scripted_welcome(s, "test", 1);
    scripted_expect_dropped(s, "a second greeting");
    connect_again(s);
    unknown.what_case = UNWATCH;
    unknown.unwatch = &unwatch;
    scripted_frame(s, &unknown);
    scripted_expect_dropped(s, "what only clients say");
}

static void test_settings_that_make_no_sense_are_refused(void **state)
{
    const struct client_settings good = scripted_settings(1);
    struct client_settings bad[6];
    struct client *client = NULL;

    (void)state;
    for (size_t i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].address_count = 0;
    bad[1].address_count = CLIENT_ADDRESSES_MAX + 1;
    bad[2].session = 0;
    bad[3].ttl_ms = TABLE_TTL_MIN_MS - 1;
    bad[4].drift_ppm = 1000000;
    bad[5].near_count = 2;
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(client_new(&bad[i], 0, &client), GAVEL_ERR_INVALID);
        assert_null(client);
    }
    client_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_a_watch_goes_on_where_the_caller_stands),
        T(test_a_watch_begins_where_the_caller_says),
        T(test_changes_out_of_order_end_the_connection),
        T(test_what_is_forgotten_is_told_as_a_gap_and_watched_from_there),
        T(test_a_node_that_is_behind_and_has_forgotten_makes_no_gap),
        T(test_a_node_that_forgets_again_and_again_is_asked_slowly),
        T(test_a_watch_that_is_refused_tells_why_and_is_asked_for_again),
        T(test_a_watch_from_the_beginning_of_an_empty_table_may_have_missed_something),
        T(test_a_watch_that_was_ended_tells_no_more),
        T(test_the_watch_of_a_session_follows_to_the_next_session),
        T(test_the_end_of_our_session_in_a_watch_is_believed),
        T(test_who_does_not_know_which_session_is_its_own_asks_whether_it_has_ended),
        T(test_questions_are_put_again_on_the_next_connection),
        T(test_a_question_is_given_up_in_time_and_its_late_answer_is_no_mistake),
        T(test_a_question_without_a_leader_is_put_again_shortly),
        T(test_a_node_that_answers_no_question_is_left),
        cmocka_unit_test(test_without_a_session_a_client_asks_and_watches_only),
        cmocka_unit_test(test_each_address_is_tried_the_near_ones_first_and_rounds_grow_apart),
        cmocka_unit_test(test_a_node_that_welcomes_and_misbehaves_is_not_tried_without_a_pause),
        T(test_a_node_that_does_not_greet_is_left_after_a_while),
        T(test_a_refusal_is_told_in_the_words_of_the_node),
        T(test_a_node_of_another_cluster_or_version_is_left),
        T(test_a_frame_of_a_kind_that_is_not_known_is_skipped),
        cmocka_unit_test(test_settings_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
