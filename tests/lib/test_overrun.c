/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work that does not stop in time, and work that must not begin any more. All
 * of it with GAVEL_OVERRUN_REPORT, since the process shall live to tell.
 */
#include "harness.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

static void pause_ms(int64_t ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* A callback that goes on until something is true, and what was seen meanwhile. */
struct scenario {
    struct recorder recorder;
    struct gavel_candidate *candidate;
    int64_t deadline_ns;
    int64_t overrun_at_ns;
    bool was_within; /* the overrun was reported while on_demoted had not returned */
    enum gavel_status left;
    enum gavel_status unsubscribed;
};

static void event_came(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct scenario *scenario = user;

    if (event->kind != GAVEL_EVENT_OVERRUN)
        return;
    /* What would wait for this very callback is refused. */
    scenario->left = gavel_leave(candidate);
    scenario->unsubscribed = gavel_unsubscribe(candidate, 1);
    pthread_mutex_lock(&scenario->recorder.mutex);
    scenario->overrun_at_ns = gavel_now_ns();
    scenario->was_within = scenario->recorder.demoted == 0;
    scenario->recorder.events[GAVEL_EVENT_OVERRUN]++;
    scenario->recorder.epoch = event->epoch;
    pthread_cond_broadcast(&scenario->recorder.changed);
    pthread_mutex_unlock(&scenario->recorder.mutex);
}

static void elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct scenario *scenario = user;

    (void)candidate;
    (void)epoch;
    pthread_mutex_lock(&scenario->recorder.mutex);
    scenario->recorder.elected++;
    pthread_cond_broadcast(&scenario->recorder.changed);
    pthread_mutex_unlock(&scenario->recorder.mutex);
}

/* Does not return before its overrun was reported. */
static void demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct scenario *scenario = user;
    struct recorder *recorder = &scenario->recorder;

    (void)candidate;
    (void)reason;
    if (recorder_count(recorder, &recorder->demoted) == 0)
        (void)recorder_sees(recorder, &recorder->events[GAVEL_EVENT_OVERRUN], 1, LIMIT_MS);
    pthread_mutex_lock(&recorder->mutex);
    recorder->demoted++;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->mutex);
}

static struct gavel_candidate *join_reporting(struct gavel *gavel, const char *id,
                                              const struct gavel_settings *settings,
                                              const struct gavel_subscriber *subscriber)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate = NULL;

    options.group = "jobs";
    options.candidate = id;
    options.settings = settings;
    options.overrun = GAVEL_OVERRUN_REPORT;
    options.subscriber = *subscriber;
    assert_int_equal(gavel_join(gavel, &options, &candidate, NULL), GAVEL_OK);
    return candidate;
}

static void test_overrun_is_reported_once_while_the_work_still_stops(void **state)
{
    struct gavel *gavel = open_gavel("memory:overrun-once");
    struct gavel_settings settings = quick_settings();
    struct scenario scenario = {0};
    const struct gavel_subscriber subscriber = {
        .on_elected = elected, .on_demoted = demoted, .on_event = event_came, .user = &scenario};
    struct recorder *recorder = &scenario.recorder;
    struct gavel_candidate *candidate;
    int64_t until = 0;

    (void)state;
    recorder_init(recorder);
    candidate = join_reporting(gavel, "a", &settings, &subscriber);
    assert_true(recorder_sees(recorder, &recorder->elected, 1, LIMIT_MS));
    assert_int_not_equal(gavel_answer(candidate, &until), GAVEL_NOT_LEADER);
    assert_int_equal(gavel_resign(candidate, NULL), GAVEL_OK);
    assert_true(recorder_sees(recorder, &recorder->demoted, 1, LIMIT_MS));
    /* It came from the deadline's own thread, not before the deadline, and with its epoch. */
    assert_true(scenario.was_within);
    assert_true(scenario.overrun_at_ns >= until + settings.stop_grace_ms * 1000000);
    assert_int_equal(recorder->epoch, 1);
    assert_int_equal(scenario.left, GAVEL_ERR_STATE);
    assert_int_equal(scenario.unsubscribed, GAVEL_ERR_STATE);
    /* It leads again: whatever the first mandate had to tell has been told. */
    assert_true(recorder_sees(recorder, &recorder->elected, 2, LIMIT_MS));
    assert_int_equal(recorder_count(recorder, &recorder->events[GAVEL_EVENT_OVERRUN]), 1);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(recorder->events[GAVEL_EVENT_OVERRUN], 1);
    recorder_done(recorder);
}

static void outstay(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    int64_t until = gavel_now_ns() + LIMIT_MS * INT64_C(1000000);
    int *calls = user;

    (void)epoch;
    if ((*calls)++ > 0)
        return; /* once is enough */
    while (gavel_is_leader(candidate) && gavel_now_ns() < until)
        pause_ms(1);
}

static void test_subscriber_is_not_told_of_a_mandate_that_has_ended(void **state)
{
    struct gavel *gavel = open_gavel("memory:elected-late");
    struct gavel_settings settings = quick_settings();
    int calls = 0;
    const struct gavel_subscriber slow = {.on_elected = outstay, .user = &calls};
    struct gavel_subscriber second;
    struct gavel_candidate *candidate;
    struct recorder recorder;

    (void)state;
    recorder_init(&recorder);
    settings.start_jitter_min_ms = settings.start_jitter_max_ms = 300; /* both have subscribed by then */
    candidate = join_reporting(gavel, "a", &settings, &slow);
    second = recorder_subscriber(&recorder);
    assert_int_equal(gavel_subscribe(candidate, &second, NULL), GAVEL_OK);
    /* The first mandate is over when the first subscriber returns; the second one hears of the next. */
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    pthread_mutex_lock(&recorder.mutex);
    assert_true(recorder.was_leader_when_elected);
    assert_int_equal(recorder.epoch, 2);
    assert_int_equal(recorder.demoted, 0); /* it was not told of the first, so nothing of it had to stop */
    pthread_mutex_unlock(&recorder.mutex);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
}

/* Three groups of one handle; the callback of one holds the others up until their mandates are over. */
struct queue {
    struct gavel_candidate *late;  /* is told to stop first, but has the later deadline */
    struct gavel_candidate *early; /* the other way round */
    sem_t elected;
    atomic_bool is_go;
    int stopped; /* how many, so far */
    int early_was;
    int late_was;
};

static void count_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct queue *queue = user;

    (void)candidate;
    (void)epoch;
    (void)sem_post(&queue->elected);
}

static void number_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct queue *queue = user;

    (void)reason;
    *(candidate == queue->late ? &queue->late_was : &queue->early_was) = ++queue->stopped;
}

static void hold_up(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    int64_t until = gavel_now_ns() + LIMIT_MS * INT64_C(1000000);
    struct queue *queue = user;

    (void)candidate;
    (void)epoch;
    if (!atomic_exchange(&queue->is_go, false))
        return;
    while ((gavel_is_leader(queue->late) || gavel_is_leader(queue->early)) && gavel_now_ns() < until)
        pause_ms(1);
}

static void test_mandates_that_end_together_stop_by_deadline(void **state)
{
    struct gavel *gavel = open_gavel("memory:together");
    struct gavel_settings early = quick_settings(), late = quick_settings(), holder = patient_settings();
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct queue queue = {0};
    struct gavel_candidate *third;

    (void)state;
    assert_int_equal(sem_init(&queue.elected, 0, 0), 0);
    late.lease_ms = 6000; /* stops 1.2 s after the last renewal, deadline at 5.7 s */
    late.stop_grace_ms = 4500;
    early.lease_ms = 2500; /* stops 2 s after it, deadline at 2.2 s */
    early.stop_grace_ms = 200;
    late.heartbeat_ms = 100; /* so what it has to do otherwise is also due first */
    early.heartbeat_ms = 600;
    options.candidate = "x";
    options.overrun = GAVEL_OVERRUN_REPORT; /* on a slow machine the deadline may pass; the order stands */
    options.subscriber =
        (struct gavel_subscriber){.on_elected = count_elected, .on_demoted = number_demoted, .user = &queue};
    options.group = "late";
    options.settings = &late;
    assert_int_equal(gavel_join(gavel, &options, &queue.late, NULL), GAVEL_OK);
    options.group = "early";
    options.settings = &early;
    assert_int_equal(gavel_join(gavel, &options, &queue.early, NULL), GAVEL_OK);
    assert_int_equal(sem_wait(&queue.elected), 0);
    assert_int_equal(sem_wait(&queue.elected), 0);
    atomic_store(&queue.is_go, true);
    options.group = "holder";
    options.settings = &holder;
    options.subscriber = (struct gavel_subscriber){.on_work = hold_up, .user = &queue};
    assert_int_equal(gavel_join(gavel, &options, &third, NULL), GAVEL_OK);
    assert_int_equal(sem_wait(&queue.elected), 0); /* one of them leads again */
    assert_int_equal(gavel_leave(third), GAVEL_OK);
    assert_int_equal(queue.early_was, 1);
    assert_int_equal(queue.late_was, 2);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    (void)sem_destroy(&queue.elected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overrun_is_reported_once_while_the_work_still_stops),
        cmocka_unit_test(test_subscriber_is_not_told_of_a_mandate_that_has_ended),
        cmocka_unit_test(test_mandates_that_end_together_stop_by_deadline),
    };

    return cmocka_run_group_tests_name("lib overrun", tests, NULL, NULL);
}
