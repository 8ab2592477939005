/* SPDX-License-Identifier: Apache-2.0 */

/* gavel_finish(): a group that is closed for good, as programs see it. */

#include "harness.h"

#include "store/store.h"

#include <string.h>

static void test_a_finished_group_is_closed_for_all_now_and_later(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavels[3] = {open_gavel(scene->url), open_gavel(scene->url), open_gavel(scene->url)};
    struct gavel_settings patient = patient_settings();
    struct gavel_candidate *first;
    struct recorder witnesses[3];

    for (int i = 0; i < 3; i++)
        recorder_init(&witnesses[i]);
    first = join_group(gavels[0], "jobs", "first", &patient, &witnesses[0]);
    assert_true(recorder_sees(&witnesses[0], &witnesses[0].elected, 1, LIMIT_MS));
    (void)join_group(gavels[1], "jobs", "second", &patient, &witnesses[1]);
    assert_true(
        recorder_sees(&witnesses[0], &witnesses[0].events[GAVEL_EVENT_CANDIDATES_UPDATED], 2, LIMIT_MS));
    assert_int_equal(gavel_finish(first), GAVEL_OK);
    assert_true(recorder_sees(&witnesses[0], &witnesses[0].events[GAVEL_EVENT_STOPPED], 1, LIMIT_MS));
    assert_int_equal(witnesses[0].stopped, GAVEL_OK);
    assert_int_equal(witnesses[0].demoted, 1);
    assert_int_equal(witnesses[0].reason, GAVEL_REASON_FINISHED);
    assert_false(witnesses[0].was_leader_when_demoted);
    /* It looks only every few minutes by itself: the doorbell told it. */
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].events[GAVEL_EVENT_STOPPED], 1, LIMIT_MS));
    assert_int_equal(witnesses[1].stopped, GAVEL_ERR_DONE);
    (void)join_group(gavels[2], "jobs", "third", &patient, &witnesses[2]);
    assert_true(recorder_sees(&witnesses[2], &witnesses[2].events[GAVEL_EVENT_STOPPED], 1, LIMIT_MS));
    assert_int_equal(witnesses[2].stopped, GAVEL_ERR_DONE);
    assert_int_equal(recorder_count(&witnesses[1], &witnesses[1].elected), 0);
    assert_int_equal(recorder_count(&witnesses[2], &witnesses[2].elected), 0);
    assert_int_equal(gavel_finish(first), GAVEL_ERR_STOPPED);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gavel_close(gavels[i]), GAVEL_OK);
        recorder_done(&witnesses[i]);
    }
}

static void test_closing_the_handle_waits_for_the_record(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavel = open_gavel(scene->url);
    struct store_request read = {.op = STORE_READ, .group = "jobs", .give_up_at = NEVER};
    struct gavel_candidate *candidate;
    struct store_reply reply;
    struct recorder recorder;
    struct store *store;

    recorder_init(&recorder);
    candidate = join_group(gavel, "jobs", "one", NULL, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    assert_int_equal(gavel_finish(candidate), GAVEL_OK);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(recorder.stopped, GAVEL_OK);
    assert_int_equal(store_open(scene->url, &store, NULL), GAVEL_OK);
    assert_int_equal(store_call(store, &read, &reply), GAVEL_OK);
    assert_true(reply.record.done);
    assert_string_equal(reply.record.holder, "one");
    assert_int_equal(reply.record.epoch, recorder.epoch);
    store_reply_done(&reply);
    store_close(store);
    recorder_done(&recorder);
}

static void test_who_does_not_lead_closes_nothing_and_is_told(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavels[2] = {open_gavel(scene->url), open_gavel(scene->url)};
    struct gavel_candidate *first, *second;
    struct recorder witnesses[2];

    recorder_init(&witnesses[0]);
    recorder_init(&witnesses[1]);
    first = join_group(gavels[0], "jobs", "first", NULL, &witnesses[0]);
    assert_true(recorder_sees(&witnesses[0], &witnesses[0].elected, 1, LIMIT_MS));
    second = join_group(gavels[1], "jobs", "second", NULL, &witnesses[1]);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].events[GAVEL_EVENT_LEADER_CHANGED], 1, LIMIT_MS));
    assert_int_equal(gavel_finish(second), GAVEL_OK);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].events[GAVEL_EVENT_STOPPED], 1, LIMIT_MS));
    assert_int_equal(witnesses[1].stopped, GAVEL_ERR_NOT_HOLDER);
    assert_true(gavel_is_leader(first));
    assert_int_equal(gavel_close(gavels[1]), GAVEL_OK);
    assert_int_equal(gavel_close(gavels[0]), GAVEL_OK);
    recorder_done(&witnesses[0]);
    recorder_done(&witnesses[1]);
}

static void test_without_an_election_there_is_nothing_to_close(void **state)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel *gavel = open_gavel("none:");
    struct gavel_candidate *candidate;

    (void)state;
    options.enabled = false;
    assert_int_equal(gavel_join(gavel, &options, &candidate, NULL), GAVEL_OK);
    assert_int_equal(gavel_finish(candidate), GAVEL_ERR_STATE);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_finished_group_is_closed_for_all_now_and_later),
        TEST(test_closing_the_handle_waits_for_the_record),
        TEST(test_who_does_not_lead_closes_nothing_and_is_told),
        cmocka_unit_test(test_without_an_election_there_is_nothing_to_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
