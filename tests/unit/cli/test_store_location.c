/* SPDX-License-Identifier: Apache-2.0 */

/* Where a store lies, and whether it is there already. */
#include "cli/settings/store_location.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_path_is_told_as_a_whole(void **state)
{
    char directory[PATH_MAX], expected[PATH_MAX + 64];
    struct store_location location;

    (void)state;
    assert_non_null(getcwd(directory, sizeof directory));
    snprintf(expected, sizeof expected, "sqlite:%s/some.db", directory);
    store_location_look("./some.db", &location);
    assert_string_equal(location.shown, expected);
    store_location_look("sqlite:some.db", &location);
    assert_string_equal(location.shown, expected);
    store_location_look("/nowhere/some.db", &location);
    assert_string_equal(location.shown, "sqlite:/nowhere/some.db");
    store_location_look("static:web-1", &location);
    assert_string_equal(location.shown, "static:web-1");
    assert_false(location.is_new);
}

static void test_new_file_and_new_directory_are_noticed(void **state)
{
    char directory[] = "/tmp/gavel-store-location-XXXXXX", path[64];
    struct store_location location;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/gavel.db", directory);
    store_location_look(path, &location);
    assert_true(location.is_new);
    assert_true(location.has_directory);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    store_location_look(path, &location);
    assert_false(location.is_new);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    store_location_look(path, &location);
    assert_true(location.is_new);
    assert_false(location.has_directory);
}

static void test_bare_word_is_neither_a_path_nor_a_url(void **state)
{
    (void)state;
    assert_true(store_location_is_bare_word("sqlit"));
    assert_true(store_location_is_bare_word("memory"));
    assert_false(store_location_is_bare_word("./sqlit"));
    assert_false(store_location_is_bare_word("gavel.db"));
    assert_false(store_location_is_bare_word("sqlite:x"));
    assert_false(store_location_is_bare_word("")); /* which has an error of its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_is_told_as_a_whole),
        cmocka_unit_test(test_new_file_and_new_directory_are_noticed),
        cmocka_unit_test(test_bare_word_is_neither_a_path_nor_a_url),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
