/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of settings against struct gavel_settings: a field without a row
 * could not be set from outside, and two rows for one field would fight.
 */
#include "cli/settings/setting_values.h"
#include "config/words.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t size_of(enum setting_kind kind)
{
    switch (kind) {
    case SETTING_TEXT:
        return sizeof(const char *);
    case SETTING_SWITCH:
    case SETTING_BOOL:
        return sizeof(bool);
    case SETTING_DURATION:
        return sizeof(gavel_ms);
    case SETTING_REAL:
        return sizeof(double);
    default:
        return sizeof(int);
    }
}

/* Every byte of the struct belongs to exactly one row, but for the padding behind its last field. */
static void test_every_field_of_the_settings_has_one_row(void **state)
{
    unsigned char used[sizeof(struct gavel_settings)] = {0};
    size_t begin = offsetof(struct config, settings);

    (void)state;
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *setting = &settings_table[i];

        if (setting->offset < begin || setting->offset >= begin + sizeof used)
            continue;
        for (size_t j = 0; j < size_of(setting->kind); j++)
            assert_int_equal(used[setting->offset - begin + j]++, 0);
    }
    for (size_t i = 0; i <= offsetof(struct gavel_settings, trust_store_clock); i++)
        assert_int_equal(used[i], 1);
}

static void test_names_are_unique_and_follow_one_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *setting = &settings_table[i];

        assert_ptr_equal(setting_by_flag(setting->flag), setting);
        if (setting->letter)
            assert_ptr_equal(setting_by_letter(setting->letter), setting);
        if (setting->key)
            assert_ptr_equal(setting_by_key(setting->key), setting);
        if (setting->env)
            assert_memory_equal(setting->env, "GAVEL_", 6);
        assert_int_equal(setting->argument != NULL, setting_takes_value(setting));
        assert_true(setting->help[0] != '\0' && setting->help[strlen(setting->help) - 1] != '.');
    }
    assert_null(setting_by_letter(0));
    assert_null(setting_by_flag("nonsense"));
}

static void test_value_of_higher_rank_wins_in_whatever_order_they_come(void **state)
{
    const struct setting *lease = setting_by_flag("lease");
    struct setting_values values = {0};

    (void)state;
    setting_values_note(&values, lease, SOURCE_FILE, "1s", 3);
    setting_values_note(&values, lease, SOURCE_FLAG, "2s", 0);
    setting_values_note(&values, lease, SOURCE_ENVIRONMENT, "3s", 0);
    assert_string_equal(setting_values_text(&values, "lease"), "2s");
    setting_values_note(&values, lease, SOURCE_FLAG, "4s", 0); /* the last flag counts */
    assert_string_equal(setting_values_text(&values, "lease"), "4s");
    setting_values_done(&values);
}

static enum gavel_status resolve(struct setting_values *values, const char *flag, const char *text,
                                 struct config *ret_config, struct gavel_error *error)
{
    unsigned groups = OPTIONS_STORE | OPTIONS_SETTINGS | OPTIONS_WORK | OPTIONS_RUN;
    enum gavel_status status;

    setting_values_from_environment(values, groups);
    if (flag)
        setting_values_note(values, setting_by_flag(flag), SOURCE_FLAG, text, 0);
    setting_values_note(values, setting_by_flag("store"), SOURCE_FLAG, "memory:x", 0);
    status = setting_values_resolve(values, groups, ret_config, error);
    setting_values_done(values);
    return status;
}

static void test_another_name_is_the_same_setting(void **state)
{
    struct setting_values values = {0};
    struct config config;

    (void)state;
    for (const struct other_name *other = other_names; other->of; other++) {
        const struct setting *setting = setting_by_flag(other->of);

        assert_string_equal(setting->flag, other->of); /* not one name for another */
        if (other->flag)
            assert_ptr_equal(setting_by_flag(other->flag), setting);
        if (other->letter)
            assert_ptr_equal(setting_by_letter(other->letter), setting);
        if (other->key)
            assert_ptr_equal(setting_by_key(other->key), setting);
    }
    assert_int_equal(setenv("GAVEL_GRACE", "111ms", 1), 0);
    assert_int_equal(resolve(&values, NULL, NULL, &config, NULL), GAVEL_OK);
    assert_int_equal(config.settings.stop_grace_ms, 111);
    assert_int_equal(setenv("GAVEL_STOP_GRACE", "222ms", 1), 0); /* its own name goes first */
    assert_int_equal(resolve(&values, NULL, NULL, &config, NULL), GAVEL_OK);
    assert_int_equal(config.settings.stop_grace_ms, 222);
    assert_int_equal(resolve(&values, "grace", "333ms", &config, NULL), GAVEL_OK);
    assert_int_equal(config.settings.stop_grace_ms, 333);
    unsetenv("GAVEL_GRACE");
    unsetenv("GAVEL_STOP_GRACE");
}

static void test_a_signal_has_many_names(void **state)
{
    static const char *const good[] = {"INT", "SIGINT", "int", "sigInt", "2"};
    static const char *const bad[] = {"",  "SIG", "KILL", "9",   "STOP", "CONT",
                                      "0", "-1",  "65",   "100", "INTX", "2x"};
    struct gavel_error error;
    int number;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(signal_parse(good[i], &number, NULL), GAVEL_OK);
        assert_int_equal(number, SIGINT);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error = (struct gavel_error){0};
        assert_int_equal(signal_parse(bad[i], &number, &error), GAVEL_ERR_INVALID);
        assert_true(error.message[0] != '\0');
    }
    assert_int_equal(number, SIGINT); /* untouched on failure */
    assert_int_equal(signal_parse("37", &number, NULL), GAVEL_OK);
    assert_int_equal(number, 37);
}

static void test_values_out_of_range_are_refused(void **state)
{
    static const char *const bad[][2] = {
        {"restart-limit", "-1"},      {"restart-limit", "101"},  {"restart-window", "0"},
        {"cool-down", "31d"},         {"healthy-every", "0"},    {"healthy-timeout", "0"},
        {"healthy-failures", "0"},    {"hook-timeout", "0"},     {"orphan-grace", "31d"},
        {"on-exit", "explode"},       {"contain", "jail"},       {"term-signal", "KILL"},
        {"healthy-failures", "1001"}, {"restart-limit", "many"},
    };
    struct setting_values values = {0};
    struct config config;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gavel_error error = {0};

        assert_int_equal(resolve(&values, bad[i][0], bad[i][1], &config, &error), GAVEL_ERR_INVALID);
        assert_non_null(strstr(error.message, bad[i][0])); /* says which flag */
    }
    assert_int_equal(resolve(&values, "restart-limit", "100", &config, NULL), GAVEL_OK);
    assert_int_equal(config.run.restart_limit, 100);
    assert_int_equal(resolve(&values, "restart-limit", "0", &config, NULL), GAVEL_OK);
    assert_int_equal(config.run.restart_limit, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_of_the_settings_has_one_row),
        cmocka_unit_test(test_names_are_unique_and_follow_one_rule),
        cmocka_unit_test(test_value_of_higher_rank_wins_in_whatever_order_they_come),
        cmocka_unit_test(test_another_name_is_the_same_setting),
        cmocka_unit_test(test_a_signal_has_many_names),
        cmocka_unit_test(test_values_out_of_range_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
