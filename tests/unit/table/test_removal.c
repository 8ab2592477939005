/* SPDX-License-Identifier: Apache-2.0 */

/* Groups end, their epochs do not: what removes a group, what keeps it, and what comes after it. */
#include "table_fixture.h"

static const uint64_t any = UINT64_MAX;

static enum gavel_status remove_as_of(struct table_fixture *fixture, const char *group, uint64_t revision,
                                      bool has_lapsed)
{
    Gavel__RemoveGroup message;
    Gavel__Op op;

    gavel__remove_group__init(&message);
    gavel__op__init(&op);
    message.group = mutable(group);
    message.revision = revision;
    message.has_lapsed = has_lapsed;
    op.what_case = GAVEL__OP__WHAT_REMOVE_GROUP;
    op.remove_group = &message;
    return apply_op(fixture, 0, 0, &op);
}

static enum gavel_status remove_group(struct table_fixture *fixture, const char *group)
{
    return remove_as_of(fixture, group, fixture->table.revision, false);
}

static void test_nothing_is_left_of_a_group_that_is_removed(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(claim(fixture, "g", "a", 1, 0, 0), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(put_note(fixture, "g", "k", "v", 0, any), GAVEL_OK);
    assert_int_equal(release(fixture, "g", "a", 1, 0, "", false), GAVEL_OK);
    fixture->cursor.revision = fixture->table.revision;
    fixture->cursor.part = UINT32_MAX;
    assert_int_equal(remove_group(fixture, "g"), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, 0);
    assert_int_equal(fixture->result.version, 0);
    next_change(fixture, GAVEL__CHANGE__KIND__NOTE_DELETED, "g", "");
    assert_int_equal(next_change(fixture, GAVEL__CHANGE__KIND__GROUP_GONE, "g", "")->epoch, epoch);
    assert_no_change(fixture);
    assert_null(table_group_find(&fixture->table, "g"));
    assert_int_equal(fixture->table.bytes, 0);
    assert_int_equal(fixture->table.contents, 0);
    assert_int_equal(remove_group(fixture, "g"), GAVEL_ERR_NOT_FOUND);
}

static void test_a_group_that_somebody_leads_or_has_joined_stays(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Campaign idle;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(campaign(fixture, 1, "led", "a"), GAVEL_OK);
    assert_int_equal(remove_as_of(fixture, "led", fixture->table.revision, true), GAVEL_ERR_STATE);
    assert_leader(fixture, "led", "a");
    gavel__campaign__init(&idle);
    idle.group = mutable("joined");
    idle.id = mutable("a");
    idle.is_ineligible = true;
    assert_int_equal(campaign_as(fixture, 1, &idle), GAVEL_OK);
    assert_leader(fixture, "joined", NULL);
    assert_int_equal(remove_group(fixture, "joined"), GAVEL_ERR_STATE);
    assert_int_equal(claim(fixture, "leased", "a", 1, 0, 0), GAVEL_OK);
    assert_int_equal(remove_group(fixture, "leased"), GAVEL_ERR_STATE);
    assert_leader(fixture, "leased", "a");
}

static void test_what_is_newer_than_the_look_keeps_the_group(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t looked;

    assert_int_equal(claim(fixture, "g", "a", 1, 0, 0), GAVEL_OK);
    assert_int_equal(release(fixture, "g", "a", 1, 0, "", false), GAVEL_OK);
    looked = fixture->table.revision;
    assert_int_equal(put_note(fixture, "g", "k", "v", 0, any), GAVEL_OK);
    assert_int_equal(remove_as_of(fixture, "g", looked, false), GAVEL_ERR_CONFLICT);
    looked = fixture->table.revision;
    assert_int_equal(register_candidate(fixture, "g", "b", 7, 0), GAVEL_OK);
    assert_int_equal(remove_as_of(fixture, "g", looked, false), GAVEL_ERR_CONFLICT);
    looked = fixture->table.revision;
    assert_int_equal(claim(fixture, "g", "b", 2, group_named(fixture, "g")->version, 0), GAVEL_OK);
    /* What had run out was the mandate before. */
    assert_int_equal(remove_as_of(fixture, "g", looked, true), GAVEL_ERR_CONFLICT);
    assert_leader(fixture, "g", "b");
}

/* Nothing is newer than a revision that is still to come. */
static void test_a_look_at_what_is_still_to_come_is_none(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(claim(fixture, "g", "a", 1, 0, 0), GAVEL_OK);
    assert_int_equal(remove_as_of(fixture, "g", fixture->table.revision + 1, true), GAVEL_ERR_INVALID);
    assert_int_equal(remove_as_of(fixture, "g", UINT64_MAX, true), GAVEL_ERR_INVALID);
    assert_leader(fixture, "g", "a");
    assert_int_equal(remove_as_of(fixture, "g", fixture->table.revision, true), GAVEL_OK);
}

static void test_a_lease_that_ran_out_and_silent_candidates_go_with_the_group(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(claim(fixture, "g", "a", 1, 0, 0), GAVEL_OK);
    assert_int_equal(register_candidate(fixture, "g", "a", 7, 0), GAVEL_OK);
    fixture->cursor.revision = fixture->table.revision;
    fixture->cursor.part = UINT32_MAX;
    assert_int_equal(remove_as_of(fixture, "g", fixture->table.revision, true), GAVEL_OK);
    next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "g", "a");
    next_change(fixture, GAVEL__CHANGE__KIND__LEFT, "g", "a");
    next_change(fixture, GAVEL__CHANGE__KIND__GROUP_GONE, "g", "");
    assert_int_equal(fixture->table.bytes, 0);
    assert_int_equal(renew(fixture, "g", "a", 1, 0, 1000), GAVEL_ERR_NOT_HOLDER);
}

/* ---- epochs ---- */

/* S1: however the counter came to be where it is, a group that is made anew begins above. */
static void test_epochs_go_on_where_a_removed_group_has_stopped(void **state)
{
    struct table_fixture *fixture = *state;
    const uint64_t high = UINT64_C(1) << 30;
    struct table again = {0};
    uint64_t last;
    uint8_t *bytes;
    size_t size;

    assert_int_equal(claim(fixture, "g", "a", 1, 0, high), GAVEL_OK); /* the counter jumps … */
    last = fixture->result.epoch;
    assert_int_equal(last, high + 1);
    assert_int_equal(release(fixture, "g", "a", 1, 0, "", false), GAVEL_OK);
    assert_int_equal(remove_group(fixture, "g"), GAVEL_OK);
    assert_int_equal(claim(fixture, "g", "b", 2, 0, 0), GAVEL_OK); /* … and does not come back */
    assert_true(fixture->result.epoch > last);
    last = fixture->result.epoch;
    assert_int_equal(release(fixture, "g", "b", 2, 0, "", false), GAVEL_OK);
    assert_int_equal(remove_group(fixture, "g"), GAVEL_OK);

    /* A snapshot of a table without a group has the floor, too. */
    assert_int_equal(table_snapshot_encode(&fixture->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&again, bytes, size), GAVEL_OK);
    free(bytes);
    assert_int_equal(again.revision, fixture->table.revision);
    assert_int_equal(again.group_count, 0);
    table_done(&again);

    /* Another generation, that has lost what the one before had counted: it begins above all of it. */
    fixture->generation = 3;
    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(campaign(fixture, 1, "g", "c"), GAVEL_OK);
    assert_true(assert_leader(fixture, "g", "c") > UINT64_C(2) << TABLE_GENERATION_BITS);
    last = fixture->result.epoch;
    assert_int_equal(withdraw(fixture, 1, "g", 0, false), GAVEL_OK);
    assert_int_equal(remove_group(fixture, "g"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 1, "g", "c"), GAVEL_OK);
    assert_true(assert_leader(fixture, "g", "c") > last);
}

static void test_a_former_leader_is_fenced_off_from_the_notes_of_the_group_made_anew(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(claim(fixture, "g", "a", 1, 0, 0), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(release(fixture, "g", "a", 1, 0, "", false), GAVEL_OK);
    assert_int_equal(remove_group(fixture, "g"), GAVEL_OK);
    assert_int_equal(put_note(fixture, "g", "k", "late", epoch, any), GAVEL_ERR_INVALID);
    assert_int_equal(claim(fixture, "g", "b", 2, 0, 0), GAVEL_OK);
    assert_int_equal(put_note(fixture, "g", "k", "late", epoch, any), GAVEL_ERR_TERM_STALE);
}

static void test_replicas_agree_on_what_was_touched_when_only_by_chance(void **state)
{
    struct table_fixture *fixture = *state;
    struct table again = {0};
    uint8_t *bytes;
    size_t size;

    assert_int_equal(claim(fixture, "g", "a", 1, 0, 0), GAVEL_OK);
    assert_int_equal(claim(fixture, "h", "a", 1, 0, 0), GAVEL_OK);
    assert_true(group_named(fixture, "g")->touched_revision < fixture->table.revision);
    assert_int_equal(table_snapshot_encode(&fixture->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&again, bytes, size), GAVEL_OK);
    free(bytes);
    assert_int_equal(table_group_find(&again, "g")->touched_revision, again.revision);
    assert_same_table(&fixture->table, &again);
    table_done(&again);
}

static void test_removal_goes_through_at_the_limit(void **state)
{
    struct table_fixture *fixture = *state;
    size_t bytes;

    assert_int_equal(claim(fixture, "g", "a", 1, 0, 0), GAVEL_OK);
    assert_int_equal(release(fixture, "g", "a", 1, 0, "", false), GAVEL_OK);
    bytes = fixture->table.bytes;
    fixture->table.bytes = TABLE_BYTES_MAX; /* as if */
    fixture->table.group_count = TABLE_GROUPS_MAX;
    assert_int_equal(claim(fixture, "h", "a", 1, 0, 0), GAVEL_ERR_STORE_FULL);
    assert_int_equal(remove_group(fixture, "g"), GAVEL_OK);
    assert_int_equal(fixture->table.bytes, TABLE_BYTES_MAX - bytes);
    assert_int_equal(fixture->table.group_count, TABLE_GROUPS_MAX - 1);
    assert_int_equal(claim(fixture, "h", "a", 1, 0, 0), GAVEL_OK);
    fixture->table.group_count = 1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, table_fixture_setup, table_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_left_of_a_group_that_is_removed),
        TEST(test_a_group_that_somebody_leads_or_has_joined_stays),
        TEST(test_what_is_newer_than_the_look_keeps_the_group),
        TEST(test_a_look_at_what_is_still_to_come_is_none),
        TEST(test_a_lease_that_ran_out_and_silent_candidates_go_with_the_group),
        TEST(test_epochs_go_on_where_a_removed_group_has_stopped),
        TEST(test_a_former_leader_is_fenced_off_from_the_notes_of_the_group_made_anew),
        TEST(test_replicas_agree_on_what_was_touched_when_only_by_chance),
        TEST(test_removal_goes_through_at_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
