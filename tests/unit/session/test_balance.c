/* SPDX-License-Identifier: Apache-2.0 */

/* The policy `balanced`: who is granted a group, and who is asked to hand one over. */
#include "frontend_fixture.h"

static void open_session(struct fixture *f, uint64_t session)
{
    must(f, session, 1, op_open(f, session, 86400000));
}

static Gavel__Op *balanced(struct fixture *f, size_t number, const char *id)
{
    static const char *const names[] = {"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "g9"};
    Gavel__Op *op = op_campaign(f, names[number], id);

    op->campaign->policy = GAVEL__POLICY__POLICY_BALANCED;
    return op;
}

/* It takes part in groups 0 to count - 1. */
static void join(struct fixture *f, uint64_t session, uint64_t id, const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        must(f, session, id + i, balanced(f, i, name));
}

static size_t leads(struct fixture *f, uint64_t session)
{
    return table_session_find(&f->table, session)->lead_count;
}

/* Whoever is asked to hand over does so. */
static size_t hand_over(struct fixture *f, uint64_t session, uint64_t *id)
{
    size_t count = 0;

    for (struct table_group *group = table_group_from(&f->table, ""); group;
         group = table_group_next(group)) {
        if (group->wish_epoch == 0 || group->session->id != session)
            continue;
        must(f, session, ++*id, op_withdraw(f, group->name));
        must(f, session, ++*id, balanced(f, strtoul(group->name + 1, NULL, 10), "a")); /* comes back */
        count++;
    }
    return count;
}

static void test_vacant_groups_go_to_who_leads_the_fewest(void **state)
{
    struct fixture *f = *state;

    for (uint64_t session = 7; session < 10; session++)
        open_session(f, session);
    join(f, 7, 2, "a", 9);
    join(f, 8, 2, "b", 9);
    join(f, 9, 2, "c", 9);
    assert_int_equal(leads(f, 7), 9);
    must(f, 7, 20, op_close(f, 7)); /* one operation */
    assert_int_equal(leads(f, 8) + leads(f, 9), 9);
    assert_true(leads(f, 8) == 4 || leads(f, 9) == 4);
}

static void test_leaders_are_asked_until_all_lead_about_as_many(void **state)
{
    struct fixture *f = *state;
    uint64_t id = 100;
    size_t moved = 0;
    gavel_ns began_at;

    open_session(f, 7);
    open_session(f, 8);
    join(f, 7, 2, "a", 10);
    join(f, 8, 2, "b", 10);
    assert_int_equal(leads(f, 7), 10);
    began_at = f->now;
    for (int i = 0; i < 100 && leads(f, 7) > 5; i++) {
        run_until(f, f->now + MS(20));
        commit(f);
        assert_true(table_session_find(&f->table, 7)->wish_count <= 1); /* one after the other */
        moved += hand_over(f, 7, &id);
    }
    assert_int_equal(leads(f, 7), 5);
    assert_int_equal(leads(f, 8), 5);
    assert_int_equal(moved, 5);
    assert_true(f->now - began_at >= MS(500)); /* ten a second */
    run_until(f, f->now + MS(2000));           /* and then there is peace */
    commit(f);
    assert_int_equal(hand_over(f, 7, &id), 0);
    assert_int_equal(leads(f, 8), 5);
}

static void test_one_that_does_not_hand_over_is_left_alone(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    open_session(f, 8);
    join(f, 7, 2, "a", 4);
    join(f, 8, 2, "b", 4);
    run_until(f, f->now + MS(5000));
    commit(f);
    assert_int_equal(table_session_find(&f->table, 7)->wish_count, 1);
    run_until(f, f->now + MS(5000));
    commit(f);
    assert_int_equal(table_session_find(&f->table, 7)->wish_count, 1); /* none before that is answered */
    assert_int_equal(leads(f, 7), 4);
}

static void test_no_group_moves_before_its_minimum_mandate_nor_to_one_that_may_not_lead(void **state)
{
    struct fixture *f = *state;
    gavel_ns began_at;
    Gavel__Op *op;

    open_session(f, 7);
    open_session(f, 8);
    for (size_t i = 0; i < 3; i++) {
        op = balanced(f, i, "a");
        op->campaign->min_mandate_ms = 3000;
        must(f, 7, 2 + i, op);
        op = balanced(f, i, "b");
        op->campaign->is_ineligible = true;
        must(f, 8, 2 + i, op);
    }
    began_at = f->now;
    run_until(f, began_at + MS(5000));
    commit(f);
    assert_int_equal(table_session_find(&f->table, 7)->wish_count, 0);
    must(f, 7, 10, op_withdraw(f, "g1"));
    op = balanced(f, 1, "a");
    must(f, 7, 11, op); /* again: its minimum mandate begins anew */
    began_at = f->now;
    for (size_t i = 0; i < 2; i++)
        must(f, 8, 10 + i, balanced(f, 2 * i, "b"));
    must(f, 8, 12, balanced(f, 1, "b"));
    run_until(f, began_at + MS(300));
    commit(f);
    assert_int_equal(table_session_find(&f->table, 7)->wish_count, 1); /* one of those that are due */
    assert_int_equal(group_of(f, "g1")->wish_epoch, 0);
}

static void test_another_leader_goes_on(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    open_session(f, 8);
    join(f, 7, 2, "a", 4);
    join(f, 8, 2, "b", 4);
    fixture_change_leader(f);
    run_until(f, f->now + MS(1000));
    commit(f);
    assert_int_equal(table_session_find(&f->table, 7)->wish_count, 1);
}

static void test_older_nodes_have_no_such_policy(void **state)
{
    struct fixture *f = *state;
    const Gavel__Reply *reply;

    open_session(f, 7);
    f->frontend.table_version = TABLE_VERSION_0_7 - 1;
    reply = request(f, 7, 2, balanced(f, 0, "a"));
    assert_int_equal(reply->results[0]->status, GAVEL_ERR_STORE_UNSUPPORTED);
    assert_non_null(strstr(reply->results[0]->message, "policy balanced"));
}

static void test_sessions_that_are_ending_go_on_with_every_leader(void **state)
{
    struct fixture *f = *state;

    f->frontend.close_part = 2;
    open_session(f, 8);
    must(f, 7, 1, op_open(f, 7, 1000));
    join(f, 7, 2, "a", 7);
    join(f, 8, 2, "b", 7);
    run_until(f, f->now + MS(1500));
    commit(f);
    assert_null(table_session_find(&f->table, 7));
    assert_int_equal(leads(f, 8), 2);
    run_until(f, f->now + MS(20));
    commit(f);
    assert_int_equal(leads(f, 8), 4);
    fixture_change_leader(f);
    f->frontend.close_part = 2;
    for (int i = 0; i < 2; i++) {
        run_until(f, f->now + MS(20));
        commit(f);
    }
    assert_int_equal(leads(f, 8), 7);
    assert_null(table_session_find_any(&f->table, 7));
    assert_int_equal(f->proposals, f->log_count);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_vacant_groups_go_to_who_leads_the_fewest),
        TEST(test_leaders_are_asked_until_all_lead_about_as_many),
        TEST(test_one_that_does_not_hand_over_is_left_alone),
        TEST(test_no_group_moves_before_its_minimum_mandate_nor_to_one_that_may_not_lead),
        TEST(test_another_leader_goes_on),
        TEST(test_older_nodes_have_no_such_policy),
        TEST(test_sessions_that_are_ending_go_on_with_every_leader),
    };

    return cmocka_run_group_tests_name("balance", tests, NULL, NULL);
}
