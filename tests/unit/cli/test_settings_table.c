/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of settings against struct gavel_settings: a field without a row
 * could not be set from outside, and two rows for one field would fight.
 */
#include "cli/setting_values.h"

#include <setjmp.h>
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

        if (setting->offset < begin || setting->offset >= begin + sizeof(used))
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_of_the_settings_has_one_row),
        cmocka_unit_test(test_names_are_unique_and_follow_one_rule),
        cmocka_unit_test(test_value_of_higher_rank_wins_in_whatever_order_they_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
