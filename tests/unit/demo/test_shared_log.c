/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shared_log must itself be beyond doubt: its fence refuses what is older
 * than the newest it has seen, also between processes, and nothing that does
 * not fit is lost in silence.
 */
#include "bench/props/shared_log.h"
#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PROCESSES 4
#define BEATS 5000

struct fixture {
    struct shared_log *shared_log;
    int fd;
};

static int make(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);

    if (!fixture || shared_log_new(&fixture->shared_log, &fixture->fd) != GAVEL_OK)
        return -1;
    *state = fixture;
    return 0;
}

static int drop(void **state)
{
    struct fixture *fixture = *state;

    shared_log_free(fixture->shared_log);
    close(fixture->fd);
    free(fixture);
    return 0;
}

static void test_fence_refuses_an_older_epoch_and_counts_it(void **state)
{
    struct shared_log *shared_log = ((struct fixture *)*state)->shared_log;
    size_t count;

    assert_true(shared_log_beat(shared_log, 0, 1, 10));
    assert_true(shared_log_beat(shared_log, 1, 3, 20));
    assert_false(shared_log_beat(shared_log, 0, 1, 30));
    assert_false(shared_log_beat(shared_log, 2, 2, 40));
    assert_true(shared_log_beat(shared_log, 1, 3, 50));
    assert_int_equal(shared_log_highest_epoch(shared_log), 3);
    assert_int_equal(shared_log_fenced(shared_log), 2);
    assert_int_equal(shared_log_lost(shared_log), 0);

    const struct beat *beats = shared_log_beats(shared_log, &count);
    assert_int_equal(count, 3);
    assert_int_equal(beats[1].epoch, 3);
    assert_int_equal(beats[1].member, 1);
    assert_int_equal(beats[1].at, 20);
}

/* Each child writes its own epoch over and over; whatever the order, the log never goes back. */
static void test_log_of_many_processes_never_goes_back(void **state)
{
    struct shared_log *shared_log = ((struct fixture *)*state)->shared_log;
    pid_t children[PROCESSES];
    size_t count, taken = 0;

    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            for (gavel_ns at = 1; at <= BEATS; at++)
                (void)shared_log_beat(shared_log, i, i + 1, at);
            _exit(0);
        }
    }
    for (size_t i = 0; i < PROCESSES; i++)
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);

    const struct beat *beats = shared_log_beats(shared_log, &count);
    for (size_t i = 0; i < count; i++) {
        taken += beats[i].at != 0;
        assert_int_equal(beats[i].epoch, beats[i].member + 1);
        if (i)
            assert_true(beats[i].epoch >= beats[i - 1].epoch);
    }
    assert_int_equal(taken + shared_log_fenced(shared_log), PROCESSES * BEATS);
    assert_int_equal(beats[count - 1].epoch, PROCESSES);
}

static void test_beats_beyond_the_room_are_counted_as_lost(void **state)
{
    struct shared_log *shared_log = ((struct fixture *)*state)->shared_log;
    size_t count, taken = 0;

    while (shared_log_beat(shared_log, 0, 1, 1))
        taken++;
    assert_int_equal(shared_log_lost(shared_log), 1);
    (void)shared_log_beats(shared_log, &count);
    assert_int_equal(count, taken);
    assert_int_equal(shared_log_fenced(shared_log), 0);
}

static void test_marks_beyond_the_room_are_counted_as_lost(void **state)
{
    struct shared_log *shared_log = ((struct fixture *)*state)->shared_log;
    struct mark mark = {.kind = MARK_JOINED};
    size_t before, count;

    do {
        (void)shared_log_marks(shared_log, &before);
        shared_log_mark(shared_log, &mark);
        (void)shared_log_marks(shared_log, &count);
    } while (count > before);
    assert_int_equal(shared_log_lost(shared_log), 1);
    assert_int_equal(shared_log_finished(shared_log), count);
}

static void test_waiter_is_woken_by_the_mark_of_another_process(void **state)
{
    struct shared_log *shared_log = ((struct fixture *)*state)->shared_log;
    uint32_t seen = shared_log_finished(shared_log);
    gavel_ns until = clock_now() + 20 * NS_PER_S;
    size_t count;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        shared_log_mark(shared_log, &(struct mark){.kind = MARK_ELECTED, .member = 2, .epoch = 7, .at = 1});
        _exit(0);
    }
    while (shared_log_finished(shared_log) == seen && clock_now() < until)
        shared_log_wait(shared_log, seen, until);
    assert_true(clock_now() < until);
    assert_int_equal(waitpid(child, NULL, 0), child);

    const struct mark *marks = shared_log_marks(shared_log, &count);
    assert_int_equal(count, 1);
    assert_int_equal(mark_kind(&marks[0]), MARK_ELECTED);
    assert_int_equal(marks[0].member, 2);
    assert_int_equal(marks[0].epoch, 7);
}

static void test_a_program_with_the_descriptor_maps_the_same_memory(void **state)
{
    struct fixture *fixture = *state;
    struct shared_log *other;
    int pipes[2];

    assert_int_equal(shared_log_map(fixture->fd, &other), GAVEL_OK);
    assert_true(shared_log_beat(other, 1, 5, 10));
    assert_int_equal(shared_log_highest_epoch(fixture->shared_log), 5);
    assert_false(shared_log_beat(fixture->shared_log, 0, 4, 20));
    assert_int_equal(shared_log_fenced(other), 1);
    shared_log_free(other);

    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(shared_log_map(pipes[0], &other), GAVEL_ERR_INVALID);
    close(pipes[0]);
    close(pipes[1]);
    assert_int_equal(shared_log_map(-1, &other), GAVEL_ERR_INVALID);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(test_fence_refuses_an_older_epoch_and_counts_it),
        TEST(test_log_of_many_processes_never_goes_back),
        TEST(test_beats_beyond_the_room_are_counted_as_lost),
        TEST(test_marks_beyond_the_room_are_counted_as_lost),
        TEST(test_waiter_is_woken_by_the_mark_of_another_process),
        TEST(test_a_program_with_the_descriptor_maps_the_same_memory),
    };

    return cmocka_run_group_tests_name("shared_log", tests, NULL, NULL);
}
