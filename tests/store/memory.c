/* SPDX-License-Identifier: Apache-2.0 */

/* The driver `memory` through the suite, and what is its own. */
#include "store/conformance/conformance.h"

#include <stdatomic.h>
#include <stdio.h>

static void make_url(char *url, size_t size)
{
    static atomic_uint count;

    (void)snprintf(url, size, "memory:test-%u", atomic_fetch_add(&count, 1));
}

static void test_stores_of_two_names_are_two_stores(void **state)
{
    struct store *a;
    struct store *b;

    (void)state;
    assert_int_equal(store_open("memory:left", &a, NULL), GAVEL_OK);
    assert_int_equal(store_open("memory:right", &b, NULL), GAVEL_OK);
    (void)expect(a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_false(expect(b, ask_read("g"), GAVEL_OK).found);
    store_close(a);
    store_close(b);
    assert_int_equal(store_open("memory:left", &a, NULL), GAVEL_OK);
    assert_false(expect(a, ask_read("g"), GAVEL_OK).found); /* gone with the last that had it open */
    store_close(a);
}

int main(void)
{
    static const struct conformance_driver driver = {.name = "memory", .make_url = make_url};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stores_of_two_names_are_two_stores),
    };

    return conformance_run(&driver) + cmocka_run_group_tests_name("memory only", tests, NULL, NULL);
}
