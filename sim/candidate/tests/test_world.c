/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of the simulator that everything else trusts: order, clocks, and that a seed means one run. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/candidate/simulator.h"
#include "sim/candidate/world.h"
#include "sim/common/args.h"

#include <stdlib.h>

#define DURATION (60 * NS_PER_S)

static int begin(void **state)
{
    *state = calloc(1, sizeof(struct world));
    return *state ? 0 : -1;
}

static int end(void **state)
{
    world_done(*state);
    free(*state);
    return 0;
}

static void test_events_come_in_order_of_time_and_then_of_pushing(void **state)
{
    struct world *world = *state;
    struct prng prng;
    struct event event;
    gavel_ns last_at = -1;
    uint64_t last_number = 0;

    prng_seed(&prng, 7);
    for (uint64_t i = 0; i < 1000; i++)
        world_push(world, prng_between(&prng, 0, 50), EVENT_ACT, 0)->number = i;
    for (int i = 0; i < 1000; i++) {
        assert_true(world_pop(world, &event));
        assert_true(event.at >= last_at);
        if (event.at == last_at)
            assert_true(event.number > last_number);
        assert_true(world->now == event.at);
        last_at = event.at;
        last_number = event.number;
    }
    assert_false(world_pop(world, &event));
}

static void test_hurried_events_come_at_once_and_keep_their_order(void **state)
{
    struct world *world = *state;
    struct event event;

    world_push(world, 500, EVENT_ACT, 1)->number = 1;
    world_push(world, 500, EVENT_ACT, 1)->number = 2;
    world_push(world, 500, EVENT_ACT, 2)->number = 3;
    world_push(world, 100, EVENT_ACT, 3)->number = 4;
    world_hurry(world, 1, 500);
    for (uint64_t expected = 1; expected <= 2; expected++) {
        assert_true(world_pop(world, &event));
        assert_int_equal(event.number, expected);
        assert_int_equal(event.at, 0);
    }
    assert_true(world_pop(world, &event));
    assert_int_equal(event.number, 4);
    assert_true(world_pop(world, &event));
    assert_int_equal(event.number, 3);
}

static void test_the_real_time_of_a_local_one_is_the_first_that_shows_it(void **state)
{
    struct prng prng;

    (void)state;
    prng_seed(&prng, 11);
    for (int i = 0; i < 10000; i++) {
        struct clock clock = {.offset = prng_between(&prng, 0, 1000000 * NS_PER_S),
                              .rate_ppb = prng_between(&prng, -300000000, 300000000)};
        gavel_ns local = clock.offset + prng_between(&prng, 1, 600 * NS_PER_S);
        gavel_ns real = clock_real(&clock, local);

        assert_true(clock_local(&clock, real) >= local);
        assert_true(clock_local(&clock, real - 1) < local);
    }
    assert_true(clock_real(&(struct clock){0}, NEVER) == NEVER);
}

static void test_a_seed_means_one_run(void **state)
{
    struct run_options options = {.seed = 3, .duration = DURATION};
    struct run_result first;
    struct run_result second;
    struct run_result other;

    candidate_simulator.run(*state, &options, &first);
    options.seed = 4;
    candidate_simulator.run(*state, &options, &other);
    options.seed = 3;
    candidate_simulator.run(*state, &options, &second);
    assert_true(first.hash == second.hash);
    assert_true(first.events == second.events);
    assert_false(first.hash == other.hash);
}

static void test_nothing_goes_wrong_in_a_run_without_faults(void **state)
{
    struct run_options options = {.duration = DURATION, .without = FAULT_BIT(FAULT_COUNT) - 1};
    const struct world *world = *state;
    struct run_result result;

    for (options.seed = 1; options.seed <= 20; options.seed++) {
        candidate_simulator.run(*state, &options, &result);
        assert_null(result.broken);
        assert_int_equal(result.faults, 0);
        assert_true(world->referee.grant_count > 0);
        assert_true(world->referee.writes > 0);
        assert_int_equal(world->referee.rejected_writes, 0);
    }
}

static void test_names_of_faults_are_read_and_others_refused(void **state)
{
    uint64_t faults = 0;

    (void)state;
    assert_true(args_faults(&candidate_simulator, "loss,crash", &faults));
    assert_int_equal(faults, FAULT_BIT(FAULT_LOSS) | FAULT_BIT(FAULT_CRASH));
    assert_false(args_faults(&candidate_simulator, "loss,los", &faults));
    assert_int_equal(faults, FAULT_BIT(FAULT_LOSS) | FAULT_BIT(FAULT_CRASH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_events_come_in_order_of_time_and_then_of_pushing, begin, end),
        cmocka_unit_test_setup_teardown(test_hurried_events_come_at_once_and_keep_their_order, begin, end),
        cmocka_unit_test(test_the_real_time_of_a_local_one_is_the_first_that_shows_it),
        cmocka_unit_test_setup_teardown(test_a_seed_means_one_run, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_goes_wrong_in_a_run_without_faults, begin, end),
        cmocka_unit_test(test_names_of_faults_are_read_and_others_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
