/* SPDX-License-Identifier: Apache-2.0 */

/* A program whose guard knows the session of its handle, in memory that both share. */
#include "many.h"

static struct gavel_candidate *join(struct gavel *gavel, const char *id)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_settings settings = many_settings(20000, 3000);
    struct gavel_candidate *candidate = NULL;
    struct gavel_error error = {0};

    options.group = "guarded";
    options.candidate = id;
    options.settings = &settings;
    if (gavel_join(gavel, &options, &candidate, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    return candidate;
}

static struct gavel *open_handle(const struct test_cluster *cluster, bool is_guarded)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = cluster->url;
    options.guard = is_guarded;
    if (gavel_open(&options, &gavel, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    return gavel;
}

static void await_leader(struct gavel_candidate *candidate)
{
    for (gavel_ms waited = 0; !gavel_is_leader(candidate); waited += 10) {
        assert_true(waited < MANY_LIMIT_MS);
        many_pause_ms(10);
    }
}

/* The connection goes on until the session was closed, after the handle is gone for its guard. */
static void test_a_guarded_handle_is_closed_in_order(void **state)
{
    const struct test_cluster *cluster = *state;
    struct gavel *next = open_handle(cluster, false);
    struct gavel_candidate *second = NULL;

    for (int i = 0; i < 3; i++) {
        struct gavel *gavel = open_handle(cluster, true);
        struct gavel_candidate *first = join(gavel, "first");

        if (!second)
            await_leader(first);
        if (!second)
            second = join(next, "second");
        assert_int_equal(gavel_close(gavel), GAVEL_OK);
        await_leader(second);
    }
    assert_int_equal(gavel_close(next), GAVEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_guarded_handle_is_closed_in_order, many_set_up,
                                        many_tear_down),
    };

    return cmocka_run_group_tests_name("lib cluster guarded", tests, NULL, NULL);
}
