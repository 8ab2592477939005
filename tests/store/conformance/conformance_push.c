/* SPDX-License-Identifier: Apache-2.0 */

/* Being told of changes instead of looking again and again. */
#include "conformance.h"

#include <pthread.h>
#include <string.h>

#define LIMIT (60 * NS_PER_S)

static void test_who_watches_a_group_is_told_of_its_changes(void **state)
{
    struct fixture *f = *state;
    struct record record;

    store_watch(f->b, "g", true);
    settle(f->b, "g");
    record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    assert_true(is_told(f->b, "g", LIMIT));
    (void)expect(f->a, ask_release("g", "one", 1, record.epoch), GAVEL_OK);
    assert_true(is_told(f->b, "g", LIMIT));
    record = expect(f->a, ask_read("g"), GAVEL_OK).record;
    record = expect(f->a, ask_claim("g", "two", 2, record.version), GAVEL_OK).record;
    assert_true(is_told(f->b, "g", LIMIT));
    store_watch(f->b, "g", false);
}

static void test_the_holder_is_told_of_a_wish(void **state)
{
    struct fixture *f = *state;
    struct record record;

    store_watch(f->a, "g", true);
    record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    settle(f->a, "g");
    (void)expect(f->b, ask_wish("g", record.epoch, "two"), GAVEL_OK);
    assert_true(is_told(f->a, "g", LIMIT));
    store_watch(f->a, "g", false);
}

static void test_nobody_is_told_of_renewals_and_of_groups_that_are_not_watched(void **state)
{
    struct fixture *f = *state;
    struct record record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    int count = 0;

    store_watch(f->b, "g", true);
    settle(f->b, "g");
    for (uint64_t i = 0; i < 10; i++) {
        (void)expect(f->a, ask_renew("g", "one", 1, record.epoch), GAVEL_OK);
        (void)expect(f->a, ask_heartbeat("g", "one", 1, i), GAVEL_OK);
        count += is_told(f->b, "g", 10 * NS_PER_MS);
    }
    assert_true(count < 3); /* on a slow machine the watch itself may begin, and be told of, late */
    (void)expect(f->a, ask_claim("other", "one", 2, 0), GAVEL_OK);
    (void)expect(f->a, ask_release("other", "one", 2, 0), GAVEL_OK);
    assert_false(is_told(f->b, "other", 50 * NS_PER_MS));
    store_watch(f->b, "g", false);
}

static void test_a_group_is_watched_until_the_last_has_enough(void **state)
{
    struct fixture *f = *state;
    struct record record;

    store_watch(f->b, "g", true);
    store_watch(f->b, "g", true);
    store_watch(f->b, "g", false);
    store_watch(f->b, "h", false); /* never watched */
    settle(f->b, "g");
    record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    assert_true(is_told(f->b, "g", LIMIT));
    store_watch(f->b, "g", false);
    (void)expect(f->a, ask_release("g", "one", 1, record.epoch), GAVEL_OK);
    assert_false(is_told(f->b, "g", 50 * NS_PER_MS));
}

struct waiter {
    struct store *store;
    gavel_ns woke_at;
};

static void *wait_for_change(void *argument)
{
    struct waiter *waiter = argument;

    store_wait(waiter->store, "g", 0, clock_now() + LIMIT);
    waiter->woke_at = clock_now();
    return NULL;
}

static void test_a_change_wakes_the_one_who_waits(void **state)
{
    struct fixture *f = *state;
    struct waiter waiter = {.store = f->b};
    gavel_ns began = clock_now();
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, wait_for_change, &waiter), 0);
    (void)expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(waiter.woke_at - began < LIMIT);
    assert_true(expect(f->b, ask_read("g"), GAVEL_OK).found);
}

const struct conformance_test conformance_push_tests[] = {
#define TEST(name, needs)                                                                                    \
    {                                                                                                        \
#name, name, needs                                                                                   \
    }
    TEST(test_who_watches_a_group_is_told_of_its_changes, NEEDS_PUSH | NEEDS_ELECTION),
    TEST(test_the_holder_is_told_of_a_wish, NEEDS_PUSH | NEEDS_ELECTION),
    TEST(test_nobody_is_told_of_renewals_and_of_groups_that_are_not_watched, NEEDS_PUSH | NEEDS_ELECTION),
    TEST(test_a_group_is_watched_until_the_last_has_enough, NEEDS_PUSH | NEEDS_ELECTION),
    TEST(test_a_change_wakes_the_one_who_waits, NEEDS_PUSH | NEEDS_ELECTION),
    {0},
};
