/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mandates that last as long as the session of the handle. The store is a fake
 * whose sessions the test opens, prolongs and ends.
 */
#include "fake.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "os/clock.h"
#include "os/process.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_first_to_join_begins_the_session(void **state)
{
    struct gavel_settings settings = fake_settings(2500), other;
    struct gavel_candidate *candidate = NULL;
    struct gavel_error error = {0};
    struct gavel *gavel;
    struct fake fake;

    (void)state;
    fake_begin(&fake, 8);
    gavel = fake_gavel(NULL);
    assert_int_equal(fake.opened, 0);
    assert_int_equal(fake_join(gavel, "a", "x", &settings, &candidate, &error), GAVEL_OK);
    assert_int_equal(fake.opened, 1);
    assert_int_equal(fake.options.lease_ms, FAKE_LEASE_MS);
    assert_int_equal(fake.options.drift_ppm, settings.drift_ppm);
    assert_true(fake.options.names_process);
    assert_null(fake.options.key);
    assert_int_equal(fake_join(gavel, "b", "x", &settings, &candidate, &error), GAVEL_OK);
    other = settings;
    other.lease_ms += 1000;
    assert_int_equal(fake_join(gavel, "c", "x", &other, &candidate, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "61000 ms"));
    assert_non_null(strstr(error.message, "open another handle"));
    other = settings;
    other.drift_ppm++;
    assert_int_equal(fake_join(gavel, "c", "x", &other, &candidate, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "drift_ppm"));
    other.drift_ppm -= 2; /* the session is more careful */
    assert_int_equal(fake_join(gavel, "c", "x", &other, &candidate, &error), GAVEL_OK);
    assert_int_equal(fake.opened, 1);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    fake_end(&fake);
}

static void test_store_without_a_session_for_us_refuses_the_join(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_candidate *candidate = NULL;
    struct gavel_error error = {0};
    struct gavel *gavel;
    struct fake fake;

    (void)state;
    fake_begin(&fake, 8);
    fake.refusal = GAVEL_ERR_INVALID;
    gavel = fake_gavel(NULL);
    assert_int_equal(fake_join(gavel, "a", "x", &settings, &candidate, &error), GAVEL_ERR_INVALID);
    assert_null(candidate);
    fake.refusal = GAVEL_OK;
    assert_int_equal(fake_join(gavel, "a", "x", &settings, &candidate, &error), GAVEL_OK);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    fake_end(&fake);
}

/* Else each mandate would end before the next keep-alive is answered, and be granted again. */
static void test_session_too_short_for_the_stop_grace_refuses_the_join(void **state)
{
    struct gavel_settings settings = fake_settings(2500), slow = fake_settings(39500);
    struct gavel_candidate *candidate = NULL;
    struct gavel_error error = {0};
    struct gavel *gavel;
    struct fake fake;

    (void)state;
    fake_begin(&fake, 8);
    gavel = fake_gavel(NULL);
    slow.heartbeat_ms = slow.call_timeout_ms = 100;
    assert_int_equal(gavel_settings_check(&slow, &error), GAVEL_OK);
    assert_int_equal(fake_join(gavel, "a", "x", &slow, &candidate, &error), GAVEL_ERR_BUDGET);
    assert_null(candidate);
    assert_int_equal(fake.opened, 0);
    assert_non_null(strstr(error.message, "stop_grace 39500"));
    assert_non_null(strstr(error.message, "; a lease of 60300 ms would do"));
    assert_int_equal(fake_join(gavel, "a", "x", &settings, &candidate, &error), GAVEL_OK);
    assert_int_equal(fake_join(gavel, "b", "x", &slow, &candidate, &error), GAVEL_ERR_BUDGET);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    fake_end(&fake);
}

static void test_time_to_live_of_the_url_may_be_too_short(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_candidate *candidate = NULL;
    struct gavel_error error = {0};
    struct gavel *gavel;
    struct fake fake;

    (void)state;
    fake_begin(&fake, 8);
    fake.asked_ttl_ms = 4500;
    gavel = fake_gavel(NULL);
    settings.call_timeout_ms = 1000;
    assert_int_equal(fake_join(gavel, "a", "x", &settings, &candidate, &error), GAVEL_ERR_BUDGET);
    assert_null(candidate);
    assert_int_equal(fake.opened, 0);
    assert_non_null(strstr(error.message, "; ttl_ms=6100 in the URL would do"));
    settings.stop_grace_ms = 2000;
    assert_int_equal(fake_join(gavel, "a", "x", &settings, &candidate, &error), GAVEL_OK);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    fake_end(&fake);
}

static void test_handle_is_in_a_group_once(void **state)
{
    struct gavel_join_options single = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_candidate *candidate = NULL, *other = NULL;
    struct gavel_error error = {0};
    struct gavel *gavel;
    struct fake fake;

    (void)state;
    fake_begin(&fake, 8);
    gavel = fake_gavel(NULL);
    assert_int_equal(fake_join(gavel, "a", "x", &settings, &candidate, &error), GAVEL_OK);
    assert_int_equal(fake_join(gavel, "a", "y", &settings, &other, &error), GAVEL_ERR_STATE);
    assert_non_null(strstr(error.message, "open another handle"));
    single.group = "a";
    single.candidate = "y";
    single.enabled = false; /* which is not in the group of that store */
    assert_int_equal(gavel_join(gavel, &single, &other, &error), GAVEL_OK);
    assert_int_equal(gavel_leave(candidate), GAVEL_OK);
    assert_int_equal(fake_join(gavel, "a", "z", &settings, &candidate, &error), GAVEL_OK);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    fake_end(&fake);
}

/* One group that is led, and what the test looks at again and again. */
struct led {
    struct fake fake;
    struct gavel *gavel;
    struct gavel_candidate *candidate;
    struct recorder recorder;
    int64_t until;
};

static bool is_elected(void *argument)
{
    struct led *led = argument;

    return recorder_count(&led->recorder, &led->recorder.elected) > 0;
}

/* All keep-alives were taken note of. */
static bool is_up_to_date(void *argument)
{
    struct led *led = argument;

    return published_session(led->gavel->session.published).deadline == led->fake.session.deadline;
}

static void led_begin(struct led *led, gavel_ms lasts_ms, const struct gavel_settings *settings,
                      struct on_death *on_death)
{
    fake_begin(&led->fake, 8);
    led->fake.lasts_ms = lasts_ms;
    led->until = 0;
    recorder_init(&led->recorder);
    led->gavel = fake_gavel(on_death);
    led->candidate = join_group(led->gavel, "jobs", "x", settings, &led->recorder);
    assert_true(fake_comes_true(&led->fake, is_elected, led));
    assert_true(comes_true(is_up_to_date, led, LIMIT_MS));
}

static void led_end(struct led *led)
{
    assert_int_equal(gavel_close(led->gavel), GAVEL_OK);
    recorder_done(&led->recorder);
    fake_end(&led->fake);
}

static bool lasts_longer(void *argument)
{
    struct led *led = argument;
    int64_t until = 0;

    return gavel_answer(led->candidate, &until) == GAVEL_LEADER && until > led->until;
}

/* Nothing of it is under way, and nothing is due by time. */
static bool is_idle(void *argument)
{
    struct led *led = argument;
    bool is_idle;

    precedence_lock(&led->candidate->lock);
    is_idle = candidate_wake_at(&led->candidate->machine) == NEVER;
    precedence_unlock(&led->candidate->lock);
    return is_idle;
}

static bool is_unsure(void *argument)
{
    struct led *led = argument;

    return gavel_answer(led->candidate, NULL) == GAVEL_UNKNOWN_UNTIL;
}

static void test_keep_alive_prolongs_without_a_step(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_leader_info leader;
    struct led led;
    int requests;

    (void)state;
    led_begin(&led, FAKE_LEASE_MS, &settings, NULL);
    assert_true(led.recorder.was_leader_when_elected);
    assert_true(gavel_is_leader(led.candidate));
    assert_int_equal(gavel_epoch(led.candidate), led.recorder.epoch);
    assert_int_equal(gavel_answer(led.candidate, &led.until), GAVEL_LEADER);
    assert_int_equal(led.until, led.fake.session.deadline - ns_from_ms(3000));
    assert_int_equal(gavel_leader(led.candidate, &leader), GAVEL_OK);
    assert_true(leader.is_self);
    assert_true(comes_true(is_idle, &led, LIMIT_MS));
    requests = fake_count(&led.fake, &led.fake.requests);
    for (int i = 0; i < 5; i++) {
        gavel_ns known;

        fake_prolong(&led.fake);
        assert_true(comes_true(lasts_longer, &led, LIMIT_MS));
        assert_int_equal(gavel_answer(led.candidate, &led.until), GAVEL_LEADER);
        precedence_lock(&led.candidate->lock);
        known = led.candidate->machine.session.deadline;
        precedence_unlock(&led.candidate->lock);
        assert_true(known < led.fake.session.deadline); /* nobody has told it */
    }
    assert_int_equal(fake_count(&led.fake, &led.fake.requests), requests);
    led_end(&led);
}

static void test_answer_is_unknown_when_keep_alives_fail(void **state)
{
    struct gavel_settings settings = fake_settings(1000);
    struct led led;

    (void)state;
    led_begin(&led, 4 * FAKE_LEASE_MS, &settings, NULL);
    assert_int_equal(gavel_answer(led.candidate, &led.until), GAVEL_LEADER);
    fake_open(&led.fake, 0);
    led.fake.late_ms = 3 * FAKE_LEASE_MS;
    fake_open(&led.fake, 2);
    assert_true(comes_true(is_unsure, &led, LIMIT_MS));
    assert_true(gavel_is_leader(led.candidate));
    led.fake.late_ms = 0;
    fake_prolong(&led.fake);
    assert_true(comes_true(lasts_longer, &led, LIMIT_MS));
    led_end(&led);
}

static void test_session_that_lapses_ends_the_mandate_in_time(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct led led;

    (void)state;
    led_begin(&led, 5000, &settings, NULL);
    assert_true(recorder_sees(&led.recorder, &led.recorder.demoted, 1, LIMIT_MS));
    assert_int_equal(led.recorder.reason, GAVEL_REASON_LAPSED);
    assert_false(led.recorder.was_leader_when_demoted);
    assert_true(led.recorder.demoted_at_ns >= led.fake.session.deadline - ns_from_ms(3000));
    assert_int_equal(led.recorder.events[GAVEL_EVENT_OVERRUN], 0);
    led_end(&led);
}

static void test_child_is_never_a_leader(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct led led;
    int status;
    pid_t pid;

    (void)state;
    led_begin(&led, FAKE_LEASE_MS, &settings, NULL);
    pid = fork();
    if (pid == 0)
        _exit(gavel_is_leader(led.candidate) ? 1 : 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(gavel_is_leader(led.candidate));
    led_end(&led);
}

static void test_lost_session_ends_the_mandate_and_another_gives_a_new_one(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_leader_info leader;
    struct led led;
    uint64_t epoch;

    (void)state;
    led_begin(&led, FAKE_LEASE_MS, &settings, NULL);
    epoch = gavel_epoch(led.candidate);
    fake_open(&led.fake, 0);
    assert_true(recorder_sees(&led.recorder, &led.recorder.demoted, 1, LIMIT_MS));
    assert_false(led.recorder.was_leader_when_demoted);
    assert_false(gavel_is_leader(led.candidate));
    assert_int_equal(gavel_answer(led.candidate, NULL), GAVEL_NOT_LEADER);
    assert_int_equal(gavel_leader(led.candidate, &leader), GAVEL_ERR_NO_LEADER);
    fake_open(&led.fake, 2);
    assert_true(recorder_sees(&led.recorder, &led.recorder.elected, 2, LIMIT_MS));
    assert_true(gavel_epoch(led.candidate) > epoch);
    led_end(&led);
}

static void test_two_sessions_at_once_are_shown_in_order(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct led led;

    (void)state;
    led_begin(&led, FAKE_LEASE_MS, &settings, NULL);
    pthread_mutex_lock(&led.gavel->mutex); /* the loop cannot take in the one before the other is there */
    fake_open(&led.fake, 0);
    fake_open(&led.fake, 2);
    fake_prolong(&led.fake);
    fake_open(&led.fake, 3);
    fake_prolong(&led.fake);
    pthread_mutex_unlock(&led.gavel->mutex);
    assert_true(recorder_sees(&led.recorder, &led.recorder.elected, 2, LIMIT_MS));
    assert_int_equal(led.recorder.demoted, 1);
    assert_int_equal(led.candidate->machine.mandate_session, 3);
    led_end(&led);
}

static void test_record_of_another_leader_supersedes(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_leader_info leader;
    struct led led;

    (void)state;
    led_begin(&led, FAKE_LEASE_MS, &settings, NULL);
    fake_give_away(&led.fake, "jobs");
    fake_show(&led.fake, "jobs");
    assert_true(recorder_sees(&led.recorder, &led.recorder.demoted, 1, LIMIT_MS));
    assert_int_equal(led.recorder.reason, GAVEL_REASON_SUPERSEDED);
    assert_true(recorder_sees(&led.recorder, &led.recorder.events[GAVEL_EVENT_LEADER_CHANGED], 2, LIMIT_MS));
    assert_int_equal(gavel_leader(led.candidate, &leader), GAVEL_OK);
    assert_string_equal(leader.id, "other");
    led_end(&led);
}

static void test_hint_makes_it_look(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct led led;

    (void)state;
    led_begin(&led, FAKE_LEASE_MS, &settings, NULL);
    fake_give_away(&led.fake, "jobs");
    fake_hint(&led.fake, "jobs");
    assert_true(recorder_sees(&led.recorder, &led.recorder.demoted, 1, LIMIT_MS));
    assert_int_equal(led.recorder.reason, GAVEL_REASON_SUPERSEDED);
    led_end(&led);
}

static void *go_on_later(void *argument)
{
    (void)sleep(9); /* until the session has lapsed, and nobody waits for calls any more */
    fake_go_on(argument);
    return NULL;
}

static bool is_in_other(void *argument) { return fake_is_in(argument, "other"); }

static bool is_out_of_other(void *argument) { return !fake_is_in(argument, "other"); }

/* Otherwise it stays in the group for as long as the process keeps the session, which survives. */
static void test_what_is_left_while_the_store_hangs_is_left_afterwards(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_candidate *other = NULL;
    pthread_t thread;
    struct led led;

    (void)state;
    settings.call_timeout_ms = 300;
    led_begin(&led, 7000, &settings, NULL);
    assert_int_equal(fake_join(led.gavel, "other", "x", &settings, &other, NULL), GAVEL_OK);
    assert_true(fake_comes_true(&led.fake, is_in_other, &led.fake));
    pthread_mutex_lock(&led.fake.mutex);
    led.fake.hangs = true;
    pthread_mutex_unlock(&led.fake.mutex);
    fake_prolong(&led.fake);
    assert_int_equal(gavel_resign(led.candidate, NULL), GAVEL_OK); /* a call that hangs, ahead of the next */
    assert_true(recorder_sees(&led.recorder, &led.recorder.demoted, 1, LIMIT_MS));
    (void)usleep(200 * 1000);
    assert_int_equal(pthread_create(&thread, NULL, go_on_later, &led.fake), 0);
    (void)gavel_leave(other);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(fake_comes_true(&led.fake, is_out_of_other, &led.fake));
    led_end(&led);
}

static pid_t start_other(struct process_id *ret_id)
{
    int pipe_fds[2];
    pid_t pid;

    assert_int_equal(pipe(pipe_fds), 0);
    pid = fork();
    if (pid == 0) {
        struct process_id self = {0};
        bool is_known = process_self(&self) == GAVEL_OK;

        if (is_known && write(pipe_fds[1], &self, sizeof self) == (ssize_t)sizeof self)
            (void)pause();
        _exit(1);
    }
    assert_true(pid > 0);
    assert_int_equal(read(pipe_fds[0], ret_id, sizeof *ret_id), sizeof *ret_id);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    return pid;
}

static bool has_seen_death(void *argument)
{
    struct fake *fake = argument;
    bool has_seen;

    pthread_mutex_lock(&fake->mutex);
    has_seen = fake->deaths > 0;
    pthread_mutex_unlock(&fake->mutex);
    return has_seen;
}

/* The client asks another node now, on another machine. Nothing else happens to the group. */
static void test_a_store_that_sees_deaths_no_more_leaves_them_to_the_candidates(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct process_id process;
    pid_t pid = start_other(&process);
    struct led led;

    (void)state;
    led_begin(&led, FAKE_LEASE_MS, &settings, NULL);
    pthread_mutex_lock(&led.fake.mutex);
    led.fake.session.sees_deaths = true;
    pthread_mutex_unlock(&led.fake.mutex);
    fake_prolong(&led.fake);
    fake_give_away(&led.fake, "jobs");
    fake_set_process(&led.fake, "jobs", &process);
    fake_show(&led.fake, "jobs");
    assert_true(recorder_sees(&led.recorder, &led.recorder.events[GAVEL_EVENT_LEADER_CHANGED], 2, LIMIT_MS));
    (void)usleep((useconds_t)(settings.election_interval_ms + settings.heartbeat_ms) *
                 1000); /* what it looks at by itself is over */
    fake_prolong(&led.fake);
    pthread_mutex_lock(&led.fake.mutex);
    led.fake.session.sees_deaths = false;
    pthread_mutex_unlock(&led.fake.mutex);
    fake_prolong(&led.fake);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(fake_comes_true(&led.fake, has_seen_death, &led.fake));
    led_end(&led);
}

static bool has_finished_job(void *argument)
{
    struct gavel *gavel = argument;
    bool has_one;

    pthread_mutex_lock(&gavel->mutex);
    has_one = gavel->finished.first != NULL && !gavel->worker.running && !gavel->worker.queue.first;
    pthread_mutex_unlock(&gavel->mutex);
    return has_one;
}

static void test_answer_is_fed_after_the_news_before_it(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_candidate *candidate = NULL;
    struct gavel *gavel = NULL;
    struct fake fake;

    (void)state;
    fake_begin(&fake, 8);
    options.store = FAKE_URL;
    options.doorbell = "";
    options.threaded = false;
    assert_int_equal(gavel_open(&options, &gavel, NULL), GAVEL_OK);
    assert_int_equal(fake_join(gavel, "jobs", "x", &settings, &candidate, NULL), GAVEL_OK);
    fake.reopens_in_reply = 2; /* the heartbeat is sent in session 1 */
    assert_int_equal(gavel_dispatch(gavel), GAVEL_OK);
    assert_true(comes_true(has_finished_job, gavel, LIMIT_MS));
    assert_int_equal(gavel_dispatch(gavel), GAVEL_OK); /* one pass, in which both are there */
    assert_int_equal(candidate->machine.session.number, 2);
    assert_int_equal(candidate->machine.joined_session, 2);
    assert_int_equal(fake_count(&fake, &fake.heartbeats), 1);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    fake_end(&fake);
}

/* A heartbeat that goes with any session. */
static bool is_asking(void *argument)
{
    struct gavel *gavel = argument;
    bool is_asking = false;

    pthread_mutex_lock(&gavel->mutex);
    for (const struct job *job = gavel->worker.running; job; job = job->next)
        is_asking = is_asking || job->op == STORE_HEARTBEAT;
    pthread_mutex_unlock(&gavel->mutex);
    return is_asking;
}

static bool is_out(void *argument) { return !fake_is_in(argument, "jobs"); }

static bool has_beaten(void *argument)
{
    struct fake *fake = argument;

    return fake_count(fake, &fake->heartbeats) > 0;
}

/* It saw no session, so it could not leave one; nobody else would serve what it is granted. */
static void test_who_has_ended_when_it_joins_is_taken_out_again(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_candidate *candidate = NULL;
    struct gavel *gavel;
    struct fake fake;

    (void)state;
    fake_begin(&fake, 8);
    fake.waits = fake.hangs = true;
    settings.call_timeout_ms = 300;
    gavel = fake_gavel(NULL);
    assert_int_equal(fake_join(gavel, "jobs", "x", &settings, &candidate, NULL), GAVEL_OK);
    assert_true(comes_true(is_asking, gavel, LIMIT_MS));
    assert_int_equal(gavel_leave(candidate), GAVEL_OK); /* it gives the heartbeat up */
    pthread_mutex_lock(&fake.mutex);
    fake.reopens_in_reply = 1;
    pthread_mutex_unlock(&fake.mutex);
    fake_go_on(&fake);
    assert_true(comes_true(has_beaten, &fake, LIMIT_MS));
    assert_true(comes_true(is_out, &fake, LIMIT_MS));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    fake_end(&fake);
}

static void test_handle_is_closed_without_a_session(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel *gavel;
    struct fake fake;
    struct led led;

    (void)state;
    fake_begin(&fake, 8);
    fake.waits = true;
    gavel = fake_gavel(NULL);
    (void)join_group(gavel, "jobs", "x", &settings, NULL);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    fake_end(&fake);
    led_begin(&led, FAKE_LEASE_MS, &settings, NULL);
    led.recorder.hang_ms = 200;
    fake_open(&led.fake, 0);
    led_end(&led); /* maybe while the work stops */
    assert_int_equal(led.recorder.demoted, 1);
}

static void test_who_waits_to_start_can_leave(void **state)
{
    struct gavel_settings settings = fake_settings(2500);
    struct gavel_candidate *candidate = NULL;
    struct gavel *gavel;
    struct fake fake;
    char group[16];

    (void)state;
    fake_begin(&fake, 5000);
    fake.hangs = true; /* so that only some are begun with */
    gavel = fake_gavel(NULL);
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(group, sizeof group, "g%d", i);
        assert_int_equal(fake_join(gavel, group, "x", &settings, &candidate, NULL), GAVEL_OK);
    }
    assert_int_equal(gavel_leave(candidate), GAVEL_OK); /* the last one */
    fake_go_on(&fake);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_true(fake_has_heard_of(&fake, "g0"));
    assert_false(fake_has_heard_of(&fake, group));
    fake_end(&fake);
}

/* What a guard reads of a mandate while the work of it runs, and while it stops. */
struct guarded {
    struct led led;
    struct on_death *on_death;
    uint64_t epoch;
    gavel_ns known_at; /* that the session was lost, at the latest */
    bool was_read;
    gavel_ns stop_at;
    gavel_ns deadline;
};

static void read_while_stopping(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct guarded *guarded = user;

    (void)candidate;
    (void)reason;
    guarded->known_at = clock_now();
    guarded->was_read = on_death_read_mandate(guarded->on_death, guarded->on_death->entries, guarded->epoch,
                                              &guarded->stop_at, &guarded->deadline);
}

static bool guard_knows_more(void *argument)
{
    struct guarded *guarded = argument;
    gavel_ns before = guarded->deadline;

    return on_death_read_mandate(guarded->on_death, guarded->on_death->entries, guarded->epoch,
                                 &guarded->stop_at, &guarded->deadline) &&
           guarded->deadline > before;
}

static bool guard_knows_of_none(void *argument)
{
    struct guarded *guarded = argument;

    return atomic_load(&guarded->on_death->session) == 0;
}

static void test_guard_reads_the_deadline_of_the_session(void **state)
{
    struct gavel_subscriber subscriber = {.on_demoted = read_while_stopping};
    struct gavel_settings settings = fake_settings(2500);
    struct guarded guarded = {0};

    (void)state;
    assert_int_equal(on_death_new(8, &guarded.on_death), GAVEL_OK);
    led_begin(&guarded.led, FAKE_LEASE_MS, &settings, guarded.on_death);
    assert_false(guarded.led.fake.options.names_process);
    assert_ptr_equal(guarded.led.fake.options.key, &guarded.on_death->key);
    subscriber.user = &guarded;
    assert_int_equal(gavel_subscribe(guarded.led.candidate, &subscriber, NULL), GAVEL_OK);
    guarded.epoch = gavel_epoch(guarded.led.candidate);
    assert_true(guard_knows_more(&guarded));
    assert_int_equal(guarded.deadline, guarded.led.fake.session.deadline - ns_from_ms(500));
    assert_int_equal(guarded.deadline - guarded.stop_at, ns_from_ms(2500));
    fake_prolong(&guarded.led.fake);
    assert_true(comes_true(guard_knows_more, &guarded, LIMIT_MS));
    fake_open(&guarded.led.fake, 0);
    assert_true(recorder_sees(&guarded.led.recorder, &guarded.led.recorder.demoted, 1, LIMIT_MS));
    assert_true(guarded.was_read);
    /* Somebody else may lead already: not as long as the session would have lasted. */
    assert_true(guarded.deadline <= guarded.known_at + ns_from_ms(2500));
    assert_true(comes_true(guard_knows_of_none, &guarded, LIMIT_MS));
    led_end(&guarded.led);
    assert_false(guard_knows_more(&guarded));
    on_death_free(guarded.on_death);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_to_join_begins_the_session),
        cmocka_unit_test(test_store_without_a_session_for_us_refuses_the_join),
        cmocka_unit_test(test_session_too_short_for_the_stop_grace_refuses_the_join),
        cmocka_unit_test(test_time_to_live_of_the_url_may_be_too_short),
        cmocka_unit_test(test_handle_is_in_a_group_once),
        cmocka_unit_test(test_keep_alive_prolongs_without_a_step),
        cmocka_unit_test(test_answer_is_unknown_when_keep_alives_fail),
        cmocka_unit_test(test_session_that_lapses_ends_the_mandate_in_time),
        cmocka_unit_test(test_child_is_never_a_leader),
        cmocka_unit_test(test_lost_session_ends_the_mandate_and_another_gives_a_new_one),
        cmocka_unit_test(test_two_sessions_at_once_are_shown_in_order),
        cmocka_unit_test(test_record_of_another_leader_supersedes),
        cmocka_unit_test(test_hint_makes_it_look),
        cmocka_unit_test(test_a_store_that_sees_deaths_no_more_leaves_them_to_the_candidates),
        cmocka_unit_test(test_what_is_left_while_the_store_hangs_is_left_afterwards),
        cmocka_unit_test(test_answer_is_fed_after_the_news_before_it),
        cmocka_unit_test(test_who_has_ended_when_it_joins_is_taken_out_again),
        cmocka_unit_test(test_handle_is_closed_without_a_session),
        cmocka_unit_test(test_who_waits_to_start_can_leave),
        cmocka_unit_test(test_guard_reads_the_deadline_of_the_session),
    };

    return cmocka_run_group_tests_name("lib session", tests, NULL, NULL);
}
