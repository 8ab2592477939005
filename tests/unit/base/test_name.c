/* SPDX-License-Identifier: Apache-2.0 */

#include "base/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void accepted(const char *name)
{
    struct gavel_error error = {.status = GAVEL_OK, .message = "untouched"};

    assert_int_equal(name_check("group name", name, &error), GAVEL_OK);
    assert_int_equal(name_check("group name", name, NULL), GAVEL_OK);
    assert_string_equal(error.message, "untouched");
}

/* Refused, and the message says what about it, in printable ASCII: it ends up on terminals. */
static void refused(const char *name, const char *because)
{
    struct gavel_error error = {0};

    assert_int_equal(name_check("group name", name, NULL), GAVEL_ERR_INVALID);
    assert_int_equal(name_check("group name", name, &error), GAVEL_ERR_INVALID);
    assert_int_equal(error.status, GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "group name"));
    assert_non_null(strstr(error.message, because));
    for (const char *c = error.message; *c; c++)
        assert_in_range(*c, ' ', '~');
}

static void test_ordinary_and_odd_names_are_accepted(void **state)
{
    (void)state;
    accepted("a");
    accepted("nightly");
    accepted("a b");
    accepted("it's \"quoted\" `so`");
    accepted("100%/of\\it");
    accepted("Zürich 東京 \xf0\x9f\x94\xa8");
    accepted("'; DROP TABLE mandate; --");
}

static void test_empty_and_missing_names_are_refused(void **state)
{
    (void)state;
    refused("", "empty");
    refused(NULL, "empty");
}

static void test_255_bytes_are_accepted_and_256_are_not(void **state)
{
    char name[258];

    (void)state;
    memset(name, 'x', sizeof name);
    name[255] = '\0';
    accepted(name);
    name[255] = 'x';
    name[256] = '\0';
    refused(name, "256");
    name[256] = 'x';
    name[257] = '\0';
    refused(name, "257");
}

static void test_length_counts_bytes_not_characters(void **state)
{
    char name[257] = {0};

    (void)state;
    for (int i = 0; i < 127; i++)
        memcpy(name + 2 * i, "\xc3\xbc", 2);
    accepted(name);
    memcpy(name + 254, "\xc3\xbc", 2);
    refused(name, "256");
}

static void test_what_is_not_utf8_is_refused_with_its_place(void **state)
{
    (void)state;
    refused("ab\xff", "byte 3");
    refused("\x80", "UTF-8");
    refused("a\xc3", "UTF-8");
    refused("\xc0\xaf", "UTF-8");         /* overlong slash */
    refused("\xe0\x80\xaf", "UTF-8");     /* overlong slash */
    refused("\xc1\xbf", "UTF-8");         /* overlong DEL */
    refused("\xed\xa0\x80", "UTF-8");     /* a surrogate */
    refused("\xf4\x90\x80\x80", "UTF-8"); /* beyond U+10FFFF */
}

static void test_control_characters_are_refused(void **state)
{
    char name[] = "a?b";

    (void)state;
    for (char c = 1; c < 0x20; c++) {
        name[1] = c;
        refused(name, "control character");
    }
    refused("a\x7f", "U+007F");
    refused("a\xc2\x9b", "U+009B"); /* starts an escape sequence on some terminals */
    accepted("a\xc2\xa0");          /* a no-break space is none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_and_odd_names_are_accepted),
        cmocka_unit_test(test_empty_and_missing_names_are_refused),
        cmocka_unit_test(test_255_bytes_are_accepted_and_256_are_not),
        cmocka_unit_test(test_length_counts_bytes_not_characters),
        cmocka_unit_test(test_what_is_not_utf8_is_refused_with_its_place),
        cmocka_unit_test(test_control_characters_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
