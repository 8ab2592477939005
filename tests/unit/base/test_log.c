/* SPDX-License-Identifier: Apache-2.0 */

/* Log lines: what they look like, and that no text of others can break or forge one. */
#include "base/log.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NOON INT64_C(1794744000123) /* 2026-11-15T12:00:00.123Z */

static void expect(enum log_format format, const char *message, const struct log_field *fields,
                   const char *line)
{
    char buffer[1024];
    size_t length = log_format_line(buffer, sizeof buffer, &(struct log){.format = format}, NOON, LOG_INFO,
                                    message, fields);

    assert_string_equal(buffer, line);
    assert_int_equal(length, strlen(line));
}

static void test_logfmt_line_is_as_documented(void **state)
{
    (void)state;
    expect(LOG_LOGFMT, "became leader",
           (struct log_field[]){LOG_STR("group", "jobs"), LOG_U64("epoch", 7), LOG_END},
           "ts=2026-11-15T12:00:00.123Z level=info msg=\"became leader\" group=jobs epoch=7\n");
    expect(LOG_LOGFMT, "plain", NULL, "ts=2026-11-15T12:00:00.123Z level=info msg=plain\n");
}

static void test_json_line_is_as_documented(void **state)
{
    (void)state;
    expect(LOG_JSON, "became leader",
           (struct log_field[]){LOG_STR("group", "jobs"), LOG_U64("epoch", UINT64_MAX),
                                LOG_I64("off", INT64_MIN), LOG_BOOL("eligible", true), LOG_END},
           "{\"ts\":\"2026-11-15T12:00:00.123Z\",\"level\":\"info\",\"msg\":\"became "
           "leader\",\"group\":\"jobs\","
           "\"epoch\":18446744073709551615,\"off\":-9223372036854775808,\"eligible\":true}\n");
}

static void expect_human(const struct log *log, enum log_level level, const char *message,
                         const struct log_field *fields, const char *line)
{
    char buffer[1024];
    size_t length = log_format_line(buffer, sizeof buffer, log, NOON, level, message, fields);

    assert_string_equal(buffer, line);
    assert_int_equal(length, strlen(line));
}

static void test_human_line_is_time_what_and_who(void **state)
{
    const struct log_field fields[] = {LOG_STR("group", "jobs"), LOG_U64("epoch", 7), LOG_END};
    const struct log log = {.format = LOG_HUMAN};

    (void)state;
    expect_human(&log, LOG_INFO, "became leader", fields, "12:00:00.123 became leader  group=jobs epoch=7\n");
    expect_human(&log, LOG_DEBUG, "plain", NULL, "12:00:00.123 plain\n");
    expect_human(&log, LOG_WARNING, "the store fails", NULL, "12:00:00.123 warning: the store fails\n");
    expect_human(&log, LOG_ERROR, NULL, fields, "12:00:00.123 error:   group=jobs epoch=7\n");
}

static void test_human_line_has_a_colour_per_level(void **state)
{
    const struct log_field fields[] = {LOG_STR("group", "jobs"), LOG_END};
    const struct log log = {.format = LOG_HUMAN, .has_color = true};

    (void)state;
    expect_human(&log, LOG_INFO, "leads", fields,
                 "\033[2m12:00:00.123\033[0m \033[1mleads\033[0m\033[2m  group=jobs\033[0m\n");
    expect_human(&log, LOG_DEBUG, "m", NULL, "\033[2m12:00:00.123\033[0m \033[2mm\033[0m\n");
    expect_human(&log, LOG_WARNING, "m", NULL, "\033[2m12:00:00.123\033[0m \033[33mwarning: m\033[0m\n");
    expect_human(&log, LOG_ERROR, "m", NULL, "\033[2m12:00:00.123\033[0m \033[1;31merror: m\033[0m\n");
}

static void test_human_line_has_local_time(void **state)
{
    (void)state;
    expect_human(&(struct log){.format = LOG_HUMAN, .utc_offset_s = 5 * 3600 + 1800}, LOG_INFO, "m", NULL,
                 "17:30:00.123 m\n");
    expect_human(&(struct log){.format = LOG_HUMAN, .utc_offset_s = -13 * 3600}, LOG_INFO, "m", NULL,
                 "23:00:00.123 m\n");
}

static void test_human_line_reads_as_a_sentence(void **state)
{
    (void)state;
    expect_human(&(struct log){.format = LOG_HUMAN}, LOG_INFO, "election_ended",
                 (struct log_field[]){LOG_STR("node", "n1"), LOG_STR("text", "n1 won, \"at last\""),
                                      LOG_U64("term", 2), LOG_END},
                 "12:00:00.123 election ended: n1 won, \"at last\"  node=n1 term=2\n");
    expect_human(&(struct log){.format = LOG_HUMAN}, LOG_INFO, "the key lease_ms",
                 (struct log_field[]){LOG_STR("text", ""), LOG_END}, "12:00:00.123 the key lease_ms\n");
}

static void test_human_line_leaves_out_instants_and_what_is_empty(void **state)
{
    (void)state;
    expect_human(&(struct log){.format = LOG_HUMAN}, LOG_INFO, "m",
                 (struct log_field[]){LOG_I64("at_ns", 1), LOG_I64("after_ms", 2), LOG_I64("until_ns", 3),
                                      LOG_STR("ns", "4"), LOG_STR("leader", ""), LOG_STR("node", NULL),
                                      LOG_END},
                 "12:00:00.123 m  after_ms=2 ns=4\n");
}

static void test_human_line_cannot_be_forged(void **state)
{
    (void)state;
    expect_human(&(struct log){.format = LOG_HUMAN}, LOG_INFO, "the group \"a\\b\"\n\x1b[31m\xff",
                 (struct log_field[]){LOG_STR("text", "\b"), LOG_STR("reason", "no \"way\"\r\x1b"), LOG_END},
                 "12:00:00.123 the group \"a\\b\"\\n\\u001b[31m\xef\xbf\xbd: \\u0008"
                 "  reason=\"no \\\"way\\\"\\r\\u001b\"\n");
}

static void test_logfmt_quotes_what_would_be_misread(void **state)
{
    const char *head = "ts=2026-11-15T12:00:00.123Z level=info msg=m ";
    static const char *const pairs[][2] = {
        {"a b", "v=\"a b\"\n"},
        {"a=b", "v=\"a=b\"\n"},
        {"say \"hi\"", "v=\"say \\\"hi\\\"\"\n"},
        {"back\\slash", "v=\"back\\\\slash\"\n"},
        {"two\nlines\r\t", "v=\"two\\nlines\\r\\t\"\n"},
        {"\x01\x1b[31m\x7f", "v=\"\\u0001\\u001b[31m\\u007f\"\n"},
        {"\xc2\x9b", "v=\"\\u009b\"\n"},
        {"Zürich", "v=Zürich\n"},
        {"bad\xff\xfe!", "v=\"bad\xef\xbf\xbd\xef\xbf\xbd!\"\n"},
        {"cut\xe2\x82", "v=\"cut\xef\xbf\xbd\xef\xbf\xbd\"\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char line[256];

        (void)strcat(strcpy(line, head), pairs[i][1]);
        expect(LOG_LOGFMT, "m", (struct log_field[]){LOG_STR("v", pairs[i][0]), LOG_END}, line);
    }
}

static void test_no_message_and_odd_keys_do_no_harm(void **state)
{
    (void)state;
    expect(LOG_LOGFMT, NULL, (struct log_field[]){LOG_STR("a b=\"c", "d"), LOG_END},
           "ts=2026-11-15T12:00:00.123Z level=info msg=\"\" a_b__c=d\n");
    expect(LOG_JSON, "m", (struct log_field[]){LOG_STR("a\"b", "c"), LOG_END},
           "{\"ts\":\"2026-11-15T12:00:00.123Z\",\"level\":\"info\",\"msg\":\"m\",\"a\\\"b\":\"c\"}\n");
}

/* An event says the same of every kind, and most kinds have no use for some of it. */
static void test_line_for_programs_has_no_empty_fields(void **state)
{
    const struct log_field fields[] = {LOG_STR("node", ""), LOG_U64("term", 0), LOG_STR("previous", NULL),
                                       LOG_STR("text", ""), LOG_END};

    (void)state;
    expect(LOG_LOGFMT, "leader_changed", fields,
           "ts=2026-11-15T12:00:00.123Z level=info msg=leader_changed term=0\n");
    expect(
        LOG_JSON, "leader_changed", fields,
        "{\"ts\":\"2026-11-15T12:00:00.123Z\",\"level\":\"info\",\"msg\":\"leader_changed\",\"term\":0}\n");
}

static void test_json_gives_back_what_went_in(void **state)
{
    static const char *const texts[] = {
        "", "a\"b", "\\", "\n\r\t\b\f\x01\x1f\x7f", "Zürich 東京 \xf0\x9f\x94\xa8", "\xc2\x85"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char buffer[512];
        json_t *line;

        (void)log_format_line(buffer, sizeof buffer, &(struct log){.format = LOG_JSON}, NOON, LOG_ERROR,
                              texts[i], (struct log_field[]){LOG_STR("v", texts[i]), LOG_END});
        line = json_loads(buffer, 0, NULL);
        assert_non_null(line);
        assert_string_equal(json_string_value(json_object_get(line, "msg")), texts[i]);
        if (*texts[i])
            assert_string_equal(json_string_value(json_object_get(line, "v")), texts[i]);
        else
            assert_null(json_object_get(line, "v"));
        json_decref(line);
    }
}

/* Every size of buffer, so that the cut falls on every byte: keys, escapes, characters, numbers. */
static void cut_everywhere(enum log_format format, bool has_color)
{
    const struct log_field fields[] = {LOG_STR("quoted", "a \"\n\x01 ü\xff東"),
                                       LOG_I64("number", -1234567),
                                       LOG_STR("plain", "Zürich"),
                                       LOG_BOOL("flag", false),
                                       LOG_STR("last", "z"),
                                       LOG_END};
    const struct log log = {.format = format, .has_color = has_color};
    size_t longest = 0;

    for (size_t size = 0; size < 300; size++) {
        /* On the heap, so that the address sanitizer sees a single byte too many. */
        char *buffer = malloc(size + 1);
        size_t length;

        assert_non_null(buffer);
        buffer[size] = '?';
        length = log_format_line(buffer, size, &log, NOON, LOG_WARNING, "some message", fields);
        assert_int_equal(buffer[size], '?');
        assert_true(length < size || (size == 0 && length == 0));
        if (size > 0)
            assert_int_equal(strlen(buffer), length);
        assert_true(length >= longest);
        longest = length;
        if (length > 0) {
            assert_ptr_equal(strchr(buffer, '\n'), buffer + length - 1);
            if (format == LOG_JSON) {
                json_t *line = json_loads(buffer, JSON_REJECT_DUPLICATES, NULL);
                const json_t *number = line ? json_object_get(line, "number") : NULL;

                assert_non_null(line);
                assert_true(!number || json_integer_value(number) == -1234567);
                json_decref(line);
            } else {
                const char *color = strrchr(buffer, '\033');
                unsigned quotes = 0;

                assert_true(!color || strcmp(color, "\033[0m\n") == 0);
                for (const char *c = buffer; *c; c++) {
                    if (*c == '\\')
                        c++;
                    else
                        quotes += *c == '"';
                }
                assert_int_equal(quotes % 2, 0);
                assert_true(!strstr(buffer, "number=") || strstr(buffer, "number=-1234567"));
            }
        }
        free(buffer);
    }
    assert_true(longest > 90);
}

static void test_cut_json_line_stays_valid_json(void **state)
{
    (void)state;
    cut_everywhere(LOG_JSON, false);
}

static void test_cut_logfmt_line_stays_one_closed_line(void **state)
{
    (void)state;
    cut_everywhere(LOG_LOGFMT, false);
}

static void test_cut_human_line_ends_its_colour(void **state)
{
    (void)state;
    cut_everywhere(LOG_HUMAN, false);
    cut_everywhere(LOG_HUMAN, true);
}

static void test_lines_below_the_level_are_dropped(void **state)
{
    int ends[2];
    char got[512];
    ssize_t n;
    struct log log = {.level = LOG_WARNING, .format = LOG_LOGFMT};

    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    log.fd = ends[1];
    log_line(&log, NOON, LOG_INFO, "dropped", LOG_END);
    assert_int_equal(read(ends[0], got, sizeof got), -1);
    log_line(&log, NOON, LOG_WARNING, "kept", LOG_U64("n", 1), LOG_END);
    n = read(ends[0], got, sizeof got - 1);
    assert_true(n > 0);
    got[n] = '\0';
    assert_string_equal(got, "ts=2026-11-15T12:00:00.123Z level=warning msg=kept n=1\n");
    (void)close(ends[0]); /* nothing was written that could be lost */
    (void)close(ends[1]);
}

static void test_level_names_go_both_ways(void **state)
{
    enum log_level level = LOG_ERROR;

    (void)state;
    for (int i = LOG_DEBUG; i <= LOG_ERROR; i++) {
        assert_true(log_level_parse(log_level_name((enum log_level)i), &level));
        assert_int_equal(level, i);
    }
    assert_false(log_level_parse("loud", &level));
    assert_int_equal(level, LOG_ERROR);
}

static void test_wall_time_has_four_digits_of_year_always(void **state)
{
    char text[25];

    (void)state;
    wall_time_format(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    wall_time_format(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
    wall_time_format(INT64_C(1709251199999), text);
    assert_string_equal(text, "2024-02-29T23:59:59.999Z");
    wall_time_format(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    wall_time_format(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logfmt_line_is_as_documented),
        cmocka_unit_test(test_json_line_is_as_documented),
        cmocka_unit_test(test_human_line_is_time_what_and_who),
        cmocka_unit_test(test_human_line_has_a_colour_per_level),
        cmocka_unit_test(test_human_line_has_local_time),
        cmocka_unit_test(test_human_line_reads_as_a_sentence),
        cmocka_unit_test(test_human_line_leaves_out_instants_and_what_is_empty),
        cmocka_unit_test(test_human_line_cannot_be_forged),
        cmocka_unit_test(test_logfmt_quotes_what_would_be_misread),
        cmocka_unit_test(test_no_message_and_odd_keys_do_no_harm),
        cmocka_unit_test(test_line_for_programs_has_no_empty_fields),
        cmocka_unit_test(test_json_gives_back_what_went_in),
        cmocka_unit_test(test_cut_json_line_stays_valid_json),
        cmocka_unit_test(test_cut_logfmt_line_stays_one_closed_line),
        cmocka_unit_test(test_cut_human_line_ends_its_colour),
        cmocka_unit_test(test_lines_below_the_level_are_dropped),
        cmocka_unit_test(test_level_names_go_both_ways),
        cmocka_unit_test(test_wall_time_has_four_digits_of_year_always),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
