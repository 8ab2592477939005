/* SPDX-License-Identifier: Apache-2.0 */

/* One candidate of a session after another: whose word it is that comes late. */
#include "table_fixture.h"

static int setup(void **state)
{
    if (table_fixture_setup(state) != 0)
        return -1;
    for (uint64_t session = 1; session <= 2; session++) {
        if (open_session(*state, session) != GAVEL_OK)
            return -1;
    }
    return 0;
}

static enum gavel_status enter(struct table_fixture *fixture, uint64_t session, const char *id,
                               uint64_t instance)
{
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable(id);
    message.instance = instance;
    return campaign_as(fixture, session, &message);
}

static enum gavel_status leave_as(struct table_fixture *fixture, uint64_t session, const char *id,
                                  uint64_t instance)
{
    Gavel__Withdraw message;

    gavel__withdraw__init(&message);
    message.group = mutable("g");
    message.id = mutable(id);
    message.instance = instance;
    return withdraw_as(fixture, session, &message);
}

static void test_a_late_withdrawal_is_not_that_of_the_next_candidate_of_the_session(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(enter(fixture, 1, "a", 0), GAVEL_OK);
    assert_int_equal(leave_as(fixture, 1, "a", 0), GAVEL_OK);
    assert_int_equal(enter(fixture, 1, "b", 0), GAVEL_OK);
    assert_int_equal(leave_as(fixture, 1, "a", 0), GAVEL_ERR_NOT_FOUND);
    assert_true(strlen(fixture->result.why) > 0);
    assert_leader(fixture, "g", "b");
    assert_int_equal(leave_as(fixture, 1, "b", 0), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    assert_int_equal(enter(fixture, 1, "c", 0), GAVEL_OK);
    assert_int_equal(leave_as(fixture, 1, "", 0), GAVEL_OK); /* whichever */
    assert_leader(fixture, "g", NULL);
}

static void test_a_late_withdrawal_is_not_that_of_a_later_joining_under_the_same_id(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(enter(fixture, 1, "a", 5), GAVEL_OK);
    assert_int_equal(leave_as(fixture, 1, "a", 5), GAVEL_OK);
    assert_int_equal(enter(fixture, 1, "a", 6), GAVEL_OK);
    assert_int_equal(leave_as(fixture, 1, "a", 5), GAVEL_ERR_NOT_FOUND);
    assert_leader(fixture, "g", "a");
    assert_int_equal(leave_as(fixture, 1, "a", 6), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
}

static void test_an_id_is_in_use_by_another_instance_of_the_same_session(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(enter(fixture, 1, "a", 5), GAVEL_OK);
    epoch = assert_leader(fixture, "g", "a");
    assert_int_equal(enter(fixture, 1, "a", 6), GAVEL_ERR_ID_IN_USE);
    assert_int_equal(enter(fixture, 1, "a", 5), GAVEL_OK); /* its own word again */
    assert_int_equal(enter(fixture, 1, "a", 0), GAVEL_OK); /* of a client that has no such number */
    assert_int_equal(table_candidate_find(group_named(fixture, "g"), "a")->instance, 5);
    assert_int_equal(assert_leader(fixture, "g", "a"), epoch);
}

/* It joined while a node of the cluster was older, and its number was skipped. */
static void test_who_joined_without_a_number_may_say_it_later(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(enter(fixture, 1, "a", 0), GAVEL_OK);
    assert_int_equal(leave_as(fixture, 2, "a", 5), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(enter(fixture, 1, "a", 5), GAVEL_OK);
    assert_int_equal(table_candidate_find(group_named(fixture, "g"), "a")->instance, 5);
    assert_int_equal(leave_as(fixture, 1, "a", 6), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(leave_as(fixture, 1, "a", 0), GAVEL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, table_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_late_withdrawal_is_not_that_of_the_next_candidate_of_the_session),
        TEST(test_a_late_withdrawal_is_not_that_of_a_later_joining_under_the_same_id),
        TEST(test_an_id_is_in_use_by_another_instance_of_the_same_session),
        TEST(test_who_joined_without_a_number_may_say_it_later),
    };

    return cmocka_run_group_tests_name("table candidacy", tests, NULL, NULL);
}
