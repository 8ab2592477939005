/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes that are restarted under very many groups: one by one, and all at once. */
#include "many.h"

static void test_nodes_that_restart_one_by_one_change_no_leader_of_ten_thousand_groups(void **state)
{
    struct test_cluster *cluster = *state;
    struct gavel_settings settings = many_settings(60000, 2000);
    struct many many;

    many_open(&many, cluster->url, "one", MANY_GROUPS);
    many_join_all(&many, &settings);
    many_await_all(&many);
    for (int i = 0; i < TEST_NODES; i++) {
        int node =
            i < TEST_NODES - 1 ? i : test_cluster_leader(cluster); /* one of them leads, also the cluster */

        test_cluster_kill(cluster, node);
        (void)test_cluster_leader(cluster);
        test_cluster_restart(cluster, node);
        (void)test_cluster_leader(cluster);
        many_expect_mandates(&many, cluster->url);
    }
    assert_int_equal(many_count(&many, &many.elected), MANY_GROUPS);
    assert_int_equal(many_count(&many, &many.demoted), 0);
    many_close(&many);
}

static void test_after_a_restart_of_all_nodes_that_took_too_long_all_groups_are_led_again(void **state)
{
    struct test_cluster *cluster = *state;
    struct gavel_settings settings = many_settings(10000, 1000);
    struct many many;

    many_open(&many, cluster->url, "one", MANY_TIMED);
    many_join_all(&many, &settings);
    many_await_all(&many);
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_kill(cluster, node);
    many_await(&many, &many.demoted, MANY_TIMED);
    many_expect_none(&many);
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_restart(cluster, node);
    many_await_all(&many);
    many_expect_mandates(&many, cluster->url); /* with higher epochs, or they would be wrong */
    many_close(&many);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, many_set_up, many_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_nodes_that_restart_one_by_one_change_no_leader_of_ten_thousand_groups),
        TEST(test_after_a_restart_of_all_nodes_that_took_too_long_all_groups_are_led_again),
    };

    return cmocka_run_group_tests_name("lib cluster restarts", tests, NULL, NULL);
}
