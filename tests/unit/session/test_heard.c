/* SPDX-License-Identifier: Apache-2.0 */

/* What the leader alone knows: it is found again, and forgotten with its object. */
#include "frontend_fixture.h"

#include <stdio.h>

#define MANY 500

/* The candidate as the table has it. */
static struct table_candidate *candidate_of(struct fixture *f, size_t which)
{
    char name[16];

    (void)snprintf(name, sizeof name, "c%d", (int)which);
    return table_candidate_find(group_of(f, "g"), name);
}

static void test_many_are_found_again(void **state)
{
    struct fixture *f = *state;
    struct heard heard = {0};
    static char names[MANY][16];

    heard_done(&heard, 42);
    for (size_t i = 0; i < MANY; i++) {
        f->op_count = 0;
        (void)snprintf(names[i], sizeof names[i], "c%d", (int)i);
        must(f, 0, 0, op_register(f, "g", names[i], i + 1, 1));
        must(f, 100 + i, 1, op_open(f, 100 + i, 60000));
    }
    assert_int_equal(heard_reserve(&heard, &f->table), GAVEL_OK);
    for (size_t i = 0; i < MANY; i++) {
        assert_null(heard_candidate(&heard, candidate_of(f, i)));
        assert_null(heard_session(&heard, table_session_find(&f->table, 100 + i)));
        heard_of_candidate(&heard, candidate_of(f, i))->beats = i;
        heard_of_session(&heard, table_session_find(&f->table, 100 + i))->heard_at = (gavel_ns)i;
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(heard_candidate(&heard, candidate_of(f, i))->beats, i);
        assert_int_equal(heard_session(&heard, table_session_find(&f->table, 100 + i))->heard_at, i);
        if (i % 2 == 0)
            heard_leave(&heard, "g", names[i], i + 1);
        else
            heard_leave(&heard, "g", names[i], i); /* another one */
    }
    assert_int_equal(heard.candidate_count, MANY / 2);
    assert_null(heard_candidate(&heard, candidate_of(f, 0)));
    assert_non_null(heard_candidate(&heard, candidate_of(f, 1)));
    heard_done(&heard, 0);
    assert_null(heard_candidate(&heard, candidate_of(f, 1)));
}

static void test_another_in_the_same_place_is_not_known(void **state)
{
    struct fixture *f = *state;
    uint32_t slot;

    must(f, 7, 1, op_open(f, 7, 2000));
    slot = table_session_find(&f->table, 7)->slot;
    assert_non_null(heard_session(&f->frontend.heard, table_session_find(&f->table, 7)));
    must(f, 0, 0, op_close(f, 7));
    fixture_change_leader(f);
    must(f, 8, 1, op_open(f, 8, 2000));
    assert_int_equal(table_session_find(&f->table, 8)->slot, slot);
    must(f, 0, 0, op_register(f, "g", "x", 8, 1));
    must(f, 0, 0, op_leave(f, "g", "x", 8));
    assert_int_equal(f->frontend.heard.candidate_count, 0);
    must(f, 0, 0, op_claim(f, "h", "one", 1, 0));
    must(f, 0, 0, op_renew(f, "h", "one", 1));
    assert_non_null(heard_group(&f->frontend.heard, group_of(f, "h")));
    must(f, 0, 0, op_release(f, "h", "one", 1));
    assert_null(heard_group(&f->frontend.heard, group_of(f, "h"))); /* the mandate is over */
}

static void test_it_is_forgotten_with_the_leadership_but_for_what_is_under_way(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *close = op_close(f, 7);

    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 8, 1, op_open(f, 8, 2000));
    send_request(f, 0, 0, 1, &close);
    flush(f);
    frontend_close(&f->frontend);
    assert_non_null(f->frontend.heard.sessions);
    /* A transfer that fails: the same term, and the end of the session is still to come. */
    frontend_open(&f->frontend, f->term, f->now);
    assert_int_equal(keep_alive(f, 7)->n_gone, 1);
    assert_int_equal(keep_alive(f, 8)->n_gone, 0);
    commit(f);
    frontend_close(&f->frontend);
    assert_null(f->frontend.heard.sessions);
}

static void test_instants_of_revisions_are_never_early_and_hardly_late(void **state)
{
    struct applied applied = {0};
    const uint64_t count = 200000;
    const gavel_ns step = MS(3);

    (void)state;
    for (uint64_t revision = 1; revision <= count; revision++)
        applied_mark(&applied, revision, (gavel_ns)revision * step);
    assert_true(applied.capacity <= APPLIED_MAX);
    for (uint64_t revision = 1; revision <= count; revision += 7) {
        gavel_ns right = (gavel_ns)revision * step;
        gavel_ns told = applied_at(&applied, revision);

        assert_true(told >= right);
        assert_true(told - right <= ((gavel_ns)count * step - right) / APPLIED_PART);
    }
    assert_int_equal(applied_at(&applied, count + 1), NEVER);
    applied_mark(&applied, 5, (gavel_ns)count * step + 1); /* another table */
    assert_int_equal(applied_at(&applied, 1), (gavel_ns)count * step + 1);
    applied_done(&applied);
}

static void test_a_new_leader_knows_how_long_a_mandate_has_lasted(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *leader = op_campaign(f, "g", "one");

    leader->campaign->min_mandate_ms = 500;
    must(f, 7, 1, op_open(f, 7, 60000));
    must(f, 7, 2, leader);
    must(f, 8, 1, op_open(f, 8, 60000));
    must(f, 8, 2, op_campaign(f, "g", "two"));
    run_until(f, f->now + MS(600));
    fixture_change_leader(f);
    must(f, 0, 0, op_wish(f, "g", "two"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_many_are_found_again),
        TEST(test_another_in_the_same_place_is_not_known),
        TEST(test_it_is_forgotten_with_the_leadership_but_for_what_is_under_way),
        TEST(test_instants_of_revisions_are_never_early_and_hardly_late),
        TEST(test_a_new_leader_knows_how_long_a_mandate_has_lasted),
    };

    return cmocka_run_group_tests_name("heard", tests, NULL, NULL);
}
