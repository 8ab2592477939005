/* SPDX-License-Identifier: Apache-2.0 */

/* The forwarder: keep-alives of many clients are merged, and nothing that is asked besides holds them up. */
#include "forwarder_fixture.h"

static void test_keep_alives_go_as_one_and_each_client_hears_of_its_own(void **state)
{
    struct fixture *f = *state;
    uint64_t first[] = {10, 11, 12}, second[] = {20, 11}, gone[] = {20, 99, 11};

    set_leader(f, 3, 7);
    keep_alive(f, 1, 5, 3, first);
    pass(f, FORWARDER_GATHER / 2);
    keep_alive(f, 2, 5, 2, second);
    keep_alive(f, 3, 6, 0, NULL);
    assert_int_equal(f->delivered, 0);
    pass(f, FORWARDER_GATHER / 2);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->deliveries[0].session_count, 5);
    reply_gone(f, f->deliveries[0], GAVEL_OK, 3, gone);
    assert_int_equal(f->answered, 3);
    assert_answer(f, 0, 1, 5, GAVEL_OK);
    assert_int_equal(f->answers[0].gone_count, 1);
    assert_int_equal(f->answers[0].gone[0], 11);
    assert_answer(f, 1, 2, 5, GAVEL_OK);
    assert_int_equal(f->answers[1].gone_count, 2);
    assert_int_equal(f->answers[1].gone[0], 20);
    assert_int_equal(f->answers[1].gone[1], 11);
    assert_answer(f, 2, 3, 6, GAVEL_OK);
    assert_int_equal(f->answers[2].gone_count, 0);
}

static void test_each_client_hears_which_session_it_is_that_was_kept(void **state)
{
    struct fixture *f = *state;
    uint64_t first[] = {10, 11}, second[] = {20}, gone[] = {11};
    const uint64_t revisions[] = {100, 0, 200};

    set_leader(f, 3, 7);
    memcpy(f->revisions, revisions, sizeof revisions);
    for (size_t told = 3; told >= 2;
         told--) { /* as many as were asked for, or it is not clear of whom they are */
        size_t from = f->answered;

        f->revision_count = told;
        keep_alive(f, 1, 5, 2, first);
        keep_alive(f, 2, 6, 1, second);
        pass(f, FORWARDER_GATHER);
        reply_gone(f, f->deliveries[f->delivered - 1], GAVEL_OK, 1, gone);
        assert_int_equal(f->answered, from + 2);
        assert_int_equal(f->answers[from].gone_count, 1);
        assert_int_equal(f->answers[from].revision_count, told == 3 ? 2 : 0);
        assert_int_equal(f->answers[from + 1].revision_count, told == 3 ? 1 : 0);
        if (told < 3)
            continue;
        assert_int_equal(f->answers[from].revisions[0], 100);
        assert_int_equal(f->answers[from].revisions[1], 0);
        assert_int_equal(f->answers[from + 1].revisions[0], 200);
    }
}

static void test_a_keep_alive_that_failed_says_nothing_of_any_session(void **state)
{
    struct fixture *f = *state;
    uint64_t sessions[] = {10};

    set_leader(f, 3, 7);
    keep_alive(f, 1, 1, 1, sessions);
    keep_alive(f, 2, 2, 1, sessions);
    pass(f, FORWARDER_GATHER);
    reply_gone(f, f->deliveries[0], GAVEL_ERR_NOT_LEADER, 1, sessions);
    assert_int_equal(f->answered, 0);
    pass(f, FORWARDER_RETRY);
    assert_int_equal(f->delivered, 2);
    reply_gone(f, f->deliveries[1], GAVEL_ERR_STORE_UNAVAILABLE, 1, sessions);
    assert_int_equal(f->answered, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_answer(f, i, i + 1, i + 1, GAVEL_ERR_STORE_UNAVAILABLE);
        assert_int_equal(f->answers[i].gone_count, 0);
    }
}

static void test_keep_alives_gather_while_there_is_no_leader(void **state)
{
    struct fixture *f = *state;
    uint64_t sessions[] = {10};

    keep_alive(f, 1, 1, 1, sessions);
    pass(f, 900 * NS_PER_MS);
    keep_alive(f, 2, 2, 1, sessions);
    pass(f, 100 * NS_PER_MS);
    assert_int_equal(f->delivered, 0);
    assert_int_equal(f->answered, 2);
    assert_answer(f, 0, 1, 1, GAVEL_ERR_STORE_UNAVAILABLE);
    keep_alive(f, 1, 3, 1, sessions);
    pass(f, 500 * NS_PER_MS);
    keep_alive(f, 2, 4, 1, sessions);
    set_leader(f, 3, 7);
    assert_int_equal(f->delivered, 1); /* one frame for all that came meanwhile */
    assert_int_equal(f->deliveries[0].session_count, 2);
    /* A leader that is in doubt is tried with them if there is nothing else. */
    pass(f, FORWARDER_KEEP_TIMEOUT);
    assert_int_equal(f->answered, 4);
    f->is_unreachable = true;
    ask_write(f, 9, 9, 77, 10);
    pass(f, 10 * NS_PER_MS);
    assert_int_equal(f->answered, 5);
    f->is_unreachable = false;
    f->delivered = 0;
    keep_alive(f, 1, 5, 1, sessions);
    pass(f, FORWARDER_GATHER);
    assert_int_equal(f->delivered, 1);
}

static void test_more_sessions_than_fit_go_at_once_and_in_several_frames(void **state)
{
    struct fixture *f = *state;
    uint64_t *sessions = calloc(CLIENT_SESSIONS_MAX + 1, sizeof *sessions);

    set_leader(f, 3, 7);
    keep_alive(f, 1, 1, CLIENT_SESSIONS_MAX - 1, sessions);
    keep_alive(f, 2, 2, 2, sessions);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->deliveries[0].session_count, CLIENT_SESSIONS_MAX - 1);
    pass(f, FORWARDER_GATHER);
    assert_int_equal(f->delivered, 2);
    assert_int_equal(f->deliveries[1].session_count, 2);
    keep_alive(f, 3, 3, CLIENT_SESSIONS_MAX + 1, sessions);
    assert_answer(f, 0, 3, 3, GAVEL_ERR_INVALID);
    for (size_t i = 0; i < CLIENT_SESSIONS_MAX + 1; i++) /* empty ones are bounded, too */
        keep_alive(f, 4, 4, 0, NULL);
    assert_int_equal(f->delivered, 3);
    free(sessions);
}

static void test_keep_alives_are_bounded_by_themselves(void **state)
{
    struct fixture *f = *state;
    uint64_t *sessions = calloc(CLIENT_SESSIONS_MAX, sizeof *sessions);
    size_t taken = 0;

    while (f->answered == 0 && taken < 1000) {
        keep_alive(f, 1, taken++, CLIENT_SESSIONS_MAX, sessions);
        assert_true(f->forwarder.keep_alives <= FORWARDER_KEEP_ALIVES_MAX);
    }
    assert_int_equal(taken, FORWARDER_KEEP_ALIVES_MAX + 1);
    assert_answer(f, 0, 1, taken - 1, GAVEL_ERR_STORE_UNAVAILABLE);
    free(sessions);
}

/* One client asks for so much that the way to the leader is full all the time. */
static void test_keep_alives_pass_whatever_else_waits(void **state)
{
    struct fixture *f = *state;
    uint64_t sessions[] = {10};
    size_t at;

    set_leader(f, 3, 7);
    f->room = 4;
    for (size_t i = 0; i < FORWARDER_FORWARDINGS_MAX; i++)
        ask_write(f, 1, TAGS_MAX + i, 77, 0);
    assert_int_equal(f->delivered, 4);
    keep_alive(f, 2, 7, 1, sessions);
    assert_int_equal(f->answered, 0);
    pass(f, FORWARDER_GATHER);
    assert_int_equal(f->delivered, 4);
    f->room = 1; /* with the first answer there is room for one */
    reply(f, f->deliveries[0], GAVEL_OK);
    assert_int_equal(f->delivered, 5);
    at = f->answered;
    assert_int_equal(f->deliveries[4].what, GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE);
    reply(f, f->deliveries[4], GAVEL_OK);
    assert_answer(f, at, 2, 7, GAVEL_OK);
}

/* A leader stays in doubt although nothing waits to be carried: one write is out for good. */
static void test_keep_alives_do_not_wait_for_a_write_whose_answer_is_lost(void **state)
{
    struct fixture *f = *state;
    uint64_t sessions[] = {10};

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 0, 60000);
    assert_int_equal(f->delivered, 1);
    f->room = 0;
    ask_question(f, 2, 2);
    forwarder_forget(&f->forwarder, 2);
    f->room = SIZE_MAX;
    keep_alive(f, 3, 3, 1, sessions);
    pass(f, FORWARDER_GATHER);
    assert_int_equal(f->delivered, 2);
    assert_int_equal(f->deliveries[1].what, GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_keep_alives_go_as_one_and_each_client_hears_of_its_own),
        CASE(test_a_keep_alive_that_failed_says_nothing_of_any_session),
        CASE(test_each_client_hears_which_session_it_is_that_was_kept),
        CASE(test_keep_alives_gather_while_there_is_no_leader),
        CASE(test_more_sessions_than_fit_go_at_once_and_in_several_frames),
        CASE(test_keep_alives_are_bounded_by_themselves),
        CASE(test_keep_alives_pass_whatever_else_waits),
        CASE(test_keep_alives_do_not_wait_for_a_write_whose_answer_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
