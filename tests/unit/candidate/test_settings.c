/* SPDX-License-Identifier: Apache-2.0 */

/* Presets, single values, and the budget. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <gavel/settings.h>
#include <math.h>
#include <string.h>

static struct gavel_settings preset(const char *name)
{
    struct gavel_settings settings;

    assert_int_equal(gavel_settings_preset(name, &settings), GAVEL_OK);
    return settings;
}

static void test_presets_are_those_of_the_table(void **state)
{
    static const struct {
        const char *name;
        gavel_ms heartbeat, jitter, lease, timeout, observation, preparation, min, max, takeover, start_min,
            start_max;
    } rows[] = {
        {"local", 500, 50, 2000, 3000, 0, 0, 0, 0, 0, 0, 0},
        {"database", 5000, 0, 10000, 20000, 0, 0, 0, 0, 0, 0, 0},
        {"object-store", 5000, 1000, 15000, 20000, 0, 0, 0, 0, 0, 0, 5000},
        {"frugal", 30000, 0, 90000, 90000, 15000, 5000, 60000, 300000, 0, 0, 0},
        {"coordinator", 5000, 0, 10000, 20000, 0, 0, 0, 0, 1000, 0, 0},
        {"cluster", 250, 25, 1000, 1500, 0, 0, 0, 0, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gavel_settings s = preset(rows[i].name);

        assert_string_equal(gavel_preset_names[i], rows[i].name);
        assert_int_equal(s.heartbeat_ms, rows[i].heartbeat);
        assert_int_equal(s.heartbeat_jitter_ms, rows[i].jitter);
        assert_int_equal(s.lease_ms, rows[i].lease);
        assert_int_equal(s.candidate_timeout_ms, rows[i].timeout);
        assert_int_equal(s.observation_ms, rows[i].observation);
        assert_int_equal(s.preparation_ms, rows[i].preparation);
        assert_int_equal(s.min_mandate_ms, rows[i].min);
        assert_int_equal(s.max_mandate_ms, rows[i].max);
        assert_int_equal(s.takeover_delay_ms, rows[i].takeover);
        assert_int_equal(s.start_jitter_min_ms, rows[i].start_min);
        assert_int_equal(s.start_jitter_max_ms, rows[i].start_max);
    }
    assert_null(gavel_preset_names[sizeof rows / sizeof *rows]);
    assert_int_equal(preset("local").policy, GAVEL_POLICY_FIRST);
    assert_int_equal(preset("object-store").policy, GAVEL_POLICY_LEXICOGRAPHIC);
    assert_int_equal(preset("frugal").policy, GAVEL_POLICY_LEXICOGRAPHIC);
    assert_int_equal(preset("coordinator").election_interval_ms, 5000);
}

static void test_every_preset_adds_up(void **state)
{
    struct gavel_error error;

    (void)state;
    for (size_t i = 0; gavel_preset_names[i]; i++) {
        struct gavel_settings s = preset(gavel_preset_names[i]);
        struct gavel_bounds bounds;

        assert_int_equal(gavel_settings_check(&s, &error), GAVEL_OK);
        gavel_settings_bounds(&s, 3, &bounds);
        assert_true(bounds.renew_slack_ms > 0);
        assert_int_equal(bounds.overlap_ms, 0);
        assert_true(bounds.stop_begins_ms < bounds.stopped_by_ms);
        assert_true(bounds.stopped_by_ms < s.lease_ms);
        assert_true(bounds.takeover_after_ms > s.lease_ms);
        assert_int_equal(bounds.gap_killed_ms, bounds.gap_resign_ms + s.takeover_delay_ms);
        assert_true(bounds.gap_killed_ms < bounds.gap_loss_ms);
        assert_true(bounds.gap_loss_ms < bounds.gap_outage_ms);
    }
}

static void test_unknown_preset_and_policy_are_refused(void **state)
{
    struct gavel_settings s = {.lease_ms = 77};
    enum gavel_policy policy = GAVEL_POLICY_PRIORITY;

    (void)state;
    assert_int_equal(gavel_settings_preset("fast", &s), GAVEL_ERR_INVALID);
    assert_int_equal(s.lease_ms, 77); /* untouched */
    assert_int_equal(gavel_policy_parse("best", &policy), GAVEL_ERR_INVALID);
    assert_int_equal(gavel_policy_parse("lexicographic", &policy), GAVEL_OK);
    assert_int_equal(policy, GAVEL_POLICY_LEXICOGRAPHIC);
    assert_string_equal(gavel_policy_name(policy), "lexicographic");
}

static void test_a_budget_that_does_not_add_up_is_refused_with_the_sum(void **state)
{
    struct gavel_settings s = preset("local");
    struct gavel_error error;

    (void)state;
    s.lease_ms = 1500;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(error.message, "500 + jitter 50 + call_timeout 500 + stop_grace 500 = 1550 ms"));
    assert_non_null(strstr(error.message, "lease 1500"));
    assert_non_null(strstr(error.message, "make the lease longer"));
    s.lease_ms = 2000;
    s.candidate_timeout_ms = 550;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_BUDGET);
    s.candidate_timeout_ms = 3000;
    s.max_mandate_ms = 1999;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_BUDGET);
    s.max_mandate_ms = 5000;
    s.min_mandate_ms = 5000;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_BUDGET);
}

static void test_the_budget_counts_to_the_millisecond(void **state)
{
    struct gavel_settings s = preset("local");

    (void)state;
    /* 500 + 50 + 500 + 500 = 1550 must be less than lease * 0.999 - 50 */
    s.lease_ms = 1601;
    assert_int_equal(gavel_settings_check(&s, NULL), GAVEL_ERR_BUDGET);
    s.lease_ms = 1604;
    assert_int_equal(gavel_settings_check(&s, NULL), GAVEL_OK);
}

static void test_negative_and_absurd_values_are_refused_by_name(void **state)
{
    struct gavel_settings s = preset("local");
    struct gavel_error error;

    (void)state;
    s.takeover_delay_ms = -1;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "takeover_delay"));
    s = preset("local");
    s.lease_ms = INT64_MAX;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "lease"));
    s = preset("local");
    s.heartbeat_ms = 0;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_INVALID);
    s = preset("local");
    s.start_jitter_min_ms = 2;
    s.start_jitter_max_ms = 1;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_BUDGET);
    s = preset("local");
    s.contention_threshold = NAN;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_INVALID);
    s = preset("local");
    s.drift_ppm = -1;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_INVALID);
    s = preset("local");
    s.breaker_threshold = 0;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_INVALID);
    s = preset("local");
    s.policy = (enum gavel_policy)7;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_presets_are_those_of_the_table),
        cmocka_unit_test(test_every_preset_adds_up),
        cmocka_unit_test(test_unknown_preset_and_policy_are_refused),
        cmocka_unit_test(test_a_budget_that_does_not_add_up_is_refused_with_the_sum),
        cmocka_unit_test(test_the_budget_counts_to_the_millisecond),
        cmocka_unit_test(test_negative_and_absurd_values_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
