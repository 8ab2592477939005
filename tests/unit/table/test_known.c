/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands are carried out by the rules of the version that they name. Two tables are built here: one by a
 * node that knows more than the leader did, from what a newer client has said; one from the same without
 * what is newer, as the leader reads it. They must not differ.
 */
#include "table_fixture.h"

static const uint64_t any = UINT64_MAX;

struct two {
    struct table_fixture *newer; /* this node */
    struct table_fixture *older; /* what a node without the new fields has */
};

static int setup(void **state)
{
    struct two *two = calloc(1, sizeof *two);
    void *newer, *older;

    if (!two || table_fixture_setup(&newer) || table_fixture_setup(&older))
        return -1;
    two->newer = newer;
    two->older = older;
    two->newer->version = 1;
    *state = two;
    return 0;
}

static int teardown(void **state)
{
    struct two *two = *state;
    void *newer = two->newer;
    void *older = two->older;

    free(two);
    return table_fixture_teardown(&newer) || table_fixture_teardown(&older);
}

/* One operation as these bytes; the outcome of it. */
static struct table_result apply_bytes(struct table_fixture *fixture, uint64_t session, const uint8_t *bytes,
                                       size_t size)
{
    const struct table_packed packed = {.bytes = bytes, .size = size};
    const struct table_session *open = session ? table_session_find(&fixture->table, session) : NULL;
    struct table_outcome outcome = {0};
    Gavel__Op op;
    Gavel__Op *list = &op;
    Gavel__Command command;
    struct table_result result;
    uint8_t *entry;
    size_t entry_size;

    gavel__op__init(&op);
    gavel__command__init(&command);
    command.session = session;
    command.id = open ? open->last_id + 1 : 0;
    command.wall_ms = fixture->wall_ms++;
    command.table_version = fixture->version;
    command.ops = &list;
    command.n_ops = 1;
    assert_int_equal(table_ops_encode_packed(&command, &packed, &entry, &entry_size), GAVEL_OK);
    assert_int_equal(table_apply_ops(&fixture->table, fixture->table.index + 1, entry, entry_size, &outcome),
                     GAVEL_OK);
    assert_int_equal(outcome.count, 1);
    result = outcome.results[0];
    table_outcome_done(&outcome);
    free(entry);
    return result;
}

static void open_both(struct two *two, uint64_t session)
{
    assert_int_equal(open_session(two->newer, session), GAVEL_OK);
    assert_int_equal(open_session(two->older, session), GAVEL_OK);
}

static void campaign_both(struct two *two, uint64_t session, const char *id)
{
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable(id);
    assert_int_equal(campaign_as(two->older, session, &message), GAVEL_OK);
    message.is_patient = true;
    message.epoch_at_least = 1000000;
    message.instance = 100 + session;
    assert_int_equal(campaign_as(two->newer, session, &message), GAVEL_OK);
    message.renews_epoch = two->newer->result.epoch;
    assert_int_equal(campaign_as(two->newer, session, &message), GAVEL_OK);
    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable(id);
    assert_int_equal(campaign_as(two->older, session, &message), GAVEL_OK);
    assert_same_table(&two->newer->table, &two->older->table);
}

static void test_what_an_older_leader_does_not_know_of_a_campaign_is_skipped(void **state)
{
    struct two *two = *state;

    open_both(two, 1);
    open_both(two, 2);
    campaign_both(two, 1, "a");
    campaign_both(two, 2, "b");
    assert_int_equal(close_session(two->newer, 1, GAVEL__ENDING__ENDING_DEAD), GAVEL_OK);
    assert_int_equal(close_session(two->older, 1, GAVEL__ENDING__ENDING_DEAD), GAVEL_OK);
    assert_true(assert_leader(two->newer, "g", "b") < 100);
    assert_same_table(&two->newer->table, &two->older->table);
}

/* Also what would not be valid. */
static void test_what_an_older_leader_does_not_know_of_a_withdrawal_is_skipped(void **state)
{
    struct two *two = *state;
    Gavel__Withdraw message;

    gavel__withdraw__init(&message);
    for (uint64_t session = 1; session <= 3; session++)
        open_both(two, session);
    campaign_both(two, 1, "a");
    campaign_both(two, 2, "b");
    campaign_both(two, 3, "c");
    message.group = mutable("g");
    message.stays = true;
    assert_int_equal(withdraw_as(two->older, 1, &message), GAVEL_OK);
    message.is_done = true; /* without an epoch */
    message.successor = mutable("c");
    message.ending = (Gavel__Ending)77;
    message.id = mutable("b");
    message.instance = 77;
    assert_int_equal(withdraw_as(two->newer, 1, &message), GAVEL_OK);
    assert_leader(two->newer, "g", "b");
    assert_false(group_named(two->newer, "g")->is_done);
    assert_same_table(&two->newer->table, &two->older->table);
}

static void test_an_operation_that_an_older_leader_does_not_know_is_none(void **state)
{
    struct two *two = *state;
    Gavel__RemoveGroup message;
    Gavel__Op op;

    gavel__remove_group__init(&message);
    gavel__op__init(&op);
    assert_int_equal(claim(two->newer, "g", "a", 1, 0, 0), GAVEL_OK);
    message.group = mutable("g");
    message.revision = two->newer->table.revision;
    message.has_lapsed = true;
    op.what_case = GAVEL__OP__WHAT_REMOVE_GROUP;
    op.remove_group = &message;
    assert_int_equal(apply_op(two->newer, 0, 0, &op), GAVEL_ERR_INVALID);
    assert_int_equal(two->newer->result.epoch, 0); /* a session keeps it: not even the outcome may differ */
    assert_leader(two->newer, "g", "a");
    two->newer->version = TABLE_VERSION;
    assert_int_equal(apply_op(two->newer, 0, 0, &op), GAVEL_OK);
    assert_null(table_group_find(&two->newer->table, "g"));
}

/* The leader has checked a note, and that is what it is. */
static void test_an_operation_beside_one_that_is_known_is_skipped(void **state)
{
    /* PutNote{group "g", key "k"}, RemoveGroup{group "g", revision 100, has_lapsed}, Died{} */
    static const uint8_t both[] = {0x7a, 6, 0x0a, 1,    'g', 0x12, 1, 'k',  0xa2, 0x01, 7,
                                   0x0a, 1, 'g',  0x10, 100, 0x20, 1, 0xaa, 0x01, 0};
    struct two *two = *state;
    struct table_result result;

    assert_int_equal(claim(two->newer, "g", "a", 1, 0, 0), GAVEL_OK);
    assert_int_equal(claim(two->older, "g", "a", 1, 0, 0), GAVEL_OK);
    assert_int_equal(put_note(two->older, "g", "k", "", 0, any), GAVEL_OK);
    result = apply_bytes(two->newer, 0, both, sizeof both);
    assert_int_equal(result.status, GAVEL_OK);
    assert_int_equal(result.epoch, two->older->result.epoch);
    assert_same_table(&two->newer->table, &two->older->table);
}

/* What is unknown to the leader can have any form. */
static void test_a_new_field_of_the_wrong_kind_is_skipped(void **state)
{
    /* Campaign{group "g", id "a", address "here", is_patient: bytes, epoch_at_least: four bytes} */
    static const uint8_t strange[] = {0x2a, 22,  0x0a, 1, 'g',  0x12, 1, 'a', 0x1a, 4, 'h',  'e',
                                      'r',  'e', 0x52, 1, 0xff, 0x5d, 1, 2,   3,    4, 0x68, 1};
    struct two *two = *state;

    open_both(two, 1);
    assert_int_equal(campaign(two->older, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(apply_bytes(two->newer, 1, strange, sizeof strange).status, GAVEL_OK);
    assert_same_table(&two->newer->table, &two->older->table);
}

/* Who may use a session does not make replicas differ, and is told to all nodes that know of it. */
static void test_whose_a_session_is_does_not_depend_on_the_leader(void **state)
{
    struct two *two = *state;
    /* OpenSession{session 5, ttl_ms 2000, principal: a number of eight bytes; and once as one of four} */
    static const uint8_t owned[] = {0x1a, 26, 0x09, 5, 0, 0, 0, 0, 0, 0,    0, 0x10, 0xd0, 0x0f,
                                    0x29, 9,  0,    0, 0, 0, 0, 0, 0, 0x2d, 1, 0,    0,    0};
    Gavel__OpenSession message;
    Gavel__Op op;

    gavel__open_session__init(&message);
    gavel__op__init(&op);
    message.session = 5;
    message.ttl_ms = 2000;
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &message;
    assert_int_equal(apply_op(two->older, 0, 0, &op), GAVEL_OK);
    assert_int_equal(apply_bytes(two->newer, 0, owned, sizeof owned).status, GAVEL_OK);
    assert_int_equal(table_session_find(&two->newer->table, 5)->principal, 9);
    assert_int_equal(table_digest(&two->newer->table), table_digest(&two->older->table));
}

static void test_nothing_is_left_half_done_without_memory(void **state)
{
    struct two *two = *state;

    open_both(two, 1);
    two->newer->is_in_need = true;
    campaign_both(two, 1, "a");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_an_older_leader_does_not_know_of_a_campaign_is_skipped),
        TEST(test_what_an_older_leader_does_not_know_of_a_withdrawal_is_skipped),
        TEST(test_an_operation_that_an_older_leader_does_not_know_is_none),
        TEST(test_an_operation_beside_one_that_is_known_is_skipped),
        TEST(test_a_new_field_of_the_wrong_kind_is_skipped),
        TEST(test_whose_a_session_is_does_not_depend_on_the_leader),
        TEST(test_nothing_is_left_half_done_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
