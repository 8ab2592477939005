/* SPDX-License-Identifier: Apache-2.0 */

/* Records of members as bytes and as text, and the addresses of nodes. */
#include "core/node/addresses.h"
#include "core/node/record_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void apply(struct table *table, uint64_t index, uint8_t *bytes, size_t size)
{
    assert_int_equal(table_apply(table, index, bytes, size), GAVEL_OK);
    free(bytes);
}

static void test_records_of_members_survive_the_table(void **state)
{
    struct table table = {0};
    struct member_record record = {.priority = 7, .is_voter = true}, read;
    struct member_record list[RAFT_MEMBERS_MAX];
    uint8_t *bytes;
    size_t size;

    (void)state;
    (void)snprintf(record.name, sizeof record.name, "n4");
    (void)snprintf(record.address, sizeof record.address, "[::1]:7400");
    assert_int_equal(member_record_put(&record, &bytes, &size), GAVEL_OK);
    apply(&table, 1, bytes, size);
    assert_true(member_record_find(&table, "n4", &read));
    assert_string_equal(read.address, "[::1]:7400");
    assert_int_equal(read.priority, 7);
    assert_true(read.is_voter);
    assert_false(read.is_witness);
    assert_false(read.is_learned);
    assert_int_equal(member_records(&table, list), 1);
    assert_false(member_record_find(&table, "n", &read));
    assert_int_equal(member_record_delete("n4", &bytes, &size), GAVEL_OK);
    apply(&table, 2, bytes, size);
    assert_int_equal(member_records(&table, list), 0);
    table_done(&table);
}

static void test_a_record_that_is_none_is_left_out(void **state)
{
    static const char *const values[] = {"",
                                         "{",
                                         "[]",
                                         "{\"name\":\"x\"}",
                                         "{\"name\":\"../x\",\"address\":\"a\",\"api\":\"\",\"priority\":1}",
                                         "{\"name\":\"x\",\"address\":\"a\",\"api\":\"\",\"priority\":999}",
                                         "{\"name\":\"x\",\"address\":\"a\",\"api\":\"\",}",
                                         "{\"name\":\"x\",\"address\":\"\\u0001\",\"api\":\"\"}",
                                         "{\"name\":\"x\",\"address\":\"a\",\"api\":\"\\u00e4\"}",
                                         "{\"name\":\"x\",\"address\":\"a\",\"api\":\"\"} x",
                                         "{\"name\":\"x\",\"name\":\"x\",\"address\":\"a\",\"api\":\"\"}",
                                         "{\"name\":\"x\",\"address\":\"a\",\"api\":\"\",\"more\":[}"};
    struct table table = {0};
    struct member_record list[RAFT_MEMBERS_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct table_command command = {.kind = TABLE_PUT,
                                        .key = (const uint8_t *)"gavel/member/x",
                                        .key_size = strlen("gavel/member/x"),
                                        .value = (const uint8_t *)values[i],
                                        .value_size = strlen(values[i])};
        uint8_t *bytes = malloc(table_command_size(&command));

        assert_non_null(bytes);
        table_command_encode(&command, bytes);
        apply(&table, i + 1, bytes, table_command_size(&command));
        assert_int_equal(member_records(&table, list), 0);
    }
    table_done(&table);
}

/* What its program knows is added when it was heard, and old programs skip it. */
static void test_a_record_has_what_was_heard_of_the_program(void **state)
{
    struct table table = {0};
    struct member_record record = {.is_voter = true, .table_version = 2, .incarnation = 7}, read;
    struct table_command command;
    uint8_t *bytes;
    size_t size;
    static const char text[] =
        "{\"address\":\"a:1\",\"api\":\"\",\"generation\":0,\"incarnation\":7,\"learned\":false,"
        "\"name\":\"n4\",\"priority\":0,\"table_version\":2,\"voter\":true,\"witness\":false}";

    (void)state;
    (void)snprintf(record.name, sizeof record.name, "n4");
    (void)snprintf(record.address, sizeof record.address, "a:1");
    assert_int_equal(member_record_put(&record, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_command_decode(bytes, size, &command), GAVEL_OK);
    assert_int_equal(command.value_size, strlen(text));
    assert_memory_equal(command.value, text, command.value_size);
    apply(&table, 1, bytes, size);
    assert_true(member_record_find(&table, "n4", &read));
    assert_int_equal(read.table_version, 2);
    assert_int_equal(read.incarnation, 7);
    table_done(&table);
}

/* Nodes of other versions read it, and two nodes that write the same record write the same bytes. */
static void test_a_record_is_the_text_that_it_always_was(void **state)
{
    struct member_record record = {.priority = 7, .is_voter = true, .is_learned = true, .generation = 3};
    struct table_command command;
    uint8_t *bytes;
    size_t size;
    static const char text[] =
        "{\"address\":\"h\\\\\\\"1:7400\",\"api\":\"\",\"generation\":3,\"learned\":true,"
        "\"name\":\"n4\",\"priority\":7,\"voter\":true,\"witness\":false}";

    (void)state;
    (void)snprintf(record.name, sizeof record.name, "n4");
    (void)snprintf(record.address, sizeof record.address, "h\\\"1:7400");
    assert_int_equal(member_record_put(&record, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_command_decode(bytes, size, &command), GAVEL_OK);
    assert_int_equal(command.value_size, strlen(text));
    assert_memory_equal(command.value, text, command.value_size);
    free(bytes);
}

static void test_what_a_newer_program_has_added_is_skipped(void **state)
{
    static const char text[] =
        " { \"zone\" : { \"a\" : [ 1, \"]}\", {} ] } , \"name\":\"n4\", \"weight\":-1.5e3,\n"
        "\"address\":\"\\u0061:1\",\"api\":\"b:\\/\",\"none\":null,\"voter\":true,\"witness\":false }";
    struct record_reader reader;
    struct record_field field;
    unsigned count = 0;

    (void)state;
    record_read(&reader, (const uint8_t *)text, strlen(text));
    while (record_next(&reader, &field)) {
        count++;
        if (strcmp(field.name, "address") == 0)
            assert_string_equal(field.text, "a:1");
        if (strcmp(field.name, "api") == 0)
            assert_string_equal(field.text, "b:/");
        if (strcmp(field.name, "zone") == 0 || strcmp(field.name, "weight") == 0)
            assert_int_equal(field.kind, RECORD_OTHER);
        if (strcmp(field.name, "voter") == 0)
            assert_int_equal(field.kind, RECORD_TRUE);
    }
    assert_false(reader.is_bad);
    assert_false(record_next(&reader, &field));
    assert_int_equal(count, 8);
}

/* However little of a text is there, reading it ends, and within it. */
static void test_a_text_that_is_cut_off_is_bad(void **state)
{
    static const char text[] = "{\"name\":\"n\\u0034\",\"x\":[{\"y\":\"z\"}],\"priority\":12,\"voter\":true}";

    (void)state;
    for (size_t length = 0; length < strlen(text); length++) {
        uint8_t *copy = malloc(length > 0 ? length : 1); /* so that a sanitizer sees a read beyond it */
        struct record_reader reader;
        struct record_field field;

        assert_non_null(copy);
        memcpy(copy, text, length);
        record_read(&reader, copy, length);
        while (record_next(&reader, &field))
            ;
        assert_true(reader.is_bad);
        free(copy);
    }
}

static void test_an_operators_word_counts_more_than_a_greeting(void **state)
{
    static struct node_addresses addresses;
    struct member_record record = {.id = 4};
    struct node_described said = {.id = 4, .name = "n4", .address = "b:1", .api = "b:2"};

    (void)state;
    node_addresses_take_file(&addresses,
                             &(struct node_described){.id = 4, .name = "n4", .address = "a:1", .api = ""});
    assert_true(node_addresses_take_greeting(&addresses, &said));
    assert_false(node_addresses_take_greeting(&addresses, &said));
    assert_string_equal(node_addresses_find(&addresses, 4)->address, "b:1");
    (void)snprintf(record.name, sizeof record.name, "n4");
    (void)snprintf(record.address, sizeof record.address, "c:1");
    assert_true(node_addresses_take_records(&addresses, &record, 1));
    assert_false(node_addresses_take_greeting(&addresses, &said));
    assert_string_equal(node_addresses_find(&addresses, 4)->address, "c:1");
    assert_string_equal(node_addresses_find(&addresses, 4)->api, "b:2");
}

static void test_strangers_are_forgotten_and_others_kept(void **state)
{
    static struct node_addresses addresses;
    const struct raft_config members = {.count = 1, .members = {{.id = 2}}};
    const struct member_record record = {.id = 3};
    char name[NODE_ADDRESSES_NAME_BYTES];

    (void)state;
    node_addresses_take_file(&addresses,
                             &(struct node_described){.id = 1, .name = "n1", .address = "", .api = ""});
    for (raft_id id = 2; id <= NODE_ADDRESSES_MAX + 1; id++) {
        struct node_described said = {.id = id, .name = "n", .address = "a:1", .api = ""};

        assert_int_equal(node_addresses_take_greeting(&addresses, &said), id <= NODE_ADDRESSES_MAX);
    }
    node_addresses_keep(&addresses, &members, 4, &record, 1);
    assert_int_equal(addresses.count, 4);
    for (raft_id id = 1; id <= 4; id++)
        assert_non_null(node_addresses_find(&addresses, id));
    assert_string_equal(node_addresses_name(&addresses, 1, name), "n1");
    assert_string_equal(node_addresses_name(&addresses, 5, name), "0000000000000005");
    assert_string_equal(node_addresses_name(&addresses, 0, name), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_of_members_survive_the_table),
        cmocka_unit_test(test_a_record_that_is_none_is_left_out),
        cmocka_unit_test(test_a_record_is_the_text_that_it_always_was),
        cmocka_unit_test(test_a_record_has_what_was_heard_of_the_program),
        cmocka_unit_test(test_what_a_newer_program_has_added_is_skipped),
        cmocka_unit_test(test_a_text_that_is_cut_off_is_bad),
        cmocka_unit_test(test_an_operators_word_counts_more_than_a_greeting),
        cmocka_unit_test(test_strangers_are_forgotten_and_others_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
