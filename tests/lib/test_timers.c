/* SPDX-License-Identifier: Apache-2.0 */

/* The heap of instants against a plain scan. */
#include "base/prng.h"
#include "lib/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 200

static void assert_first_is_earliest(const struct timers *timers, const struct timer *all)
{
    gavel_ns earliest = NEVER;
    const struct timer *first = timers_first(timers);

    for (size_t i = 0; i < COUNT; i++)
        if (all[i].at < earliest)
            earliest = all[i].at;
    if (earliest == NEVER)
        assert_null(first);
    else
        assert_int_equal(first->at, earliest);
}

static void test_first_is_always_the_earliest(void **state)
{
    struct timer all[COUNT];
    struct timers timers = {0};
    struct prng prng;

    (void)state;
    prng_seed(&prng, 7);
    for (size_t i = 0; i < COUNT; i++)
        all[i] = (struct timer){.at = NEVER, .index = TIMER_OUT};
    assert_null(timers_first(&timers));
    assert_int_equal(timers_reserve(&timers, COUNT), GAVEL_OK);
    for (int round = 0; round < 20000; round++) {
        size_t which = prng_below(&prng, COUNT);
        gavel_ns at = prng_chance(&prng, 300) ? NEVER : (gavel_ns)prng_below(&prng, 1000);

        timers_set(&timers, &all[which], at);
        assert_int_equal(all[which].at, at);
        assert_first_is_earliest(&timers, all);
    }
    while (timers_first(&timers))
        timers_set(&timers, timers_first(&timers), NEVER);
    assert_int_equal(timers.count, 0);
    timers_done(&timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_is_always_the_earliest)};

    return cmocka_run_group_tests_name("lib timers", tests, NULL, NULL);
}
