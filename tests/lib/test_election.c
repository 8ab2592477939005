/* SPDX-License-Identifier: Apache-2.0 */

/* Elections within one process: who leads, what is said about it, and what can be read. */
#include "harness.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static void test_only_candidate_is_elected_and_released_by_close(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavel = open_gavel(scene->url);
    struct recorder recorder;
    struct gavel_candidate *candidate;
    struct gavel_leader_info leader;
    uint64_t epoch;

    recorder_init(&recorder);
    candidate = join_group(gavel, "jobs", "alone", NULL, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    assert_true(recorder.was_leader_when_elected);
    assert_true(gavel_is_leader(candidate));
    epoch = gavel_epoch(candidate);
    assert_int_equal(epoch, recorder.epoch);
    assert_int_equal(gavel_leader(candidate, &leader), GAVEL_OK);
    assert_string_equal(leader.id, "alone");
    assert_true(leader.is_self);
    assert_int_equal(leader.epoch, epoch);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(recorder.demoted, 1);
    assert_int_equal(recorder.reason, GAVEL_REASON_STOPPED);
    assert_false(recorder.was_leader_when_demoted);
    assert_int_equal(recorder.events[GAVEL_EVENT_STOPPED], 1);
    assert_int_equal(recorder.stopped, GAVEL_OK);

    /* It was released: with a long lease, another is elected at once all the same, and with a higher
     * epoch. */
    gavel = open_gavel(scene->url);
    (void)join_group(gavel, "jobs", "next", NULL, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 2, LIMIT_MS));
    assert_true(recorder.epoch > epoch);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_string_equal(recorder.order, "eBLdeBLd");
    recorder_done(&recorder);
}

static void test_of_two_handles_exactly_one_leads(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavels[2] = {open_gavel(scene->url), open_gavel(scene->url)};
    struct gavel_candidate *candidates[2];
    struct gavel_leader_info leaders[2];
    struct recorder witnesses[2];
    int leader;

    for (int i = 0; i < 2; i++) {
        recorder_init(&witnesses[i]);
        candidates[i] = join_group(gavels[i], "jobs", i == 0 ? "a" : "b", NULL, &witnesses[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_true(
            recorder_sees(&witnesses[i], &witnesses[i].events[GAVEL_EVENT_LEADER_CHANGED], 1, LIMIT_MS));
    assert_int_equal(gavel_is_leader(candidates[0]) + gavel_is_leader(candidates[1]), 1);
    leader = gavel_is_leader(candidates[1]);
    assert_int_equal(recorder_count(&witnesses[leader], &witnesses[leader].elected), 1);
    assert_int_equal(recorder_count(&witnesses[!leader], &witnesses[!leader].elected), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gavel_leader(candidates[i], &leaders[i]), GAVEL_OK);
    assert_string_equal(leaders[0].id, leaders[1].id);
    assert_int_equal(leaders[0].epoch, leaders[1].epoch);
    assert_int_equal(leaders[leader].is_self, true);
    assert_int_equal(leaders[!leader].is_self, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gavel_close(gavels[i]), GAVEL_OK);
        recorder_done(&witnesses[i]);
    }
}

static void test_resignation_is_heard_by_doorbell_not_by_polling(void **state)
{
    const struct scene *scene = *state;
    struct gavel_settings patient = patient_settings();
    struct gavel *gavels[2] = {open_gavel(scene->url), open_gavel(scene->url)};
    struct gavel_candidate *first, *second;
    struct recorder witnesses[2];

    recorder_init(&witnesses[0]);
    recorder_init(&witnesses[1]);
    first = join_group(gavels[0], "jobs", "first", &patient, &witnesses[0]);
    assert_true(recorder_sees(&witnesses[0], &witnesses[0].elected, 1, LIMIT_MS));
    second = join_group(gavels[1], "jobs", "second", &patient, &witnesses[1]);
    /* The newcomer rings the leader, which lists it and can then ring back. */
    assert_true(
        recorder_sees(&witnesses[0], &witnesses[0].events[GAVEL_EVENT_CANDIDATES_UPDATED], 2, LIMIT_MS));
    assert_int_equal(gavel_resign(first, NULL), GAVEL_OK);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].elected, 1, 5000));
    assert_int_equal(recorder_count(&witnesses[0], &witnesses[0].demoted), 1);
    assert_int_equal(witnesses[0].reason, GAVEL_REASON_RESIGNED);
    assert_true(gavel_is_leader(second));
    assert_false(gavel_is_leader(first));
    assert_true(witnesses[1].epoch > witnesses[0].epoch);
    assert_int_equal(gavel_resign(first, NULL), GAVEL_ERR_STATE);
    assert_int_equal(gavel_close(gavels[0]), GAVEL_OK);
    assert_int_equal(gavel_close(gavels[1]), GAVEL_OK);
    recorder_done(&witnesses[0]);
    recorder_done(&witnesses[1]);
}

static void test_leave_frees_the_group_for_another_of_the_same_handle(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavel = open_gavel(scene->url);
    struct gavel_settings patient = patient_settings();
    struct gavel_candidate *first;
    struct recorder witnesses[2];

    recorder_init(&witnesses[0]);
    recorder_init(&witnesses[1]);
    first = join_group(gavel, "jobs", "first", &patient, &witnesses[0]);
    assert_true(recorder_sees(&witnesses[0], &witnesses[0].elected, 1, LIMIT_MS));
    (void)join_group(gavel, "jobs", "second", &patient, &witnesses[1]);
    assert_true(
        recorder_sees(&witnesses[0], &witnesses[0].events[GAVEL_EVENT_CANDIDATES_UPDATED], 2, LIMIT_MS));
    assert_int_equal(gavel_leave(first), GAVEL_OK);
    assert_int_equal(witnesses[0].demoted, 1);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].elected, 1, 5000));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&witnesses[0]);
    recorder_done(&witnesses[1]);
}

static void test_ineligible_candidate_never_leads_until_it_is_eligible(void **state)
{
    struct gavel *gavel = open_gavel("memory:ineligible");
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_settings quick = quick_settings();
    struct gavel_candidate *candidate;
    struct gavel_leader_info leader;
    struct recorder recorder;

    (void)state;
    recorder_init(&recorder);
    options.eligible = false;
    options.settings = &quick;
    options.subscriber = recorder_subscriber(&recorder);
    assert_int_equal(gavel_join(gavel, &options, &candidate, NULL), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.events[GAVEL_EVENT_ELECTION_CHECK], 5, LIMIT_MS));
    assert_int_equal(recorder_count(&recorder, &recorder.elected), 0);
    assert_int_equal(gavel_leader(candidate, &leader), GAVEL_ERR_NO_LEADER);
    assert_int_equal(gavel_set_eligible(candidate, true), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    assert_int_equal(gavel_set_eligible(candidate, false), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.demoted, 1, LIMIT_MS));
    assert_int_equal(recorder.reason, GAVEL_REASON_INELIGIBLE);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
}

struct listing {
    struct gavel_candidate *candidate;
    size_t wanted;
    size_t count;
    struct gavel_candidate_info infos[4];
};

static bool lists_all(void *argument)
{
    struct listing *listing = argument;

    assert_int_equal(gavel_candidates(listing->candidate, listing->infos, 4, &listing->count), GAVEL_OK);
    return listing->count == listing->wanted;
}

static void test_candidates_are_listed_sorted_with_their_registration(void **state)
{
    struct gavel *gavel = open_gavel("memory:listed");
    struct gavel_settings quick = quick_settings();
    struct listing listing = {.wanted = 3};
    struct gavel_candidate_info one;
    struct recorder recorder;
    size_t count;

    (void)state;
    recorder_init(&recorder);
    listing.candidate = join_group(gavel, "jobs", "b", &quick, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    (void)join_group(gavel, "jobs", "c", &quick, NULL);
    (void)join_group(gavel, "jobs", "a", &quick, NULL);
    assert_true(comes_true(lists_all, &listing, LIMIT_MS));
    assert_string_equal(listing.infos[0].id, "a");
    assert_string_equal(listing.infos[1].id, "b");
    assert_string_equal(listing.infos[2].id, "c");
    assert_true(listing.infos[1].is_leader);
    assert_true(listing.infos[1].is_self);
    assert_false(listing.infos[0].is_leader);
    assert_false(listing.infos[0].is_self);
    assert_int_equal(strncmp(listing.infos[0].address, "127.0.0.1:", 10), 0);
    assert_true(listing.infos[2].since_wall_ms > 0);
    assert_true(listing.infos[2].last_heartbeat_wall_ms >= listing.infos[2].since_wall_ms);
    /* With too little room the first ones are kept, and the count still tells. */
    assert_int_equal(gavel_candidates(listing.candidate, &one, 1, &count), GAVEL_OK);
    assert_int_equal(count, 3);
    assert_string_equal(one.id, "a");
    assert_int_equal(gavel_candidates(listing.candidate, NULL, 0, &count), GAVEL_OK);
    assert_int_equal(count, 3);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
}

static void test_metrics_count_what_happened(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavel = open_gavel(scene->url);
    struct gavel_settings quick = quick_settings();
    struct gavel_candidate *candidate;
    struct gavel_breaker breaker;
    struct gavel_metrics metrics;
    struct recorder recorder;

    recorder_init(&recorder);
    candidate = join_group(gavel, "jobs", "alone", &quick, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.events[GAVEL_EVENT_HEARTBEAT], 4, LIMIT_MS));
    gavel_metrics(candidate, &metrics);
    assert_true(metrics.heartbeats >= 4);
    assert_int_equal(metrics.elections, 1);
    assert_int_equal(metrics.elections_won, 1);
    assert_true(metrics.election_last_us > 0);
    assert_int_equal(metrics.leader_changes, 1);
    assert_int_equal(metrics.registrations, 1);
    assert_int_equal(metrics.timeouts, 0);
    assert_true(metrics.start_wall_ms > 0);
    assert_true(metrics.last_heartbeat_wall_ms >= metrics.start_wall_ms);
    assert_true(metrics.latency_p50_us > 0);
    assert_true(metrics.latency_p95_us >= metrics.latency_p50_us);
    assert_true(metrics.latency_p99_us >= metrics.latency_p95_us);
    gavel_breaker(candidate, &breaker);
    assert_int_equal(breaker.state, GAVEL_BREAKER_CLOSED);
    assert_int_equal(breaker.failures, 0);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
}

static void test_epoch_before_is_valid_only_within_its_grace(void **state)
{
    struct gavel *gavel = open_gavel("memory:epochs");
    struct gavel_settings settings = quick_settings();
    struct gavel_candidate *candidate;
    struct recorder recorder;
    int64_t before;

    (void)state;
    recorder_init(&recorder);
    settings.epoch_grace_ms = 3600000;
    candidate = join_group(gavel, "jobs", "alone", &settings, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    before = gavel_now_ns();
    assert_true(gavel_epoch_valid(candidate, recorder.epoch, 0));
    assert_int_equal(gavel_resign(candidate, NULL), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.elected, 2, LIMIT_MS));
    assert_true(gavel_epoch_valid(candidate, recorder.epoch, 0));
    assert_true(gavel_epoch_valid(candidate, recorder.epoch - 1, before));
    assert_false(gavel_epoch_valid(candidate, recorder.epoch - 1, 0));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
}

static int count_threads(void)
{
    DIR *directory = opendir("/proc/self/task");
    const struct dirent *entry;
    int count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)))
        count += entry->d_name[0] != '.';
    (void)closedir(directory);
    return count;
}

static void test_many_groups_share_the_threads_of_one_handle(void **state)
{
    const struct scene *scene = *state;
    int before = count_threads();
    struct gavel *gavel = open_gavel(scene->url);
    struct recorder witnesses[20];
    char group[16];

    for (size_t i = 0; i < 20; i++) {
        recorder_init(&witnesses[i]);
        (void)snprintf(group, sizeof group, "group %zu", i);
        (void)join_group(gavel, group, "me", NULL, &witnesses[i]);
    }
    for (size_t i = 0; i < 20; i++)
        assert_true(recorder_sees(&witnesses[i], &witnesses[i].elected, 1, LIMIT_MS));
    assert_int_equal(count_threads(), before + 3);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(witnesses[i].demoted, 1);
        recorder_done(&witnesses[i]);
    }
}

static void test_second_live_user_of_an_id_is_stopped(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavels[2] = {open_gavel(scene->url), open_gavel(scene->url)};
    struct gavel_settings quick = quick_settings();
    struct gavel_candidate *second;
    struct recorder witnesses[2];

    quick.candidate_timeout_ms = LIMIT_MS; /* whoever is silent for as long may be replaced */
    recorder_init(&witnesses[0]);
    recorder_init(&witnesses[1]);
    (void)join_group(gavels[0], "jobs", "same", &quick, &witnesses[0]);
    assert_true(recorder_sees(&witnesses[0], &witnesses[0].elected, 1, LIMIT_MS));
    second = join_group(gavels[1], "jobs", "same", &quick, &witnesses[1]);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].events[GAVEL_EVENT_STOPPED], 1, LIMIT_MS));
    assert_int_equal(witnesses[1].stopped, GAVEL_ERR_ID_IN_USE);
    assert_int_equal(witnesses[1].elected, 0);
    assert_int_equal(gavel_set_eligible(second, true), GAVEL_ERR_STOPPED);
    assert_int_equal(gavel_ensure_leader(second, NULL, NULL), GAVEL_ERR_STOPPED);
    assert_int_equal(recorder_count(&witnesses[0], &witnesses[0].events[GAVEL_EVENT_STOPPED]), 0);
    assert_int_equal(gavel_leave(second), GAVEL_OK);
    assert_int_equal(gavel_close(gavels[0]), GAVEL_OK);
    assert_int_equal(gavel_close(gavels[1]), GAVEL_OK);
    recorder_done(&witnesses[0]);
    recorder_done(&witnesses[1]);
}

/* A thread that reads all that can be read while the gavel changes hands. */
struct reader {
    pthread_t thread;
    struct gavel_candidate *candidate;
    _Atomic bool must_end;
    uint64_t rounds;
    bool went_back; /* an epoch was lower than one seen before */
};

static void *read_all(void *argument)
{
    struct reader *reader = argument;
    struct gavel_candidate_info infos[2];
    struct gavel_leader_info leader;
    struct gavel_breaker breaker;
    struct gavel_metrics metrics;
    uint64_t newest = 0;
    size_t count;

    while (!reader->must_end) {
        uint64_t epoch = gavel_epoch(reader->candidate);

        reader->went_back = reader->went_back || (epoch != 0 && epoch < newest);
        newest = epoch > newest ? epoch : newest;
        if (gavel_leader(reader->candidate, &leader) == GAVEL_OK)
            reader->went_back = reader->went_back || leader.epoch < newest;
        if (gavel_candidates(reader->candidate, infos, 2, &count) != GAVEL_OK)
            break;
        (void)gavel_answer(reader->candidate, NULL);
        gavel_metrics(reader->candidate, &metrics);
        gavel_breaker(reader->candidate, &breaker);
        reader->rounds++;
    }
    return NULL;
}

struct pair {
    struct gavel_candidate *candidates[2];
    struct recorder witnesses[2];
    int elections; /* that have been waited for */
};

/* Whoever of the two it is: on a busy machine the one that resigned may be the first again. */
static bool is_led_anew(void *argument)
{
    struct pair *pair = argument;

    return recorder_count(&pair->witnesses[0], &pair->witnesses[0].elected) +
               recorder_count(&pair->witnesses[1], &pair->witnesses[1].elected) >
           pair->elections;
}

static void test_readers_in_other_threads_never_see_an_epoch_go_back(void **state)
{
    struct gavel *gavel = open_gavel("memory:readers");
    struct gavel_settings settings = quick_settings();
    struct reader readers[2];
    struct pair pair = {0};

    (void)state;
    settings.lease_ms = 20000; /* this is about reading, not about losing the mandate on a busy machine */
    for (int i = 0; i < 2; i++) {
        recorder_init(&pair.witnesses[i]);
        pair.candidates[i] = join_group(gavel, "jobs", i == 0 ? "a" : "b", &settings, &pair.witnesses[i]);
        readers[i] = (struct reader){.candidate = pair.candidates[i]};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (; pair.elections < 6; pair.elections++) {
        assert_true(comes_true(is_led_anew, &pair, LIMIT_MS));
        assert_int_equal(gavel_resign(pair.candidates[gavel_is_leader(pair.candidates[1])], NULL), GAVEL_OK);
    }
    for (int i = 0; i < 2; i++) {
        readers[i].must_end = true;
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        assert_true(readers[i].rounds > 0);
        assert_false(readers[i].went_back);
    }
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    for (int i = 0; i < 2; i++)
        recorder_done(&pair.witnesses[i]);
}

static bool knows_a_leader(void *argument)
{
    struct gavel_leader_info leader;

    return gavel_leader(argument, &leader) == GAVEL_OK;
}

static void test_static_store_gives_the_mandate_to_the_assigned_one(void **state)
{
    struct gavel *gavel = open_gavel("static:chosen?epoch=7");
    struct gavel_candidate *other, *chosen;
    struct gavel_leader_info leader;
    struct recorder witnesses[2];

    (void)state;
    recorder_init(&witnesses[0]);
    recorder_init(&witnesses[1]);
    other = join_group(gavel, "jobs", "other", NULL, &witnesses[0]);
    chosen = join_group(gavel, "jobs", "chosen", NULL, &witnesses[1]);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].elected, 1, LIMIT_MS));
    assert_true(comes_true(knows_a_leader, other, LIMIT_MS));
    assert_int_equal(gavel_epoch(chosen), 7);
    assert_false(gavel_is_leader(other));
    assert_int_equal(gavel_leader(other, &leader), GAVEL_OK);
    assert_string_equal(leader.id, "chosen");
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(witnesses[0].elected, 0);
    recorder_done(&witnesses[0]);
    recorder_done(&witnesses[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_candidate_is_elected_and_released_by_close, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_of_two_handles_exactly_one_leads, scene_setup, scene_teardown),
        cmocka_unit_test_setup_teardown(test_resignation_is_heard_by_doorbell_not_by_polling, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_leave_frees_the_group_for_another_of_the_same_handle,
                                        scene_setup, scene_teardown),
        cmocka_unit_test(test_ineligible_candidate_never_leads_until_it_is_eligible),
        cmocka_unit_test(test_candidates_are_listed_sorted_with_their_registration),
        cmocka_unit_test_setup_teardown(test_metrics_count_what_happened, scene_setup, scene_teardown),
        cmocka_unit_test(test_epoch_before_is_valid_only_within_its_grace),
        cmocka_unit_test_setup_teardown(test_many_groups_share_the_threads_of_one_handle, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(test_second_live_user_of_an_id_is_stopped, scene_setup,
                                        scene_teardown),
        cmocka_unit_test(test_readers_in_other_threads_never_see_an_epoch_go_back),
        cmocka_unit_test(test_static_store_gives_the_mandate_to_the_assigned_one),
    };

    return cmocka_run_group_tests_name("lib election", tests, NULL, NULL);
}
