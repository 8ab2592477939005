/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Marks from a leader to its voters, and what a new leader concludes from what
 * they held. Everything that is sent goes through its bytes.
 */
#include "core/session/marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS(n) ((n)*NS_PER_MS)
#define DRIFT_PPM 1000
#define CONFIG 77
#define NODES 3

/* A node; ids begin with 1. All clocks are the same here. */
struct one {
    struct silence silence;
    struct marks marks;
    uint64_t incarnation;
};

struct fixture {
    struct one nodes[NODES];
    gavel_ns now;
};

static void start(struct fixture *f, unsigned which, gavel_ns began_at)
{
    struct one *one = &f->nodes[which];

    marks_done(&one->marks);
    silence_done(&one->silence);
    silence_init(&one->silence, DRIFT_PPM, began_at);
    marks_init(&one->marks, &one->silence);
    one->incarnation++;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->now = MS(1000);
    for (unsigned i = 0; i < NODES; i++)
        start(f, i, f->now);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < NODES; i++) {
        marks_done(&f->nodes[i].marks);
        silence_done(&f->nodes[i].silence);
    }
    free(f);
    return 0;
}

/* As the other side decodes it; for silence_message_done(). */
static struct silence_message copy_of(const struct silence_message *message)
{
    struct silence_message copy = {0};
    uint8_t *bytes;
    size_t size;

    assert_int_equal(silence_encode(message, &bytes, &size), GAVEL_OK);
    assert_int_equal(silence_decode(bytes, size, &copy), GAVEL_OK);
    free(bytes);
    return copy;
}

/* What is due to a voter, as a copy; false: nothing. */
static bool due(struct fixture *f, unsigned from, unsigned to, struct silence_message *ret_message)
{
    struct marks *marks = &f->nodes[from].marks;
    struct marks_room room;
    struct silence_message message;

    if (f->now < marks_send_at(marks, to + 1))
        return false;
    marks_send(marks, f->now, to + 1, CONFIG, &room, &message);
    *ret_message = copy_of(&message);
    return true;
}

/* As a node does (core/node/silence.c). */
static void take(struct fixture *f, unsigned from, unsigned to, const struct silence_message *message)
{
    struct one *one = &f->nodes[to];
    struct silence_message answer = {.is_answer = true, .term = message->term};
    const struct silence_past *past;

    silence_led(&one->silence, message->term);
    if (message->to_incarnation == one->incarnation)
        silence_take(&one->silence, f->now, message);
    answer.held = one->silence.held.term == message->term ? one->silence.held.number : 0;
    past = silence_before(&one->silence, message->term);
    answer.told = past->kind;
    answer.told_term = past->held_term;
    answer.told_number = past->held_number;
    answer.told_age = ns_max(f->now - past->at, 0);
    answer = copy_of(&answer);
    (void)marks_take(&f->nodes[from].marks, f->now, to + 1, one->incarnation, &answer);
    silence_message_done(&answer);
}

/* All that is due goes there, and is answered. */
static void exchange(struct fixture *f, unsigned from, unsigned to)
{
    struct silence_message message;

    while (due(f, from, to, &message)) {
        take(f, from, to, &message);
        silence_message_done(&message);
    }
}

static void hear(struct fixture *f, unsigned leader, uint64_t revision)
{
    struct marks *marks = &f->nodes[leader].marks;

    assert_int_equal(marks_hear(marks, revision), marks_next(marks));
    f->now = ns_max(f->now, marks_due_at(marks));
    marks_make(marks, f->now, CONFIG);
}

static void lead(struct fixture *f, unsigned leader, uint64_t term, bool is_making)
{
    marks_open(&f->nodes[leader].marks, f->now, term, is_making);
    for (unsigned i = 0; i < NODES; i++)
        if (i != leader)
            exchange(f, leader, i);
}

/* A leads; both others hold what was heard of 10 and, later, of 20. Returns when each was marked. */
static void heard_twice(struct fixture *f, gavel_ns *ret_first, gavel_ns *ret_second)
{
    lead(f, 0, 5, true);
    f->now += MS(100);
    hear(f, 0, 10);
    *ret_first = f->now;
    exchange(f, 0, 1);
    exchange(f, 0, 2);
    f->now += MS(300);
    hear(f, 0, 20);
    *ret_second = f->now;
    exchange(f, 0, 1);
    exchange(f, 0, 2);
    assert_int_equal(marks_acked(&f->nodes[0].marks, 2), 2);
    assert_int_equal(marks_acked(&f->nodes[0].marks, 3), 2);
}

static void test_a_voter_knows_when_a_session_was_heard(void **state)
{
    struct fixture *f = *state;
    gavel_ns began = f->now;
    gavel_ns first, second;

    heard_twice(f, &first, &second);
    for (unsigned i = 0; i < NODES; i++) {
        assert_int_equal(silence_heard_at(&f->nodes[i].silence, 10), first);
        assert_int_equal(silence_heard_at(&f->nodes[i].silence, 20), second);
        assert_int_equal(silence_heard_at(&f->nodes[i].silence, 30), began);
    }
}

static void test_a_new_leader_that_holds_all_marks_knows_the_silence(void **state)
{
    struct fixture *f = *state;
    gavel_ns began = f->now;
    gavel_ns first, second;

    heard_twice(f, &first, &second);
    f->now += MS(400);
    marks_open(&f->nodes[1].marks, f->now, 6, true);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 10), f->now); /* nobody has said yet */
    exchange(f, 1, 2);
    assert_int_equal(marks_sure(&f->nodes[1].marks, 3), NEVER);
    marks_learn(&f->nodes[1].marks, marks_sure(&f->nodes[1].marks, 3), CONFIG);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 10), first);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 20), second);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 30), began);
}

static void test_who_holds_more_says_since_when(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, second, third;

    heard_twice(f, &first, &second);
    f->now += MS(100);
    hear(f, 0, 10);
    exchange(f, 0, 2);
    third = f->now;
    f->now += MS(400);
    marks_open(&f->nodes[1].marks, f->now, 6, true);
    exchange(f, 1, 2);
    marks_learn(&f->nodes[1].marks, marks_sure(&f->nodes[1].marks, 3), CONFIG);
    /* Its age is shortened by the drift of two clocks: later than it was, by not much. */
    assert_in_range(silence_heard_at(&f->nodes[1].silence, 20), third, third + MS(1));
    assert_in_range(silence_heard_at(&f->nodes[1].silence, 10), third, third + MS(1));
    assert_true(silence_heard_at(&f->nodes[1].silence, 10) > third);
}

static void test_who_has_restarted_says_since_when(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, second, started;

    heard_twice(f, &first, &second);
    f->now += MS(50);
    started = f->now + MS(150); /* it has promised something */
    start(f, 2, started);
    f->now += MS(400);
    marks_open(&f->nodes[1].marks, f->now, 6, true);
    exchange(f, 1, 2);
    marks_learn(&f->nodes[1].marks, marks_sure(&f->nodes[1].marks, 3), CONFIG);
    assert_in_range(silence_heard_at(&f->nodes[1].silence, 10), started, started + MS(1));
}

static void test_who_followed_a_leader_without_marks_knows_nothing(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, second;

    heard_twice(f, &first, &second);
    silence_led(&f->nodes[2].silence, 6); /* it has led without marks */
    f->now += MS(400);
    marks_open(&f->nodes[1].marks, f->now, 7, true);
    exchange(f, 1, 2);
    assert_int_equal(marks_sure(&f->nodes[1].marks, 3), 0);
    marks_learn(&f->nodes[1].marks, marks_sure(&f->nodes[1].marks, 3), CONFIG);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 10), f->now);
}

static void test_who_followed_one_itself_concludes_nothing(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, second;

    heard_twice(f, &first, &second);
    silence_led(&f->nodes[1].silence, 6);
    f->now += MS(400);
    marks_open(&f->nodes[1].marks, f->now, 7, true);
    exchange(f, 1, 2);
    marks_learn(&f->nodes[1].marks, NEVER, CONFIG);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 10), f->now);
}

static void test_in_another_configuration_nothing_is_concluded(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, second;

    heard_twice(f, &first, &second);
    f->now += MS(400);
    marks_open(&f->nodes[1].marks, f->now, 6, true);
    exchange(f, 1, 2);
    marks_learn(&f->nodes[1].marks, NEVER, CONFIG + 1);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 10), f->now);
}

static void test_a_former_leader_says_what_it_has_answered(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, second;

    heard_twice(f, &first, &second);
    marks_answer(&f->nodes[0].marks, 2);
    f->now += MS(100);
    hear(f, 0, 10); /* nobody has taken that, so it is not answered */
    marks_close(&f->nodes[0].marks, f->now, CONFIG);
    f->now += MS(400);
    marks_open(&f->nodes[1].marks, f->now, 6, true);
    exchange(f, 1, 0);
    assert_int_equal(marks_sure(&f->nodes[1].marks, 1), NEVER);
    marks_learn(&f->nodes[1].marks, NEVER, CONFIG);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 10), first);
}

static void test_marks_that_were_lost_are_sent_again(void **state)
{
    struct fixture *f = *state;
    struct silence_message lost;
    gavel_ns first;

    lead(f, 0, 5, true);
    f->now += MS(100);
    hear(f, 0, 10);
    first = f->now;
    assert_true(due(f, 0, 1, &lost));
    silence_message_done(&lost);
    assert_false(due(f, 0, 1, &lost)); /* it may be on its way */
    f->now += MARKS_AGAIN;
    exchange(f, 0, 1);
    assert_int_equal(marks_acked(&f->nodes[0].marks, 2), 1);
    assert_in_range(silence_heard_at(&f->nodes[1].silence, 10), first, first + MS(1));
}

/* Otherwise answers wait for half a second, if the other voter goes just when this one comes back. */
static void test_a_voter_that_was_silent_is_sent_marks_again_when_it_speaks(void **state)
{
    struct fixture *f = *state;
    struct silence_message lost;

    lead(f, 0, 5, true);
    for (gavel_ns until = f->now + 2 * MARKS_SILENT; f->now < until; f->now += MARKS_AGAIN) {
        hear(f, 0, 10);
        if (due(f, 0, 1, &lost))
            silence_message_done(&lost);
    }
    while (!due(f, 0, 1, &lost))
        f->now += MARKS_AGAIN;
    silence_message_done(&lost);
    hear(f, 0, 20);
    f->now += MARKS_AGAIN;
    assert_false(due(f, 0, 1, &lost)); /* nobody is there */
    marks_speaks(&f->nodes[0].marks, 2);
    exchange(f, 0, 1);
    assert_int_equal(marks_acked(&f->nodes[0].marks, 2), f->nodes[0].silence.held.number);
    assert_in_range(silence_heard_at(&f->nodes[1].silence, 20), f->now - MARKS_AGAIN,
                    f->now - MARKS_AGAIN + MS(1));
}

static void test_an_old_message_that_comes_late_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct silence_message late;
    gavel_ns second;

    lead(f, 0, 5, true);
    f->now += MS(100);
    hear(f, 0, 10);
    assert_true(due(f, 0, 1, &late));
    f->now += MS(100);
    hear(f, 0, 20);
    second = f->now;
    exchange(f, 0, 1);
    f->now += MS(300);
    take(f, 0, 1, &late);
    silence_message_done(&late);
    assert_int_equal(f->nodes[1].silence.held.number, 2);
    assert_int_equal(silence_heard_at(&f->nodes[1].silence, 20), second);
    assert_in_range(silence_heard_at(&f->nodes[1].silence, 10), second - MS(100), second - MS(99));
}

static void test_who_was_away_begins_at_the_floor(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, second;
    gavel_ns floor;

    heard_twice(f, &first, &second);
    f->now += MS(100);
    start(f, 2, f->now); /* the leader does not know that yet */
    hear(f, 0, 30);
    exchange(f, 0, 2); /* sent to its former start: it is not taken … */
    f->now += MARKS_AGAIN;
    exchange(f, 0, 2); /* … and the next one is */
    assert_int_equal(f->nodes[2].silence.held.number, 3);
    floor = silence_heard_at(&f->nodes[2].silence, 99);
    assert_true(floor <= silence_heard_at(&f->nodes[2].silence, 30));
    assert_true(silence_heard_at(&f->nodes[2].silence, 10) >= first);
    assert_true(silence_heard_at(&f->nodes[2].silence, 20) >= second);
}

static void test_what_is_meant_for_a_former_start_is_not_taken(void **state)
{
    struct fixture *f = *state;
    struct silence_message message;

    lead(f, 0, 5, true);
    f->now += MS(100);
    hear(f, 0, 10);
    assert_true(due(f, 0, 2, &message));
    start(f, 2, f->now);
    take(f, 0, 2, &message);
    silence_message_done(&message);
    assert_int_equal(f->nodes[2].silence.held.term, 0);
    assert_int_equal(marks_acked(&f->nodes[0].marks, 3), 0);
}

static void test_a_leadership_that_goes_on_in_its_term_knows_what_it_knew(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, second;

    heard_twice(f, &first, &second);
    marks_close(&f->nodes[0].marks, f->now, CONFIG);
    f->now += MS(200);
    marks_open(&f->nodes[0].marks, f->now, 5, true);
    assert_int_equal(silence_heard_at(&f->nodes[0].silence, 10), first);
    hear(f, 0, 10);
    exchange(f, 0, 1);
    assert_int_equal(marks_acked(&f->nodes[0].marks, 2), 3);
}

static void test_many_sessions_are_marked_and_the_oldest_left_out(void **state)
{
    struct fixture *f = *state;
    struct marks *marks = &f->nodes[0].marks;
    struct silence_message message;
    size_t sessions = 0;

    lead(f, 0, 5, true);
    for (uint64_t round = 0; round < 100; round++) {
        for (uint64_t i = 0; i < 1000; i++)
            assert_int_not_equal(marks_hear(marks, 1 + round * 1000 + i), 0);
        f->now += MARKS_PACE;
        marks_make(marks, f->now, CONFIG);
    }
    assert_true(due(f, 0, 1, &message));
    for (size_t i = 0; i < message.mark_count; i++)
        sessions += message.marks[i].count;
    assert_in_range(sessions, SILENCE_SESSIONS_MAX - 1000, SILENCE_SESSIONS_MAX);
    take(f, 0, 1, &message);
    silence_message_done(&message);
    assert_int_equal(marks_acked(marks, 2), 100);
    assert_in_range(silence_heard_at(&f->nodes[1].silence, 100 * 1000), f->now, f->now);
    assert_in_range(silence_heard_at(&f->nodes[1].silence, 1), f->now - MARKS_PACE * 17, f->now);
}

static void test_bytes_that_no_leader_sends_are_refused(void **state)
{
    const uint64_t revisions[] = {3, 4, 900};
    const struct silence_mark marks[] = {{.age = MS(3), .count = 3, .revisions = revisions}};
    struct silence_message message = {
        .term = 4, .is_marking = true, .from = 9, .mark_count = 1, .marks = marks};
    struct silence_message decoded;
    uint8_t *bytes;
    size_t size;

    (void)state;
    assert_int_equal(silence_encode(&message, &bytes, &size), GAVEL_OK);
    assert_int_equal(silence_decode(bytes, size, &decoded), GAVEL_OK);
    assert_int_equal(decoded.mark_count, 1);
    assert_int_equal(decoded.marks[0].age, MS(3));
    assert_memory_equal(decoded.marks[0].revisions, revisions, sizeof revisions);
    silence_message_done(&decoded);
    for (size_t i = 0; i < size; i++) { /* cut off anywhere: refused, or something that can be */
        if (silence_decode(bytes, i, &decoded) == GAVEL_OK)
            silence_message_done(&decoded);
    }
    free(bytes);
    message = (struct silence_message){.is_answer = true};
    assert_int_equal(silence_encode(&message, &bytes, &size), GAVEL_OK);
    assert_int_equal(silence_decode(bytes, size, &decoded), GAVEL_ERR_INVALID); /* of no term */
    free(bytes);
    message = (struct silence_message){.term = 1, .is_answer = true, .is_marking = true};
    assert_int_equal(silence_encode(&message, &bytes, &size), GAVEL_OK);
    assert_int_equal(silence_decode(bytes, size, &decoded), GAVEL_ERR_INVALID);
    free(bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_voter_knows_when_a_session_was_heard),
        TEST(test_a_new_leader_that_holds_all_marks_knows_the_silence),
        TEST(test_who_holds_more_says_since_when),
        TEST(test_who_has_restarted_says_since_when),
        TEST(test_who_followed_a_leader_without_marks_knows_nothing),
        TEST(test_who_followed_one_itself_concludes_nothing),
        TEST(test_in_another_configuration_nothing_is_concluded),
        TEST(test_a_former_leader_says_what_it_has_answered),
        TEST(test_marks_that_were_lost_are_sent_again),
        TEST(test_a_voter_that_was_silent_is_sent_marks_again_when_it_speaks),
        TEST(test_an_old_message_that_comes_late_changes_nothing),
        TEST(test_who_was_away_begins_at_the_floor),
        TEST(test_what_is_meant_for_a_former_start_is_not_taken),
        TEST(test_a_leadership_that_goes_on_in_its_term_knows_what_it_knew),
        TEST(test_many_sessions_are_marked_and_the_oldest_left_out),
        TEST(test_bytes_that_no_leader_sends_are_refused),
    };

    return cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}
