/* SPDX-License-Identifier: Apache-2.0 */

/* Notes and their fence, the history of changes, and what no operation may say. */
#include "table_fixture.h"

static const uint64_t any = UINT64_MAX;

static void assert_note(struct table_fixture *fixture, const char *group, const char *key, const char *value)
{
    const struct table_note *note = table_note_find(&fixture->table, group, key);

    assert_non_null(note);
    assert_int_equal(note->value_size, strlen(value));
    assert_memory_equal(note->value, value, strlen(value));
}

static void test_note_is_put_changed_and_deleted(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(put_note(fixture, "g", "k", "one", 0, any), GAVEL_OK);
    assert_note(fixture, "g", "k", "one");
    assert_int_equal(put_note(fixture, "g", "k", "", 0, any), GAVEL_OK);
    assert_note(fixture, "g", "k", "");
    assert_int_equal(table_note_find(&fixture->table, "g", "k")->create_revision, 1);
    assert_int_equal(table_note_find(&fixture->table, "g", "k")->mod_revision, 2);
    next_change(fixture, GAVEL__CHANGE__KIND__NOTE_PUT, "g", "");
    assert_string_equal(fixture->change->key, "k");
    assert_int_equal(fixture->change->value.len, 3);
    next_change(fixture, GAVEL__CHANGE__KIND__NOTE_PUT, "g", "");
    assert_int_equal(delete_note(fixture, "g", "other", 0, any), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(delete_note(fixture, "none", "k", 0, any), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(delete_note(fixture, "g", "k", 0, any), GAVEL_OK);
    next_change(fixture, GAVEL__CHANGE__KIND__NOTE_DELETED, "g", "");
    next_change(fixture, GAVEL__CHANGE__KIND__GROUP_GONE, "g", "");
    assert_null(table_group_find(&fixture->table, "g"));
    assert_int_equal(fixture->table.note_count, 0);
    assert_int_equal(fixture->table.bytes, 0);
}

static void test_expected_revision_must_be_the_one_it_has(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(put_note(fixture, "g", "k", "v", 0, 1), GAVEL_ERR_CONFLICT);
    assert_null(table_group_find(&fixture->table, "g"));
    assert_int_equal(put_note(fixture, "g", "k", "v", 0, 0), GAVEL_OK);
    assert_int_equal(put_note(fixture, "g", "k", "w", 0, 0), GAVEL_ERR_CONFLICT);
    assert_int_equal(put_note(fixture, "g", "k", "w", 0, 1), GAVEL_OK);
    assert_int_equal(delete_note(fixture, "g", "k", 0, 1), GAVEL_ERR_CONFLICT);
    assert_note(fixture, "g", "k", "w");
    assert_int_equal(delete_note(fixture, "g", "k", 0, 2), GAVEL_OK);
}

static void test_former_leader_cannot_write_once_there_is_another(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
    assert_int_equal(open_session(fixture, 2), GAVEL_OK);
    assert_int_equal(put_note(fixture, "g", "k", "v", 1, any), GAVEL_ERR_INVALID); /* no such epoch yet */
    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(put_note(fixture, "g", "k", "first", epoch, any), GAVEL_OK);
    assert_int_equal(put_note(fixture, "g", "k", "bold", epoch + 1, any), GAVEL_ERR_INVALID);
    assert_int_equal(withdraw(fixture, 1, "g", 0, false), GAVEL_OK);
    assert_int_equal(put_note(fixture, "g", "k", "last words", epoch, any),
                     GAVEL_OK); /* nobody came after it */
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
    assert_int_equal(put_note(fixture, "g", "k", "late", epoch, any), GAVEL_ERR_TERM_STALE);
    assert_int_equal(delete_note(fixture, "g", "k", epoch, any), GAVEL_ERR_TERM_STALE);
    assert_note(fixture, "g", "k", "last words");
    assert_int_equal(table_note_find(&fixture->table, "g", "k")->epoch, epoch);
}

static void test_notes_are_listed_in_order_within_their_group(void **state)
{
    struct table_fixture *fixture = *state;
    const struct table_group *group;
    struct table_note *note;

    assert_int_equal(put_note(fixture, "b", "z", "", 0, any), GAVEL_OK);
    assert_int_equal(put_note(fixture, "b", "k2", "", 0, any), GAVEL_OK);
    assert_int_equal(put_note(fixture, "b", "k1", "", 0, any), GAVEL_OK);
    assert_int_equal(put_note(fixture, "a", "k3", "", 0, any), GAVEL_OK);
    assert_int_equal(put_note(fixture, "c", "k0", "", 0, any), GAVEL_OK);
    group = group_named(fixture, "b");
    note = table_note_from(&fixture->table, group, "k");
    assert_string_equal(note->key, "k1");
    note = table_note_next(note);
    assert_string_equal(note->key, "k2");
    note = table_note_next(note);
    assert_string_equal(note->key, "z");
    assert_null(table_note_next(note));
    assert_null(table_note_from(&fixture->table, group, "zz"));
    assert_string_equal(table_group_from(&fixture->table, "")->name, "a");
    assert_string_equal(table_group_from(&fixture->table, "aa")->name, "b");
    assert_null(table_group_from(&fixture->table, "d"));
}

static void test_limit_of_notes(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(put_note(fixture, "g", "k", "v", 0, any), GAVEL_OK);
    group_named(fixture, "g")->note_count = TABLE_NOTES_MAX; /* as if */
    assert_int_equal(put_note(fixture, "g", "l", "v", 0, any), GAVEL_ERR_STORE_FULL);
    assert_int_equal(put_note(fixture, "g", "k", "w", 0, any), GAVEL_OK); /* it is there already */
    group_named(fixture, "g")->note_count = 1;
}

static void test_history_forgets_the_oldest_and_says_so(void **state)
{
    struct table_fixture *fixture = *state;
    const struct table_change *change = NULL;
    char value[60001];
    uint64_t floor;

    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    assert_int_equal(table_history_floor(&fixture->table), 0);
    while (table_history_floor(&fixture->table) == 0) {
        assert_int_equal(put_note(fixture, "g", "k", value, 0, any), GAVEL_OK);
        assert_true(fixture->table.revision * 60000 < 2 * (uint64_t)TABLE_HISTORY_BYTES_MAX);
    }
    floor = table_history_floor(&fixture->table);
    assert_int_equal(table_history_after(&fixture->table, (struct table_cursor){0, UINT32_MAX}, &change),
                     GAVEL_ERR_FORGOTTEN);
    assert_int_equal(table_history_after(&fixture->table, (struct table_cursor){floor, UINT32_MAX}, &change),
                     GAVEL_OK);
    assert_int_equal(change->at.revision, floor + 1);
    /* From now on, and from a future that this node has not reached. */
    assert_int_equal(table_history_after(&fixture->table,
                                         (struct table_cursor){fixture->table.revision, UINT32_MAX}, &change),
                     GAVEL_OK);
    assert_null(change);
    assert_int_equal(table_history_after(&fixture->table, (struct table_cursor){UINT64_MAX, 0}, &change),
                     GAVEL_OK);
    assert_null(change);
}

static void test_history_has_a_limit_on_its_number(void **state)
{
    struct table_fixture *fixture = *state;

    for (unsigned i = 0; i < TABLE_HISTORY_CHANGES_MAX + 10; i++)
        assert_int_equal(put_note(fixture, "g", "k", "v", 0, any), GAVEL_OK);
    assert_int_equal(table_history_floor(&fixture->table), 10);
    fixture->cursor = (struct table_cursor){10, UINT32_MAX};
    next_change(fixture, GAVEL__CHANGE__KIND__NOTE_PUT, "g", "");
    assert_int_equal(fixture->change->revision, 11);
}

static void test_restored_table_remembers_nothing_from_before(void **state)
{
    struct table_fixture *fixture = *state;
    const struct table_change *change = NULL;
    uint8_t *bytes;
    size_t size;

    assert_int_equal(put_note(fixture, "g", "k", "v", 0, any), GAVEL_OK);
    assert_int_equal(table_snapshot_encode(&fixture->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&fixture->table, bytes, size), GAVEL_OK);
    free(bytes);
    assert_int_equal(table_history_floor(&fixture->table), 1);
    assert_int_equal(table_history_after(&fixture->table, (struct table_cursor){0, UINT32_MAX}, &change),
                     GAVEL_ERR_FORGOTTEN);
    fixture->cursor = (struct table_cursor){1, UINT32_MAX};
    assert_int_equal(put_note(fixture, "g", "k", "w", 0, any), GAVEL_OK);
    next_change(fixture, GAVEL__CHANGE__KIND__NOTE_PUT, "g", "");
}

static enum gavel_status check_campaign(const char *group, const char *id, size_t metadata_size,
                                        struct gavel_error *error)
{
    static uint8_t metadata[TABLE_METADATA_BYTES_MAX + 1];
    Gavel__Campaign message;
    Gavel__Op op;

    gavel__campaign__init(&message);
    message.group = mutable(group);
    message.id = mutable(id);
    message.metadata.data = metadata;
    message.metadata.len = metadata_size;
    gavel__op__init(&op);
    op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    op.campaign = &message;
    return table_op_check(&op, true, error);
}

static void test_operations_at_and_beyond_their_limits(void **state)
{
    char name[257];
    struct gavel_error error;

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[256] = '\0';
    assert_int_equal(check_campaign(name + 1, "c", 0, NULL), GAVEL_OK);
    assert_int_equal(check_campaign(name, "c", 0, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "255"));
    assert_int_equal(check_campaign("", "c", 0, &error), GAVEL_ERR_INVALID);
    assert_int_equal(check_campaign("g", "c\n", 0, &error), GAVEL_ERR_INVALID);
    assert_int_equal(check_campaign("g", "\xff", 0, &error), GAVEL_ERR_INVALID);
    assert_int_equal(check_campaign("g", "c", TABLE_METADATA_BYTES_MAX, NULL), GAVEL_OK);
    assert_int_equal(check_campaign("g", "c", TABLE_METADATA_BYTES_MAX + 1, &error), GAVEL_ERR_TOO_LARGE);
}

static void test_what_only_nodes_may_say_is_refused_from_clients(void **state)
{
    Gavel__CloseSession close;
    Gavel__Release release_message;
    Gavel__Lapse lapse_message;
    Gavel__Op op;

    (void)state;
    gavel__op__init(&op);
    gavel__close_session__init(&close);
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    assert_int_equal(table_op_check(&op, true, NULL), GAVEL_OK);
    close.ending = GAVEL__ENDING__ENDING_EXPIRED;
    assert_int_equal(table_op_check(&op, true, NULL), GAVEL_ERR_INVALID);
    assert_int_equal(table_op_check(&op, false, NULL), GAVEL_OK);
    close.ending = GAVEL__ENDING__ENDING_DEAD; /* of a session, whoever may close it knows that */
    assert_int_equal(table_op_check(&op, true, NULL), GAVEL_OK);
    close.ending = GAVEL__ENDING__ENDING_RESIGNED;
    assert_int_equal(table_op_check(&op, false, NULL), GAVEL_ERR_INVALID);
    gavel__release__init(&release_message);
    release_message.group = mutable("g");
    release_message.is_dead = true;
    release_message.epoch = 1;
    op.what_case = GAVEL__OP__WHAT_RELEASE;
    op.release = &release_message;
    assert_int_equal(table_op_check(&op, true, NULL), GAVEL_ERR_INVALID);
    assert_int_equal(table_op_check(&op, false, NULL), GAVEL_OK);
    gavel__lapse__init(&lapse_message);
    lapse_message.group = mutable("g");
    op.what_case = GAVEL__OP__WHAT_LAPSE;
    op.lapse = &lapse_message;
    assert_int_equal(table_op_check(&op, true, NULL), GAVEL_ERR_INVALID);
    assert_int_equal(table_op_check(&op, false, NULL), GAVEL_OK);
    op.what_case = GAVEL__OP__WHAT__NOT_SET;
    assert_int_equal(table_op_check(&op, false, NULL), GAVEL_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_note_is_put_changed_and_deleted, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_expected_revision_must_be_the_one_it_has, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_former_leader_cannot_write_once_there_is_another,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_notes_are_listed_in_order_within_their_group,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_limit_of_notes, table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_history_forgets_the_oldest_and_says_so, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_history_has_a_limit_on_its_number, table_fixture_setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_restored_table_remembers_nothing_from_before,
                                        table_fixture_setup, table_fixture_teardown),
        cmocka_unit_test(test_operations_at_and_beyond_their_limits),
        cmocka_unit_test(test_what_only_nodes_may_say_is_refused_from_clients),
    };

    return cmocka_run_group_tests_name("table note", tests, NULL, NULL);
}
