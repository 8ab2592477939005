/* SPDX-License-Identifier: Apache-2.0 */

/* The driver `memory` through the suite, and what is its own. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static void make_url(char *url, size_t size)
{
    static atomic_uint count;

    (void)snprintf(url, size, "memory:test-%u", atomic_fetch_add(&count, 1));
}

static void *claim_soon(void *store)
{
    const struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply reply;

    store_run(store, &claim, &reply, 1); /* who waits sees whether it worked */
    store_reply_done(&reply);
    return NULL;
}

static void test_a_change_wakes_the_one_who_waits(void **state)
{
    struct store *a;
    struct store *b;
    pthread_t thread;
    gavel_ns began = clock_now();

    (void)state;
    assert_int_equal(store_open("memory:wake", &a, NULL), GAVEL_OK);
    assert_int_equal(store_open("memory:wake", &b, NULL), GAVEL_OK);
    assert_int_equal(pthread_create(&thread, NULL, claim_soon, a), 0);
    store_wait(b, "g", 0, began + 20 * NS_PER_S);
    assert_true(clock_now() - began < 10 * NS_PER_S);
    assert_true(expect(b, ask_read("g"), GAVEL_OK).found);
    assert_int_equal(pthread_join(thread, NULL), 0);
    store_close(a);
    store_close(b);
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
        cmocka_unit_test(test_a_change_wakes_the_one_who_waits),
        cmocka_unit_test(test_stores_of_two_names_are_two_stores),
    };

    return conformance_run(&driver) + cmocka_run_group_tests_name("memory only", tests, NULL, NULL);
}
