/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The judge of the demo on made-up records. The demo is worth nothing if its
 * verdict cannot be "guilty", so most of these plant a crime and want it found.
 */
#include "bench/props/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ADA, BEN, CLEO };

static struct mark elected(uint32_t member, uint64_t epoch, gavel_ns at)
{
    return (struct mark){.kind = MARK_ELECTED, .member = member, .epoch = epoch, .at = at};
}

static struct mark stopped(uint32_t member, uint64_t epoch, gavel_ns at)
{
    return (struct mark){.kind = MARK_STOPPED, .member = member, .epoch = epoch, .at = at};
}

static struct mark dead(uint32_t member, uint64_t epoch, gavel_ns at)
{
    return (struct mark){.kind = MARK_DEAD, .member = member, .epoch = epoch, .at = at};
}

static struct beat beat(uint32_t member, uint64_t epoch, gavel_ns at)
{
    return (struct beat){.member = member, .epoch = epoch, .at = at};
}

struct fixture {
    struct timeline timeline;
    struct mark marks[16];
    size_t mark_count;
    struct beat beats[16];
    size_t beat_count;
};

static void judge(struct fixture *f)
{
    assert_int_equal(timeline_build(f->marks, f->mark_count, f->beats, f->beat_count, &f->timeline),
                     GAVEL_OK);
}

static size_t count_of(const struct fixture *f, enum violation_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < f->timeline.violation_count; i++)
        n += f->timeline.violations[i].kind == kind;
    return n;
}

static void test_a_clean_hand_over_is_acquitted(void **state)
{
    struct fixture f = {
        .marks = {elected(ADA, 1, 100), stopped(ADA, 1, 200), elected(BEN, 2, 250), stopped(BEN, 2, 400)},
        .mark_count = 4,
        .beats = {beat(ADA, 1, 110), beat(ADA, 1, 190), beat(BEN, 2, 260)},
        .beat_count = 3};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 0);
    assert_int_equal(f.timeline.count, 2);
    assert_int_equal(f.timeline.mandates[0].how, MANDATE_STOPPED);
    assert_int_equal(f.timeline.mandates[0].beats, 2);
    assert_int_equal(f.timeline.beats, 3);
    assert_int_equal(timeline_gap(&f.timeline, 0), 0);
    assert_int_equal(timeline_gap(&f.timeline, 1), 50);
}

static void test_an_election_before_the_other_has_stopped_is_an_overlap(void **state)
{
    struct fixture f = {
        .marks = {elected(ADA, 1, 100), stopped(ADA, 1, 200), elected(BEN, 2, 180), stopped(BEN, 2, 400)},
        .mark_count = 4};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 1);
    assert_int_equal(f.timeline.violations[0].kind, VIOLATION_OVERLAP);
    assert_int_equal(f.timeline.violations[0].from, 180);
    assert_int_equal(f.timeline.violations[0].to, 200);
    assert_int_equal(timeline_gap(&f.timeline, 1), 0);
}

static void test_a_single_shared_nanosecond_is_an_overlap(void **state)
{
    struct fixture f = {
        .marks = {elected(ADA, 1, 100), stopped(ADA, 1, 200), elected(BEN, 2, 200), stopped(BEN, 2, 400)},
        .mark_count = 4};

    (void)state;
    judge(&f);
    assert_int_equal(count_of(&f, VIOLATION_OVERLAP), 1);
    f.marks[2].at = 201;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 0);
}

static void test_a_mandate_within_another_is_an_overlap_even_with_one_between_them(void **state)
{
    struct fixture f = {.marks = {elected(ADA, 1, 100), stopped(ADA, 1, 900), elected(BEN, 2, 200),
                                  stopped(BEN, 2, 300), elected(CLEO, 3, 400), stopped(CLEO, 3, 500)},
                        .mark_count = 6};

    (void)state;
    judge(&f);
    assert_int_equal(count_of(&f, VIOLATION_OVERLAP), 2);
}

static void test_a_mandate_without_an_end_overlaps_all_that_follow(void **state)
{
    struct fixture f = {.marks = {elected(ADA, 1, 100), elected(BEN, 2, 300), stopped(BEN, 2, 400)},
                        .mark_count = 3};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.mandates[0].how, MANDATE_OPEN);
    assert_int_equal(count_of(&f, VIOLATION_OVERLAP), 1);
}

static void test_a_killed_leader_led_until_the_earliest_proof_of_its_death(void **state)
{
    struct fixture f = {.marks = {elected(ADA, 1, 100), dead(ADA, 1, 320), dead(ADA, 1, 290),
                                  elected(BEN, 2, 300), stopped(BEN, 2, 400)},
                        .mark_count = 5,
                        .beats = {beat(ADA, 1, 250)},
                        .beat_count = 1};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 0);
    assert_int_equal(f.timeline.mandates[0].how, MANDATE_DIED);
    assert_int_equal(f.timeline.mandates[0].end, 290);
    assert_int_equal(timeline_gap(&f.timeline, 1), 50); /* since its last beat */
}

static void test_an_election_before_the_death_is_proven_is_an_overlap(void **state)
{
    struct fixture f = {
        .marks = {elected(ADA, 1, 100), dead(ADA, 1, 320), elected(BEN, 2, 300), stopped(BEN, 2, 400)},
        .mark_count = 4};

    (void)state;
    judge(&f);
    assert_int_equal(count_of(&f, VIOLATION_OVERLAP), 1);
}

static void test_a_death_ends_only_the_mandate_it_names(void **state)
{
    struct fixture f = {.marks = {elected(ADA, 1, 100), dead(ADA, 1, 200), elected(ADA, 2, 300),
                                  stopped(ADA, 2, 500), dead(ADA, 1, 400)},
                        .mark_count = 5};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 0);
    assert_int_equal(f.timeline.mandates[0].end, 200);
    assert_int_equal(f.timeline.mandates[1].end, 500);
}

static void test_one_beat_after_its_end_convicts_a_former_leader(void **state)
{
    struct fixture f = {
        .marks = {elected(ADA, 1, 100), stopped(ADA, 1, 600), elected(BEN, 2, 700), stopped(BEN, 2, 900)},
        .mark_count = 4,
        .beats = {beat(ADA, 1, 110), beat(BEN, 2, 710), beat(ADA, 1, 790)},
        .beat_count = 3};

    (void)state;
    judge(&f);
    assert_int_equal(count_of(&f, VIOLATION_OVERLAP), 1);
    assert_int_equal(count_of(&f, VIOLATION_LATE_ACT), 1);
    assert_int_equal(count_of(&f, VIOLATION_ORDER), 1);
}

static void test_a_process_that_the_next_one_saw_alive_convicts_whatever_it_said(void **state)
{
    struct fixture f = {.marks = {elected(ADA, 1, 100),
                                  stopped(ADA, 1, 200),
                                  {.kind = MARK_OVERLAP, .member = ADA, .epoch = 1, .at = 290},
                                  elected(BEN, 2, 300),
                                  stopped(BEN, 2, 400)},
                        .mark_count = 5};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 1);
    assert_int_equal(f.timeline.violations[0].kind, VIOLATION_ALIVE);
    assert_int_equal(f.timeline.violations[0].from, 290);
    assert_int_equal(f.timeline.mandates[f.timeline.violations[0].a].member, ADA);
}

static void test_a_beat_after_the_work_had_stopped_is_a_late_act(void **state)
{
    struct fixture f = {.marks = {elected(ADA, 1, 100), stopped(ADA, 1, 200)},
                        .mark_count = 2,
                        .beats = {beat(ADA, 1, 150), beat(ADA, 1, 201)},
                        .beat_count = 2};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 1);
    assert_int_equal(f.timeline.violations[0].kind, VIOLATION_LATE_ACT);
}

static void test_beats_of_one_that_was_never_elected_are_found(void **state)
{
    struct fixture f = {.marks = {elected(ADA, 1, 100), stopped(ADA, 1, 200)},
                        .mark_count = 2,
                        .beats = {beat(ADA, 1, 150), beat(CLEO, 1, 160), beat(CLEO, 1, 170)},
                        .beat_count = 3};

    (void)state;
    judge(&f);
    assert_int_equal(count_of(&f, VIOLATION_NO_MANDATE), 1);
    assert_int_equal(count_of(&f, VIOLATION_OVERLAP), 1);
    assert_int_equal(count_of(&f, VIOLATION_EPOCH), 1);
}

static void test_epochs_that_do_not_grow_are_found(void **state)
{
    struct fixture f = {
        .marks = {elected(ADA, 5, 100), stopped(ADA, 5, 200), elected(BEN, 5, 300), stopped(BEN, 5, 400)},
        .mark_count = 4};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 1);
    assert_int_equal(f.timeline.violations[0].kind, VIOLATION_EPOCH);
    f.marks[2].epoch = f.marks[3].epoch = 4;
    judge(&f);
    assert_int_equal(count_of(&f, VIOLATION_EPOCH), 1);
    f.marks[2].epoch = f.marks[3].epoch = 6;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 0);
}

static void test_a_log_that_takes_an_older_epoch_after_a_newer_one_is_found(void **state)
{
    struct fixture f = {
        .marks = {elected(ADA, 1, 100), stopped(ADA, 1, 200), elected(BEN, 2, 300), stopped(BEN, 2, 400)},
        .mark_count = 4,
        .beats = {beat(BEN, 2, 310), beat(ADA, 1, 150)},
        .beat_count = 2};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 1);
    assert_int_equal(f.timeline.violations[0].kind, VIOLATION_ORDER);
}

static void test_a_beat_whose_writer_died_in_the_middle_is_passed_over(void **state)
{
    struct fixture f = {.marks = {elected(ADA, 1, 100), stopped(ADA, 1, 200)},
                        .mark_count = 2,
                        .beats = {beat(ADA, 1, 150), beat(0, 0, 0)},
                        .beat_count = 2};

    (void)state;
    judge(&f);
    assert_int_equal(f.timeline.violation_count, 0);
    assert_int_equal(f.timeline.beats, 1);
}

static void test_more_mandates_than_fit_are_refused_and_not_judged(void **state)
{
    static struct mark marks[TIMELINE_MANDATES_MAX + 1];
    static struct timeline timeline;

    (void)state;
    for (size_t i = 0; i < COUNT(marks); i++)
        marks[i] = elected(ADA, i + 1, (gavel_ns)(100 * i));
    assert_int_equal(timeline_build(marks, COUNT(marks), NULL, 0, &timeline), GAVEL_ERR_INVALID);
    assert_int_equal(timeline.count, 0);
    assert_int_equal(timeline_build(marks, COUNT(marks) - 1, NULL, 0, &timeline), GAVEL_OK);
    assert_int_equal(timeline.count, TIMELINE_MANDATES_MAX);
}

static void test_violations_beyond_the_list_are_still_counted(void **state)
{
    static struct mark marks[20];
    static struct timeline timeline;

    (void)state;
    for (size_t i = 0; i < COUNT(marks); i++)
        marks[i] = elected(ADA, i + 1, (gavel_ns)(100 * i + 1)); /* none of them ever ends */
    assert_int_equal(timeline_build(marks, COUNT(marks), NULL, 0, &timeline), GAVEL_OK);
    assert_int_equal(timeline.violation_count, 20 * 19 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_clean_hand_over_is_acquitted),
        cmocka_unit_test(test_an_election_before_the_other_has_stopped_is_an_overlap),
        cmocka_unit_test(test_a_single_shared_nanosecond_is_an_overlap),
        cmocka_unit_test(test_a_mandate_within_another_is_an_overlap_even_with_one_between_them),
        cmocka_unit_test(test_a_mandate_without_an_end_overlaps_all_that_follow),
        cmocka_unit_test(test_a_killed_leader_led_until_the_earliest_proof_of_its_death),
        cmocka_unit_test(test_an_election_before_the_death_is_proven_is_an_overlap),
        cmocka_unit_test(test_a_death_ends_only_the_mandate_it_names),
        cmocka_unit_test(test_one_beat_after_its_end_convicts_a_former_leader),
        cmocka_unit_test(test_a_process_that_the_next_one_saw_alive_convicts_whatever_it_said),
        cmocka_unit_test(test_a_beat_after_the_work_had_stopped_is_a_late_act),
        cmocka_unit_test(test_beats_of_one_that_was_never_elected_are_found),
        cmocka_unit_test(test_epochs_that_do_not_grow_are_found),
        cmocka_unit_test(test_a_log_that_takes_an_older_epoch_after_a_newer_one_is_found),
        cmocka_unit_test(test_a_beat_whose_writer_died_in_the_middle_is_passed_over),
        cmocka_unit_test(test_more_mandates_than_fit_are_refused_and_not_judged),
        cmocka_unit_test(test_violations_beyond_the_list_are_still_counted),
    };

    return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
