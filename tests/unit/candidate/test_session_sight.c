/* SPDX-License-Identifier: Apache-2.0 */

/* What a candidate of a session is asked between its steps, and whom it watches. */

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
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, led_here(f, 6));
    assert_non_null(find(f, CANDIDATE_WATCH));
    f->session.sees_deaths = true;
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, led_here(f, 6));
    assert_non_null(find(f, CANDIDATE_UNWATCH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_between_steps_a_mandate_lasts_as_long_as_the_session),
        TEST(test_nobody_watches_a_process_whose_death_the_store_sees),
    };

    return cmocka_run_group_tests_name("session_sight", tests, NULL, NULL);
}
