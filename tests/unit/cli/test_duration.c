/* SPDX-License-Identifier: Apache-2.0 */

/* Durations: what people write is read exactly or not at all, and comes back as it was. */
#include "base/prng.h"
#include "config/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_units_are_added_up(void **state)
{
    static const struct {
        const char *text;
        gavel_ms ms;
    } cases[] = {
        {"0", 0},        {"1ms", 1},       {"250ms", 250},
        {"2s", 2000},    {"1m", 60000},    {"1min", 60000},
        {"1h", 3600000}, {"1d", 86400000}, {"1m30s", 90000},
        {"1.5s", 1500},  {"0.001s", 1},    {"1h 1min 1s 1ms", 3661001},
        {" 5 s ", 5000}, {"30s1m", 90000}, {"10000d", 864000000000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gavel_ms ms = -1;

        assert_int_equal(duration_parse(cases[i].text, &ms, NULL), GAVEL_OK);
        assert_int_equal(ms, cases[i].ms);
    }
}

static void test_a_number_without_a_unit_is_refused_with_what_was_meant(void **state)
{
    static const struct {
        const char *text, *meant;
    } cases[] = {{"5", "did you mean 5s?"},      {"99", "did you mean 99s?"},
                 {"100", "did you mean 100ms?"}, {"1.5", "did you mean 1.5s?"},
                 {" 30", "did you mean 30s?"},   {"5000", "did you mean 5000ms?"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gavel_error error = {0};
        gavel_ms ms = 77;

        assert_int_equal(duration_parse(cases[i].text, &ms, &error), GAVEL_ERR_INVALID);
        assert_non_null(strstr(error.message, cases[i].meant));
        assert_int_equal(ms, 77);
    }
}

static void test_where_the_name_says_milliseconds_a_plain_number_is_that(void **state)
{
    gavel_ms ms = 77;

    (void)state;
    assert_int_equal(duration_parse_ms("150", &ms, NULL), GAVEL_OK);
    assert_int_equal(ms, 150);
    assert_int_equal(duration_parse_ms("2s", &ms, NULL), GAVEL_OK);
    assert_int_equal(ms, 2000);
    assert_int_equal(duration_parse_ms("1.5", &ms, NULL), GAVEL_ERR_INVALID);
}

static void test_anything_else_is_refused_and_leaves_the_value(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "s",
        "-1",
        "-0",
        "+5s",
        "5 x",
        "5S",
        "5sec",
        "1",
        "1.5",
        "5000",
        "1.",
        ".5s",
        "1..5s",
        "1.2.3s",
        "0.5ms",
        "0.0001s",
        "5s5",
        "5s 5",
        "1e3",
        "0x10",
        "nan",
        "10001d",
        "9999999999999999d",
        "99999999999999999999",
        "9223372036854775807ms",
        "1,5s",
        "10000d1ms",
        "5s\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct gavel_error error = {0};
        gavel_ms ms = 77;

        if (duration_parse(texts[i], &ms, &error) != GAVEL_ERR_INVALID)
            fail_msg("\"%s\" was read as %lld ms", texts[i], (long long)ms);
        assert_int_equal(ms, 77);
        assert_non_null(strstr(error.message, "500ms"));
    }
}

static void test_exact_text_can_be_read_back(void **state)
{
    struct prng prng;

    (void)state;
    prng_seed(&prng, 7);
    for (int i = 0; i < 10000; i++) {
        gavel_ms ms = (gavel_ms)prng_below(&prng, UINT64_C(1) << prng_below(&prng, 39)), back = -1;
        char text[DURATION_TEXT_MAX];

        assert_int_equal(duration_parse(duration_exact(ms, text), &back, NULL), GAVEL_OK);
        assert_int_equal(back, ms);
    }
}

static void test_rough_text_has_one_unit(void **state)
{
    char text[DURATION_TEXT_MAX];

    (void)state;
    assert_string_equal(duration_rough(0, text), "0 ms");
    assert_string_equal(duration_rough(999, text), "999 ms");
    assert_string_equal(duration_rough(1000, text), "1 s");
    assert_string_equal(duration_rough(3250, text), "3.2 s");
    assert_string_equal(duration_rough(59999, text), "59 s");
    assert_string_equal(duration_rough(90000, text), "1.5 min");
    assert_string_equal(duration_rough(12 * 60000, text), "12 min");
    assert_string_equal(duration_rough(49 * 3600000, text), "2 d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_are_added_up),
        cmocka_unit_test(test_a_number_without_a_unit_is_refused_with_what_was_meant),
        cmocka_unit_test(test_where_the_name_says_milliseconds_a_plain_number_is_that),
        cmocka_unit_test(test_anything_else_is_refused_and_leaves_the_value),
        cmocka_unit_test(test_exact_text_can_be_read_back),
        cmocka_unit_test(test_rough_text_has_one_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
