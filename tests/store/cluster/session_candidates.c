/* SPDX-License-Identifier: Apache-2.0 */

/* Who takes part in groups in a session. All tests have one cluster, and groups of their own. */
#include "session_bench.h"
#include "session_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_who_campaigns_is_granted_the_mandate_in_the_answer_and_as_news(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct store_reply reply = expect(a->store, ask_campaign(a, "won", "one", 1), GAVEL_OK);
    struct store_news news = holder_await(a, STORE_NEWS_RECORD, "won");

    assert_true(reply.found);
    assert_true(reply.is_ours);
    assert_true(reply.record.held);
    assert_string_equal(reply.record.holder, "one");
    assert_int_equal(reply.session, a->session.number);
    assert_true(reply.record.epoch > a->session.number);
    assert_true(reply.revision >= reply.record.version);
    assert_true(news.is_ours);
    assert_true(news.is_found);
    assert_true(news.record.held);
    assert_string_equal(news.record.holder, "one");
    assert_int_equal(news.record.epoch, reply.record.epoch);
    assert_int_equal(news.record.version, reply.record.version);
    assert_int_equal(news.revision, reply.record.version);
}

static void test_a_campaign_before_the_session_is_open_goes_with_it(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_open(b, 0, LEASE_MS);
    struct store_reply reply = expect(a->store, ask_campaign(a, "early", "one", 1), GAVEL_OK);
    struct store_news news;

    assert_true(holder_take(a, &news)); /* told before the reply that shows it */
    assert_int_equal(news.kind, STORE_NEWS_SESSION);
    assert_int_equal(reply.session, news.session.number);
    assert_true(reply.is_ours);
}

static void test_a_reading_says_whose_mandate_it_is(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    struct store_reply reply;

    reply = expect(a->store, ask_read("read"), GAVEL_OK);
    assert_false(reply.found);
    assert_int_equal(reply.session, a->session.number);
    assert_true(reply.revision >= a->session.number);
    (void)expect(a->store, ask_campaign(a, "read", "one", 1), GAVEL_OK);
    reply = expect(a->store, ask_read("read"), GAVEL_OK);
    assert_true(reply.is_ours);
    assert_true(reply.record.held);
    reply = expect(other->store, ask_read("read"), GAVEL_OK);
    assert_false(reply.is_ours);
    assert_string_equal(reply.record.holder, "one");
    assert_int_equal(reply.session, other->session.number);
}

static void test_a_standby_is_told_who_leads_and_when_it_is_its_turn(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    uint64_t epoch;
    struct store_request give_up;
    struct store_reply reply;
    struct record record;

    (void)expect(other->store, ask_campaign(other, "turn", "none", 5), GAVEL_OK);
    (void)expect(other->store, ask_go(other, "turn", "none", 5), GAVEL_OK);
    epoch = expect(a->store, ask_campaign(a, "turn", "one", 1), GAVEL_OK).record.epoch;
    reply = expect(other->store, ask_campaign(other, "turn", "two", 2), GAVEL_OK);
    assert_false(reply.is_ours);
    assert_string_equal(reply.record.holder, "one");
    give_up = ask_give_up(a, "turn", "one", epoch);
    give_up.leaves = true;
    reply = expect(a->store, give_up, GAVEL_OK);
    assert_false(reply.is_ours);
    assert_string_equal(reply.record.holder, "two");
    record = holder_await_mandate(other, "turn", true);
    assert_string_equal(record.holder, "two");
    assert_true(record.epoch > epoch);
    (void)expect(a->store, ask_go(a, "turn", "one", 1), GAVEL_ERR_NOT_FOUND); /* it has left */
}

static void test_a_release_that_stays_may_name_who_is_next(void **state)
{
    struct bench *b = *state;
    struct holder *holders[HOLDERS];
    static const char *const ids[] = {"one", "two", "three"};
    struct store_request give_up;
    uint64_t epoch = 0;

    for (int i = 0; i < HOLDERS; i++) {
        struct store_reply reply;

        holders[i] = holder_ready(b, i, LEASE_MS);
        reply = expect(holders[i]->store, ask_campaign(holders[i], "named", ids[i], 1), GAVEL_OK);
        if (i == 0)
            epoch = reply.record.epoch;
    }
    give_up = ask_give_up(holders[0], "named", "one", epoch);
    (void)strcpy(give_up.record.successor, "three");
    (void)expect(holders[0]->store, give_up, GAVEL_OK);
    epoch = holder_await_mandate(holders[2], "named", true).epoch;
    (void)expect(holders[0]->store, give_up, GAVEL_ERR_NOT_HOLDER); /* that epoch is over */
    (void)expect(holders[2]->store, ask_give_up(holders[2], "named", "three", epoch), GAVEL_OK);
    (void)holder_await_mandate(holders[1], "named", true);
}

static void test_work_that_is_done_closes_the_group(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    uint64_t epoch = expect(a->store, ask_campaign(a, "done", "one", 1), GAVEL_OK).record.epoch;
    struct store_request give_up = ask_give_up(a, "done", "one", epoch);
    struct store_reply reply;
    struct store_news news;

    (void)expect(other->store, ask_campaign(other, "done", "two", 2), GAVEL_OK);
    give_up.record.done = true;
    reply = expect(a->store, give_up, GAVEL_OK);
    assert_true(reply.record.done);
    assert_int_equal(reply.record.epoch, epoch);
    do
        news = holder_await(other, STORE_NEWS_RECORD, "done");
    while (!news.record.done);
    assert_int_equal(news.record.epoch, epoch);
    reply = expect(a->store, ask_campaign(a, "done", "three", 3), GAVEL_ERR_DONE);
    assert_true(reply.record.done);
    assert_string_equal(reply.record.holder, "one");
}

static void test_who_leads_is_told_of_a_wish_and_of_its_end(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    struct store_reply won = expect(a->store, ask_campaign(a, "wished", "one", 1), GAVEL_OK);
    struct store_news news;

    (void)expect(other->store, ask_campaign(other, "wished", "two", 2), GAVEL_OK);
    (void)expect(other->store, ask_wish("wished", won.record.epoch, "two"), GAVEL_OK);
    do
        news = holder_await(a, STORE_NEWS_RECORD, "wished");
    while (news.record.wish_epoch == 0);
    assert_true(news.is_ours);
    assert_true(news.record.held);
    assert_int_equal(news.record.epoch, won.record.epoch);
    assert_int_equal(news.record.version, won.record.version);
    assert_int_equal(news.record.wish_epoch, won.record.epoch);
    assert_string_equal(news.record.wish_successor, "two");
    assert_true(news.revision > won.revision);
    (void)expect(a->store, ask_give_up(a, "wished", "one", won.record.epoch), GAVEL_OK);
    (void)holder_await_mandate(other, "wished", true);
}

static void test_a_leader_may_go_on_under_a_new_epoch(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct store_reply won = expect(a->store, ask_campaign(a, "renewed", "one", 1), GAVEL_OK);
    struct store_request again = ask_campaign(a, "renewed", "one", 1);
    struct store_reply reply;

    again.campaign.renews_epoch = won.record.epoch;
    again.campaign.epoch_at_least = won.record.epoch + 1000;
    reply = expect(a->store, again, GAVEL_OK);
    assert_true(reply.is_ours);
    assert_true(reply.record.epoch > won.record.epoch + 1000);
    while (holder_await_mandate(a, "renewed", true).epoch != reply.record.epoch)
        continue;
}

static void test_of_two_candidates_of_one_store_object_the_second_waits(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct store_request both[] = {ask_campaign(a, "shared", "one", 1), ask_campaign(a, "shared", "two", 2)};
    struct store_reply replies[2];
    struct store_request leave;

    store_run(a->store, both, replies, 2);
    assert_int_equal(replies[0].status, GAVEL_OK);
    assert_int_equal(replies[1].status, GAVEL_ERR_ID_IN_USE);
    assert_int_equal(replies[1].other_instance, 1);
    assert_non_null(strstr(replies[1].message, "one"));
    for (int i = 0; i < 2; i++)
        store_reply_done(&replies[i]);
    (void)expect(a->store, ask_campaign(a, "shared", "one", 7), GAVEL_ERR_ID_IN_USE);
    (void)expect(a->store, ask_campaign(a, "shared", "one", 1), GAVEL_OK); /* once more is no other */
    leave = ask_go(a, "shared", "two", 2);
    (void)expect(a->store, leave, GAVEL_ERR_NOT_FOUND); /* and does not make the first leave */
    leave = ask_go(a, "shared", "one", 7);
    (void)expect(a->store, leave, GAVEL_ERR_NOT_FOUND);
    assert_true(expect(a->store, ask_read("shared"), GAVEL_OK).is_ours);
    (void)expect(a->store, ask_go(a, "shared", "one", 1), GAVEL_OK);
    assert_string_equal(expect(a->store, ask_campaign(a, "shared", "two", 2), GAVEL_OK).record.holder, "two");
}

static void test_a_batch_in_a_session_keeps_its_order(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct store_request requests[] = {
        ask_campaign(a, "order", "one", 1),
        ask_read("order"),
        ask_go(a, "order", "one", 1),
        ask_campaign(a, "other", "one", 1),
        ask_read("order"),
        ask_campaign(a, "order", "two", 2),
        ask_go(a, "other", "one", 1),
        ask_campaign(a, "other", "two", 2),
    };
    /* The last is refused: the one before it has not left until that is answered. */
    static const enum gavel_status expected[] = {GAVEL_OK, GAVEL_OK, GAVEL_OK, GAVEL_OK,
                                                 GAVEL_OK, GAVEL_OK, GAVEL_OK, GAVEL_ERR_ID_IN_USE};
    struct store_reply replies[8];

    store_run(a->store, requests, replies, 8);
    for (int i = 0; i < 8; i++) {
        if (replies[i].status != expected[i])
            fail_msg("request %d: %s", i, replies[i].message);
    }
    assert_true(replies[1].record.held);
    assert_string_equal(replies[1].record.holder, "one");
    assert_false(replies[4].record.held);
    assert_string_equal(replies[5].record.holder, "two");
    for (int i = 0; i < 8; i++)
        store_reply_done(&replies[i]);
}

static void test_a_slow_reader_is_shown_how_each_group_stands(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    struct store_request again = ask_campaign(a, "slow", "one", 1);

    again.campaign.renews_epoch = expect(a->store, again, GAVEL_OK).record.epoch;
    (void)expect(other->store, ask_campaign(other, "slow", "two", 2), GAVEL_OK);
    for (int i = 0; i < 50; i++)
        again.campaign.renews_epoch = expect(a->store, again, GAVEL_OK).record.epoch;
    while (holder_await_mandate(other, "slow", false).epoch != again.campaign.renews_epoch)
        continue;
}

static size_t count_ours(struct holder *holder, const struct store_reply *replies, size_t count)
{
    size_t ours = 0;

    for (size_t i = 0; i < count; i++) {
        if (replies[i].status != GAVEL_OK)
            fail_msg("request %zu: %s", i, replies[i].message);
        assert_int_equal(replies[i].session, holder->session.number);
        ours += replies[i].is_ours && replies[i].record.held;
    }
    return ours;
}

#define MANY 10000

static void test_ten_thousand_candidates_are_led_in_one_batch_and_leave_in_another(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, 60000);
    struct store_request *requests = calloc(MANY, sizeof *requests);
    struct store_reply *replies = calloc(MANY, sizeof *replies);
    char(*groups)[16] = calloc(MANY, sizeof *groups);
    struct store_news news;
    size_t told = 0;
    gavel_ns began;

    assert_non_null(requests);
    assert_non_null(replies);
    assert_non_null(groups);
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(groups[i], sizeof groups[i], "many-%zu", i);
        requests[i] = ask_campaign(a, groups[i], "one", i + 1);
    }
    began = clock_now();
    store_run(a->store, requests, replies, MANY);
    assert_int_equal(count_ours(a, replies, MANY), MANY);
    print_message("%d candidates were led after %lld ms\n", MANY, (long long)ms_from_ns(clock_now() - began));
    while (told < MANY) {
        news = holder_await(a, STORE_NEWS_RECORD, NULL);
        told += news.is_ours && news.record.held;
    }
    print_message("and told so after %lld ms\n", (long long)ms_from_ns(clock_now() - began));
    for (size_t i = 0; i < MANY; i++)
        requests[i] = ask_go(a, groups[i], "one", i + 1);
    began = clock_now();
    store_run(a->store, requests, replies, MANY);
    (void)count_ours(a, replies, 0);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(replies[i].status, GAVEL_OK);
    print_message("they have left after %lld ms\n", (long long)ms_from_ns(clock_now() - began));
    free(requests);
    free(replies);
    free(groups);
}

int session_candidates_run(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, bench_empty)
    const struct CMUnitTest tests[] = {
        TEST(test_who_campaigns_is_granted_the_mandate_in_the_answer_and_as_news),
        TEST(test_a_campaign_before_the_session_is_open_goes_with_it),
        TEST(test_a_reading_says_whose_mandate_it_is),
        TEST(test_a_standby_is_told_who_leads_and_when_it_is_its_turn),
        TEST(test_a_release_that_stays_may_name_who_is_next),
        TEST(test_work_that_is_done_closes_the_group),
        TEST(test_who_leads_is_told_of_a_wish_and_of_its_end),
        TEST(test_a_leader_may_go_on_under_a_new_epoch),
        TEST(test_of_two_candidates_of_one_store_object_the_second_waits),
        TEST(test_a_batch_in_a_session_keeps_its_order),
        TEST(test_a_slow_reader_is_shown_how_each_group_stands),
        TEST(test_ten_thousand_candidates_are_led_in_one_batch_and_leave_in_another),
    };

    return cmocka_run_group_tests_name("candidates in sessions of gavel://", tests, bench_set_up,
                                       bench_tear_down);
}
