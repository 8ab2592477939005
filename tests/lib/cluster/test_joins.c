/* SPDX-License-Identifier: Apache-2.0 */

/* Joining groups of a cluster: the same one twice, and ten thousand while the cluster loses its leader. */
#include "many.h"

#include <string.h>

/* What ten thousand candidates, and requests about all of them, take of the heap here and of the memory of a
 * node, with a lot to spare. What a sanitizer keeps of a node counts, too. */
#define HEAP_MIB 160
#ifdef __SANITIZE_ADDRESS__
#define NODE_MIB 1024
#else
#define NODE_MIB 256
#endif

static enum gavel_status join_again(struct many *many, const char *id, struct gavel_candidate **ret_candidate,
                                    struct gavel_error *error)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_settings settings = many_settings(30000, 2000);

    options.group = "g0";
    options.candidate = id;
    options.settings = &settings;
    return gavel_join(many->gavel, &options, ret_candidate, error);
}

static void test_a_handle_that_joins_a_group_twice_is_told_what_to_do(void **state)
{
    struct test_cluster *cluster = *state;
    struct gavel_settings settings = many_settings(30000, 2000);
    static const char *const ids[] = {"one", "two"};
    struct gavel_candidate *again = NULL;
    struct gavel_error error = {0};
    struct many many;

    many_open(&many, cluster->url, "one", 1);
    many_join(&many, 0, &settings);
    many_await_all(&many);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(join_again(&many, ids[i], &again, &error), GAVEL_ERR_STATE);
        assert_non_null(strstr(error.message, "\"g0\""));
        assert_non_null(strstr(error.message, "open another handle"));
        assert_null(again);
    }
    many_expect_mandates(&many, cluster->url);
    /* Once it has left it may come back, also under another id. */
    assert_int_equal(gavel_leave(many.members[0].candidate), GAVEL_OK);
    assert_int_equal(join_again(&many, "two", &again, &error), GAVEL_OK);
    assert_int_equal(gavel_leave(again), GAVEL_OK);
    many_join(&many, 0, &settings);
    many_await_all(&many);
    many_expect_mandates(&many, cluster->url);
    many_close(&many);
}

static void test_ten_thousand_joins_go_on_while_the_leader_of_the_cluster_is_killed(void **state)
{
    struct test_cluster *cluster = *state;
    struct gavel_settings settings = many_settings(60000, 2000);
    size_t before = many_heap_mib();
    struct many many;
    int leader;

    many_open(&many, cluster->url, "one", MANY_GROUPS);
    for (size_t i = 0; i < MANY_GROUPS / 2; i++)
        many_join(&many, i, &settings);
    many_await(&many, &many.elected, 100); /* it is at work on the rest */
    leader = test_cluster_leader(cluster);
    for (size_t i = MANY_GROUPS / 2; i < MANY_GROUPS; i++) {
        if (i == MANY_GROUPS * 3 / 4) {
            test_cluster_kill(cluster, leader);
            print_message("# %zu were led when it died\n", many_count(&many, &many.elected));
        }
        many_join(&many, i, &settings);
    }
    many_await_all(&many);
    assert_int_not_equal(test_cluster_leader(cluster), leader);
    print_message("# %zu MiB on the heap\n", many_heap_mib() - before);
    assert_true(many_heap_mib() < before + HEAP_MIB);
    for (int node = 0; node < TEST_NODES; node++)
        if (node != leader)
            assert_in_range(test_cluster_mib(cluster, node), 1, NODE_MIB);
    test_cluster_restart(cluster, leader);
    many_expect_mandates(&many, cluster->url);
    assert_int_equal(many_count(&many, &many.elected), MANY_GROUPS); /* each once */
    assert_int_equal(many_count(&many, &many.demoted), 0);
    many_close(&many);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, many_set_up, many_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_handle_that_joins_a_group_twice_is_told_what_to_do),
        TEST(test_ten_thousand_joins_go_on_while_the_leader_of_the_cluster_is_killed),
    };

    return cmocka_run_group_tests_name("lib cluster joins", tests, NULL, NULL);
}
