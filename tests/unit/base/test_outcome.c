/* SPDX-License-Identifier: Apache-2.0 */

/* What came of an attempt, as a text in the record. */
#include "base/outcome.h"
#include "base/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_an_outcome_comes_back_as_it_was_written(void **state)
{
    const struct outcome largest = {.exit_code = 255,
                                    .ended_wall_ms = INT64_C(1) << 53,
                                    .took_ms = INT64_C(1) << 53,
                                    .attempts = UINT32_MAX,
                                    .keep_s = OUTCOME_KEEP_MAX_S};
    struct outcome outcome;
    char text[OUTCOME_BYTES];

    (void)state;
    outcome_write(&largest, text);
    assert_true(strlen(text) + 1 < sizeof text);
    assert_int_equal(name_check("successor", text, NULL), GAVEL_OK); /* every store takes it */
    assert_true(outcome_is(text));
    assert_true(outcome_read(text, &outcome));
    assert_int_equal(outcome.exit_code, 255);
    assert_true(outcome.ended_wall_ms == largest.ended_wall_ms);
    assert_true(outcome.took_ms == largest.took_ms);
    assert_true(outcome.attempts == UINT32_MAX);
    assert_true(outcome.keep_s == OUTCOME_KEEP_MAX_S);
}

static void test_what_a_later_version_adds_is_skipped(void **state)
{
    struct outcome outcome;

    (void)state;
    assert_true(outcome_read("outcome exit=3 ended=5 host=web took=7 attempts=2 keep=60", &outcome));
    assert_int_equal(outcome.exit_code, 3);
    assert_int_equal(outcome.attempts, 2);
}

static void test_other_texts_are_no_outcomes(void **state)
{
    static const char *const bad[] = {
        "",
        "web-2",
        "outcome",
        "outcome ",
        "outcome exit=0 ended=1 took=1 attempts=1",
        "outcome exit= ended=1 took=1 attempts=1 keep=1",
        "outcome exit=256 ended=1 took=1 attempts=1 keep=1",
        "outcome exit=-1 ended=1 took=1 attempts=1 keep=1",
        "outcome exit=0 ended=99999999999999999999 took=1 attempts=1 keep=1",
        "outcome exit=0x ended=1 took=1 attempts=1 keep=1",
    };
    struct outcome outcome = {.exit_code = 77};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(outcome_read(bad[i], &outcome));
    assert_int_equal(outcome.exit_code, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_outcome_comes_back_as_it_was_written),
        cmocka_unit_test(test_what_a_later_version_adds_is_skipped),
        cmocka_unit_test(test_other_texts_are_no_outcomes),
    };

    return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
