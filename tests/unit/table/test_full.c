/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table that is full: this one is built with a limit of a mebibyte. Whoever
 * makes room is heard, whatever else comes with it; nothing that is refused is
 * half done; and what there is can be read again.
 */
#include "table_fixture.h"

#include "core/table/internal.h"

#include <stdio.h>

#define GROUPS 40
#define NOTE_BYTES 16000

static void name_group(char name[static 16], size_t number) { (void)snprintf(name, 16, "g%zu", number); }

/* Session 1 leads groups, session 2 waits in them, and notes take the rest, to the last byte. */
static void fill(struct table_fixture *fixture)
{
    char value[2 * NOTE_BYTES], group[16], key[16];

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(open_session(fixture, 2), GAVEL_OK);
    for (size_t i = 0; i < GROUPS; i++) {
        name_group(group, i);
        assert_int_equal(campaign(fixture, 1, group, "first"), GAVEL_OK);
        assert_int_equal(campaign(fixture, 2, group, "second"), GAVEL_OK);
    }
    memset(value, 'v', sizeof value);
    value[NOTE_BYTES] = '\0';
    for (size_t i = 0; TABLE_BYTES_MAX - fixture->table.bytes >= sizeof value; i++) {
        (void)snprintf(key, sizeof key, "n%zu", i);
        assert_int_equal(put_note(fixture, "g0", key, value, 0, UINT64_MAX), GAVEL_OK);
    }
    value[NOTE_BYTES] = 'v';
    assert_int_equal(put_note(fixture, "g0", "last", "", 0, UINT64_MAX), GAVEL_OK);
    value[TABLE_BYTES_MAX - fixture->table.bytes] = '\0';
    assert_int_equal(put_note(fixture, "g0", "last", value, 0, UINT64_MAX), GAVEL_OK);
    assert_int_equal(fixture->table.bytes, TABLE_BYTES_MAX);
}

struct batch {
    Gavel__Withdraw withdrawals[GROUPS];
    Gavel__Campaign campaign;
    Gavel__Op ops[GROUPS + 1];
    Gavel__Op *pointers[GROUPS + 1];
    char groups[GROUPS][16];
};

/* All groups are left, and in the middle of that another is joined. */
static void make_batch(struct batch *batch)
{
    gavel__campaign__init(&batch->campaign);
    batch->campaign.group = mutable("another");
    batch->campaign.id = mutable("first");
    for (size_t i = 0; i <= GROUPS; i++) {
        size_t which = i < GROUPS / 2 ? i : i - 1;

        gavel__op__init(&batch->ops[i]);
        batch->pointers[i] = &batch->ops[i];
        if (i == GROUPS / 2) {
            batch->ops[i].what_case = GAVEL__OP__WHAT_CAMPAIGN;
            batch->ops[i].campaign = &batch->campaign;
            continue;
        }
        name_group(batch->groups[which], which);
        gavel__withdraw__init(&batch->withdrawals[which]);
        batch->withdrawals[which].group = batch->groups[which];
        batch->ops[i].what_case = GAVEL__OP__WHAT_WITHDRAW;
        batch->ops[i].withdraw = &batch->withdrawals[which];
    }
}

static void test_who_leaves_a_full_table_is_heard_whatever_comes_with_it(void **state)
{
    struct table_fixture *fixture = *state;
    struct table_result *results = NULL;
    struct batch batch;
    size_t count = 0;

    fill(fixture);
    assert_int_equal(campaign(fixture, 1, "another", "first"), GAVEL_ERR_STORE_FULL);
    assert_string_equal(fixture->result.why, "the table of the cluster is full");
    make_batch(&batch);
    assert_int_equal(apply_ops(fixture, 1, 0, batch.pointers, GROUPS + 1, &results, &count), GAVEL_OK);
    assert_int_equal(count, GROUPS + 1);
    for (size_t i = 0; i < count; i++)
        if (i != GROUPS / 2)
            assert_int_equal(results[i].status, GAVEL_OK);
    free(results);
    for (size_t i = 0; i < GROUPS; i++)
        assert_leader(fixture, batch.groups[i], "second");
    /* The same in another batch, by which it is known to have left. */
    assert_int_equal(apply_ops(fixture, 1, 0, batch.pointers, GROUPS + 1, &results, &count), GAVEL_OK);
    assert_int_equal(results[0].status, GAVEL_ERR_NOT_FOUND);
    free(results);
}

static void test_by_the_rules_of_before_a_full_table_refuses_it_as_a_whole(void **state)
{
    struct table_fixture *fixture = *state;
    struct table_result *results = NULL;
    struct batch batch;
    size_t count = 0;

    fill(fixture);
    fixture->version = 1;
    make_batch(&batch);
    assert_int_equal(apply_ops(fixture, 1, 0, batch.pointers, GROUPS + 1, &results, &count),
                     GAVEL_ERR_STORE_FULL);
    assert_leader(fixture, "g1", "first");
    assert_int_equal(withdraw(fixture, 1, "g1", 0, false), GAVEL_OK); /* alone it takes no room */
    assert_leader(fixture, "g1", "second");
}

static enum gavel_status say(struct table_fixture *fixture, uint64_t session, const char *id,
                             bool is_ineligible, const char *address)
{
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable("h");
    message.id = mutable(id);
    message.address = mutable(address);
    message.is_ineligible = is_ineligible;
    return campaign_as(fixture, session, &message);
}

static void test_a_candidate_of_a_full_table_says_whether_it_stands(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(open_session(fixture, 2), GAVEL_OK);
    assert_int_equal(say(fixture, 1, "first", false, "192.0.2.1:1"), GAVEL_OK);
    assert_int_equal(say(fixture, 2, "second", false, "192.0.2.2:1"), GAVEL_OK);
    fill(fixture);
    assert_int_equal(say(fixture, 2, "second", true, "192.0.2.2:1"), GAVEL_OK);
    assert_false(table_candidate_find(group_named(fixture, "h"), "second")->is_eligible);
    assert_int_equal(say(fixture, 2, "second", false, "192.0.2.2:10"), GAVEL_ERR_STORE_FULL); /* longer */
    assert_false(table_candidate_find(group_named(fixture, "h"), "second")->is_eligible);
    assert_int_equal(say(fixture, 2, "second", false, "192.0.2.2:1"), GAVEL_OK);
    assert_true(table_candidate_find(group_named(fixture, "h"), "second")->is_eligible);
}

/* Otherwise the group would have no leader until there is room. */
static void test_patience_ends_in_a_full_table(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable("h");
    message.id = mutable("second");
    message.address = mutable("192.0.2.2:1");
    message.is_patient = true;
    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(open_session(fixture, 2), GAVEL_OK);
    assert_int_equal(say(fixture, 1, "first", false, ""), GAVEL_OK);
    assert_int_equal(campaign_as(fixture, 2, &message), GAVEL_OK);
    assert_int_equal(close_session(fixture, 1, GAVEL__ENDING__ENDING_EXPIRED), GAVEL_OK);
    assert_leader(fixture, "h", NULL);
    fixture->table.bytes += TABLE_BYTES_MAX; /* as if */
    message.is_patient = false;
    assert_int_equal(campaign_as(fixture, 2, &message), GAVEL_OK);
    assert_leader(fixture, "h", "second");
    fixture->table.bytes -= TABLE_BYTES_MAX;
}

static void test_a_table_that_is_more_than_full_is_read_again(void **state)
{
    struct table_fixture *fixture = *state;
    struct table_result *results = NULL;
    struct table copy = {0};
    struct batch batch;
    uint8_t *bytes;
    size_t count = 0, size;

    fill(fixture);
    make_batch(&batch);
    for (size_t i = 0; i < GROUPS; i++)
        batch.groups[i][0] = 'x'; /* there is no such group */
    assert_int_equal(apply_ops(fixture, 1, 0, batch.pointers, GROUPS + 1, &results, &count), GAVEL_OK);
    assert_int_equal(results[0].status, GAVEL_ERR_NOT_FOUND);
    free(results);
    assert_int_equal(wish(fixture, "g30", assert_leader(fixture, "g30", "first"), "second"), GAVEL_OK);
    assert_true(fixture->table.bytes > TABLE_BYTES_MAX + GROUPS);
    assert_int_equal(table_snapshot_encode(&fixture->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&copy, bytes, size), GAVEL_OK);
    assert_same_table(&fixture->table, &copy);
    free(bytes);
    table_done(&copy);
}

/* One request has as many results as the one before, so it is heard when nothing at all is left. */
static void test_one_operation_is_heard_when_the_reserve_is_used_up(void **state)
{
    struct table_fixture *fixture = *state;
    struct table_result *results = NULL;
    struct batch batch;
    size_t count = 0;

    fill(fixture);
    fixture->table.bytes += TABLE_RESERVE_BYTES; /* as if */
    make_batch(&batch);
    assert_int_equal(apply_ops(fixture, 1, 0, batch.pointers, 2, &results, &count), GAVEL_ERR_STORE_FULL);
    assert_int_equal(apply_ops(fixture, 1, 0, batch.pointers, 1, &results, &count), GAVEL_OK);
    assert_int_equal(results[0].status, GAVEL_OK);
    free(results);
    assert_leader(fixture, "g0", "second");
    assert_int_equal(delete_note(fixture, "g0", "n1", 0, UINT64_MAX), GAVEL_OK);
    fixture->table.bytes -= TABLE_RESERVE_BYTES;
    assert_int_equal(campaign(fixture, 1, "another", "first"), GAVEL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, table_fixture_setup, table_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_leaves_a_full_table_is_heard_whatever_comes_with_it),
        TEST(test_by_the_rules_of_before_a_full_table_refuses_it_as_a_whole),
        TEST(test_a_candidate_of_a_full_table_says_whether_it_stands),
        TEST(test_patience_ends_in_a_full_table),
        TEST(test_a_table_that_is_more_than_full_is_read_again),
        TEST(test_one_operation_is_heard_when_the_reserve_is_used_up),
    };

    return cmocka_run_group_tests_name("table full", tests, NULL, NULL);
}
