/* SPDX-License-Identifier: Apache-2.0 */

/* Where a store lies, and whether it is there already. */
#include "cli/settings/place.h"

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
    char folder[PATH_MAX], expected[PATH_MAX + 64];
    struct place place;

    (void)state;
    assert_non_null(getcwd(folder, sizeof folder));
    snprintf(expected, sizeof expected, "sqlite:%s/some.db", folder);
    place_look("./some.db", &place);
    assert_string_equal(place.shown, expected);
    place_look("sqlite:some.db", &place);
    assert_string_equal(place.shown, expected);
    place_look("/nowhere/some.db", &place);
    assert_string_equal(place.shown, "sqlite:/nowhere/some.db");
    place_look("static:web-1", &place);
    assert_string_equal(place.shown, "static:web-1");
    assert_false(place.is_new);
}

static void test_new_file_and_new_folder_are_noticed(void **state)
{
    char folder[] = "/tmp/gavel-place-XXXXXX", path[64];
    struct place place;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/gavel.db", folder);
    place_look(path, &place);
    assert_true(place.is_new);
    assert_true(place.has_folder);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    place_look(path, &place);
    assert_false(place.is_new);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    place_look(path, &place);
    assert_true(place.is_new);
    assert_false(place.has_folder);
}

static void test_bare_word_is_neither_a_path_nor_a_url(void **state)
{
    (void)state;
    assert_true(place_is_bare_word("sqlit"));
    assert_true(place_is_bare_word("memory"));
    assert_false(place_is_bare_word("./sqlit"));
    assert_false(place_is_bare_word("gavel.db"));
    assert_false(place_is_bare_word("sqlite:x"));
    assert_false(place_is_bare_word("")); /* which has an error of its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_is_told_as_a_whole),
        cmocka_unit_test(test_new_file_and_new_folder_are_noticed),
        cmocka_unit_test(test_bare_word_is_neither_a_path_nor_a_url),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
