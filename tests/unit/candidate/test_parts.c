/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of the candidate that have rules of their own: breaker, contention, fence, peers, observation. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "core/candidate/breaker.h"
#include "core/candidate/contention.h"
#include "core/candidate/fence.h"
#include "core/candidate/observation.h"
#include "core/candidate/peers.h"

#define AT(ms) ns_from_ms(ms)

static struct gavel_settings local(void)
{
    struct gavel_settings settings;

    assert_int_equal(gavel_settings_preset("local", &settings), GAVEL_OK);
    return settings;
}

static void test_breaker_opens_after_five_failures_in_a_row(void **state)
{
    struct gavel_settings settings = local();
    struct breaker breaker = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_false(breaker_failed(&breaker, &settings, AT(1)));
    assert_false(breaker_succeeded(&breaker, AT(1)));
    for (int i = 0; i < 4; i++)
        assert_false(breaker_failed(&breaker, &settings, AT(2)));
    assert_true(breaker_failed(&breaker, &settings, AT(2)));
    assert_int_equal(breaker.state, BREAKER_OPEN);
    assert_false(breaker_allows(&breaker, &settings, true, AT(2)));
}

static void test_half_open_breaker_lets_one_call_through_and_closes_on_success(void **state)
{
    struct gavel_settings settings = local();
    struct breaker breaker = {.state = BREAKER_OPEN, .retry_at = AT(30000)};

    (void)state;
    assert_false(breaker_allows(&breaker, &settings, true, AT(29999)));
    assert_true(breaker_allows(&breaker, &settings, true, AT(30000)));
    assert_false(breaker_allows(&breaker, &settings, true, AT(30000)));
    assert_true(breaker_succeeded(&breaker, AT(30000)));
    assert_true(breaker_allows(&breaker, &settings, true, AT(30001)));
}

static void test_answers_from_before_it_opened_do_not_close_a_breaker(void **state)
{
    struct gavel_settings settings = local();
    struct breaker breaker = {0};

    (void)state;
    for (int i = 0; i < settings.breaker_threshold; i++)
        (void)breaker_failed(&breaker, &settings, AT(1000)); /* the last one opens it */
    assert_int_equal(breaker.state, BREAKER_OPEN);
    assert_false(breaker_succeeded(&breaker, AT(999)));
    assert_int_equal(breaker.state, BREAKER_OPEN);
    assert_true(breaker_succeeded(&breaker, AT(1000)));
    assert_int_equal(breaker.state, BREAKER_CLOSED);
}

static void test_while_nobody_leads_an_open_breaker_tries_each_election_interval(void **state)
{
    struct gavel_settings settings = local();
    struct breaker breaker = {.state = BREAKER_OPEN, .retry_at = AT(30000), .failed_at = AT(0)};

    (void)state;
    assert_int_equal(breaker_retry_at(&breaker, &settings, true), AT(30000));
    assert_int_equal(breaker_retry_at(&breaker, &settings, false), AT(settings.election_interval_ms));
    assert_false(breaker_allows(&breaker, &settings, true, AT(settings.election_interval_ms)));
    assert_true(breaker_allows(&breaker, &settings, false, AT(settings.election_interval_ms)));
    assert_false(breaker_failed(&breaker, &settings, AT(900)));
    assert_int_equal(breaker_retry_at(&breaker, &settings, false), AT(900 + settings.election_interval_ms));
}

static void test_half_open_breaker_opens_again_on_failure(void **state)
{
    struct gavel_settings settings = local();
    struct breaker breaker = {.state = BREAKER_OPEN, .retry_at = AT(30000)};

    (void)state;
    assert_true(breaker_allows(&breaker, &settings, true, AT(30000)));
    assert_false(breaker_failed(&breaker, &settings, AT(30500))); /* no second event */
    assert_false(breaker_allows(&breaker, &settings, true, AT(60499)));
    assert_true(breaker_allows(&breaker, &settings, true, AT(60500)));
}

static void test_nudge_makes_an_open_breaker_try_early(void **state)
{
    struct gavel_settings settings = local();
    struct breaker breaker = {.state = BREAKER_OPEN, .retry_at = AT(30000)};

    (void)state;
    breaker_nudge(&breaker);
    assert_true(breaker_allows(&breaker, &settings, true, AT(5)));
}

static void test_contention_is_reported_above_the_threshold_and_not_too_often(void **state)
{
    struct gavel_settings settings = local();
    struct contention contention = {0};
    gavel_ns took = 0;

    (void)state;
    assert_false(contention_beat(&contention, &settings, AT(1000), &took)); /* the first has none before it */
    assert_false(contention_beat(&contention, &settings, AT(2100), &took)); /* exactly 2.0 times 550 ms */
    assert_true(contention_beat(&contention, &settings, AT(3201), &took));
    assert_int_equal(took, AT(1101));
    assert_false(contention_beat(&contention, &settings, AT(10000), &took)); /* within 30 s */
    assert_true(contention_beat(&contention, &settings, AT(40000), &took));
}

static void test_fence_allows_the_newest_and_newer_epochs(void **state)
{
    struct fence fence = {0};

    (void)state;
    fence_note(&fence, 7, AT(100));
    assert_true(fence_allows(&fence, 7, AT(100), AT(100000), 5000));
    assert_true(fence_allows(&fence, 8, AT(100), AT(100000), 5000));
    assert_false(fence_allows(&fence, 6, AT(50), AT(101), 5000)); /* not the previous one: none was seen */
    assert_false(fence_allows(&fence, 0, AT(50), AT(101), 5000));
}

static void test_fence_allows_the_previous_epoch_only_within_grace_and_only_if_older_than_the_change(
    void **state)
{
    struct fence fence = {0};

    (void)state;
    fence_note(&fence, 7, AT(100));
    fence_note(&fence, 9, AT(1000));
    assert_true(fence_allows(&fence, 7, AT(999), AT(5999), 5000));
    assert_false(fence_allows(&fence, 7, AT(999), AT(6000), 5000));
    assert_false(
        fence_allows(&fence, 7, AT(1001), AT(1002), 5000)); /* a former leader that has not noticed */
    assert_false(fence_allows(&fence, 7, AT(999), AT(1000), 0));
    assert_false(fence_allows(&fence, 6, AT(999), AT(1001), 5000));
    fence_note(&fence, 8, AT(2000)); /* late news changes nothing */
    assert_true(fence_allows(&fence, 7, AT(999), AT(5999), 5000));
}

static struct registration candidate(const char *id, int priority, bool is_eligible)
{
    struct registration r = {
        .instance = (uint64_t)id[0], .beats = 1, .priority = priority, .eligible = is_eligible};

    snprintf(r.id, sizeof r.id, "%s", id);
    return r;
}

static size_t rank(const struct peers *peers, enum gavel_policy policy, const char *id, int32_t priority,
                   const char *first_choice, const char *excluded)
{
    return peers_rank(peers, &(struct peers_ranking){policy, id, priority, first_choice, excluded, 0});
}

static void test_rank_counts_active_eligible_candidates_that_go_before(void **state)
{
    struct peers peers = {0};
    struct registration list[] = {candidate("a", 1, true), candidate("b", 5, true), candidate("c", 9, false),
                                  candidate("d", 5, true), candidate("e", 9, true)};

    (void)state;
    list[4].age_ms = 3001; /* silent for too long */
    assert_true(peers_update(&peers, list, 5, 3000, AT(0)));
    assert_int_equal(peers_active(&peers), 4);
    assert_int_equal(rank(&peers, GAVEL_POLICY_FIRST, "d", 5, "", ""), 0);
    assert_int_equal(rank(&peers, GAVEL_POLICY_LEXICOGRAPHIC, "d", 5, "", ""), 2);
    assert_int_equal(rank(&peers, GAVEL_POLICY_PRIORITY, "d", 5, "", ""), 1); /* b: a tie, by id */
    assert_int_equal(rank(&peers, GAVEL_POLICY_PRIORITY, "a", 1, "", ""), 2);
    assert_int_equal(rank(&peers, GAVEL_POLICY_PRIORITY, "d", 5, "", "b"), 0); /* b has just gone */
    assert_int_equal(rank(&peers, GAVEL_POLICY_FIRST, "d", 5, "a", ""), 1);    /* a was asked for */
    assert_int_equal(rank(&peers, GAVEL_POLICY_FIRST, "d", 5, "e", ""), 0);    /* e is not there */
    assert_int_equal(rank(&peers, GAVEL_POLICY_FIRST, "d", 5, "new", ""), 1);  /* perhaps it just joined */
    assert_int_equal(rank(&peers, GAVEL_POLICY_PRIORITY, "a", 1, "a", ""), 0);
    assert_string_equal(peers_better(&peers, GAVEL_POLICY_PRIORITY, "a", 1, AT(-1))->id, "b");
    assert_null(peers_better(&peers, GAVEL_POLICY_PRIORITY, "b", 5, AT(-1)));
    assert_null(peers_better(&peers, GAVEL_POLICY_FIRST, "d", 5, AT(-1)));
    assert_null(peers_better(&peers, GAVEL_POLICY_PRIORITY, "a", 1, AT(0))); /* not heard of since */
    peers_done(&peers);
}

static void test_at_a_cold_start_who_still_observes_counts_and_is_waited_for(void **state)
{
    struct peers_ranking ranking = {GAVEL_POLICY_LEXICOGRAPHIC, "c", 0, "", "", 0};
    struct peers peers = {0};
    struct registration list[] = {candidate("a", 0, true), candidate("b", 0, false), candidate("d", 0, true)};

    (void)state;
    assert_true(peers_update(&peers, list, 1, 3000, AT(0)));
    assert_true(peers_update(&peers, list, 3, 3000, AT(40)));
    assert_int_equal(peers_rank(&peers, &ranking), 1);
    assert_int_equal(peers_stand_at(&peers, &ranking), AT(0));
    ranking.observation = AT(100) - AT(0);
    assert_int_equal(peers_rank(&peers, &ranking), 2);
    assert_int_equal(peers_stand_at(&peers, &ranking), AT(140)); /* b, if it began when it was first listed */
    assert_int_equal(peers_joined_at(&peers, &ranking), AT(40));
    list[1].eligible = true;
    assert_true(peers_update(&peers, list, 3, 3000, AT(90)));
    assert_int_equal(peers_stand_at(&peers, &ranking), AT(90)); /* it has told that it stands */
    list[1].instance++;
    assert_true(peers_update(&peers, list, 3, 3000, AT(95)));
    assert_int_equal(peers_joined_at(&peers, &ranking), AT(95)); /* another process of that id */
    ranking.id = "a";
    assert_int_equal(peers_stand_at(&peers, &ranking), INT64_MIN);
    peers_done(&peers);
}

static void test_the_best_is_handed_over_to_and_not_the_first_that_was_heard_of(void **state)
{
    struct peers peers = {0};
    struct registration list[] = {candidate("a", 0, true), candidate("b", 0, true)};

    (void)state;
    list[0].age_ms = list[1].age_ms = 0;
    assert_true(peers_update(&peers, list, 2, 3000, AT(0)));
    list[1].beats++;
    assert_false(peers_update(&peers, list, 2, 3000, AT(10)));
    /* b beats, a has not yet: wait for a, or for its time-out. */
    assert_null(peers_better(&peers, GAVEL_POLICY_LEXICOGRAPHIC, "c", 0, AT(0)));
    list[0].beats++;
    assert_false(peers_update(&peers, list, 2, 3000, AT(20)));
    assert_string_equal(peers_better(&peers, GAVEL_POLICY_LEXICOGRAPHIC, "c", 0, AT(0))->id, "a");
    list[0].age_ms = 3001;
    assert_true(peers_update(&peers, list, 2, 3000, AT(30)));
    assert_string_equal(peers_better(&peers, GAVEL_POLICY_LEXICOGRAPHIC, "c", 0, AT(0))->id, "b");
    peers_done(&peers);
}

static void test_without_a_store_clock_a_candidate_is_active_while_its_beats_grow(void **state)
{
    struct peers peers = {0};
    struct registration r = candidate("a", 0, true);

    (void)state;
    r.age_ms = -1;
    assert_true(peers_update(&peers, &r, 1, 3000, AT(0)));
    assert_false(peers_update(&peers, &r, 1, 3000, AT(3000)));
    assert_true(peers_update(&peers, &r, 1, 3000, AT(3001)));
    assert_null(peers_find(&peers, "a"));
    r.beats++;
    assert_true(peers_update(&peers, &r, 1, 3000, AT(3002)));
    assert_non_null(peers_find(&peers, "a"));
    assert_true(peers_update(&peers, NULL, 0, 3000, AT(3003))); /* it has left */
    assert_null(peers_find(&peers, "a"));
    peers_done(&peers);
}

static const struct nonce mine = {1, 1};

static struct store_reply held(uint64_t version, gavel_ms lease_ms, gavel_ms remaining_ms)
{
    return (struct store_reply){.found = true,
                                .remaining_ms = remaining_ms,
                                .expired = remaining_ms == 0,
                                .record = {.version = version,
                                           .epoch = 1,
                                           .held = true,
                                           .nonce = {2, 2},
                                           .lease_ms = lease_ms,
                                           .holder = "x"}};
}

static void test_standby_claims_only_after_a_whole_lease_of_the_holder_since_the_answer_came(void **state)
{
    struct gavel_settings settings = local();
    struct observation seen = {0};
    struct store_reply reply = held(5, 10000, -1);
    gavel_ns at;

    (void)state;
    assert_true(observation_update(&seen, &reply, AT(100), AT(400), settings.drift_ppm));
    assert_false(
        observation_update(&seen, &reply, AT(9000), AT(9100), settings.drift_ppm)); /* the same version */
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, AT(10410), &at),
                     VACANCY_NONE);
    assert_true(at > AT(400 + 10010)); /* the lease and the drift, from the answer */
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, at, &at),
                     VACANCY_TIMED_OUT);
    reply.record.version++;
    assert_true(observation_update(&seen, &reply, AT(10000), AT(10300), settings.drift_ppm));
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, AT(12000), &at),
                     VACANCY_NONE);
}

static void test_a_clock_that_may_step_is_believed_only_together_with_ones_own(void **state)
{
    struct gavel_settings settings = local();
    struct observation seen = {0};
    struct store_reply reply = held(5, 2000, 0);
    gavel_ns at;

    (void)state;
    (void)observation_update(&seen, &reply, AT(0), AT(1), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEPS, "me", mine, AT(1000), &at),
                     VACANCY_NONE);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEPS, "me", mine, AT(2100), &at),
                     VACANCY_TIMED_OUT);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEADY, "me", mine, AT(1), &at),
                     VACANCY_TIMED_OUT);
    settings.trust_store_clock = true;
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEPS, "me", mine, AT(1), &at),
                     VACANCY_TIMED_OUT);
    reply = held(5, 2000, 1500); /* and the store's clock can say that it is too early */
    settings.trust_store_clock = false;
    (void)observation_update(&seen, &reply, AT(2000), AT(2100), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEPS, "me", mine, AT(2200), &at),
                     VACANCY_NONE);
}

static void test_a_group_is_free_when_released_own_or_its_holder_is_dead(void **state)
{
    struct gavel_settings settings = local();
    struct observation seen = {0};
    struct store_reply reply = {0};
    gavel_ns at;

    (void)state;
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, AT(1), &at),
                     VACANCY_NONE);
    assert_int_equal(at, NEVER); /* nothing is known yet */
    (void)observation_update(&seen, &reply, AT(0), AT(1), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, AT(1), &at),
                     VACANCY_FREE);
    reply = held(5, 2000, -1);
    reply.record.nonce = mine;
    (void)observation_update(&seen, &reply, AT(0), AT(1), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, AT(1), &at),
                     VACANCY_FREE);
    reply = held(6, 2000, -1); /* my id, but not my nonce: somebody else */
    snprintf(reply.record.holder, sizeof reply.record.holder, "me");
    (void)observation_update(&seen, &reply, AT(0), AT(1), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, AT(1), &at),
                     VACANCY_NONE);
    seen.is_holder_dead = true;
    reply.record.version++; /* a renewal of the dead one that arrived late does not bring it back */
    (void)observation_update(&seen, &reply, AT(0), AT(2), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, AT(2), &at),
                     VACANCY_DEAD);
    reply.record.nonce.low++; /* but another holder is another holder */
    reply.record.version++;
    (void)observation_update(&seen, &reply, AT(0), AT(3), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_NONE, "me", mine, AT(3), &at),
                     VACANCY_NONE);
}

static void test_a_store_that_went_back_in_time_is_not_claimed_for_a_whole_lease(void **state)
{
    struct gavel_settings settings = local();
    struct observation seen = {0};
    struct store_reply reply = held(50, 2000, 1500);
    gavel_ns at;

    (void)state;
    (void)observation_update(&seen, &reply, AT(0), AT(1), settings.drift_ppm);
    reply = held(7, 2000, 0); /* an older version, and released */
    reply.record.held = false;
    (void)observation_update(&seen, &reply, AT(500), AT(501), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEADY, "me", mine, AT(2500), &at),
                     VACANCY_NONE);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEADY, "me", mine, AT(2504), &at),
                     VACANCY_FREE);
    reply = (struct store_reply){0}; /* and now it is gone altogether */
    (void)observation_update(&seen, &reply, AT(3000), AT(3001), settings.drift_ppm);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEADY, "me", mine, AT(5000), &at),
                     VACANCY_NONE);
    assert_int_equal(observation_vacancy(&seen, &settings, STORE_CLOCK_STEADY, "me", mine, AT(5004), &at),
                     VACANCY_FREE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_breaker_opens_after_five_failures_in_a_row),
        cmocka_unit_test(test_half_open_breaker_lets_one_call_through_and_closes_on_success),
        cmocka_unit_test(test_answers_from_before_it_opened_do_not_close_a_breaker),
        cmocka_unit_test(test_while_nobody_leads_an_open_breaker_tries_each_election_interval),
        cmocka_unit_test(test_half_open_breaker_opens_again_on_failure),
        cmocka_unit_test(test_nudge_makes_an_open_breaker_try_early),
        cmocka_unit_test(test_contention_is_reported_above_the_threshold_and_not_too_often),
        cmocka_unit_test(test_fence_allows_the_newest_and_newer_epochs),
        cmocka_unit_test(
            test_fence_allows_the_previous_epoch_only_within_grace_and_only_if_older_than_the_change),
        cmocka_unit_test(test_rank_counts_active_eligible_candidates_that_go_before),
        cmocka_unit_test(test_at_a_cold_start_who_still_observes_counts_and_is_waited_for),
        cmocka_unit_test(test_the_best_is_handed_over_to_and_not_the_first_that_was_heard_of),
        cmocka_unit_test(test_without_a_store_clock_a_candidate_is_active_while_its_beats_grow),
        cmocka_unit_test(test_standby_claims_only_after_a_whole_lease_of_the_holder_since_the_answer_came),
        cmocka_unit_test(test_a_clock_that_may_step_is_believed_only_together_with_ones_own),
        cmocka_unit_test(test_a_group_is_free_when_released_own_or_its_holder_is_dead),
        cmocka_unit_test(test_a_store_that_went_back_in_time_is_not_claimed_for_a_whole_lease),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
