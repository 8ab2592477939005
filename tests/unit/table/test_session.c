/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions: opening, requests that are applied once, and what ends with a session. */
#include "table_fixture.h"

#include "core/table/internal.h"

static void test_session_is_open_until_it_is_closed(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(open_session(fixture, 7), GAVEL_OK);
    assert_int_equal(fixture->result.revision, 1);
    assert_non_null(table_session_find(&fixture->table, 7));
    assert_int_equal(open_session(fixture, 3), GAVEL_OK);
    assert_int_equal(table_session_first(&fixture->table)->id, 3);
    assert_int_equal(table_session_next(table_session_first(&fixture->table))->id, 7);
    assert_int_equal(close_session(fixture, 7, GAVEL__ENDING__ENDING_EXPIRED), GAVEL_OK);
    assert_null(table_session_find(&fixture->table, 7));
    assert_int_equal(fixture->table.revision, 3);
    assert_int_equal(close_session(fixture, 7, GAVEL__ENDING__ENDING_EXPIRED),
                     GAVEL_OK); /* nothing changes */
    assert_int_equal(fixture->table.revision, 3);
    assert_int_equal(next_change(fixture, GAVEL__CHANGE__KIND__SESSION_ENDED, "", "")->why,
                     GAVEL__ENDING__ENDING_EXPIRED);
    assert_int_equal(fixture->change->session, 7);
    assert_no_change(fixture);
}

static enum gavel_status campaign_with_id(struct table_fixture *fixture, uint64_t session, uint64_t id,
                                          const char *group)
{
    Gavel__Campaign message;
    Gavel__Op op;

    gavel__campaign__init(&message);
    message.group = mutable(group);
    message.id = mutable("c");
    gavel__op__init(&op);
    op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    op.campaign = &message;
    return apply_op(fixture, session, id, &op);
}

static void test_repeated_request_is_answered_and_not_applied(void **state)
{
    struct table_fixture *fixture = *state;
    struct table_result first;
    uint64_t digest;

    assert_int_equal(open_session(fixture, 7), GAVEL_OK);
    assert_int_equal(campaign_with_id(fixture, 7, 2, "g"), GAVEL_OK);
    first = fixture->result;
    assert_int_equal(first.epoch, 2);
    digest = table_digest(&fixture->table);
    /* Whatever it asks for: its number decides. */
    assert_int_equal(campaign_with_id(fixture, 7, 2, "other"), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, first.epoch);
    assert_int_equal(fixture->result.revision, first.revision);
    assert_int_equal(fixture->result.version, first.version);
    assert_string_equal(fixture->result.why, "");
    assert_int_equal(table_digest(&fixture->table), digest);
    assert_null(table_group_find(&fixture->table, "other"));
    assert_int_equal(campaign_with_id(fixture, 7, 1, "other"), GAVEL_ERR_STATE);
    assert_int_equal(table_digest(&fixture->table), digest);
    /* The leader answers some without the log, so numbers may be missing. */
    assert_int_equal(campaign_with_id(fixture, 7, 5, "other"), GAVEL_OK);
    assert_int_equal(campaign_with_id(fixture, 7, 4, "another"), GAVEL_ERR_STATE);
    assert_null(table_group_find(&fixture->table, "another"));
}

/* A copy of a request is late, and so was one of the opening: the new session knows nothing of the former. */
static void test_request_of_a_former_session_is_not_carried_out_in_the_next(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t digest;

    assert_int_equal(open_session(fixture, 7), GAVEL_OK);
    fixture->session_revision = fixture->result.revision;
    assert_int_equal(campaign_with_id(fixture, 7, 2, "g"), GAVEL_OK);
    fixture->session_revision = 0;
    assert_int_equal(close_session(fixture, 7, GAVEL__ENDING__ENDING_EXPIRED), GAVEL_OK);
    assert_int_equal(open_session(fixture, 7), GAVEL_OK);
    digest = table_digest(&fixture->table);
    fixture->session_revision = 1;
    assert_int_equal(campaign_with_id(fixture, 7, 2, "g"), GAVEL_ERR_SESSION_GONE);
    assert_int_equal(table_digest(&fixture->table), digest);
    fixture->session_revision = table_session_find(&fixture->table, 7)->create_revision;
    assert_int_equal(campaign_with_id(fixture, 7, 2, "g"), GAVEL_OK);
    /* By the rules of before nobody says which. */
    fixture->session_revision = 1;
    fixture->version = 1;
    assert_int_equal(campaign_with_id(fixture, 7, 3, "other"), GAVEL_OK);
}

static void test_refused_request_is_remembered_as_refused(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(open_session(fixture, 2), GAVEL_OK);
    assert_int_equal(campaign_with_id(fixture, 1, 2, "g"), GAVEL_OK);
    assert_int_equal(campaign_with_id(fixture, 2, 2, "g"), GAVEL_ERR_ID_IN_USE);
    assert_true(strlen(fixture->result.why) > 0);
    assert_int_equal(close_session(fixture, 1, GAVEL__ENDING__ENDING_CLOSED), GAVEL_OK);
    assert_int_equal(campaign_with_id(fixture, 2, 2, "g"), GAVEL_ERR_ID_IN_USE); /* it was */
    assert_int_equal(campaign_with_id(fixture, 2, 3, "g"), GAVEL_OK);
}

static enum gavel_status open_with_id(struct table_fixture *fixture, uint64_t command_session,
                                      uint64_t session, uint64_t id)
{
    Gavel__OpenSession message;
    Gavel__Op op;

    gavel__open_session__init(&message);
    message.session = session;
    message.ttl_ms = 2000;
    gavel__op__init(&op);
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &message;
    return apply_op(fixture, command_session, id, &op);
}

static void test_opening_that_comes_again_does_not_set_the_session_back(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t digest;

    assert_int_equal(open_with_id(fixture, 7, 7, 5), GAVEL_OK);
    assert_int_equal(table_session_find(&fixture->table, 7)->last_id, 5);
    assert_int_equal(campaign_with_id(fixture, 7, 6, "g"), GAVEL_OK);
    digest = table_digest(&fixture->table);
    assert_int_equal(open_with_id(fixture, 7, 7, 5), GAVEL_OK);
    assert_int_equal(table_digest(&fixture->table), digest);
    assert_int_equal(open_with_id(fixture, 7, 7, 7), GAVEL_OK);
    assert_int_equal(table_session_find(&fixture->table, 7)->last_id, 7);
    /* Only the session itself can be opened like that. */
    assert_int_equal(open_with_id(fixture, 8, 9, 1), GAVEL_ERR_SESSION_GONE);
    assert_null(table_session_find(&fixture->table, 9));
}

static void test_unknown_session_changes_nothing_but_the_index(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t digest = table_digest(&fixture->table);

    assert_int_equal(campaign_with_id(fixture, 7, 1, "g"), GAVEL_ERR_SESSION_GONE);
    assert_int_equal(withdraw(fixture, 7, "g", 0, false), GAVEL_ERR_SESSION_GONE);
    assert_int_equal(table_digest(&fixture->table), digest);
    assert_int_equal(fixture->table.index, 2);
    assert_int_equal(campaign(fixture, 0, "g", "c"), GAVEL_ERR_SESSION_GONE); /* a command of nobody */
}

static void test_session_that_ends_leaves_all_its_groups_in_one_revision(void **state)
{
    struct table_fixture *fixture = *state;
    const char *const groups[] = {"z", "a", "m"};
    uint64_t revision;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(open_session(fixture, 2), GAVEL_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(campaign(fixture, 1, groups[i], "one"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "a", "two"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "z", "two"), GAVEL_OK);
    revision = fixture->table.revision;
    fixture->cursor = (struct table_cursor){revision, UINT32_MAX};
    assert_int_equal(close_session(fixture, 1, GAVEL__ENDING__ENDING_DEAD), GAVEL_OK);
    assert_int_equal(fixture->table.revision, revision + 1);
    assert_int_equal(assert_leader(fixture, "a", "two"), revision + 1);
    assert_int_equal(assert_leader(fixture, "z", "two"), revision + 1);
    assert_leader(fixture, "m", NULL);
    /* In the order in which it had joined them. */
    assert_int_equal(next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "z", "one")->why,
                     GAVEL__ENDING__ENDING_DEAD);
    next_change(fixture, GAVEL__CHANGE__KIND__LEFT, "z", "one");
    assert_string_equal(next_change(fixture, GAVEL__CHANGE__KIND__ELECTED, "z", "two")->previous_holder,
                        "one");
    next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "a", "one");
    next_change(fixture, GAVEL__CHANGE__KIND__LEFT, "a", "one");
    next_change(fixture, GAVEL__CHANGE__KIND__ELECTED, "a", "two");
    next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "m", "one");
    next_change(fixture, GAVEL__CHANGE__KIND__LEFT, "m", "one");
    assert_int_equal(next_change(fixture, GAVEL__CHANGE__KIND__SESSION_ENDED, "", "")->part, 8);
    assert_int_equal(fixture->change->revision, revision + 1);
    assert_no_change(fixture);
}

static void test_refused_operation_keeps_its_place_and_changes_nothing(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Refused message;
    Gavel__Op op;
    uint64_t revision;

    assert_int_equal(open_session(fixture, 7), GAVEL_OK);
    revision = fixture->table.revision;
    gavel__refused__init(&message);
    message.status = GAVEL_ERR_CONFLICT;
    gavel__op__init(&op);
    op.what_case = GAVEL__OP__WHAT_REFUSED;
    op.refused = &message;
    assert_int_equal(apply_op(fixture, 7, 2, &op), GAVEL_ERR_CONFLICT);
    assert_int_equal(apply_op(fixture, 7, 2, &op), GAVEL_ERR_CONFLICT);
    assert_int_equal(fixture->table.revision, revision);
    assert_int_equal(table_op_check(&op, true, NULL), GAVEL_ERR_INVALID); /* only a node says so */
    /* Want of memory is never an outcome that replicas share. */
    message.status = GAVEL_ERR_NO_MEMORY;
    assert_int_equal(apply_op(fixture, 7, 3, &op), GAVEL_ERR_INVALID);
}

static void test_generation_begins_above_all_revisions_of_the_one_before(void **state)
{
    struct table_fixture *fixture = *state;
    const uint64_t above = UINT64_C(2) << TABLE_GENERATION_BITS;

    assert_int_equal(open_session(fixture, 7), GAVEL_OK);
    fixture->generation = 3;
    assert_int_equal(campaign(fixture, 7, "g", "c"), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, above + 1);
    assert_int_equal(campaign(fixture, 7, "h", "c"), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, above + 2);
}

static void test_operations_of_one_command_stand_each_for_itself(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Campaign campaigns[3];
    Gavel__CloseSession close;
    Gavel__Op ops[4];
    Gavel__Op *pointers[4];
    const char *const groups[] = {"g", "bad\n", "h"};
    struct table_result *results;
    size_t count;

    for (size_t i = 0; i < 4; i++) {
        gavel__op__init(&ops[i]);
        pointers[i] = &ops[i];
    }
    for (size_t i = 0; i < 3; i++) {
        gavel__campaign__init(&campaigns[i]);
        campaigns[i].group = mutable(groups[i]);
        campaigns[i].id = mutable("c");
        ops[i].what_case = GAVEL__OP__WHAT_CAMPAIGN;
        ops[i].campaign = &campaigns[i];
    }
    assert_int_equal(open_session(fixture, 7), GAVEL_OK);
    assert_int_equal(apply_ops(fixture, 7, 2, pointers, 3, &results, &count), GAVEL_OK);
    assert_int_equal(count, 3);
    assert_int_equal(results[0].status, GAVEL_OK);
    assert_int_equal(results[0].epoch, 2);
    assert_int_equal(results[1].status, GAVEL_ERR_INVALID);
    assert_int_equal(results[1].revision, 2);
    assert_int_equal(results[2].status, GAVEL_OK);
    assert_int_equal(results[2].epoch, 3);
    free(results);
    /* All of them are remembered. */
    assert_int_equal(apply_ops(fixture, 7, 2, pointers, 1, &results, &count), GAVEL_OK);
    assert_int_equal(count, 3);
    assert_int_equal(results[2].epoch, 3);
    free(results);
    /* What comes after the end of the session comes too late. */
    gavel__close_session__init(&close);
    close.session = 7;
    ops[3].what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    ops[3].close_session = &close;
    pointers[0] = &ops[3];
    pointers[1] = &ops[0];
    assert_int_equal(apply_ops(fixture, 7, 3, pointers, 2, &results, &count), GAVEL_OK);
    assert_int_equal(results[0].status, GAVEL_OK);
    assert_int_equal(results[1].status, GAVEL_ERR_SESSION_GONE);
    free(results);
    assert_int_equal(fixture->table.session_count, 0);
    assert_leader(fixture, "g", NULL);
}

static void test_limits_of_sessions(void **state)
{
    struct table_fixture *fixture = *state;

    fixture->table.session_count = TABLE_SESSIONS_MAX; /* as if */
    assert_int_equal(open_session(fixture, 1), GAVEL_ERR_STORE_FULL);
    fixture->table.session_count = 0;
    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    fixture->table.bytes += TABLE_BYTES_MAX;
    assert_int_equal(open_session(fixture, 2), GAVEL_ERR_STORE_FULL);
    assert_int_equal(campaign(fixture, 1, "g", "c"), GAVEL_ERR_STORE_FULL);
    assert_int_equal(put_note(fixture, "g", "k", "v", 0, UINT64_MAX), GAVEL_ERR_STORE_FULL);
    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_ERR_STORE_FULL);
    assert_int_equal(register_candidate(fixture, "g", "r", 1, 0), GAVEL_ERR_STORE_FULL);
    fixture->table.bytes -= TABLE_BYTES_MAX;
    assert_int_equal(campaign(fixture, 1, "g", "c"), GAVEL_OK);
}

static void test_commands_beyond_the_limits_are_no_commands(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Command command;
    Gavel__Op op;
    Gavel__Op *ops[TABLE_OPS_MAX + 1];
    uint8_t *bytes;
    size_t size;
    struct table_outcome outcome = {0};

    gavel__command__init(&command);
    gavel__op__init(&op);
    for (size_t i = 0; i <= TABLE_OPS_MAX; i++)
        ops[i] = &op;
    command.ops = ops;
    assert_int_equal(table_ops_encode(&command, &bytes, &size), GAVEL_ERR_INVALID);
    command.n_ops = TABLE_OPS_MAX + 1;
    assert_int_equal(table_ops_encode(&command, &bytes, &size), GAVEL_ERR_INVALID);
    command.n_ops = TABLE_OPS_MAX;
    assert_int_equal(table_ops_encode(&command, &bytes, &size), GAVEL_OK);
    /* Operations that nobody knows are refused one by one. */
    assert_int_equal(table_apply_ops(&fixture->table, 1, bytes, size, &outcome), GAVEL_OK);
    assert_int_equal(outcome.count, TABLE_OPS_MAX);
    for (size_t i = 0; i < outcome.count; i++)
        assert_int_equal(outcome.results[i].status, GAVEL_ERR_INVALID);
    table_outcome_done(&outcome);
    free(bytes);
    assert_int_equal(fixture->table.revision, 0);
    /* A number without a session, or a session without. */
    command.n_ops = 1;
    command.id = 1;
    assert_int_equal(table_ops_encode(&command, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_apply(&fixture->table, 2, bytes, size), GAVEL_ERR_INVALID);
    free(bytes);
    command.id = 0;
    command.session = 4;
    assert_int_equal(table_ops_encode(&command, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_apply(&fixture->table, 3, bytes, size), GAVEL_ERR_INVALID);
    assert_int_equal(fixture->table.index, 3);
    free(bytes);
}

/* A node of any version reads what was put together from packed operations: the bytes are the same. */
static void test_packed_operations_make_the_same_bytes(void **state)
{
    uint8_t value[300] = {1};
    uint8_t packed_op[512], whole[1024];
    Gavel__Command command;
    Gavel__Op op;
    Gavel__PutNote put;
    Gavel__Op *ops[] = {&op, &op};

    (void)state;
    gavel__command__init(&command);
    gavel__op__init(&op);
    gavel__put_note__init(&put);
    put.group = (char[]){"g"};
    put.key = (char[]){"k"};
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    command.ops = ops;
    command.n_ops = 2;
    for (unsigned i = 0; i < 16; i++) {
        struct table_packed packed[2] = {{0}, {0}};
        uint8_t *bytes;
        size_t size, whole_size;

        command.session = i & 1 ? 7 : 0;
        command.id = i & 1 ? 300 : 0;
        command.wall_ms = i & 1 ? 1000000 : 0;
        command.generation = i & 2 ? 3 : 0;
        command.table_version = i & 1 ? TABLE_VERSION : 0;
        command.session_revision = i & 2 ? 299 : 0;
        put.value.data = value;
        put.value.len = i & 4 ? sizeof value : 0;
        if (i & 8)
            packed[1] = (struct table_packed){.bytes = packed_op, .size = gavel__op__pack(&op, packed_op)};
        whole_size = gavel__command__pack(&command, whole);
        assert_int_equal(table_ops_encode_packed(&command, packed, &bytes, &size), GAVEL_OK);
        assert_int_equal(size, TABLE_COMMAND_HEAD_BYTES + whole_size);
        assert_memory_equal(bytes + TABLE_COMMAND_HEAD_BYTES, whole, whole_size);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_session_is_open_until_it_is_closed, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_repeated_request_is_answered_and_not_applied,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_request_of_a_former_session_is_not_carried_out_in_the_next,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refused_request_is_remembered_as_refused, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_opening_that_comes_again_does_not_set_the_session_back,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_unknown_session_changes_nothing_but_the_index,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_session_that_ends_leaves_all_its_groups_in_one_revision,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refused_operation_keeps_its_place_and_changes_nothing,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_generation_begins_above_all_revisions_of_the_one_before,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_operations_of_one_command_stand_each_for_itself,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test(test_packed_operations_make_the_same_bytes),
        cmocka_unit_test_setup_teardown(test_limits_of_sessions, table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_commands_beyond_the_limits_are_no_commands, table_fixture_setup,
                                        table_fixture_teardown),
    };

    return cmocka_run_group_tests_name("table session", tests, NULL, NULL);
}
