/* SPDX-License-Identifier: Apache-2.0 */

/* One candidate of a session after another, and one mandate after another of the same: whose word it is that
 * comes late. */
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

static enum gavel_status renew_as(struct table_fixture *fixture, uint64_t session, const char *id,
                                  uint64_t epoch, bool is_ineligible)
{
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable(id);
    message.renews_epoch = epoch;
    message.is_ineligible = is_ineligible;
    return campaign_as(fixture, session, &message);
}

static void test_a_mandate_goes_on_under_a_new_epoch_without_a_vacancy(void **state)
{
    struct table_fixture *fixture = *state;
    const Gavel__Change *change;
    uint64_t epoch;

    assert_int_equal(enter(fixture, 1, "a", 0), GAVEL_OK);
    assert_int_equal(enter(fixture, 2, "b", 0), GAVEL_OK);
    epoch = assert_leader(fixture, "g", "a");
    fixture->cursor = (struct table_cursor){fixture->table.revision, UINT32_MAX};
    assert_int_equal(renew_as(fixture, 1, "a", epoch, false), GAVEL_OK);
    assert_true(assert_leader(fixture, "g", "a") > epoch);
    assert_int_equal(fixture->result.epoch, fixture->table.revision);
    assert_int_equal(fixture->result.version, fixture->result.epoch);
    change = next_change(fixture, GAVEL__CHANGE__KIND__ELECTED, "g", "a");
    assert_int_equal(change->epoch, fixture->result.epoch);
    assert_int_equal(change->session, 1);
    assert_string_equal(change->previous_holder, "a");
    assert_no_change(fixture);
    assert_int_equal(group_named(fixture, "g")->last_ending, GAVEL__ENDING__ENDING_RESIGNED);
    assert_int_equal(group_named(fixture, "g")->session->id, 1);
    epoch = fixture->result.epoch;
    assert_int_equal(withdraw(fixture, 1, "g", epoch, false), GAVEL_OK);
    assert_leader(fixture, "g", "b");
}

static void test_nothing_goes_on_for_who_does_not_lead_with_that_epoch(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch, revision;

    assert_int_equal(enter(fixture, 1, "a", 0), GAVEL_OK);
    assert_int_equal(enter(fixture, 2, "b", 0), GAVEL_OK);
    epoch = assert_leader(fixture, "g", "a");
    revision = fixture->table.revision;
    assert_int_equal(renew_as(fixture, 2, "b", epoch, false), GAVEL_OK); /* another leads */
    assert_int_equal(renew_as(fixture, 1, "a", epoch - 1, false), GAVEL_OK);
    assert_int_equal(renew_as(fixture, 1, "a", epoch + 1, false), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, epoch);
    assert_int_equal(fixture->table.revision, revision);                /* nothing at all has changed */
    assert_int_equal(renew_as(fixture, 1, "a", epoch, true), GAVEL_OK); /* it wants no mandate */
    assert_int_equal(assert_leader(fixture, "g", "a"), epoch);
    assert_int_equal(renew_as(fixture, 1, "a", 0, false), GAVEL_OK);
    assert_int_equal(wish(fixture, "g", epoch, "b"), GAVEL_OK);
    assert_int_equal(renew_as(fixture, 1, "a", epoch, false), GAVEL_OK); /* it is to hand over */
    assert_int_equal(assert_leader(fixture, "g", "a"), epoch);
    assert_int_equal(group_named(fixture, "g")->wish_epoch, epoch);
    assert_int_equal(wish_over(fixture, "g", epoch), GAVEL_OK);
    assert_int_equal(renew_as(fixture, 1, "a", epoch, false), GAVEL_OK);
    assert_true(assert_leader(fixture, "g", "a") > epoch);
}

static void test_a_mandate_that_is_granted_by_the_same_word_has_one_epoch(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(renew_as(fixture, 1, "a", 1, true), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    assert_int_equal(renew_as(fixture, 1, "a", fixture->table.revision + 1, false),
                     GAVEL_OK); /* a good guess */
    assert_int_equal(assert_leader(fixture, "g", "a"), fixture->table.revision);
}

static void test_what_is_said_with_a_new_epoch_counts_too(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable("a");
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK);
    fixture->cursor = (struct table_cursor){fixture->table.revision, UINT32_MAX};
    message.address = mutable("elsewhere");
    message.renews_epoch = fixture->result.epoch;
    message.epoch_at_least = 5000;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK);
    assert_int_equal(assert_leader(fixture, "g", "a"), 5001);
    next_change(fixture, GAVEL__CHANGE__KIND__CHANGED, "g", "a");
    assert_string_equal(next_change(fixture, GAVEL__CHANGE__KIND__ELECTED, "g", "a")->address, "elsewhere");
    assert_string_equal(group_named(fixture, "g")->address, "elsewhere");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, table_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_late_withdrawal_is_not_that_of_the_next_candidate_of_the_session),
        TEST(test_a_late_withdrawal_is_not_that_of_a_later_joining_under_the_same_id),
        TEST(test_an_id_is_in_use_by_another_instance_of_the_same_session),
        TEST(test_who_joined_without_a_number_may_say_it_later),
        TEST(test_a_mandate_goes_on_under_a_new_epoch_without_a_vacancy),
        TEST(test_nothing_goes_on_for_who_does_not_lead_with_that_epoch),
        TEST(test_a_mandate_that_is_granted_by_the_same_word_has_one_epoch),
        TEST(test_what_is_said_with_a_new_epoch_counts_too),
    };

    return cmocka_run_group_tests_name("table candidacy", tests, NULL, NULL);
}
