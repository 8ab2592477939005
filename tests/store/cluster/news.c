/* SPDX-License-Identifier: Apache-2.0 */

/* What waits to be taken of what the cluster has told: its order, and that it stays within bounds. */
#include "store/cluster/news.h"

#include "os/wakeup.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LASTS (2000 * NS_PER_MS)

/* The groups in which there are candidates, and those that are watched, in order. */
struct bench {
    struct gavel_news news;
    int fd;
    const char *members[8];
    const char *watched[8];
};

static int set_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);

    assert_non_null(b);
    b->fd = wakeup_open();
    assert_true(b->fd >= 0);
    gavel_news_init(&b->news, b->fd);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    gavel_news_done(&b->news);
    wakeup_close(&b->fd);
    free(b);
    return 0;
}

static const char *behind(const char *const *groups, const char *after)
{
    while (*groups && strcmp(*groups, after) <= 0)
        groups++;
    return *groups;
}

static const char *next_member(void *user, const char *after)
{
    return behind(((struct bench *)user)->members, after);
}

static const char *next_watched(void *user, const char *after)
{
    return behind(((struct bench *)user)->watched, after);
}

static bool take(struct bench *b, struct store_news *ret_news)
{
    memset(ret_news, 0, sizeof *ret_news);
    return gavel_news_take(&b->news, next_member, next_watched, b, ret_news);
}

static struct store_news expect_news(struct bench *b, enum store_news_kind kind)
{
    struct store_news news;

    assert_true(take(b, &news));
    assert_int_equal(news.kind, kind);
    return news;
}

static void expect_none(struct bench *b)
{
    struct store_news news;

    assert_false(take(b, &news));
}

static bool is_readable(const struct bench *b)
{
    struct pollfd fd = {.fd = b->fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

static void tell(struct bench *b, const char *group, uint64_t version, bool is_held)
{
    struct store_news record = {.is_found = true, .revision = version};

    (void)snprintf(record.group, sizeof record.group, "%s", group);
    record.record.epoch = record.record.version = version;
    record.record.held = is_held;
    gavel_news_record(&b->news, &record);
}

static void test_a_session_comes_before_what_is_told_in_it(void **state)
{
    struct bench *b = *state;
    struct store_news news;

    expect_none(b);
    assert_false(is_readable(b));
    tell(b, "early", 3, true); /* before any session: of none */
    gavel_news_open(&b->news, 7, 100, LASTS);
    tell(b, "g", 9, true);
    assert_true(is_readable(b));
    news = expect_news(b, STORE_NEWS_SESSION);
    assert_int_equal(news.session.number, 7);
    assert_int_equal(news.session.deadline, 100);
    assert_int_equal(news.session.former_deadline, 0);
    assert_int_equal(news.session.lasts, LASTS);
    news = expect_news(b, STORE_NEWS_RECORD);
    assert_string_equal(news.group, "g");
    assert_int_equal(news.record.version, 9);
    assert_int_equal(news.session.number, 7);
    assert_true(is_readable(b));
    expect_none(b);
    assert_false(is_readable(b));
}

static void test_of_deadlines_the_newest_waits_and_is_said_to_be_taken_once(void **state)
{
    struct bench *b = *state;

    gavel_news_open(&b->news, 7, 100, LASTS);
    gavel_news_open(&b->news, 7, 200, LASTS);
    assert_false(gavel_news_was_taken(&b->news));
    assert_int_equal(expect_news(b, STORE_NEWS_SESSION).session.deadline, 200);
    assert_true(gavel_news_was_taken(&b->news));
    assert_false(gavel_news_was_taken(&b->news));
    gavel_news_open(&b->news, 7, 300, LASTS);
    assert_false(gavel_news_was_taken(&b->news));
    gavel_news_open(&b->news, 7, 400, LASTS);
    assert_int_equal(expect_news(b, STORE_NEWS_DEADLINE).session.deadline, 400);
    gavel_news_open(&b->news, 7, 500, LASTS); /* before the link was told: that one was not taken yet */
    assert_false(gavel_news_was_taken(&b->news));
    assert_int_equal(expect_news(b, STORE_NEWS_DEADLINE).session.deadline, 500);
    assert_true(gavel_news_was_taken(&b->news));
    expect_none(b);
}

static void test_the_end_of_a_session_shows_its_last_deadline_and_drops_what_was_told(void **state)
{
    struct bench *b = *state;
    struct store_news news;

    gavel_news_open(&b->news, 7, 100, LASTS);
    (void)expect_news(b, STORE_NEWS_SESSION);
    gavel_news_open(&b->news, 7, 200, LASTS);
    tell(b, "g", 9, true);
    gavel_news_lost(&b->news, LASTS);
    tell(b, "g", 10, false);
    gavel_news_open(&b->news, 12, 300, LASTS);
    tell(b, "g", 13, true);
    news = expect_news(b, STORE_NEWS_SESSION);
    assert_int_equal(news.session.number, 0);
    assert_int_equal(news.session.former_deadline, 200);
    assert_int_equal(news.session.lasts, LASTS);
    news = expect_news(b, STORE_NEWS_SESSION);
    assert_int_equal(news.session.number, 12);
    assert_int_equal(news.session.former_deadline, 200);
    assert_int_equal(expect_news(b, STORE_NEWS_RECORD).record.version, 13);
    expect_none(b);
}

/* The work of a session that the caller knows must not be given the time of one that it does not. */
static void test_a_session_that_came_and_went_unseen_gives_nobody_more_time(void **state)
{
    struct bench *b = *state;
    struct store_news news;

    gavel_news_open(&b->news, 7, 100, LASTS);
    (void)expect_news(b, STORE_NEWS_SESSION);
    gavel_news_lost(&b->news, LASTS);
    for (uint64_t number = 8; number < 100; number++) {
        gavel_news_open(&b->news, number, (gavel_ns)number * 1000, LASTS);
        tell(b, "g", number, true);
        gavel_news_lost(&b->news, LASTS);
    }
    gavel_news_open(&b->news, 100, 100000, LASTS);
    news = expect_news(b, STORE_NEWS_SESSION);
    assert_int_equal(news.session.number, 0);
    assert_int_equal(news.session.former_deadline, 100);
    news = expect_news(b, STORE_NEWS_SESSION);
    assert_int_equal(news.session.number, 100);
    assert_int_equal(news.session.former_deadline, 99000);
    expect_none(b);
}

static void test_of_a_group_the_newest_waits_with_what_is_known_of_it(void **state)
{
    struct bench *b = *state;
    struct store_news elected = {.is_found = true, .is_ours = true, .revision = 9, .group = "g"};
    struct store_news wished = elected;
    struct store_news news;

    elected.record = (struct record){.epoch = 9, .version = 9, .held = true, .address = "h1:1"};
    wished.record = (struct record){.epoch = 9, .version = 9, .held = true, .wish_epoch = 9};
    wished.revision = 11;
    gavel_news_open(&b->news, 7, 100, LASTS);
    (void)expect_news(b, STORE_NEWS_SESSION);
    for (int i = 0; i < 1000; i++)
        tell(b, "g", 8, false);
    gavel_news_record(&b->news, &elected);
    tell(b, "h", 10, true);
    gavel_news_record(&b->news, &wished);
    news = expect_news(b, STORE_NEWS_RECORD);
    assert_string_equal(news.group, "g");
    assert_int_equal(news.revision, 11);
    assert_int_equal(news.record.wish_epoch, 9);
    assert_string_equal(news.record.address, "h1:1");
    assert_true(news.is_ours);
    assert_string_equal(expect_news(b, STORE_NEWS_RECORD).group, "h");
    expect_none(b);
}

static void test_a_hint_is_not_lost_beside_a_record(void **state)
{
    struct bench *b = *state;

    gavel_news_open(&b->news, 7, 100, LASTS);
    (void)expect_news(b, STORE_NEWS_SESSION);
    gavel_news_hint(&b->news, "g");
    gavel_news_hint(&b->news, "g");
    tell(b, "g", 9, true);
    assert_string_equal(expect_news(b, STORE_NEWS_RECORD).group, "g");
    assert_string_equal(expect_news(b, STORE_NEWS_HINT).group, "g");
    expect_none(b);
    gavel_news_hint(&b->news, "g");
    assert_string_equal(expect_news(b, STORE_NEWS_HINT).group, "g");
    expect_none(b);
}

static void test_a_gap_hints_at_all_groups_that_it_may_concern(void **state)
{
    struct bench *b = *state;

    b->members[0] = "a";
    b->members[1] = "b";
    b->watched[0] = "x";
    gavel_news_open(&b->news, 7, 100, LASTS);
    gavel_news_gap(&b->news, true, false);
    (void)expect_news(b, STORE_NEWS_SESSION);
    assert_string_equal(expect_news(b, STORE_NEWS_HINT).group, "a");
    gavel_news_gap(&b->news, true, true); /* another one: all over again */
    assert_string_equal(expect_news(b, STORE_NEWS_HINT).group, "a");
    b->members[2] = "c"; /* it has joined meanwhile */
    assert_string_equal(expect_news(b, STORE_NEWS_HINT).group, "b");
    assert_string_equal(expect_news(b, STORE_NEWS_HINT).group, "c");
    assert_string_equal(expect_news(b, STORE_NEWS_HINT).group, "x");
    expect_none(b);
    gavel_news_gap(&b->news, false, true);
    gavel_news_lost(&b->news, LASTS);
    assert_int_equal(expect_news(b, STORE_NEWS_SESSION).session.number, 0);
    expect_none(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_session_comes_before_what_is_told_in_it),
        TEST(test_of_deadlines_the_newest_waits_and_is_said_to_be_taken_once),
        TEST(test_the_end_of_a_session_shows_its_last_deadline_and_drops_what_was_told),
        TEST(test_a_session_that_came_and_went_unseen_gives_nobody_more_time),
        TEST(test_of_a_group_the_newest_waits_with_what_is_known_of_it),
        TEST(test_a_hint_is_not_lost_beside_a_record),
        TEST(test_a_gap_hints_at_all_groups_that_it_may_concern),
    };

    return cmocka_run_group_tests_name("news of gavel://", tests, NULL, NULL);
}
