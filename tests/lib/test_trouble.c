/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store in trouble. Another connection locks the whole SQLite file, so
 * every call of the candidate runs into its time-out.
 */
#include "harness.h"

#include <sqlite3.h>
#include <string.h>

static sqlite3 *lock_file(const struct scene *scene)
{
    sqlite3 *database = NULL;

    assert_int_equal(sqlite3_open(scene->path, &database), SQLITE_OK);
    sqlite3_busy_timeout(database, LIMIT_MS);
    assert_int_equal(sqlite3_exec(database, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    return database;
}

static void unlock_file(sqlite3 *database)
{
    assert_int_equal(sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static bool is_unknown(void *argument) { return gavel_answer(argument, NULL) == GAVEL_UNKNOWN_UNTIL; }

static bool is_breaker_open(void *argument)
{
    struct gavel_breaker breaker;

    gavel_breaker(argument, &breaker);
    return breaker.state == GAVEL_BREAKER_OPEN;
}

static void test_leader_that_loses_the_store_is_demoted_before_its_deadline(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavel = open_gavel(scene->url);
    struct gavel_settings settings = quick_settings();
    struct gavel_candidate *candidate;
    struct gavel_metrics metrics;
    struct recorder recorder;
    sqlite3 *database;
    int64_t until = 0;

    recorder_init(&recorder);
    settings.breaker_threshold = 3;
    settings.breaker_reset_ms = 500;
    settings.lease_ms =
        15000; /* on a busy machine we may not run for seconds, and must not miss what follows */
    candidate = join_group(gavel, "jobs", "one", &settings, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    database = lock_file(scene);
    /* First it does not know, and still leads; and it knows until when. */
    assert_true(comes_true(is_unknown, candidate, LIMIT_MS));
    if (gavel_answer(candidate, &until) == GAVEL_UNKNOWN_UNTIL)
        assert_true(until <= gavel_now_ns() + settings.lease_ms * 1000000);
    /* Then its time is over; had on_demoted come after the deadline, the watchdog would have aborted us. */
    assert_true(recorder_sees(&recorder, &recorder.demoted, 1, LIMIT_MS));
    assert_int_equal(recorder.reason, GAVEL_REASON_LAPSED);
    assert_false(gavel_is_leader(candidate));
    assert_int_equal(gavel_answer(candidate, NULL), GAVEL_NOT_LEADER);
    assert_true(comes_true(is_breaker_open, candidate, LIMIT_MS));
    gavel_metrics(candidate, &metrics);
    assert_true(metrics.heartbeat_failures > 0);
    unlock_file(database);
    /* It recovers by itself. */
    assert_true(recorder_sees(&recorder, &recorder.events[GAVEL_EVENT_BREAKER_CLOSED], 1, LIMIT_MS));
    assert_true(recorder_sees(&recorder, &recorder.elected, 2, LIMIT_MS));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
}

static void test_close_is_bounded_while_the_store_is_away(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavel = open_gavel(scene->url);
    struct gavel_settings settings = quick_settings();
    struct recorder recorder;
    sqlite3 *database;
    int64_t from;

    recorder_init(&recorder);
    (void)join_group(gavel, "jobs", "one", &settings, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    database = lock_file(scene);
    from = gavel_now_ns();
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    /* A call under way, the release and the leaving, each with its time-out; far below the test's limit. */
    assert_true(gavel_now_ns() - from < INT64_C(10000000000));
    assert_int_equal(recorder.demoted, 1);
    unlock_file(database);
    recorder_done(&recorder);
}

/* A callback that holds the loop up until its mandate is over, and what it saw. */
struct hanging {
    bool was_leader;
    bool is_over; /* gavel_is_leader() turned false, though nothing but this callback could run */
    bool is_told; /* and the other answers agree */
};

static void hang_until_over(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct hanging *hanging = user;
    int64_t until = gavel_now_ns() + LIMIT_MS * INT64_C(1000000);

    (void)epoch;
    if (hanging->was_leader)
        return; /* once is enough */
    hanging->was_leader = gavel_is_leader(candidate);
    while (gavel_is_leader(candidate) && gavel_now_ns() < until)
        continue;
    hanging->is_over = !gavel_is_leader(candidate);
    hanging->is_told = gavel_epoch(candidate) == 0 && gavel_answer(candidate, NULL) == GAVEL_NOT_LEADER;
}

static void test_mandate_ends_by_itself_while_the_loop_hangs(void **state)
{
    struct gavel *gavel = open_gavel("memory:hanging");
    struct gavel_settings settings = quick_settings();
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct hanging hanging = {0};
    struct gavel_subscriber subscriber = {.on_elected = hang_until_over, .user = &hanging};
    struct gavel_candidate *candidate;
    struct recorder recorder;

    (void)state;
    recorder_init(&recorder);
    options.settings = &settings;
    options.overrun = GAVEL_OVERRUN_REPORT;
    options.subscriber = subscriber;
    options.eligible = false; /* until whoever sees the end is there */
    assert_int_equal(gavel_join(gavel, &options, &candidate, NULL), GAVEL_OK);
    subscriber = recorder_subscriber(&recorder);
    assert_int_equal(gavel_subscribe(candidate, &subscriber, NULL), GAVEL_OK);
    assert_int_equal(gavel_set_eligible(candidate, true), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.events[GAVEL_EVENT_LOST_LEADERSHIP], 1, 2 * LIMIT_MS));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_true(hanging.was_leader);
    assert_true(hanging.is_over);
    assert_true(hanging.is_told);
    recorder_done(&recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_leader_that_loses_the_store_is_demoted_before_its_deadline,
                                        scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_close_is_bounded_while_the_store_is_away, scene_setup,
                                        scene_teardown),
        cmocka_unit_test(test_mandate_ends_by_itself_while_the_loop_hangs),
    };

    return cmocka_run_group_tests_name("lib trouble", tests, NULL, NULL);
}
