/* SPDX-License-Identifier: Apache-2.0 */

/* Subscribers: order, periodic work, joining late, leaving early, and what a callback may not do. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

/* A line that several subscribers write into, in the order they are called. */
struct protocol {
    pthread_mutex_t mutex;
    char text[256];
};

struct scribe {
    struct protocol *protocol;
    const char *name;
};

static void note(const struct scribe *scribe, const char *what)
{
    struct protocol *protocol = scribe->protocol;
    size_t length;

    pthread_mutex_lock(&protocol->mutex);
    length = strlen(protocol->text);
    (void)snprintf(protocol->text + length, sizeof protocol->text - length, "%s%s ", what, scribe->name);
    pthread_mutex_unlock(&protocol->mutex);
}

static void note_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    (void)candidate;
    (void)epoch;
    note(user, "+");
}

static void note_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    (void)candidate;
    (void)reason;
    note(user, "-");
}

static struct gavel_subscriber scribe_subscriber(struct scribe *scribe)
{
    return (struct gavel_subscriber){.on_elected = note_elected, .on_demoted = note_demoted, .user = scribe};
}

/* For what is not about deadlines: a busy machine loses no mandate. */
static struct gavel_settings long_lease(void)
{
    struct gavel_settings settings = quick_settings();

    settings.lease_ms = 60000;
    settings.candidate_timeout_ms = 60000;
    settings.stop_grace_ms = 30000;
    settings.call_timeout_ms = 5000;
    return settings;
}

static void test_elected_in_order_and_demoted_in_reverse(void **state)
{
    struct gavel *gavel = open_gavel("memory:order");
    struct protocol protocol = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct scribe scribes[3] = {{&protocol, "a"}, {&protocol, "b"}, {&protocol, "c"}};
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    struct gavel_subscriber subscriber;
    struct recorder recorder;

    (void)state;
    recorder_init(&recorder);
    /* Ineligible at first, so that all have subscribed before the election. */
    options.eligible = false;
    options.subscriber = scribe_subscriber(&scribes[0]);
    assert_int_equal(gavel_join(gavel, &options, &candidate, NULL), GAVEL_OK);
    for (int i = 1; i < 3; i++) {
        subscriber = scribe_subscriber(&scribes[i]);
        assert_int_equal(gavel_subscribe(candidate, &subscriber, NULL), GAVEL_OK);
    }
    subscriber = recorder_subscriber(&recorder);
    assert_int_equal(gavel_subscribe(candidate, &subscriber, NULL), GAVEL_OK);
    assert_int_equal(gavel_set_eligible(candidate, true), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_string_equal(protocol.text, "+a +b +c -c -b -a ");
    recorder_done(&recorder);
}

static void test_work_comes_round_while_leading_and_not_after(void **state)
{
    struct gavel *gavel = open_gavel("memory:work");
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_settings settings = long_lease();
    struct gavel_candidate *candidate;
    struct recorder recorder;
    int checks, worked, worked_since;

    (void)state;
    recorder_init(&recorder);
    options.subscriber = recorder_subscriber(&recorder);
    options.subscriber.work_interval_ms = 20;
    options.settings = &settings;
    assert_int_equal(gavel_join(gavel, &options, &candidate, NULL), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.worked, 10, LIMIT_MS));
    assert_int_equal(recorder.work_epoch, recorder.epoch);
    /* A leader does not look who leads, so this stands still until it has resigned. */
    checks = recorder_count(&recorder, &recorder.events[GAVEL_EVENT_ELECTION_CHECK]);
    assert_int_equal(gavel_resign(candidate, NULL), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.demoted, 1, LIMIT_MS));
    worked = recorder_count(&recorder, &recorder.worked);
    assert_true(recorder_sees(&recorder, &recorder.events[GAVEL_EVENT_ELECTION_CHECK], checks + 1, LIMIT_MS));
    /* It may lead again by now, and work. If it does not, nothing has come since it was demoted. */
    worked_since = recorder_count(&recorder, &recorder.worked) - worked;
    if (recorder_count(&recorder, &recorder.elected) == 1)
        assert_int_equal(worked_since, 0);
    assert_true(recorder_sees(&recorder, &recorder.worked, worked + 5, LIMIT_MS));
    assert_int_equal(recorder_count(&recorder, &recorder.elected), 2);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
}

static void test_hundred_subscribers_share_one_heartbeat_loop(void **state)
{
    struct gavel *gavel = open_gavel("memory:hundred");
    struct gavel_settings settings = long_lease(); /* a hundred callbacks take a while */
    struct gavel_candidate *candidate;
    struct gavel_metrics before, after;
    struct recorder first, others[99];
    int64_t from;

    (void)state;
    recorder_init(&first);
    candidate = join_group(gavel, "jobs", "one", &settings, &first);
    for (size_t i = 0; i < 99; i++) {
        struct gavel_subscriber subscriber;

        recorder_init(&others[i]);
        subscriber = recorder_subscriber(&others[i]);
        assert_int_equal(gavel_subscribe(candidate, &subscriber, NULL), GAVEL_OK);
    }
    for (size_t i = 0; i < 99; i++)
        assert_true(recorder_sees(&others[i], &others[i].elected, 1, LIMIT_MS));
    gavel_metrics(candidate, &before);
    from = gavel_now_ns();
    assert_true(recorder_sees(&first, &first.events[GAVEL_EVENT_HEARTBEAT],
                              recorder_count(&first, &first.events[GAVEL_EVENT_HEARTBEAT]) + 5, LIMIT_MS));
    gavel_metrics(candidate, &after);
    /* One per heartbeat_ms and no more, however many listen. */
    assert_true((int64_t)(after.heartbeats - before.heartbeats) <=
                (gavel_now_ns() - from) / (settings.heartbeat_ms * 1000000) + 2);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    for (size_t i = 0; i < 99; i++) {
        assert_int_equal(others[i].demoted, 1);
        recorder_done(&others[i]);
    }
    recorder_done(&first);
}

static void test_late_subscriber_is_told_and_early_leaver_is_demoted(void **state)
{
    struct gavel *gavel = open_gavel("memory:late");
    struct gavel_candidate *candidate;
    struct gavel_subscriber subscriber;
    struct recorder first, late;
    uint64_t id = 0;

    (void)state;
    recorder_init(&first);
    recorder_init(&late);
    candidate = join_group(gavel, "jobs", "one", NULL, &first);
    assert_true(recorder_sees(&first, &first.elected, 1, LIMIT_MS));
    subscriber = recorder_subscriber(&late);
    assert_int_equal(gavel_subscribe(candidate, &subscriber, &id), GAVEL_OK);
    assert_true(recorder_sees(&late, &late.elected, 1, LIMIT_MS));
    assert_int_equal(late.epoch, first.epoch);
    assert_int_equal(gavel_unsubscribe(candidate, id), GAVEL_OK);
    /* It returns after the last callback: no lock is needed to read now. */
    assert_int_equal(late.demoted, 1);
    assert_int_equal(gavel_unsubscribe(candidate, id), GAVEL_ERR_NOT_FOUND);
    assert_true(gavel_is_leader(candidate));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(first.demoted, 1);
    assert_int_equal(late.demoted, 1);
    recorder_done(&first);
    recorder_done(&late);
}

/* What a callback tried, and what it got for it. */
struct intruder {
    struct recorder *recorder;
    struct gavel *gavel;
    struct recorder *late;
    uint64_t late_id;
    enum gavel_status leave, close, ensure, dispatch, subscribe, unsubscribe, join;
    struct gavel_candidate *joined;
};

static void try_everything(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct intruder *intruder = user;
    struct gavel_subscriber subscriber = recorder_subscriber(intruder->late);
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;

    (void)epoch;
    intruder->leave = gavel_leave(candidate);
    intruder->close = gavel_close(intruder->gavel);
    intruder->ensure = gavel_ensure_leader(candidate, NULL, NULL);
    intruder->dispatch = gavel_dispatch(intruder->gavel);
    intruder->subscribe = gavel_subscribe(candidate, &subscriber, &intruder->late_id);
    options.group = "another";
    options.subscriber = recorder_subscriber(intruder->recorder);
    intruder->join = gavel_join(intruder->gavel, &options, &intruder->joined, NULL);
}

static void try_unsubscribe(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct intruder *intruder = user;

    (void)reason;
    intruder->unsubscribe = gavel_unsubscribe(candidate, intruder->late_id);
}

static void test_callback_may_do_all_but_wait_for_the_loop(void **state)
{
    struct gavel *gavel = open_gavel("memory:intruder");
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    struct recorder recorder, late;
    struct intruder intruder = {.recorder = &recorder, .late = &late, .gavel = gavel};

    (void)state;
    recorder_init(&recorder);
    recorder_init(&late);
    options.group = "jobs";
    options.subscriber = (struct gavel_subscriber){
        .on_elected = try_everything, .on_demoted = try_unsubscribe, .user = &intruder};
    assert_int_equal(gavel_join(gavel, &options, &candidate, NULL), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS)); /* of the group joined inside */
    assert_int_equal(intruder.leave, GAVEL_ERR_STATE);
    assert_int_equal(intruder.close, GAVEL_ERR_STATE);
    assert_int_equal(intruder.ensure, GAVEL_ERR_STATE);
    assert_int_equal(intruder.dispatch, GAVEL_ERR_STATE);
    assert_int_equal(intruder.subscribe, GAVEL_OK);
    assert_int_equal(intruder.join, GAVEL_OK);
    assert_int_equal(recorder_count(&late, &late.elected), 1);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(intruder.unsubscribe, GAVEL_OK);
    assert_int_equal(late.demoted, 1);
    recorder_done(&recorder);
    recorder_done(&late);
}

static void resign_at_once(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    (void)epoch;
    *(enum gavel_status *)user = gavel_resign(candidate, NULL);
}

static void test_callback_may_resign(void **state)
{
    struct gavel *gavel = open_gavel("memory:modest");
    struct gavel_subscriber modest = {.on_elected = resign_at_once};
    enum gavel_status status = GAVEL_ERR_INVALID;
    struct gavel_candidate *candidate;
    struct recorder recorder;

    (void)state;
    recorder_init(&recorder);
    modest.user = &status;
    candidate = join_group(gavel, "jobs", "one", NULL, &recorder);
    assert_int_equal(gavel_subscribe(candidate, &modest, NULL), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.demoted, 1, LIMIT_MS));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(status, GAVEL_OK);
    assert_int_equal(recorder.events[GAVEL_EVENT_STOPPED], 1);
    recorder_done(&recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elected_in_order_and_demoted_in_reverse),
        cmocka_unit_test(test_work_comes_round_while_leading_and_not_after),
        cmocka_unit_test(test_hundred_subscribers_share_one_heartbeat_loop),
        cmocka_unit_test(test_late_subscriber_is_told_and_early_leaver_is_demoted),
        cmocka_unit_test(test_callback_may_do_all_but_wait_for_the_loop),
        cmocka_unit_test(test_callback_may_resign),
    };

    return cmocka_run_group_tests_name("lib subscribers", tests, NULL, NULL);
}
