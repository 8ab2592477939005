/* SPDX-License-Identifier: Apache-2.0 */

/* When a node hangs, and when it only looks like it. Time is passed in; the process is real. */
#include "daemon/guard/pulse.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define START (1000 * NS_PER_S)
#define LIMIT (10 * NS_PER_S)

struct fixture {
    struct shared_memory *memory;
    struct tree tree;
    struct pulse pulse;
    pid_t pid; /* does nothing at all */
    gavel_ns now;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct gavel_error error = {0};

    tree_init(&f->tree);
    if (shared_memory_new(&f->memory) != GAVEL_OK || tree_open(&f->tree, CONTAIN_WALK, &error) != GAVEL_OK)
        return -1;
    f->pid = fork();
    if (f->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    f->now = START;
    pulse_begin(&f->pulse, LIMIT, f->now);
    *state = f;
    return f->pid > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    (void)kill(f->pid, SIGKILL);
    (void)waitpid(f->pid, NULL, 0);
    tree_close(&f->tree);
    shared_memory_free(f->memory);
    free(f);
    return 0;
}

static void tick(struct fixture *f) { atomic_store(&f->memory->alive_at, f->now); }

/* Looks whenever it is time to, for so long; whether it was found hung. */
static bool hangs_within(struct fixture *f, gavel_ns time)
{
    gavel_ns until = f->now + time;

    while (f->pulse.look_at <= until) {
        f->now = f->pulse.look_at;
        if (pulse_look(&f->pulse, f->memory, &f->tree, f->pid, f->now))
            return true;
    }
    f->now = until;
    return false;
}

static void test_a_node_that_ticks_never_hangs(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 100; i++) {
        tick(f);
        assert_true(pulse_is_fresh(f->memory, f->now));
        assert_false(hangs_within(f, NS_PER_S));
    }
}

static void test_a_node_without_a_tick_for_the_limit_hangs(void **state)
{
    struct fixture *f = *state;

    tick(f);
    assert_false(hangs_within(f, LIMIT));
    assert_true(hangs_within(f, NS_PER_S));
    assert_false(hangs_within(f, LIMIT - NS_PER_S)); /* and if it cannot be killed, again */
    assert_true(hangs_within(f, NS_PER_S));
}

static void test_a_node_that_ticks_once_more_has_the_whole_limit_again(void **state)
{
    struct fixture *f = *state;

    tick(f);
    assert_false(hangs_within(f, LIMIT));
    tick(f);
    assert_false(hangs_within(f, LIMIT));
}

static void test_starting_may_take_its_time(void **state)
{
    struct fixture *f = *state;

    assert_true(pulse_is_fresh(f->memory, f->now));
    assert_false(hangs_within(f, 100 * LIMIT));
    assert_true(pulse_is_fresh(f->memory, f->now));
}

static void test_freshness_lasts_a_second(void **state)
{
    struct fixture *f = *state;

    tick(f);
    assert_true(pulse_is_fresh(f->memory, f->now + NS_PER_S));
    assert_false(pulse_is_fresh(f->memory, f->now + NS_PER_S + 1));
}

/* Hours are between two looks, and the guard looks before the node has had its turn. */
static void test_a_machine_that_was_suspended_is_no_hang(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 100; i++) {
        tick(f);
        assert_false(hangs_within(f, NS_PER_S));
        f->now += 3600 * NS_PER_S;
        assert_false(pulse_look(&f->pulse, f->memory, &f->tree, f->pid, f->now));
    }
}

static void test_a_node_that_somebody_stopped_does_not_hang(void **state)
{
    struct fixture *f = *state;
    int status;

    tick(f);
    assert_int_equal(kill(f->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(f->pid, &status, WUNTRACED), f->pid);
    assert_true(WIFSTOPPED(status));
    assert_false(hangs_within(f, 100 * LIMIT));
    assert_false(pulse_is_fresh(f->memory, f->now)); /* but nobody says that it is well */
    assert_int_equal(kill(f->pid, SIGCONT), 0);
    assert_int_equal(waitpid(f->pid, &status, WCONTINUED), f->pid);
    assert_true(hangs_within(f, LIMIT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_a_node_that_ticks_never_hangs),
        TEST(test_a_node_without_a_tick_for_the_limit_hangs),
        TEST(test_a_node_that_ticks_once_more_has_the_whole_limit_again),
        TEST(test_starting_may_take_its_time),
        TEST(test_freshness_lasts_a_second),
        TEST(test_a_machine_that_was_suspended_is_no_hang),
        TEST(test_a_node_that_somebody_stopped_does_not_hang),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
