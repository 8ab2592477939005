/* SPDX-License-Identifier: Apache-2.0 */

#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ROUNDS 10000

static void test_sequence_is_that_of_splitmix64(void **state)
{
    struct prng prng;

    (void)state;
    /* The first outputs for the seed 1234567, as published with the algorithm. */
    prng_seed(&prng, 1234567);
    assert_true(prng_next(&prng) == UINT64_C(6457827717110365317));
    assert_true(prng_next(&prng) == UINT64_C(3203168211198807973));
    assert_true(prng_next(&prng) == UINT64_C(9817491932198370423));
}

static void test_same_seed_gives_the_same_sequence(void **state)
{
    struct prng a;
    struct prng b;
    struct prng other;
    unsigned equal = 0;

    (void)state;
    prng_seed(&a, 42);
    prng_seed(&b, 42);
    prng_seed(&other, 43);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t x = prng_next(&a);

        assert_true(x == prng_next(&b));
        equal += x == prng_next(&other);
    }
    assert_int_equal(equal, 0);
}

static void test_below_stays_below_and_reaches_everything(void **state)
{
    struct prng prng;
    unsigned seen[7] = {0};

    (void)state;
    prng_seed(&prng, 7);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t x = prng_below(&prng, 7);

        assert_true(x < 7);
        seen[x]++;
    }
    /* Even within 20 %: several times what chance alone makes of this many rounds. */
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], ROUNDS / 7 * 8 / 10, ROUNDS / 7 * 12 / 10);
    assert_true(prng_below(&prng, 0) == 0);
    assert_true(prng_below(&prng, 1) == 0);
}

static void test_between_includes_both_ends(void **state)
{
    struct prng prng;
    bool low = false;
    bool high = false;

    (void)state;
    prng_seed(&prng, 1);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t x = prng_between(&prng, -3, 3);

        assert_true(x >= -3 && x <= 3);
        low |= x == -3;
        high |= x == 3;
    }
    assert_true(low);
    assert_true(high);
}

static void test_between_an_empty_range_is_its_low_end(void **state)
{
    struct prng prng;

    (void)state;
    prng_seed(&prng, 1);
    assert_true(prng_between(&prng, 5, 5) == 5);
    assert_true(prng_between(&prng, 5, 4) == 5);
}

static void test_chance_is_never_always_and_about_right(void **state)
{
    struct prng prng;
    unsigned hits = 0;

    (void)state;
    prng_seed(&prng, 9);
    for (int i = 0; i < ROUNDS; i++) {
        assert_false(prng_chance(&prng, 0));
        assert_true(prng_chance(&prng, 1000));
        hits += prng_chance(&prng, 250);
    }
    assert_in_range(hits, ROUNDS * 22 / 100, ROUNDS * 28 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequence_is_that_of_splitmix64),
        cmocka_unit_test(test_same_seed_gives_the_same_sequence),
        cmocka_unit_test(test_below_stays_below_and_reaches_everything),
        cmocka_unit_test(test_between_includes_both_ends),
        cmocka_unit_test(test_between_an_empty_range_is_its_low_end),
        cmocka_unit_test(test_chance_is_never_always_and_about_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
