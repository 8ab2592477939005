/* SPDX-License-Identifier: Apache-2.0 */

/* The referee on logs whose mistakes are known, for a referee that finds nothing proves nothing. */
#include "beat_referee.h"

#include "base/prng.h"

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct beat_referee referee;
    char path[64];
    struct beat_reader reader;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    int fd;

    assert_non_null(f);
    beat_referee_init(&f->referee);
    strcpy(f->path, "/tmp/gavel-referee-XXXXXX");
    fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(beat_reader_open(&f->reader, f->path));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    beat_reader_close(&f->reader);
    unlink(f->path);
    free(f);
    return 0;
}

static void beat_as(struct fixture *f, uint64_t epoch, gavel_ns at, uint16_t member)
{
    struct beat beat = {.epoch = epoch, .at = at, .member = member, .pid = 100 + member};

    beat_referee_beat(&f->referee, &beat);
}

static void test_epochs_one_after_the_other_are_fine(void **state)
{
    struct fixture *f = *state;

    beat_as(f, 3, 10, 0);
    beat_as(f, 3, 20, 0);
    beat_as(f, 4, 21, 1);
    beat_as(f, 9, 30, 0); /* epochs may be left out: somebody led and did nothing */
    assert_int_equal(beat_referee_found(&f->referee), 0);
    assert_int_equal(f->referee.span_count, 3);
    assert_int_equal(beat_referee_span(&f->referee, 3)->last, 20);
    assert_int_equal(beat_referee_newest(&f->referee)->epoch, 9);
}

static void test_processes_of_one_command_may_cross_each_other(void **state)
{
    struct fixture *f = *state;

    beat_as(f, 3, 10, 0);
    beat_as(f, 3, 9, 0); /* read the clock first and wrote second */
    beat_as(f, 4, 11, 1);
    assert_int_equal(beat_referee_found(&f->referee), 0);
    assert_int_equal(beat_referee_span(&f->referee, 3)->first, 9);
}

static void test_a_former_command_that_still_beats_is_found(void **state)
{
    struct fixture *f = *state;

    beat_as(f, 3, 10, 0);
    beat_as(f, 4, 20, 1);
    beat_as(f, 3, 21, 0);
    assert_int_equal(f->referee.found[FOUND_LATE], 1);
}

/* It had the time of its beat from before, and did it after another led: the log's order tells. */
static void test_a_late_beat_with_an_early_time_is_found(void **state)
{
    struct fixture *f = *state;

    beat_as(f, 3, 10, 0);
    beat_as(f, 4, 20, 1);
    beat_as(f, 3, 11, 0);
    assert_int_equal(f->referee.found[FOUND_LATE], 1);
}

static void test_an_overlap_in_time_is_found_whatever_the_order_of_the_log(void **state)
{
    struct fixture *f = *state;

    beat_as(f, 3, 10, 0);
    beat_as(f, 3, 30, 0);
    beat_as(f, 4, 20, 1);
    assert_int_equal(f->referee.found[FOUND_OVERLAP], 1);
    beat_as(f, 4, 30, 1); /* at the same instant is not later */
    assert_int_equal(f->referee.found[FOUND_OVERLAP], 2);
    beat_as(f, 5, 29, 1); /* nor may it overlap with the one before the last */
    assert_int_equal(f->referee.found[FOUND_OVERLAP], 3);
    beat_as(f, 5, 31, 1);
    assert_int_equal(beat_referee_found(&f->referee), 3);
}

static void test_an_epoch_of_two_members_is_found(void **state)
{
    struct fixture *f = *state;

    beat_as(f, 3, 10, 0);
    beat_as(f, 3, 11, 1);
    assert_int_equal(f->referee.found[FOUND_SHARED], 1);
}

static void test_a_beat_without_an_epoch_is_found(void **state)
{
    struct fixture *f = *state;

    beat_as(f, 0, 10, 0);
    assert_int_equal(f->referee.found[FOUND_NO_MANDATE], 1);
}

/* Good logs of many epochs, in each of which one beat is put where it must not be. */
static void test_one_planted_beat_among_thousands_is_always_found(void **state)
{
    struct fixture *f = *state;
    struct prng prng;

    prng_seed(&prng, 1);
    for (int round = 0; round < 500; round++) {
        uint64_t epochs = 2 + prng_below(&prng, 20), planted_in = 2 + prng_below(&prng, epochs - 1);
        gavel_ns at = 1000;

        beat_referee_init(&f->referee);
        for (uint64_t epoch = 1; epoch <= epochs; epoch++) {
            uint64_t beats = 1 + prng_below(&prng, 30), planted_at = prng_below(&prng, beats);

            for (uint64_t i = 0; i < beats; i++) {
                at += 1 + (gavel_ns)prng_below(&prng, 5);
                beat_as(f, epoch, at, (uint16_t)epoch);
                if (epoch == planted_in && i == planted_at)
                    beat_as(f, 1 + prng_below(&prng, epoch - 1), at, 99);
            }
        }
        assert_int_equal(beat_referee_found(&f->referee), 1);
        assert_int_equal(f->referee.found[FOUND_LATE], 1);
    }
}

static void test_what_is_no_beat_is_found(void **state)
{
    struct fixture *f = *state;
    struct beat beat = {.epoch = 1, .at = 5};
    int fd = beat_log_open(f->path);

    assert_true(fd >= 0);
    assert_true(beat_log_write(fd, &beat));
    beat.at = 6; /* the checksum is that of the other */
    assert_int_equal(write(fd, &beat, sizeof beat), sizeof beat);
    assert_true(beat_log_write(fd, &beat));
    assert_int_equal(write(fd, &beat, 7), 7);
    close(fd);
    beat_referee_read(&f->referee, &f->reader);
    assert_int_equal(f->referee.beats, 2);
    assert_int_equal(f->referee.found[FOUND_DAMAGED], 2);
    assert_int_equal(beat_referee_found(&f->referee), 2);
}

/* Many writers, killed at any instant: no beat is torn, and who is left is seen by the lock. */
static void test_beats_survive_the_death_of_their_writers(void **state)
{
    enum { WRITERS = 8 };
    struct fixture *f = *state;
    pid_t pids[WRITERS];
    uint64_t before;

    for (size_t i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            int fd = beat_log_open(f->path);

            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (uint32_t n = 0;; n++) {
                struct beat beat = {.epoch = 1, .at = n, .number = n};

                if (!beat_log_write(fd, &beat))
                    _exit(1);
            }
        }
    }
    for (size_t i = 0; i < WRITERS; i++) {
        before = f->referee.beats;
        for (int tries = 0; f->referee.beats < before + 1000 && tries < 10000; tries++) {
            beat_referee_read(&f->referee, &f->reader);
            usleep(1000);
        }
        assert_true(f->referee.beats >= before + 1000);
        assert_false(beat_log_is_abandoned(&f->reader));
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    }
    beat_referee_read(&f->referee, &f->reader);
    assert_int_equal(beat_referee_found(&f->referee), 0);
    assert_true(beat_log_is_abandoned(&f->reader));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_epochs_one_after_the_other_are_fine),
        TEST(test_processes_of_one_command_may_cross_each_other),
        TEST(test_a_former_command_that_still_beats_is_found),
        TEST(test_a_late_beat_with_an_early_time_is_found),
        TEST(test_an_overlap_in_time_is_found_whatever_the_order_of_the_log),
        TEST(test_an_epoch_of_two_members_is_found),
        TEST(test_a_beat_without_an_epoch_is_found),
        TEST(test_one_planted_beat_among_thousands_is_always_found),
        TEST(test_what_is_no_beat_is_found),
        TEST(test_beats_survive_the_death_of_their_writers),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
