/* SPDX-License-Identifier: Apache-2.0 */

#include "base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_empty_window_gives_zero(void **state)
{
    struct histogram h;

    (void)state;
    histogram_init(&h, 0);
    assert_int_equal(h.window, 100);
    assert_true(histogram_percentile(&h, 50) == 0);
    assert_true(histogram_percentile(&h, 99) == 0);
}

static void test_one_sample_is_every_percentile(void **state)
{
    struct histogram h;

    (void)state;
    histogram_init(&h, 0);
    histogram_add(&h, 42);
    assert_true(histogram_percentile(&h, 0) == 42);
    assert_true(histogram_percentile(&h, 50) == 42);
    assert_true(histogram_percentile(&h, 100) == 42);
}

static void test_percentiles_of_one_to_a_hundred_in_any_order(void **state)
{
    struct histogram h;

    (void)state;
    histogram_init(&h, 0);
    for (int i = 0; i < 100; i++)
        histogram_add(&h, (i * 37) % 100 + 1);
    assert_true(histogram_percentile(&h, 50) == 50);
    assert_true(histogram_percentile(&h, 95) == 95);
    assert_true(histogram_percentile(&h, 99) == 99);
    assert_true(histogram_percentile(&h, 99.1) == 100);
    assert_true(histogram_percentile(&h, 100) == 100);
    assert_true(histogram_percentile(&h, 0) == 1);
}

static void test_window_forgets_the_oldest(void **state)
{
    struct histogram h;

    (void)state;
    histogram_init(&h, 10);
    for (int i = 0; i < 10; i++)
        histogram_add(&h, 1000000);
    for (int i = 1; i <= 9; i++)
        histogram_add(&h, i);
    assert_true(histogram_percentile(&h, 100) == 1000000);
    assert_true(histogram_percentile(&h, 90) == 9);
    histogram_add(&h, 10); /* the last of the old ones goes */
    assert_true(histogram_percentile(&h, 100) == 10);
    assert_int_equal(h.filled, 10);
    assert_int_equal(h.total, 20);
}

static void test_window_has_a_largest_size(void **state)
{
    struct histogram h;

    (void)state;
    histogram_init(&h, SIZE_MAX);
    assert_int_equal(h.window, HISTOGRAM_WINDOW_MAX);
    for (int i = 0; i < 3 * HISTOGRAM_WINDOW_MAX; i++)
        histogram_add(&h, i);
    assert_true(histogram_percentile(&h, 0) == 2 * HISTOGRAM_WINDOW_MAX);
    assert_true(histogram_percentile(&h, 100) == 3 * HISTOGRAM_WINDOW_MAX - 1);
}

static void test_extreme_samples_sort_right(void **state)
{
    struct histogram h;

    (void)state;
    histogram_init(&h, 0);
    histogram_add(&h, INT64_MAX);
    histogram_add(&h, INT64_MIN);
    histogram_add(&h, 0);
    assert_true(histogram_percentile(&h, 0) == INT64_MIN);
    assert_true(histogram_percentile(&h, 50) == 0);
    assert_true(histogram_percentile(&h, 100) == INT64_MAX);
}

static void test_percent_out_of_range_is_the_nearest_end(void **state)
{
    static const int64_t sorted[] = {1, 2, 3};

    (void)state;
    assert_true(percentile_of_sorted(sorted, 3, -1) == 1);
    assert_true(percentile_of_sorted(sorted, 3, 1000) == 3);
    assert_true(percentile_of_sorted(sorted, 3, 34) == 2);
    assert_true(percentile_of_sorted(sorted, 0, 50) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_window_gives_zero),
        cmocka_unit_test(test_one_sample_is_every_percentile),
        cmocka_unit_test(test_percentiles_of_one_to_a_hundred_in_any_order),
        cmocka_unit_test(test_window_forgets_the_oldest),
        cmocka_unit_test(test_window_has_a_largest_size),
        cmocka_unit_test(test_extreme_samples_sort_right),
        cmocka_unit_test(test_percent_out_of_range_is_the_nearest_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
