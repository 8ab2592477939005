/* SPDX-License-Identifier: Apache-2.0 */

/* The heap of instants against a plain scan, and wake-ups of many groups. */
#include "base/prng.h"
#include "lib/loop/grid.h"
#include "lib/loop/timers.h"

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

/* A standby whose claim was due before now, and whose next heartbeat is to come. */
static void standby_init(struct candidate *machine, gavel_ns now, gavel_ns beat_at)
{
    *machine = (struct candidate){.state = CANDIDATE_STANDBY, .now = now};
    machine->settings.heartbeat_ms = 500;
    machine->look_at = machine->list_at = NEVER;
    machine->beat_at = beat_at;
    machine->claim_at = now - NS_PER_S;
}

static void test_claim_that_was_due_wakes_nobody_while_a_call_is_under_way(void **state)
{
    const gavel_ns now = 100 * NS_PER_S, beat_at = now + 120 * NS_PER_MS;
    struct candidate machine;

    (void)state;
    standby_init(&machine, now, beat_at);
    machine.calls[SLOT_MANDATE] = (struct candidate_call){.is_pending = true, .give_up_at = now + NS_PER_S};
    assert_int_equal(grid_wake_at(&machine, 1), beat_at);
    /* With many it is put off to the grid, and not back to a past instant, which would come round for
     * ever. */
    assert_int_equal(grid_wake_at(&machine, GRID_ABOVE + 1), now + 150 * NS_PER_MS);
    machine.calls[SLOT_MANDATE].is_pending = false;
    assert_int_equal(grid_wake_at(&machine, GRID_ABOVE + 1), machine.claim_at);
}

static void test_claim_to_come_is_not_put_off_by_the_grid(void **state)
{
    const gavel_ns now = 100 * NS_PER_S, beat_at = now + 120 * NS_PER_MS;
    struct candidate machine;

    (void)state;
    standby_init(&machine, now, beat_at);
    machine.claim_at = now + 130 * NS_PER_MS;
    assert_int_equal(grid_wake_at(&machine, GRID_ABOVE + 1), machine.claim_at);
}

static void test_leader_of_a_session_is_woken_by_its_term_and_not_by_an_old_deadline(void **state)
{
    const gavel_ns now = 100 * NS_PER_S, look_at = now + 120 * NS_PER_MS;
    struct candidate machine = {.state = CANDIDATE_LEADING, .now = now, .has_sessions = true};

    (void)state;
    machine.settings.heartbeat_ms = 500;
    machine.session.number = machine.mandate_session = machine.said_session = 3;
    machine.stop_at = now - NS_PER_S; /* as of a step long ago */
    machine.claim_at = machine.death_at = machine.orphan_at = machine.list_at = machine.beat_at = NEVER;
    machine.look_at = look_at;
    assert_int_equal(grid_wake_at(&machine, 1), look_at);
    assert_int_equal(grid_wake_at(&machine, GRID_ABOVE + 1), now + 150 * NS_PER_MS);
    machine.look_at = NEVER;
    assert_int_equal(grid_wake_at(&machine, GRID_ABOVE + 1), NEVER);
    machine.look_at = look_at;
    machine.settings.max_mandate_ms = 1000;
    machine.mandate_at = now - NS_PER_S + 130 * NS_PER_MS; /* its term ends after that look */
    machine.calls[SLOT_BEAT].is_pending = true;            /* it has asked for a new epoch */
    machine.calls[SLOT_BEAT].give_up_at = NEVER;
    assert_int_equal(grid_wake_at(&machine, GRID_ABOVE + 1), now + 130 * NS_PER_MS);
}

static void count_due(struct timer *timer, void *argument)
{
    size_t *count = argument;

    assert_true(timer->at <= 5);
    ++*count;
}

static void test_visit_meets_each_that_is_due_and_no_other(void **state)
{
    struct timers timers = {0};
    struct timer all[COUNT];
    size_t count = 0;

    (void)state;
    assert_int_equal(timers_reserve(&timers, COUNT), GAVEL_OK);
    for (size_t i = 0; i < COUNT; i++) {
        all[i] = (struct timer){.at = NEVER, .index = TIMER_OUT};
        timers_set(&timers, &all[i], (gavel_ns)(i * 7 % 10) + 1);
    }
    timers_visit_due(&timers, 5, count_due, &count);
    assert_int_equal(count, COUNT / 2);
    timers_done(&timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_is_always_the_earliest),
        cmocka_unit_test(test_visit_meets_each_that_is_due_and_no_other),
        cmocka_unit_test(test_claim_that_was_due_wakes_nobody_while_a_call_is_under_way),
        cmocka_unit_test(test_claim_to_come_is_not_put_off_by_the_grid),
        cmocka_unit_test(test_leader_of_a_session_is_woken_by_its_term_and_not_by_an_old_deadline),
    };

    return cmocka_run_group_tests_name("lib timers", tests, NULL, NULL);
}
