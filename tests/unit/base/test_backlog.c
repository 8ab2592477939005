/* SPDX-License-Identifier: Apache-2.0 */

#include "base/backlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS NS_PER_MS
#define PATIENCE NS_PER_S

static void test_nothing_under_way_has_no_age_and_is_never_stuck(void **state)
{
    struct backlog b = {0};

    (void)state;
    assert_true(backlog_is_empty(&b));
    assert_int_equal(backlog_age(&b, 5 * NS_PER_S), 0);
    assert_true(backlog_stuck_at(&b, PATIENCE) == NEVER);
    backlog_add(&b, 1, 100 * MS);
    backlog_end(&b, 1, 101 * MS);
    assert_true(backlog_is_empty(&b));
    assert_false(backlog_is_stuck(&b, PATIENCE, 3600 * NS_PER_S));
}

static void test_age_is_that_of_the_oldest(void **state)
{
    struct backlog b = {0};

    (void)state;
    backlog_add(&b, 1, 100 * MS);
    backlog_add(&b, 2, 150 * MS);
    backlog_add(&b, 5, 170 * MS);
    assert_int_equal(backlog_age(&b, 200 * MS), 100 * MS);
    backlog_end(&b, 1, 200 * MS);
    assert_int_equal(backlog_age(&b, 210 * MS), 60 * MS);
    backlog_end(&b, 3, 210 * MS); /* 4 was not told of: it goes by the one before it */
    assert_int_equal(backlog_age(&b, 220 * MS), 70 * MS);
    backlog_end(&b, 4, 210 * MS);
    assert_int_equal(backlog_age(&b, 220 * MS), 50 * MS);
    backlog_end(&b, 5, 220 * MS);
    assert_int_equal(backlog_age(&b, 230 * MS), 0);
}

static void test_stuck_when_nothing_ends_for_the_patience(void **state)
{
    struct backlog b = {0};

    (void)state;
    backlog_add(&b, 1, 100 * MS);
    assert_false(backlog_is_stuck(&b, PATIENCE, 1099 * MS));
    assert_true(backlog_is_stuck(&b, PATIENCE, 1100 * MS));
    backlog_add(&b, 2, 1100 * MS); /* what begins does not help */
    assert_true(backlog_is_stuck(&b, PATIENCE, 1101 * MS));
    backlog_end(&b, 1, 1200 * MS); /* what ends does */
    assert_false(backlog_is_stuck(&b, PATIENCE, 1201 * MS));
}

/* A disk that needs a second for each write, and always has one to do, moves. */
static void test_slow_and_steady_is_not_stuck(void **state)
{
    struct backlog b = {0};
    gavel_ns now = 0;

    (void)state;
    backlog_add(&b, 1, now);
    for (uint64_t i = 2; i < 100; i++) {
        backlog_add(&b, i, now + MS);
        now += 950 * MS;
        backlog_end(&b, i - 1, now);
        assert_false(backlog_is_stuck(&b, PATIENCE, now + 1850 * MS));
        assert_true(backlog_is_stuck(&b, PATIENCE, now + 1900 * MS));
    }
}

/* After a long halt the patience is longer for a while, not for as long as the halt. */
static void test_what_was_usual_is_forgotten(void **state)
{
    struct backlog b = {0};
    gavel_ns now = 0;

    (void)state;
    backlog_add(&b, 1, now);
    now += 3600 * NS_PER_S;
    backlog_end(&b, 1, now);
    backlog_add(&b, 2, now);
    assert_true(backlog_is_stuck(&b, PATIENCE, now + 4 * NS_PER_S));
    for (uint64_t i = 2; i < 20; i++) {
        now += MS;
        backlog_end(&b, i, now);
        backlog_add(&b, i + 1, now);
    }
    assert_true(backlog_is_stuck(&b, PATIENCE, now + PATIENCE));
}

/* More than can be remembered: the age is never too low, and too high by a small share only. */
static void test_many_under_way(void **state)
{
    struct backlog b = {0};
    const uint64_t count = 10000;

    (void)state;
    for (uint64_t i = 1; i <= count; i++)
        backlog_add(&b, i, (gavel_ns)i * MS);
    for (uint64_t ended = 0; ended < count; ended += 100) {
        gavel_ns true_age = (gavel_ns)(count - ended) * MS;
        gavel_ns age;

        backlog_end(&b, ended, (gavel_ns)count * MS);
        age = backlog_age(&b, (gavel_ns)(count + 1) * MS);
        assert_true(age >= true_age);
        assert_true(age <= true_age + (gavel_ns)count * MS / 8);
    }
    backlog_end(&b, count, (gavel_ns)count * MS);
    assert_true(backlog_is_empty(&b));
}

static void test_a_number_that_is_known_begins_nothing(void **state)
{
    struct backlog b = {0};

    (void)state;
    backlog_add(&b, 7, 100 * MS);
    backlog_add(&b, 7, 200 * MS);
    backlog_add(&b, 3, 300 * MS);
    assert_int_equal(b.mark_count, 1);
    assert_int_equal(backlog_age(&b, 400 * MS), 300 * MS);
    backlog_end(&b, 7, 400 * MS);
    assert_true(backlog_is_empty(&b));
    backlog_clear(&b);
    backlog_add(&b, 3, 500 * MS); /* another log, another count */
    assert_int_equal(backlog_age(&b, 600 * MS), 100 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_under_way_has_no_age_and_is_never_stuck),
        cmocka_unit_test(test_age_is_that_of_the_oldest),
        cmocka_unit_test(test_stuck_when_nothing_ends_for_the_patience),
        cmocka_unit_test(test_slow_and_steady_is_not_stuck),
        cmocka_unit_test(test_what_was_usual_is_forgotten),
        cmocka_unit_test(test_many_under_way),
        cmocka_unit_test(test_a_number_that_is_known_begins_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
