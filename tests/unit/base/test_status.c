/* SPDX-License-Identifier: Apache-2.0 */

/* The codes are an interface: they stand in the HTTP API, in exit messages and in people's scripts. */
#include <gavel/event.h>
#include <gavel/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct row {
    int code;
    const char *name;
    const char *text;
};

#define ROW(name, code, text) {code, #name, text},
static const struct row rows[] = {GAVEL_STATUS_MAP(ROW)};
#undef ROW

#define ROWS (sizeof rows / sizeof *rows)

static void test_election_codes_are_those_of_the_http_api(void **state)
{
    (void)state;
    assert_int_equal(GAVEL_OK, 0);
    assert_string_equal(gavel_status_name((enum gavel_status)4001), "ERR_ELECTION_FAILED");
    assert_string_equal(gavel_status_name((enum gavel_status)4002), "ERR_NO_LEADER");
    assert_string_equal(gavel_status_name((enum gavel_status)4003), "ERR_LEADER_TRANSFER_FAILED");
    assert_string_equal(gavel_status_name((enum gavel_status)4004), "ERR_SPLIT_BRAIN");
    assert_string_equal(gavel_status_name((enum gavel_status)4005), "ERR_TERM_STALE");
    assert_string_equal(gavel_status_name((enum gavel_status)4006), "ERR_VOTE_DENIED");
}

static void test_codes_names_and_texts_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = i + 1; j < ROWS; j++) {
            assert_int_not_equal(rows[i].code, rows[j].code);
            assert_string_not_equal(rows[i].name, rows[j].name);
            assert_string_not_equal(rows[i].text, rows[j].text);
        }
    }
}

static void test_further_codes_start_at_4100(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].code != 0 && (rows[i].code < 4001 || rows[i].code > 4006))
            assert_in_range(rows[i].code, 4100, 4999);
    }
}

static void test_each_code_has_its_own_name_and_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        assert_string_equal(gavel_status_name((enum gavel_status)rows[i].code), rows[i].name);
        assert_string_equal(gavel_status_text((enum gavel_status)rows[i].code), rows[i].text);
        assert_true(rows[i].text[0] != '\0');
        assert_true(rows[i].text[strlen(rows[i].text) - 1] != '.');
    }
}

static void test_a_foreign_number_has_a_name_too(void **state)
{
    (void)state;
    assert_string_equal(gavel_status_name((enum gavel_status)77), "ERR_UNKNOWN");
    assert_string_equal(gavel_status_text((enum gavel_status)77), "an unknown error");
}

static void test_event_names_are_the_stable_ones(void **state)
{
    static const char *const names[] = {
        "became_leader",
        "lost_leadership",
        "leader_down",
        "leader_changed",
        "election_check",
        "phase_changed",
        "candidates_updated",
        "mandate_renewed",
        "contention_detected",
        "breaker_open",
        "breaker_closed",
        "heartbeat",
        "overrun",
        "stopped",
    };

    (void)state;
    assert_int_equal(GAVEL_EVENT_COUNT, sizeof names / sizeof *names);
    for (size_t i = 0; i < GAVEL_EVENT_COUNT; i++)
        assert_string_equal(gavel_event_name((enum gavel_event_kind)i), names[i]);
    assert_string_equal(gavel_event_name(GAVEL_EVENT_COUNT), "unknown");
}

static void test_reasons_and_phases_have_names(void **state)
{
    (void)state;
    assert_string_equal(gavel_reason_name(GAVEL_REASON_LAPSED), "lapsed");
    assert_string_equal(gavel_reason_name(GAVEL_REASON_STOPPED), "stopped");
    assert_string_equal(gavel_reason_name(GAVEL_REASON_COUNT), "unknown");
    assert_string_equal(gavel_phase_name(GAVEL_PHASE_OBSERVING), "observing");
    assert_string_equal(gavel_phase_name(GAVEL_PHASE_READY), "ready");
    assert_string_equal(gavel_phase_name((enum gavel_phase)4), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_election_codes_are_those_of_the_http_api),
        cmocka_unit_test(test_codes_names_and_texts_are_unique),
        cmocka_unit_test(test_further_codes_start_at_4100),
        cmocka_unit_test(test_each_code_has_its_own_name_and_text),
        cmocka_unit_test(test_a_foreign_number_has_a_name_too),
        cmocka_unit_test(test_event_names_are_the_stable_ones),
        cmocka_unit_test(test_reasons_and_phases_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
