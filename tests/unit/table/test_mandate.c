/* SPDX-License-Identifier: Apache-2.0 */

/* Mandates by lease, as stores keep them, alone and beside candidates with sessions. */
#include "table_fixture.h"

#define LEFT GAVEL__CHANGE__KIND__LEFT

static void test_claim_takes_a_vacant_group_at_its_version(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    fixture->cursor = (struct table_cursor){0, UINT32_MAX};
    assert_int_equal(claim(fixture, "g", "h", 1, 5, 0), GAVEL_ERR_CONFLICT);
    assert_null(table_group_find(&fixture->table, "g"));
    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_OK);
    epoch = assert_leader(fixture, "g", "h");
    assert_int_equal(epoch, 1);
    assert_int_equal(fixture->result.epoch, epoch);
    assert_int_equal(fixture->result.version, epoch);
    assert_int_equal(next_change(fixture, GAVEL__CHANGE__KIND__ELECTED, "g", "h")->epoch, epoch);
    assert_string_equal(fixture->change->address, "there");
    assert_int_equal(group_named(fixture, "g")->process.pid, 77);
    assert_int_equal(claim(fixture, "g", "i", 2, 0, 0), GAVEL_ERR_CONFLICT);
    /* Over one that has run out, which was for the leader of the cluster to say. */
    assert_int_equal(claim(fixture, "g", "i", 2, epoch, 0), GAVEL_OK);
    assert_int_equal(assert_leader(fixture, "g", "i"), 2);
    assert_int_equal(next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "g", "h")->why,
                     GAVEL__ENDING__ENDING_LAPSED);
    assert_string_equal(next_change(fixture, GAVEL__CHANGE__KIND__ELECTED, "g", "i")->previous_holder, "h");
}

static void test_claim_insists_on_a_higher_epoch_and_the_counter_jumps(void **state)
{
    struct table_fixture *fixture = *state;
    const uint64_t jumps_end = UINT64_C(1) << (TABLE_GENERATION_BITS - 1);

    assert_int_equal(claim(fixture, "g", "h", 1, 0, 1000), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, 1001);
    assert_int_equal(fixture->table.revision, 1001);
    assert_int_equal(group_named(fixture, "g")->create_revision, 1001);
    assert_int_equal(claim(fixture, "g2", "h", 1, 0, 10), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, 1002);
    assert_int_equal(claim(fixture, "g3", "h", 1, 0, UINT64_MAX), GAVEL_ERR_STORE_FULL);
    assert_int_equal(claim(fixture, "g3", "h", 1, 0, jumps_end), GAVEL_ERR_STORE_FULL);
    assert_int_equal(fixture->table.revision, 1002);
    assert_int_equal(claim(fixture, "g3", "h", 1, 0, jumps_end - 1), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, jumps_end);
    /* From here on one by one, also for whoever knows the highest. */
    assert_int_equal(claim(fixture, "g4", "h", 1, 0, jumps_end - 1), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, jumps_end + 1);
    assert_int_equal(claim(fixture, "g5", "h", 1, 0, jumps_end + 1), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, jumps_end + 2);
}

/* A majority that is given up for lost may have counted on from wherever a claim had brought it. */
static void test_no_claim_brings_the_counter_to_where_the_next_generation_begins(void **state)
{
    struct table_fixture *fixture = *state;

    for (uint64_t generation = 1; generation <= TABLE_GENERATION_MAX; generation *= 16) {
        const uint64_t next = generation << TABLE_GENERATION_BITS;
        char group[] = "g-a";

        fixture->generation = generation;
        group[2] = (char)('a' + fixture->generation % 26);
        assert_int_equal(claim(fixture, group, "h", 1, 0, next - 1), GAVEL_ERR_STORE_FULL);
        assert_int_equal(claim(fixture, group, "h", 1, 0, next + 1000), GAVEL_ERR_STORE_FULL);
        assert_int_equal(claim(fixture, group, "h", 1, 0, next - next / generation / 2 - 1), GAVEL_OK);
        assert_true(fixture->result.epoch < next);
    }
}

static void test_renew_and_release_are_for_the_holder_alone(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;
    uint64_t revision;

    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_OK);
    epoch = fixture->result.epoch;
    revision = fixture->table.revision;
    assert_int_equal(renew(fixture, "g", "h", 2, epoch, 3000), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(renew(fixture, "g", "i", 1, epoch, 3000), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(renew(fixture, "g", "h", 1, epoch + 1, 3000), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(renew(fixture, "none", "h", 1, epoch, 3000), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(renew(fixture, "g", "h", 1, epoch, 3000), GAVEL_OK);
    assert_int_equal(fixture->table.revision, revision);              /* the log need not have it */
    assert_int_equal(renew(fixture, "g", "h", 1, 0, 4000), GAVEL_OK); /* whichever my nonce got */
    assert_int_equal(fixture->table.revision, revision + 1);
    assert_int_equal(fixture->result.version, epoch);
    assert_int_equal(group_named(fixture, "g")->lease_ms, 4000);
    assert_int_equal(release(fixture, "g", "h", 3, epoch, "", false), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(release(fixture, "g", "h", 1, epoch, "next", false), GAVEL_OK);
    assert_int_equal(assert_leader(fixture, "g", NULL), epoch);
    assert_string_equal(group_named(fixture, "g")->holder, "h");
    assert_string_equal(group_named(fixture, "g")->successor, "next");
    assert_true(fixture->result.version > epoch);
    assert_int_equal(release(fixture, "g", "h", 1, epoch, "", false), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(claim(fixture, "g", "i", 2, fixture->result.version, 0), GAVEL_OK);
    assert_string_equal(group_named(fixture, "g")->successor, "");
}

static void test_dead_holder_is_released_without_its_nonce(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_OK);
    assert_int_equal(release_dead(fixture, "g", 0), GAVEL_ERR_INVALID);
    assert_int_equal(release_dead(fixture, "g", 9), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(release_dead(fixture, "g", 2), GAVEL_OK);
    assert_int_equal(group_named(fixture, "g")->last_ending, GAVEL__ENDING__ENDING_DEAD);
    assert_leader(fixture, "g", NULL);
    /* Never over a session: that ends by itself. */
    assert_int_equal(campaign(fixture, 1, "s", "c"), GAVEL_OK);
    assert_int_equal(release_dead(fixture, "s", fixture->result.epoch), GAVEL_ERR_NOT_HOLDER);
}

static void test_who_saw_the_death_claims_before_or_after_it_is_written_down(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(release_dead(fixture, "g", epoch), GAVEL_OK);
    assert_true(group_named(fixture, "g")->version > epoch);
    assert_int_equal(claim(fixture, "g", "i", 2, epoch - 1, 0), GAVEL_ERR_CONFLICT);
    assert_int_equal(claim(fixture, "g", "i", 2, 0, 0), GAVEL_ERR_CONFLICT);
    assert_int_equal(claim(fixture, "g", "i", 2, epoch, 0), GAVEL_OK);
    assert_true(assert_leader(fixture, "g", "i") > epoch);
    /* Once, and only of a death. */
    assert_int_equal(claim(fixture, "g", "j", 3, epoch, 0), GAVEL_ERR_CONFLICT);
    epoch = fixture->result.epoch;
    assert_int_equal(release(fixture, "g", "i", 2, epoch, "", false), GAVEL_OK);
    assert_int_equal(claim(fixture, "g", "j", 3, epoch, 0), GAVEL_ERR_CONFLICT);
}

static void test_done_group_is_granted_to_nobody_until_it_is_reopened(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t version;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(open_session(fixture, 2), GAVEL_OK);
    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_OK);
    assert_int_equal(campaign(fixture, 1, "g", "c"), GAVEL_OK);
    assert_true(group_named(fixture, "g")->has_attention); /* it waits for the lease */
    assert_int_equal(release(fixture, "g", "h", 1, 0, "", true), GAVEL_OK);
    version = fixture->result.version;
    assert_leader(fixture, "g", NULL);
    assert_false(group_named(fixture, "g")->has_attention);
    assert_int_equal(claim(fixture, "g", "i", 2, version, 0), GAVEL_ERR_DONE);
    assert_int_equal(campaign(fixture, 2, "g", "d"), GAVEL_ERR_DONE);
    assert_int_equal(reopen(fixture, "g", version - 1), GAVEL_ERR_CONFLICT);
    assert_int_equal(reopen(fixture, "none", 0), GAVEL_ERR_CONFLICT);
    assert_int_equal(reopen(fixture, "g", version), GAVEL_OK);
    assert_leader(fixture, "g", "c");
    assert_int_equal(reopen(fixture, "g", version), GAVEL_ERR_CONFLICT); /* sent twice */
}

static void test_claim_never_takes_a_group_from_a_session(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(campaign(fixture, 1, "g", "c"), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(claim(fixture, "g", "h", 1, epoch, 0), GAVEL_ERR_CONFLICT);
    assert_int_equal(release(fixture, "g", "c", 0, epoch, "", false), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(renew(fixture, "g", "c", 0, epoch, 1000), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(lapse(fixture, "g", epoch), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(assert_leader(fixture, "g", "c"), epoch);
}

static void test_lapse_gives_a_lease_to_whoever_campaigns(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(lapse(fixture, "g", epoch), GAVEL_ERR_STATE); /* nobody waits */
    assert_int_equal(campaign(fixture, 1, "g", "c"), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, epoch);
    assert_leader(fixture, "g", "h");
    assert_int_equal(lapse(fixture, "g", epoch - 1), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(lapse(fixture, "g", epoch), GAVEL_OK);
    assert_leader(fixture, "g", "c");
    assert_ptr_equal(group_named(fixture, "g")->session, table_session_find(&fixture->table, 1));
    assert_int_equal(group_named(fixture, "g")->lease_ms, 2000);
    assert_int_equal(group_named(fixture, "g")->last_ending, GAVEL__ENDING__ENDING_LAPSED);
}

static void test_release_grants_on_but_leaves_the_group_to_a_named_candidate_of_a_store(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(register_candidate(fixture, "g", "r", 5, 0), GAVEL_OK);
    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_OK);
    assert_int_equal(campaign(fixture, 1, "g", "c"), GAVEL_OK);
    assert_int_equal(release(fixture, "g", "h", 1, 0, "r", false), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    assert_true(group_named(fixture, "g")->has_attention);
    assert_int_equal(claim(fixture, "g", "r", 2, fixture->result.version, 0), GAVEL_OK);
    epoch = assert_leader(fixture, "g", "r");
    /* Once more, and it does not come. */
    assert_int_equal(release(fixture, "g", "r", 2, 0, "r", false), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    assert_int_equal(lapse(fixture, "g", epoch), GAVEL_OK);
    assert_leader(fixture, "g", "c");
    assert_int_equal(close_session(fixture, 1, GAVEL__ENDING__ENDING_CLOSED), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    /* Nobody is named: whoever campaigns has it. */
    assert_int_equal(open_session(fixture, 2), GAVEL_OK);
    assert_int_equal(claim(fixture, "g", "h", 3, group_named(fixture, "g")->version, 0), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "g", "d"), GAVEL_OK);
    assert_int_equal(release(fixture, "g", "h", 3, 0, "", false), GAVEL_OK);
    assert_leader(fixture, "g", "d");
}

static void test_registered_id_belongs_to_one_instance(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t revision;

    assert_int_equal(register_candidate(fixture, "g", "r", 5, 0), GAVEL_OK);
    revision = fixture->table.revision;
    assert_int_equal(register_candidate(fixture, "g", "r", 5, 0), GAVEL_OK); /* a heartbeat */
    assert_int_equal(fixture->table.revision, revision);
    assert_int_equal(register_candidate(fixture, "g", "r", 6, 0), GAVEL_ERR_ID_IN_USE);
    assert_int_equal(register_candidate(fixture, "g", "r", 6, 4), GAVEL_ERR_ID_IN_USE);
    fixture->cursor = (struct table_cursor){revision, UINT32_MAX};
    assert_int_equal(register_candidate(fixture, "g", "r", 6, 5), GAVEL_OK);
    next_change(fixture, LEFT, "g", "r");
    next_change(fixture, GAVEL__CHANGE__KIND__JOINED, "g", "r");
    assert_int_equal(table_candidate_find(group_named(fixture, "g"), "r")->instance, 6);
    assert_int_equal(leave(fixture, "g", "r", 5), GAVEL_OK); /* it is not that one */
    assert_non_null(table_candidate_find(group_named(fixture, "g"), "r"));
    assert_int_equal(leave(fixture, "g", "r", 6), GAVEL_OK);
    assert_null(table_group_find(&fixture->table, "g"));
    assert_int_equal(leave(fixture, "g", "r", 6), GAVEL_OK);
}

static void test_wish_of_a_lease_is_for_its_holder_to_read(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Group shown;

    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_OK);
    assert_int_equal(wish(fixture, "g", 1, "anybody"), GAVEL_OK);
    assert_int_equal(fixture->result.version, 1);
    table_group_show(group_named(fixture, "g"), &shown);
    assert_int_equal(shown.wish_epoch, 1);
    assert_string_equal(shown.wish_successor, "anybody");
    assert_int_equal(shown.remaining_ms, -1);
    assert_non_null(shown.process);
    assert_string_equal(shown.process->boot_id, "boot");
    assert_int_equal(release(fixture, "g", "h", 1, 1, "", false), GAVEL_OK);
    assert_int_equal(group_named(fixture, "g")->wish_epoch, 0);
    assert_string_equal(group_named(fixture, "g")->successor, "anybody");
    assert_int_equal(wish(fixture, "g", 1, ""), GAVEL_ERR_NOT_HOLDER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_claim_takes_a_vacant_group_at_its_version, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_claim_insists_on_a_higher_epoch_and_the_counter_jumps,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_claim_brings_the_counter_to_where_the_next_generation_begins,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_renew_and_release_are_for_the_holder_alone, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_dead_holder_is_released_without_its_nonce, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_who_saw_the_death_claims_before_or_after_it_is_written_down,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_done_group_is_granted_to_nobody_until_it_is_reopened,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_claim_never_takes_a_group_from_a_session, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_lapse_gives_a_lease_to_whoever_campaigns, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(
            test_release_grants_on_but_leaves_the_group_to_a_named_candidate_of_a_store, table_fixture_setup,
            table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_registered_id_belongs_to_one_instance, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_wish_of_a_lease_is_for_its_holder_to_read, table_fixture_setup,
                                        table_fixture_teardown),
    };

    return cmocka_run_group_tests_name("table mandate", tests, NULL, NULL);
}
