/* SPDX-License-Identifier: Apache-2.0 */

/* Text that is wrapped keeps its words and stays within its width. */
#include "cli/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_wrapped(size_t width, size_t at, size_t indent, const char *text, const char *expected)
{
    char *printed = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&printed, &size);

    assert_non_null(file);
    print_wrapped(file, width, at, indent, text);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(printed, expected);
    free(printed);
}

static void test_text_that_fits_stays_on_its_line(void **state)
{
    (void)state;
    assert_wrapped(11, 0, 0, "hello world", "hello world\n");
    assert_wrapped(80, 0, 4, "", "");
    assert_wrapped(80, 0, 4, "a  b", "a  b\n"); /* what was aligned by spaces stays so */
}

static void test_word_that_does_not_fit_goes_to_the_next_line(void **state)
{
    (void)state;
    assert_wrapped(10, 0, 2, "hello world again", "hello\n  world\n  again\n");
    assert_wrapped(11, 5, 5, "hello world", "hello\n     world\n");
}

static void test_word_that_is_too_wide_is_not_cut(void **state)
{
    (void)state;
    assert_wrapped(8, 0, 2, "a extraordinary b", "a\n  extraordinary\n  b\n");
}

static void test_columns_are_counted_not_bytes(void **state)
{
    (void)state;
    assert_wrapped(11, 0, 0, "hällo wörld", "hällo wörld\n");
}

static void test_line_breaks_stay(void **state)
{
    (void)state;
    assert_wrapped(80, 0, 2, "one\ntwo three\n", "one\n  two three\n");
}

static void test_width_is_80_where_there_is_no_terminal(void **state)
{
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    assert_int_equal(output_columns(file), 80);
    assert_int_equal(fclose(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_that_fits_stays_on_its_line),
        cmocka_unit_test(test_word_that_does_not_fit_goes_to_the_next_line),
        cmocka_unit_test(test_word_that_is_too_wide_is_not_cut),
        cmocka_unit_test(test_columns_are_counted_not_bytes),
        cmocka_unit_test(test_line_breaks_stay),
        cmocka_unit_test(test_width_is_80_where_there_is_no_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
