/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a build without drivers for servers says when it is asked for one. The
 * test is linked with a store.c of its own, compiled without any of them.
 */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void refused(const char *url, enum gavel_status status, const char *part)
{
    struct store *store = NULL;
    struct gavel_error error = {0};

    assert_int_equal(store_open(url, &store, &error), status);
    assert_null(store);
    if (!strstr(error.message, part))
        fail_msg("\"%s\" is not in: %s", part, error.message);
    assert_true(strlen(error.message) < sizeof error.message - 1); /* not cut off */
    assert_null(store_capabilities_of(url));
}

/* Whoever compiled it without must be able to find the option again. */
static void test_the_option_of_the_build_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; store_kinds[i].scheme; i++) {
        char option[64];

        if (!store_kinds[i].option) {
            assert_non_null(store_driver_of(store_kinds[i].scheme));
            continue;
        }
        assert_null(store_driver_of(store_kinds[i].scheme));
        (void)snprintf(option, sizeof option, "-D%s=enabled", store_kinds[i].option);
        refused(store_kinds[i].example, GAVEL_ERR_STORE_UNSUPPORTED, option);
    }
}

static void test_a_store_that_is_called_otherwise_elsewhere_is_named(void **state)
{
    (void)state;
    refused("mariadb://h/db", GAVEL_ERR_INVALID, "mysql:");
    refused("sqlite3:/tmp/x", GAVEL_ERR_INVALID, "sqlite:");
}

static void test_an_unknown_scheme_is_answered_with_those_of_the_build(void **state)
{
    char longest[512];

    (void)state;
    refused("redis://h", GAVEL_ERR_INVALID, "sqlite, memory, static");
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 2] = ':';
    longest[sizeof longest - 1] = '\0';
    refused(longest, GAVEL_ERR_INVALID, "sqlite, memory, static");
}

static void test_no_url_is_a_mistake_of_another_kind(void **state)
{
    struct gavel_error error = {0};

    (void)state;
    assert_int_equal(store_check_url("", &error), GAVEL_ERR_INVALID);
    assert_int_equal(store_check_url(NULL, &error), GAVEL_ERR_INVALID);
    assert_int_equal(store_check_url("/tmp/some.db", &error), GAVEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_option_of_the_build_is_named),
        cmocka_unit_test(test_a_store_that_is_called_otherwise_elsewhere_is_named),
        cmocka_unit_test(test_an_unknown_scheme_is_answered_with_those_of_the_build),
        cmocka_unit_test(test_no_url_is_a_mistake_of_another_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
