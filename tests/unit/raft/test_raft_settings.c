/* SPDX-License-Identifier: Apache-2.0 */

/* Settings of the cluster: the defaults, single values, and the sums. */
#include "core/raft/raft.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct raft_settings defaults(void)
{
    struct raft_settings settings;

    raft_settings_default(&settings);
    return settings;
}

static void assert_refused(const struct raft_settings *settings, enum gavel_status status, const char *words)
{
    struct gavel_error error = {0};

    assert_int_equal(raft_settings_check(settings, &error), status);
    assert_int_equal(error.status, status);
    if (!strstr(error.message, words))
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
}

static void assert_sound(const struct raft_settings *settings)
{
    struct gavel_error error = {0};

    if (raft_settings_check(settings, &error) != GAVEL_OK)
        fail_msg("refused: %s", error.message);
}

static void test_defaults_are_those_of_the_header_and_add_up(void **state)
{
    struct raft_settings s = defaults();

    (void)state;
    assert_int_equal(s.election_min, 150 * NS_PER_MS);
    assert_int_equal(s.election_max, 300 * NS_PER_MS);
    assert_int_equal(s.heartbeat, 50 * NS_PER_MS);
    assert_int_equal(s.promise, 150 * NS_PER_MS);
    assert_int_equal(s.stop_margin, 10 * NS_PER_MS);
    assert_int_equal(s.drift_ppm, 1000);
    assert_int_equal(s.transfer_timeout, 300 * NS_PER_MS);
    assert_int_equal(s.catch_up_timeout, 10 * NS_PER_S);
    assert_int_equal(s.prefers_after, 5 * NS_PER_S);
    assert_int_equal(s.batch_bytes, 65536);
    assert_int_equal(s.batch_entries, 256);
    assert_int_equal(s.inflight_max, 8);
    assert_int_equal(s.vote_burst, 16);
    assert_int_equal(s.vote_refill, 20 * NS_PER_MS);
    assert_false(s.prefers_priority);
    assert_null(s.context);
    assert_sound(&s);
}

static void test_each_time_has_its_bounds(void **state)
{
    static const struct {
        const char *name;
        size_t offset;
        gavel_ns least;
    } times[] = {
#define TIME(field, least) {#field " is", offsetof(struct raft_settings, field), least}
        TIME(election_min, 1),     TIME(election_max, 1),  TIME(heartbeat, 1),
        TIME(promise, 1),          TIME(stop_margin, 1),   TIME(transfer_timeout, 1),
        TIME(catch_up_timeout, 1), TIME(prefers_after, 0), TIME(vote_refill, 1),
#undef TIME
    };

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const gavel_ns bad[] = {times[i].least - 1, INT64_MIN, 3600 * NS_PER_S + 1, NEVER};

        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            struct raft_settings s = defaults();

            memcpy((char *)&s + times[i].offset, &bad[j], sizeof bad[j]);
            assert_refused(&s, GAVEL_ERR_INVALID, times[i].name);
        }
    }
}

static void test_each_count_has_its_bounds(void **state)
{
    struct raft_settings s;

    (void)state;
#define BAD(field, value)                                                                                    \
    do {                                                                                                     \
        s = defaults();                                                                                      \
        s.field = value;                                                                                     \
        assert_refused(&s, GAVEL_ERR_INVALID, #field " is");                                                 \
    } while (0)
    BAD(uncommitted_entries, 0);
    BAD(uncommitted_bytes, UINT32_MAX);
    BAD(batch_bytes, 0);
    BAD(batch_bytes, UINT32_MAX);
    BAD(batch_entries, 0);
    BAD(batch_entries, RAFT_APPEND_ENTRIES_MAX + 1);
    BAD(inflight_max, 0);
    BAD(inflight_max, 1025);
    BAD(vote_burst, 0);
    BAD(vote_burst, 1000001);
    BAD(drift_ppm, -1);
    BAD(drift_ppm, 100001);
#undef BAD
}

static void test_election_times_must_leave_room_for_chance(void **state)
{
    struct raft_settings s = defaults();

    (void)state;
    s.election_max = s.election_min;
    assert_refused(&s, GAVEL_ERR_BUDGET, "election_min (150 ms) must be less than election_max (150 ms)");
}

static void test_promise_must_end_before_anybody_stands(void **state)
{
    struct raft_settings s = defaults();

    (void)state;
    s.promise = s.election_min + 1;
    assert_refused(&s, GAVEL_ERR_BUDGET, "promise (150.000001 ms) must be at most election_min (150 ms)");
}

static void test_lease_must_outlast_a_lost_heartbeat(void **state)
{
    struct raft_settings s = defaults();

    (void)state;
    s.heartbeat = 70 * NS_PER_MS;
    assert_refused(&s, GAVEL_ERR_BUDGET,
                   "2 * heartbeat 70 + stop_margin 10 + drift 0.299701 = 150.299701 ms must be less than "
                   "promise 150 ms");
    /* The drift alone tips it. */
    s.drift_ppm = 0;
    s.heartbeat = 70 * NS_PER_MS - 1;
    assert_sound(&s);
    s.drift_ppm = 1;
    assert_refused(&s, GAVEL_ERR_BUDGET, "2 * heartbeat 69.999999");
}

static void test_what_passes_leaves_a_lease_longer_than_two_heartbeats(void **state)
{
    size_t passed = 0;

    (void)state;
    for (gavel_ns heartbeat = NS_PER_MS; heartbeat < 80 * NS_PER_MS; heartbeat += 777777)
        for (int ppm = 0; ppm <= 100000; ppm += 9973) {
            struct raft_settings s = defaults();

            s.heartbeat = heartbeat;
            s.drift_ppm = ppm;
            if (raft_settings_check(&s, NULL) != GAVEL_OK)
                continue;
            passed++;
            assert_true((double)s.promise * (1e6 - ppm) / (1e6 + ppm) - (double)s.stop_margin >
                        2.0 * (double)heartbeat);
        }
    assert_true(passed > 100);
}

static void test_a_candidate_must_be_heard_twice(void **state)
{
    struct raft_settings s = defaults();

    (void)state;
    s.vote_burst = 1; /* the pre-vote would leave nothing for the vote */
    assert_refused(&s, GAVEL_ERR_BUDGET, "vote_burst (1) must be at least 2");
    s = defaults();
    s.vote_refill = s.election_min / 2 + 1;
    assert_refused(&s, GAVEL_ERR_BUDGET, "at most half of election_min (150 ms)");
}

static void test_transfer_must_have_time_to_stop_the_work(void **state)
{
    struct raft_settings s = defaults();

    (void)state;
    s.transfer_timeout = s.stop_margin;
    assert_refused(&s, GAVEL_ERR_BUDGET, "transfer_timeout (10 ms) must be longer than stop_margin (10 ms)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_those_of_the_header_and_add_up),
        cmocka_unit_test(test_each_time_has_its_bounds),
        cmocka_unit_test(test_each_count_has_its_bounds),
        cmocka_unit_test(test_election_times_must_leave_room_for_chance),
        cmocka_unit_test(test_promise_must_end_before_anybody_stands),
        cmocka_unit_test(test_lease_must_outlast_a_lost_heartbeat),
        cmocka_unit_test(test_what_passes_leaves_a_lease_longer_than_two_heartbeats),
        cmocka_unit_test(test_a_candidate_must_be_heard_twice),
        cmocka_unit_test(test_transfer_must_have_time_to_stop_the_work),
    };

    return cmocka_run_group_tests_name("raft settings", tests, NULL, NULL);
}
