/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sessions at a real cluster that lapse because all nodes stand still, or because the
 * program does: who is told, in which order, and that everything goes on
 * afterwards. test_slow.c is about work that does not stop soon, and
 * tests/lib/test_session_ends.c has the same with a fake, where more can be timed.
 */
#include "many.h"

#include <stdatomic.h>

static void test_all_groups_of_a_session_that_lapses_are_told_earliest_stop_first(void **state)
{
    struct test_cluster *cluster = *state;
    struct many many;

    many_open(&many, cluster->url, "one", MANY_TIMED);
    for (size_t i = 0; i < many.count; i++) {
        struct gavel_settings settings = many_settings(15000, 3000 + (gavel_ms)(i % 10) * 300);

        many_join(&many, i, &settings);
    }
    many_await_all(&many);
    assert_int_equal(many_count(&many, &many.demoted), 0);
    many_freeze(cluster);
    many_await(&many, &many.demoted, MANY_TIMED);
    many_expect_none(&many);
    many_expect_order(&many);
    many_thaw(cluster);
    many_await_all(&many);
    many_expect_mandates(&many, cluster->url);
    many_close(&many);
}

/* ---- callbacks that wait for one that does not return ---- */

static _Atomic bool is_held_up;
static _Atomic bool was_held_up;

/* The first that is elected holds up all others until its mandate is over. */
static void hold_up(struct many_member *member)
{
    if (!atomic_load(&is_held_up) || atomic_exchange(&was_held_up, true))
        return;
    while (gavel_is_leader(member->candidate))
        many_pause_ms(10);
    many_pause_ms(2000); /* past the deadline, and what there is of the session at the cluster */
    atomic_store(&is_held_up, false);
}

static void test_who_waits_to_be_told_of_its_election_when_the_session_lapses_is_told_nothing_false(
    void **state)
{
    struct test_cluster *cluster = *state;
    struct gavel_settings settings = many_settings(8000, 1000);
    struct many many;

    atomic_store(&is_held_up, true);
    atomic_store(&was_held_up, false);
    many_open(&many, cluster->url, "one", MANY_TIMED);
    many.on_elected = hold_up;
    many_join_all(&many, &settings);
    many_await(&many, &many.demoted, 1); /* the one that was told of its election */
    assert_false(atomic_load(&is_held_up));
    many_await_all(&many);
    many_expect_mandates(&many, cluster->url);
    many_close(&many);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, many_set_up, many_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_all_groups_of_a_session_that_lapses_are_told_earliest_stop_first),
        TEST(test_who_waits_to_be_told_of_its_election_when_the_session_lapses_is_told_nothing_false),
    };

    return cmocka_run_group_tests_name("lib cluster lapses", tests, NULL, NULL);
}
