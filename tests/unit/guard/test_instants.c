/* SPDX-License-Identifier: Apache-2.0 */

/* When the guard stops, kills and is killed: the sums, at their edges. */
#include "guard/instants.h"

#include "guard/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS NS_PER_MS

static struct instants mandate(gavel_ns grace)
{
    return (struct instants){
        .stop_at = 10000 * MS - grace, .deadline = 10000 * MS, .grace = grace, .orphan_until = NEVER};
}

static void test_instants_come_in_order(void **state)
{
    static const gavel_ns graces[] = {50, 100, 500, 2000, 10000};

    (void)state;
    for (size_t i = 0; i < sizeof graces / sizeof *graces; i++) {
        struct instants instants = mandate(graces[i] * MS);

        assert_true(instants.stop_at < instants_kill_at(&instants));
        assert_true(instants_kill_at(&instants) < instants_suicide_at(&instants));
        assert_true(instants_suicide_at(&instants) < instants.deadline);
    }
}

static void test_many_processes_are_killed_earlier_but_are_always_asked_first(void **state)
{
    struct instants instants = mandate(500 * MS);
    gavel_ns alone = instants_kill_at(&instants);

    (void)state;
    instants_allow(&instants, 100, 0);
    assert_int_equal(alone - instants_kill_at(&instants), 40 * MS);
    instants_allow(&instants, SIZE_MAX / NS_PER_S, 0);
    assert_int_equal(alone - instants_kill_at(&instants), 250 * MS);
    assert_true(instants_kill_at(&instants) > instants.stop_at);
}

static void test_much_memory_is_given_time_as_well(void **state)
{
    struct instants instants = mandate(2000 * MS);
    gavel_ns alone = instants_kill_at(&instants);

    (void)state;
    instants_allow(&instants, 1, 262144); /* a gigabyte */
    assert_in_range(alone - instants_kill_at(&instants), 100 * MS, 110 * MS);
    instants_allow(&instants, 1, UINT64_MAX);
    assert_int_equal(alone - instants_kill_at(&instants), 1000 * MS);
}

static void test_counting_stops_where_it_changes_nothing(void **state)
{
    struct instants instants = mandate(500 * MS);
    gavel_ns saturated;

    (void)state;
    instants_allow(&instants, instants_count_max(&instants), 0);
    saturated = instants.allowance;
    instants_allow(&instants, 10 * instants_count_max(&instants), 0);
    assert_int_equal(instants.allowance, saturated);
}

static void test_an_orphan_has_no_more_than_its_own_grace(void **state)
{
    struct instants instants = mandate(500 * MS);

    (void)state;
    instants.orphan_until = 9000 * MS;
    assert_int_equal(instants_kill_at(&instants), 9000 * MS);
    instants.orphan_until = 20000 * MS; /* nor more than the mandate */
    assert_true(instants_kill_at(&instants) < instants.deadline);
}

static void test_the_mandate_is_read_long_before_its_end(void **state)
{
    struct instants instants = mandate(500 * MS);

    (void)state;
    assert_int_equal(instants_read_at(&instants, 8500 * MS), 9000 * MS);
    assert_int_equal(instants_read_at(&instants, 9499 * MS), 9500 * MS); /* never later than the stop */
    assert_int_equal(instants_read_at(&instants, 9800 * MS), 9800 * MS);
}

static void test_a_mandate_without_an_end_can_be_calculated_with(void **state)
{
    struct instants instants = {
        .stop_at = NEVER / 2, .deadline = NEVER / 2, .grace = 500 * MS, .orphan_until = NEVER};

    (void)state;
    instants_allow(&instants, 1000, 1000);
    assert_true(instants_kill_at(&instants) > NEVER / 4);
    assert_true(instants_suicide_at(&instants) > NEVER / 4);
    assert_true(instants_read_at(&instants, 1) > NEVER / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instants_come_in_order),
        cmocka_unit_test(test_many_processes_are_killed_earlier_but_are_always_asked_first),
        cmocka_unit_test(test_much_memory_is_given_time_as_well),
        cmocka_unit_test(test_counting_stops_where_it_changes_nothing),
        cmocka_unit_test(test_an_orphan_has_no_more_than_its_own_grace),
        cmocka_unit_test(test_the_mandate_is_read_long_before_its_end),
        cmocka_unit_test(test_a_mandate_without_an_end_can_be_calculated_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
