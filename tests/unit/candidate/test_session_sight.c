/* SPDX-License-Identifier: Apache-2.0 */

/* What a candidate of a session is asked between its steps, whom it watches, and how it waits for its turn in
 * another session. */

#include "session_fixture.h"

static void test_between_steps_a_mandate_lasts_as_long_as_the_session(void **state)
{
    struct fixture *f = *state;
    struct candidate *c = &f->candidate;
    gavel_ns stop_at, deadline, until = 0;
    struct store_session another;

    lead(f);
    f->session.lasts = ns_from_ms(TTL_MS);
    f->session.deadline = ns_from_ms(f->now + 5000); /* of which no step has told */
    candidate_times_in(c, &f->session, &stop_at, &deadline);
    assert_int_equal(deadline, f->session.deadline - ns_from_ms(50));
    assert_int_equal(stop_at, deadline - ns_from_ms(500));
    assert_false(candidate_is_leader(c, stop_at - 1));
    assert_true(candidate_is_leader_in(c, &f->session, stop_at - 1));
    assert_false(candidate_is_leader_in(c, &f->session, stop_at));
    /* The keep-alive was sent TTL_MS before the deadline. */
    assert_int_equal(candidate_answer_in(c, &f->session, f->session.deadline - ns_from_ms(1000), &until),
                     CANDIDATE_LEADER);
    assert_int_equal(until, stop_at);
    assert_int_equal(candidate_answer_in(c, &f->session, f->session.deadline - ns_from_ms(999), &until),
                     CANDIDATE_UNKNOWN_UNTIL);
    assert_int_equal(candidate_answer_in(c, &f->session, stop_at, &until), CANDIDATE_NOT_LEADER);
    another = f->session;
    another.number++;
    assert_false(candidate_is_leader_in(c, &another, 0));
    candidate_times_in(c, &another, &stop_at, &deadline);
    assert_int_equal(stop_at, 0);
}

/* A record of another, whose process is on our host. */
static struct store_reply led_here(const struct fixture *f, uint64_t version)
{
    struct store_reply reply = shown(f, version, "other", true);

    reply.record.process = (struct process_id){.pid = 9};
    return reply;
}

static void test_nobody_watches_a_process_whose_death_the_store_sees(void **state)
{
    struct fixture *f = *state;

    f->session.sees_deaths = true;
    begin(f);
    answer(f, STORE_READ, led_here(f, 6));
    assert_null(find(f, CANDIDATE_WATCH));
    answer(f, STORE_HEARTBEAT, led_here(f, 6));
    assert_null(find(f, CANDIDATE_WATCH));
    /* Another node, on another host, does not. */
    f->session.sees_deaths = false;
    tick(f);
    assert_non_null(find(f, CANDIDATE_WATCH));
    f->session.sees_deaths = true;
    tick(f);
    assert_non_null(find(f, CANDIDATE_UNWATCH));
}

/* Somebody, or we again, may have been granted it since, and nobody tells once more. */
static void test_a_hint_while_it_stops_is_looked_at_afterwards(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    assert_null(sent(f, STORE_READ));
    work_stopped(f);
    answer(f, STORE_RELEASE, shown(f, 8, "", false));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    (void)await(f, STORE_READ);
}

/* The mandate ends at once; what can wait is that it joins again. */
static void test_who_is_told_to_wait_says_nothing_in_another_session_until_it_may(void **state)
{
    struct fixture *f = *state;

    lead(f);
    open_session(f, 2);
    feed(f, (struct candidate_event){.kind = CANDIDATE_TICK, .waits = true});
    assert_int_equal(find(f, CANDIDATE_WORK_STOP)->work_stop.reason, GAVEL_REASON_LAPSED);
    work_stopped(f);
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    for (int i = 0; i < 1000; i++) {
        keep_alive(f);
        tick(f);
        assert_null(find(f, CANDIDATE_CALL));
    }
    assert_int_equal(candidate_wake_at(&f->candidate), NEVER);
    feed(f, (struct candidate_event){.kind = CANDIDATE_GO_ON});
    assert_int_equal(sent(f, STORE_HEARTBEAT)->session, 2);
    answer(f, STORE_HEARTBEAT, shown(f, 9, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_who_waits_may_stop_and_goes_on_with_the_session_after_that(void **state)
{
    struct fixture *f = *state;

    lead(f);
    open_session(f, 2);
    feed(f, (struct candidate_event){.kind = CANDIDATE_TICK, .waits = true});
    work_stopped(f);
    open_session(f, 3);
    tick(f); /* it leads no more, so it is told of this one in its turn */
    assert_int_equal(sent(f, STORE_HEARTBEAT)->session, 3);
    answer(f, STORE_HEARTBEAT, shown(f, 9, "me", true));
    open_session(f, 4);
    feed(f, (struct candidate_event){.kind = CANDIDATE_TICK, .waits = true});
    feed(f, (struct candidate_event){.kind = CANDIDATE_STOP});
    work_stopped(f);
    assert_int_equal(sent(f, STORE_LEAVE)->session, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_between_steps_a_mandate_lasts_as_long_as_the_session),
        TEST(test_nobody_watches_a_process_whose_death_the_store_sees),
        TEST(test_a_hint_while_it_stops_is_looked_at_afterwards),
        TEST(test_who_is_told_to_wait_says_nothing_in_another_session_until_it_may),
        TEST(test_who_waits_may_stop_and_goes_on_with_the_session_after_that),
    };

    return cmocka_run_group_tests_name("session_sight", tests, NULL, NULL);
}
