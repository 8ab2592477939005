/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sessions of store objects at gavel://. All tests of this file have one
 * cluster, and groups of their own; session_candidates.c is about who takes part
 * in a session, session_faults.c about what may break.
 */
#include "session_bench.h"
#include "session_tests.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void test_a_session_is_told_when_it_is_open_and_its_key_is_known(void **state)
{
    struct bench *b = *state;
    gavel_ns before = clock_now();
    struct holder *a = holder_open(b, 0, LEASE_MS);
    struct store_news news;

    assert_int_equal(atomic_load(&a->key.is_known), 1);
    news = holder_await(a, STORE_NEWS_SESSION, NULL);
    assert_int_not_equal(news.session.number, 0);
    assert_int_equal(news.session.former_deadline, 0);
    assert_true(news.session.lasts >= ns_from_ms(LEASE_MS)); /* by our clock, however it drifts */
    assert_true(news.session.lasts < ns_from_ms(LEASE_MS) + 2 * NS_PER_MS);
    assert_true(news.session.deadline >= before + ns_from_ms(LEASE_MS));
    assert_true(news.session.deadline <= clock_now() + news.session.lasts);
    assert_int_not_equal(atomic_load(&a->key.session), 0);
}

static void test_a_session_is_begun_once_and_of_a_length_that_there_is(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct store_session_options options = {.lease_ms = LEASE_MS, .drift_ppm = 1000};
    static const gavel_ms wrong[] = {0, -1, 10, INT64_C(2) * 86400000, INT64_MAX};
    struct gavel_error error = {0};
    struct store *other = open_store(b->cluster.url);

    assert_int_equal(store_open_session(a->store, &options, &error), GAVEL_ERR_STATE);
    assert_non_null(strstr(error.message, "already"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.lease_ms = wrong[i];
        assert_int_equal(store_open_session(other, &options, &error), GAVEL_ERR_INVALID);
        assert_non_null(strstr(error.message, "choose"));
    }
    (void)expect(other, ask_claim("written", "one", 1, 0), GAVEL_OK); /* begins one, too */
    options.lease_ms = LEASE_MS;
    assert_int_equal(store_open_session(other, &options, &error), GAVEL_ERR_STATE);
    store_close(other);
}

static void test_the_url_says_how_long_sessions_last(void **state)
{
    struct bench *b = *state;
    const struct store_session_options options = {.lease_ms = LEASE_MS, .drift_ppm = 1000};
    struct holder *a = &b->holders[0];
    char url[500];

    (void)snprintf(url, sizeof url, "%s?ttl_ms=30000", b->cluster.url);
    assert_int_equal(store_session_ttl_of(url), 30000);
    assert_int_equal(store_session_ttl_of(b->cluster.url), 0);
    assert_int_equal(store_session_ttl_of("gavel://h1:7600?ttl_ms=soon"), 0);
    assert_int_equal(store_session_ttl_of("sqlite:/var/lib/gavel?ttl_ms=30000"), 0);
    a->store = open_store(url);
    assert_int_equal(store_open_session(a->store, &options, NULL), GAVEL_OK);
    (void)holder_await(a, STORE_NEWS_SESSION, NULL);
    assert_in_range(a->session.lasts, 29900 * NS_PER_MS, 30000 * NS_PER_MS);
}

static void test_a_worse_clock_of_ours_is_counted_on(void **state)
{
    struct bench *b = *state;
    const struct store_session_options options = {.lease_ms = LEASE_MS, .drift_ppm = 50000};
    struct holder *a = &b->holders[0];
    gavel_ns before = clock_now();

    a->store = open_store(b->cluster.url);
    assert_int_equal(store_open_session(a->store, &options, NULL), GAVEL_OK);
    (void)holder_await(a, STORE_NEWS_SESSION, NULL);
    assert_in_range(a->session.lasts, LEASE_MS * NS_PER_MS, (LEASE_MS + 2) * NS_PER_MS);
    assert_true(a->session.deadline >= before + ns_from_ms(LEASE_MS));
    assert_true(a->session.deadline <= clock_now() + a->session.lasts);
}

static void test_its_deadline_grows_while_news_are_taken(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, 2000);
    uint64_t number = a->session.number;
    gavel_ns deadline = a->session.deadline;

    for (int i = 0; i < 3; i++) {
        struct store_news news = holder_await(a, STORE_NEWS_DEADLINE, NULL);

        assert_int_equal(news.session.number, number);
        assert_true(news.session.deadline > deadline);
        deadline = news.session.deadline;
    }
}

static void test_a_session_whose_news_are_not_taken_ends(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, 1000);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    struct store_session before = a->session;
    struct store_news news;
    struct record record;

    (void)expect(a->store, ask_campaign(a, "untaken", "one", 1), GAVEL_OK);
    (void)expect(other->store, ask_campaign(other, "untaken", "two", 2), GAVEL_OK);
    record = holder_await_mandate(other, "untaken", true); /* `a` takes nothing meanwhile */
    assert_string_equal(record.holder, "two");
    do
        news = holder_await(a, STORE_NEWS_SESSION, NULL);
    while (news.session.number != 0);
    assert_true(news.session.former_deadline >= before.deadline);
    assert_true(news.session.former_deadline < clock_now());
    news = holder_await(a, STORE_NEWS_SESSION, NULL);
    assert_int_not_equal(news.session.number, 0);
    assert_int_not_equal(news.session.number, before.number);
    assert_true(news.session.former_deadline >= before.deadline);
}

static void test_what_means_another_session_is_refused_and_not_done(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    uint64_t epoch = expect(a->store, ask_campaign(a, "stale", "one", 1), GAVEL_OK).record.epoch;
    struct store_request stale[] = {
        ask_campaign(a, "stale", "one", 1), ask_give_up(a, "stale", "one", epoch),
        ask_go(a, "stale", "one", 1),       ask_give_up(a, "stale", "one", epoch),
        ask_go(a, "stale", "one", 1),
    };

    for (size_t i = 0; i < sizeof stale / sizeof *stale; i++) {
        struct store_reply reply;

        stale[i].session = i < 3 ? a->session.number + 1 : 0; /* only a campaign may mean whichever is open */
        reply = expect(a->store, stale[i], GAVEL_ERR_SESSION_GONE);
        assert_non_null(strstr(reply.message, "nothing was done"));
    }
    assert_true(expect(a->store, ask_read("stale"), GAVEL_OK).is_ours);
    (void)expect(a->store, ask_claim("stale", "one", 1, 0), GAVEL_ERR_STORE_UNSUPPORTED);
}

/* That process is ours; the cluster believes who can have seen it, and has something to do with it. */
static void test_a_death_that_was_seen_ends_the_session_of_the_leader(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    struct store_request died;
    struct store_reply seen;

    (void)expect(a->store, ask_campaign(a, "death", "one", 1), GAVEL_OK);
    seen = expect(other->store, ask_read("death"), GAVEL_OK);
    assert_int_not_equal(seen.record.process.pid, 0);
    died = (struct store_request){.op = STORE_DIED,
                                  .group = "death",
                                  .give_up_at = clock_now() + LIMIT,
                                  .session = other->session.number,
                                  .record = seen.record};
    (void)expect(other->store, died, GAVEL_ERR_DENIED); /* it is no candidate */
    (void)expect(other->store, ask_campaign(other, "death", "two", 2), GAVEL_OK);
    (void)expect(other->store, died, GAVEL_OK);
    (void)holder_await_mandate(other, "death", true);
    assert_int_equal(holder_await(a, STORE_NEWS_SESSION, NULL).session.number, 0);
}

static void test_who_has_its_key_closes_the_session_of_the_dead(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    struct store *guard = open_store(b->cluster.url);
    struct gavel_error error = {0};
    struct store_session_key nobody = {0};

    (void)expect(a->store, ask_campaign(a, "key", "one", 1), GAVEL_OK);
    (void)expect(other->store, ask_campaign(other, "key", "two", 2), GAVEL_OK);
    if (store_close_dead(guard, &a->key, clock_now() + LIMIT, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    (void)holder_await_mandate(other, "key", true);
    assert_int_equal(holder_await(a, STORE_NEWS_SESSION, NULL).session.number, 0);
    (void)holder_await(a, STORE_NEWS_SESSION, NULL); /* another is opened, which the key names, too … */
    assert_int_equal(store_close_dead(guard, &a->key, clock_now() + LIMIT, &error), GAVEL_OK); /* … now */
    assert_int_equal(holder_await(a, STORE_NEWS_SESSION, NULL).session.number, 0);
    nobody = (struct store_session_key){.is_known = 1, .session = 12345};
    assert_int_equal(store_close_dead(guard, &nobody, clock_now() + LIMIT, &error), GAVEL_OK); /* is gone */
    nobody.session = 0;
    assert_int_equal(store_close_dead(guard, &nobody, clock_now() + LIMIT, &error), GAVEL_OK);
    assert_int_equal(store_close_dead(guard, &a->key, clock_now() - 1, &error), GAVEL_ERR_TIMEOUT);
    store_close(guard);
}

static void test_a_watched_group_is_news_too(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    struct holder *other = holder_ready(b, 1, LEASE_MS);
    char group[NAME_MAX_BYTES + 1];

    holder_take_all(other); /* with its opening came a gap, which would show the group before it is watched */
    store_watch(other->store, "watched", true);
    (void)holder_await(other, STORE_NEWS_HINT, "watched"); /* from here on it is told */
    (void)expect(a->store, ask_campaign(a, "watched", "one", 1), GAVEL_OK);
    (void)expect(a->store, ask_campaign(a, "unwatched", "one", 1), GAVEL_OK);
    assert_string_equal(holder_await_mandate(other, "watched", false).holder, "one");
    assert_false(store_changed(other->store, group));
}

/* news.c tests that what waits meanwhile is bounded. */
int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, bench_empty)
    const struct CMUnitTest tests[] = {
        TEST(test_a_session_is_told_when_it_is_open_and_its_key_is_known),
        TEST(test_a_session_is_begun_once_and_of_a_length_that_there_is),
        TEST(test_the_url_says_how_long_sessions_last),
        TEST(test_a_worse_clock_of_ours_is_counted_on),
        TEST(test_its_deadline_grows_while_news_are_taken),
        TEST(test_a_session_whose_news_are_not_taken_ends),
        TEST(test_what_means_another_session_is_refused_and_not_done),
        TEST(test_a_death_that_was_seen_ends_the_session_of_the_leader),
        TEST(test_who_has_its_key_closes_the_session_of_the_dead),
        TEST(test_a_watched_group_is_news_too),
    };
    int failed = cmocka_run_group_tests_name("sessions of gavel://", tests, bench_set_up, bench_tear_down);

    return failed + session_candidates_run() + session_faults_run();
}
