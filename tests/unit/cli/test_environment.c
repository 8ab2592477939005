/* SPDX-License-Identifier: Apache-2.0 */

/* Variables that are mistyped are recognised; those of other programs are left alone. */
#include "cli/settings/environment.h"

#include "cli/settings/settings_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_mistyped_variable_is_recognised(void **state)
{
    (void)state;
    assert_string_equal(environment_meant("GAVEL_LEESE"), "GAVEL_LEASE");
    assert_string_equal(environment_meant("GAVEL_TAKEOVER-DELAY"), "GAVEL_TAKEOVER_DELAY");
    assert_string_equal(environment_meant("GAVEL_STOER"), "GAVEL_STORE");
}

static void test_name_of_a_flag_leads_to_its_variable(void **state)
{
    (void)state;
    assert_string_equal(environment_meant("GAVEL_ID"), "GAVEL_CANDIDATE");
    assert_string_equal(environment_meant("GAVEL_ELECTION"), "GAVEL_ENABLED");
}

static void test_our_own_variables_are_no_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < settings_count; i++)
        if (settings_table[i].env)
            assert_null(environment_meant(settings_table[i].env));
    assert_null(environment_meant("GAVEL_GRACE")); /* the other name of one */
    assert_null(environment_meant("GAVEL_MYSQL_OPTIONS"));
    assert_null(environment_meant("GAVEL_ETCD_USER"));
    assert_null(environment_meant("GAVEL_EPOCH")); /* what a command of gavel run finds, and no setting */
}

/* What Kubernetes sets for a service that is called gavel. */
static void test_variables_of_other_programs_are_left_alone(void **state)
{
    (void)state;
    assert_null(environment_meant("GAVEL_PORT"));
    assert_null(environment_meant("GAVEL_SERVICE_HOST"));
    assert_null(environment_meant("GAVEL_SERVICE_PORT"));
    assert_null(environment_meant("GAVEL_PORT_8080_TCP_ADDR"));
    assert_null(environment_meant("GAVEL"));
    assert_null(environment_meant("GAVEL_"));
    assert_null(environment_meant("LEESE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistyped_variable_is_recognised),
        cmocka_unit_test(test_name_of_a_flag_leads_to_its_variable),
        cmocka_unit_test(test_our_own_variables_are_no_mistakes),
        cmocka_unit_test(test_variables_of_other_programs_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
