/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups of a session that lapses, one of which takes long to stop its work, or does not in
 * time: what that costs the others.
 */
#include "many.h"

#define SOME 1000
#define SLOW 500 /* its number */

/* Its grace is longer, and it needs a good part of it; the others still have the whole of theirs. */
static void test_one_group_that_stops_slowly_costs_the_others_nothing(void **state)
{
    struct test_cluster *cluster = *state;
    struct many many;

    many_open(&many, cluster->url, "one", SOME);
    for (size_t i = 0; i < many.count; i++) {
        struct gavel_settings settings = many_settings(18000, i == SLOW ? 11000 : 3000);

        many_join(&many, i, &settings);
    }
    many_await_all(&many);
    many_hang(&many, SLOW, 4000);
    many_freeze(cluster);
    many_await(&many, &many.demoted, SOME);
    many_expect_none(&many);
    many_expect_order(&many);
    assert_int_equal(many.members[SLOW].place, 1);
    many_thaw(cluster);
    many_hang(&many, SLOW, 0);
    many_await_all(&many);
    assert_int_equal(many_count(&many, &many.overruns), 0); /* each had stopped in time */
    many_expect_mandates(&many, cluster->url);
    many_close(&many);
}

/* Nobody can be told while it hangs, but by the deadline no group is led, and each overrun is reported. */
static void test_one_group_that_does_not_stop_leaves_nobody_leading_past_the_deadline(void **state)
{
    struct test_cluster *cluster = *state;
    struct many many;

    many_open(&many, cluster->url, "one", SOME);
    for (size_t i = 0; i < many.count; i++) {
        struct gavel_settings settings = many_settings(12000, i == SLOW ? 5000 : 3000);

        many_join(&many, i, &settings);
    }
    many_await_all(&many);
    many_hang(&many, SLOW, 14000);
    many_freeze(cluster);
    many_await(&many, &many.overruns, SOME); /* by the thread that keeps the deadlines */
    many_expect_none(&many);
    assert_int_equal(many_count(&many, &many.demoted), 1);
    assert_int_equal(many.members[SLOW].demoted, 1);
    many_await(&many, &many.demoted, SOME);
    many_expect_order(&many);
    many_hang(&many, SLOW, 0);
    many_thaw(cluster);
    many_await_all(&many);
    assert_int_equal(many_count(&many, &many.overruns), SOME); /* each once */
    many_expect_mandates(&many, cluster->url);
    many_close(&many);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, many_set_up, many_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_one_group_that_stops_slowly_costs_the_others_nothing),
        TEST(test_one_group_that_does_not_stop_leaves_nobody_leading_past_the_deadline),
    };

    return cmocka_run_group_tests_name("lib cluster slow", tests, NULL, NULL);
}
