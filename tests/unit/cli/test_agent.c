/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of an agent that need no server: when a program has stopped, and which news are kept. */
#include "cli/agent/drain.h"
#include "cli/agent/metrics.h"
#include "cli/agent/news.h"
#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FAR_AWAY (clock_now() + 60 * NS_PER_S)

static int begin(void **state)
{
    struct drain *drain = malloc(sizeof *drain);

    assert_non_null(drain);
    drain_init(drain);
    *state = drain;
    return 0;
}

static int end(void **state)
{
    drain_done(*state);
    free(*state);
    return 0;
}

static void test_who_has_not_led_has_nothing_to_stop(void **state)
{
    struct gavel_error error = {0};
    struct drain_view view;

    assert_int_equal(drain_stopped(*state, 1, false, &error), GAVEL_ERR_STATE);
    drain_look(*state, &view);
    assert_false(view.is_working);
    assert_false(view.is_stopping);
}

static void test_the_wait_ends_when_the_program_has_stopped(void **state)
{
    struct drain *drain = *state;
    struct drain_view view;

    drain_elected(drain, 7);
    drain_look(drain, &view);
    assert_true(view.is_working);
    assert_false(view.is_stopping);
    drain_lost(drain);
    drain_look(drain, &view);
    assert_false(view.is_working);
    assert_true(view.is_stopping);
    assert_int_equal(view.newest, 7);
    assert_int_equal(drain_stopped(drain, 7, false, NULL), GAVEL_OK);
    assert_true(drain_wait(drain, FAR_AWAY));
    drain_look(drain, &view);
    assert_false(view.is_stopping);
    assert_int_equal(drain_stopped(drain, 7, false, NULL), GAVEL_OK); /* said again */
}

static void test_the_wait_ends_at_the_deadline(void **state)
{
    struct drain *drain = *state;
    gavel_ns until = clock_now() + 20 * NS_PER_MS;

    drain_elected(drain, 7);
    drain_lost(drain);
    assert_false(drain_wait(drain, until));
    assert_true(clock_now() >= until);
    assert_false(drain_wait(drain, clock_now() - NS_PER_S));
}

/* By the clock the mandate is over, and the library's thread has not come to say so. */
static void test_a_program_may_stop_before_anybody_waits(void **state)
{
    struct drain *drain = *state;

    drain_elected(drain, 7);
    assert_int_equal(drain_stopped(drain, 7, false, NULL), GAVEL_OK);
    drain_lost(drain);
    assert_true(drain_wait(drain, clock_now()));
}

static void test_only_the_epochs_of_the_mandate_count(void **state)
{
    struct gavel_error error = {0};
    struct drain *drain = *state;

    drain_elected(drain, 3);
    drain_lost(drain);
    drain_elected(drain, 7);
    drain_renewed(drain, 9);
    drain_lost(drain);
    assert_int_equal(drain_stopped(drain, 3, false, &error), GAVEL_ERR_TERM_STALE);
    assert_int_equal(drain_stopped(drain, 10, false, &error), GAVEL_ERR_INVALID);
    assert_false(drain_wait(drain, clock_now()));
    assert_int_equal(drain_stopped(drain, 7, false, &error), GAVEL_OK); /* began with this one */
    assert_int_equal(drain_stopped(drain, 9, false, &error), GAVEL_OK);
}

static void test_who_leads_has_not_stopped(void **state)
{
    struct gavel_error error = {0};
    struct drain *drain = *state;

    drain_elected(drain, 7);
    assert_int_equal(drain_stopped(drain, 7, true, &error), GAVEL_ERR_STATE);
    drain_lost(drain);
    assert_false(drain_wait(drain, clock_now()));
}

/* What was said of one mandate does not count for the next. */
static void test_each_mandate_is_waited_for(void **state)
{
    struct drain *drain = *state;

    drain_elected(drain, 7);
    drain_lost(drain);
    assert_int_equal(drain_stopped(drain, 7, false, NULL), GAVEL_OK);
    drain_elected(drain, 8);
    drain_lost(drain);
    assert_false(drain_wait(drain, clock_now()));
}

static void *say_stopped(void *user)
{
    assert_int_equal(drain_stopped(user, 7, false, NULL), GAVEL_OK);
    return NULL;
}

static void test_the_program_wakes_who_waits(void **state)
{
    struct drain *drain = *state;
    pthread_t program;

    drain_elected(drain, 7);
    drain_lost(drain);
    assert_int_equal(pthread_create(&program, NULL, say_stopped, drain), 0);
    assert_true(drain_wait(drain, FAR_AWAY));
    assert_int_equal(pthread_join(program, NULL), 0);
}

static void put(struct agent_news *news, int number)
{
    char *text = NULL;

    assert_true(asprintf(&text, "{\"n\":%d}", number) > 0);
    agent_news_put(news, GAVEL_EVENT_HEARTBEAT, text);
}

static void test_news_come_once_and_in_order(void **state)
{
    struct agent_news news;
    struct agent_news_item item;
    bool has_missed;
    uint64_t after = 0;

    (void)state;
    assert_true(agent_news_init(&news));
    assert_false(agent_news_next(&news, 0, &item, &has_missed));
    for (int i = 1; i <= 3; i++)
        put(&news, i);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_true(agent_news_next(&news, after, &item, &has_missed));
        assert_false(has_missed);
        assert_int_equal(item.id, i);
        after = item.id;
        free(item.json);
    }
    assert_false(agent_news_next(&news, after, &item, &has_missed));
    assert_false(agent_news_next(&news, UINT64_MAX, &item, &has_missed));
    agent_news_done(&news);
}

static void test_who_is_too_slow_is_told_so(void **state)
{
    struct agent_news news;
    struct agent_news_item item;
    bool has_missed = false;

    (void)state;
    assert_true(agent_news_init(&news));
    for (int i = 1; i <= AGENT_NEWS_MAX + 5; i++)
        put(&news, i);
    assert_true(agent_news_next(&news, 5, &item, &has_missed));
    assert_false(has_missed);
    assert_int_equal(item.id, 6);
    free(item.json);
    assert_true(agent_news_next(&news, 4, &item, &has_missed));
    assert_true(has_missed);
    assert_int_equal(item.id, 6);
    assert_string_equal(item.json, "{\"n\":6}");
    free(item.json);
    agent_news_done(&news);
}

static void test_metrics_quote_names_as_prometheus_wants(void **state)
{
    struct agent_figures figures = {.group = "a\"b\\c\nd",
                                    .candidate = "x",
                                    .answer = GAVEL_LEADER,
                                    .epoch = 7,
                                    .left = 1500 * NS_PER_MS};
    size_t length = 0;
    char *text = agent_metrics_text(&figures, &length);

    (void)state;
    assert_non_null(text);
    assert_int_equal(strlen(text), length);
    assert_non_null(strstr(text, "gavel_is_leader{group=\"a\\\"b\\\\c\\nd\",candidate=\"x\"} 1\n"));
    assert_non_null(strstr(text, "gavel_epoch{group=\"a\\\"b\\\\c\\nd\",candidate=\"x\"} 7\n"));
    assert_non_null(strstr(text, "candidate=\"x\"} 1.5\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_has_not_led_has_nothing_to_stop, begin, end),
        cmocka_unit_test_setup_teardown(test_the_wait_ends_when_the_program_has_stopped, begin, end),
        cmocka_unit_test_setup_teardown(test_the_wait_ends_at_the_deadline, begin, end),
        cmocka_unit_test_setup_teardown(test_a_program_may_stop_before_anybody_waits, begin, end),
        cmocka_unit_test_setup_teardown(test_only_the_epochs_of_the_mandate_count, begin, end),
        cmocka_unit_test_setup_teardown(test_who_leads_has_not_stopped, begin, end),
        cmocka_unit_test_setup_teardown(test_each_mandate_is_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(test_the_program_wakes_who_waits, begin, end),
        cmocka_unit_test(test_news_come_once_and_in_order),
        cmocka_unit_test(test_who_is_too_slow_is_told_so),
        cmocka_unit_test(test_metrics_quote_names_as_prometheus_wants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
