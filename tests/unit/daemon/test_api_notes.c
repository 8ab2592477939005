/* SPDX-License-Identifier: Apache-2.0 */

/* Notes: what the last leader wrote is what the next one reads, and who no longer leads writes nothing. */
#include "api_listener.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* The revision that it has now. */
static uint64_t put(struct api_frontend *frontend, const char *path, const char *value, const char *header)
{
    struct http_answer *answer = http_ask_method(frontend, "PUT", path, value, header);
    char tag[64];

    if (answer->code != 200)
        fail_msg("%s: %ld %s", path, answer->code, answer->body);
    assert_true(http_header(answer, "ETag", tag, sizeof tag));
    assert_int_equal(tag[0], '"');
    return strtoull(tag + 1, NULL, 10);
}

static void refuse(struct api_frontend *frontend, const char *method, const char *path, const char *header,
                   long code, const char *name)
{
    struct http_answer *answer =
        http_ask_method(frontend, method, path, strcmp(method, "PUT") == 0 ? "new" : NULL, header);

    if (answer->code != code || !strstr(answer->body, name))
        fail_msg("%s %s %s: %ld instead of %ld %s: %s", method, path, header, answer->code, code, name,
                 answer->body);
}

static void test_a_note_comes_back_as_it_was_written(void **state)
{
    uint64_t first = put(*state, "/groups/g/notes/where", "line 17", "");
    uint64_t second = put(*state, "/groups/g/notes/where", "line 18", "");
    struct http_answer *answer = http_ask(*state, "/groups/g/notes/where", NULL, "");
    char text[64];
    char wanted[64];

    assert_int_equal(answer->code, 200);
    assert_string_equal(answer->body, "line 18"); /* no newline of ours */
    assert_true(http_header(answer, "Content-Type", text, sizeof text));
    assert_string_equal(text, "application/octet-stream");
    (void)snprintf(wanted, sizeof wanted, "\"%" PRIu64 "\"", second);
    assert_true(http_header(answer, "ETag", text, sizeof text));
    assert_string_equal(text, wanted);
    (void)snprintf(wanted, sizeof wanted, "%" PRIu64, second);
    assert_true(http_header(answer, "Revision", text, sizeof text));
    assert_string_equal(text, wanted);
    (void)snprintf(wanted, sizeof wanted, "%" PRIu64, first);
    assert_true(http_header(answer, "Created-Revision", text, sizeof text));
    assert_string_equal(text, wanted);
    assert_false(http_header(answer, "Epoch", text, sizeof text)); /* it was written without one */
    assert_string_equal(http_ask(*state, "/groups/g/notes/where?fresh=true", NULL, "")->body, "line 18");
    (void)put(*state, "/groups/g/notes/empty", "", "");
    assert_int_equal(http_ask(*state, "/groups/g/notes/empty", NULL, "")->length, 0);
}

static void test_a_former_leader_writes_nothing(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", "");
    uint64_t old = listener_elected(a);
    struct listener *b = listener_campaign(*state, "g", "b", "");
    char header[64];
    char text[64];
    uint64_t epoch;

    (void)snprintf(header, sizeof header, "Epoch: %" PRIu64, old);
    (void)put(*state, "/groups/g/notes/k", "a was here", header);
    assert_true(http_header(http_ask(*state, "/groups/g/notes/k", NULL, ""), "Epoch", text, sizeof text));
    assert_int_equal(strtoull(text, NULL, 10), old);
    listener_leave(a);
    epoch = listener_elected(b);
    refuse(*state, "PUT", "/groups/g/notes/k", header, 409, "\"code\":4005");
    refuse(*state, "DELETE", "/groups/g/notes/k", header, 409, "\"code\":4005");
    assert_string_equal(http_ask(*state, "/groups/g/notes/k", NULL, "")->body, "a was here");
    (void)snprintf(header, sizeof header, "Epoch: %" PRIu64, epoch);
    (void)put(*state, "/groups/g/notes/k", "b goes on", header);
    listener_leave(b);
}

static void test_a_note_is_compared_and_set(void **state)
{
    uint64_t revision = put(*state, "/groups/g/notes/k", "one", "If-None-Match: *");
    char match[64];

    refuse(*state, "PUT", "/groups/g/notes/k", "If-None-Match: *", 412, "ERR_CONFLICT");
    (void)snprintf(match, sizeof match, "If-Match: \"%" PRIu64 "\"", revision);
    (void)put(*state, "/groups/g/notes/k", "two", match);
    refuse(*state, "PUT", "/groups/g/notes/k", match, 412, "ERR_CONFLICT");
    refuse(*state, "DELETE", "/groups/g/notes/k", match, 412, "ERR_CONFLICT");
    refuse(*state, "PUT", "/groups/g/notes/none", match, 412, "ERR_CONFLICT");
    assert_string_equal(http_ask(*state, "/groups/g/notes/k", NULL, "")->body, "two");
    assert_int_equal(http_ask_method(*state, "DELETE", "/groups/g/notes/k", NULL, "")->code, 200);
    (void)http_expect_error(*state, "/groups/g/notes/k", NULL, 404, GAVEL_ERR_NOT_FOUND);
}

static void test_bad_conditions_are_refused(void **state)
{
    static const char *const bad[] = {"Epoch: x",       "Epoch: -1",
                                      "Epoch: 0",       "Epoch: 99999999999999999999",
                                      "If-Match: *",    "If-Match: \"x\"",
                                      "If-Match: \"1",  "If-Match: W/\"1\"",
                                      "If-Match: \"\"", "If-None-Match: \"1\"",
                                      "If-Match: 0"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refuse(*state, "PUT", "/groups/g/notes/k", bad[i], 400, "ERR_INVALID");
        refuse(*state, "DELETE", "/groups/g/notes/k", bad[i], 400, "ERR_INVALID");
    }
}

static void test_a_value_has_a_limit(void **state)
{
    static char value[TABLE_NOTE_BYTES_MAX + 2];
    struct http_answer *answer;

    memset(value, 'x', TABLE_NOTE_BYTES_MAX);
    (void)put(*state, "/groups/g/notes/k", value, "");
    assert_int_equal(http_ask(*state, "/groups/g/notes/k", NULL, "")->length, TABLE_NOTE_BYTES_MAX);
    value[TABLE_NOTE_BYTES_MAX] = 'x';
    answer = http_ask_method(*state, "PUT", "/groups/g/notes/k", value, "");
    assert_int_equal(answer->code, 413);
    assert_non_null(strstr(answer->body, "ERR_TOO_LARGE"));
    assert_int_equal(http_ask(*state, "/groups/g/notes/k", NULL, "")->length, TABLE_NOTE_BYTES_MAX);
}

static void test_notes_are_listed_in_pages(void **state)
{
    json_t *json;
    json_t *list;

    (void)put(*state, "/groups/g/notes/a%2F1", "one", "");
    (void)put(*state, "/groups/g/notes/a%2F2", "two", "");
    (void)put(*state, "/groups/g/notes/b", "three", "");
    json = http_json(http_ask(*state, "/groups/g/notes?prefix=a/&limit=1", NULL, ""));
    list = json_object_get(json, "notes");
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "key")), "a/1");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "value_base64")), "b25l");
    assert_string_equal(json_string_value(json_object_get(json, "next")), "a/1");
    json_decref(json);
    json = http_json(http_ask(*state, "/groups/g/notes?after=a/1&keys=true&fresh=true", NULL, ""));
    list = json_object_get(json, "notes");
    assert_int_equal(json_array_size(list), 2);
    assert_null(json_object_get(json_array_get(list, 1), "value_base64"));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "size")), 5);
    assert_true(json_is_null(json_object_get(json, "next")));
    json_decref(json);
    json = http_json(http_ask(*state, "/groups/none/notes", NULL, ""));
    assert_int_equal(json_array_size(json_object_get(json, "notes")), 0);
    json_decref(json);
}

static void test_writes_need_the_token_and_reads_too(void **state)
{
    struct api_frontend *frontend = *state;
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/token", frontend->directory);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("0123456789abcdef0123456789abcdef\n", file);
    (void)fchmod(fileno(file), 0600);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(frontend->config->token, sizeof frontend->config->token, "%s", path);
    api_frontend_start(frontend);
    refuse(frontend, "PUT", "/groups/g/notes/k", "", 401, "ERR_DENIED");
    refuse(frontend, "DELETE", "/groups/g/notes/k", "", 401, "ERR_DENIED");
    (void)http_expect_error(frontend, "/groups/g/campaign", "{\"candidate\":\"a\"}", 401, GAVEL_ERR_DENIED);
    (void)http_expect_error(frontend, "/groups/g/notes", NULL, 401, GAVEL_ERR_DENIED);
    (void)put(frontend, "/groups/g/notes/k", "v", "Authorization: Bearer 0123456789abcdef0123456789abcdef");
    refuse(frontend, "PUT", "/groups/g/notes/k",
           "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\nOrigin: http://elsewhere", 403,
           "ERR_DENIED");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_frontend_setup, api_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_note_comes_back_as_it_was_written),
        TEST(test_a_former_leader_writes_nothing),
        TEST(test_a_note_is_compared_and_set),
        TEST(test_bad_conditions_are_refused),
        TEST(test_a_value_has_a_limit),
        TEST(test_notes_are_listed_in_pages),
        cmocka_unit_test_setup_teardown(test_writes_need_the_token_and_reads_too, api_frontend_setup_stopped,
                                        api_frontend_teardown),
    };

    return cmocka_run_group_tests_name("api notes", tests, NULL, NULL);
}
