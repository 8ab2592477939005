/* SPDX-License-Identifier: Apache-2.0 */

/* Many groups whose session ends at once, and work that does not stop with it. The store is a fake. */
#include "fake.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "os/clock.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&t, &t) < 0)
        continue;
}

#define MANY 10000

struct member {
    struct many *many;
    struct gavel_candidate *candidate;
    gavel_ms grace_ms;
    gavel_ms hang_ms; /* in on_demoted */
    int place;        /* among those that were told to stop */
};

struct many {
    struct fake fake;
    struct gavel *gavel;
    struct member *members;
    size_t count;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int led;
    int demoted;
    bool some_led_still; /* when the first was told */
};

static void member_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct many *many = ((struct member *)user)->many;

    (void)candidate;
    (void)epoch;
    pthread_mutex_lock(&many->mutex);
    many->led++;
    pthread_cond_broadcast(&many->changed);
    pthread_mutex_unlock(&many->mutex);
}

static void member_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct member *member = user;
    struct many *many = member->many;

    gavel_ms hang_ms;

    (void)candidate;
    (void)reason;
    pthread_mutex_lock(&many->mutex);
    hang_ms = member->hang_ms;
    if (many->demoted == 0)
        for (size_t i = 0; i < many->count; i++)
            many->some_led_still |= gavel_is_leader(many->members[i].candidate);
    member->place = ++many->demoted;
    pthread_cond_broadcast(&many->changed);
    pthread_mutex_unlock(&many->mutex);
    if (hang_ms > 0)
        pause_ms(hang_ms);
}

static bool many_sees(struct many *many, const int *counter, int least)
{
    struct timespec until;
    bool is_seen;

    (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail */
    until.tv_sec += LIMIT_MS / 1000;
    pthread_mutex_lock(&many->mutex);
    while (*counter < least && pthread_cond_timedwait(&many->changed, &many->mutex, &until) == 0)
        continue;
    is_seen = *counter >= least;
    pthread_mutex_unlock(&many->mutex);
    return is_seen;
}

static bool all_lead(void *argument)
{
    struct many *many = argument;
    bool all_lead;

    pthread_mutex_lock(&many->mutex);
    all_lead = many->led >= (int)many->count;
    pthread_mutex_unlock(&many->mutex);
    return all_lead;
}

static void many_open(struct many *many, size_t count, gavel_ms lasts_ms)
{
    *many = (struct many){.count = count};
    pthread_mutex_init(&many->mutex, NULL);
    pthread_cond_init(&many->changed, NULL);
    fake_begin(&many->fake, count);
    many->fake.lasts_ms = lasts_ms;
    many->members = calloc(count, sizeof *many->members);
    assert_non_null(many->members);
    many->gavel = fake_gavel(NULL);
}

static void many_join(struct many *many, size_t i, gavel_ms grace_ms)
{
    struct gavel_settings settings = fake_settings(grace_ms);
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct member *member = &many->members[i];
    char group[16];

    (void)snprintf(group, sizeof group, "g%zu", i);
    *member = (struct member){.many = many, .grace_ms = grace_ms};
    options.group = group;
    options.candidate = "x";
    options.settings = &settings;
    options.overrun = GAVEL_OVERRUN_REPORT; /* on a slow machine it may take long; the order stands */
    options.subscriber =
        (struct gavel_subscriber){.on_elected = member_elected, .on_demoted = member_demoted, .user = member};
    assert_int_equal(gavel_join(many->gavel, &options, &member->candidate, NULL), GAVEL_OK);
}

static void many_close(struct many *many)
{
    assert_int_equal(gavel_close(many->gavel), GAVEL_OK);
    fake_end(&many->fake);
    free(many->members);
    pthread_cond_destroy(&many->changed);
    pthread_mutex_destroy(&many->mutex);
}

static int by_place(const void *a, const void *b)
{
    return ((const struct member *)a)->place - ((const struct member *)b)->place;
}

/* Who needs longest to stop is told first, everybody once. */
static void assert_order(struct many *many)
{
    struct member *sorted = calloc(many->count, sizeof *sorted);

    assert_non_null(sorted);
    pthread_mutex_lock(&many->mutex);
    memcpy(sorted, many->members, many->count * sizeof *sorted);
    pthread_mutex_unlock(&many->mutex);
    qsort(sorted, many->count, sizeof *sorted, by_place);
    for (size_t i = 0; i < many->count; i++) {
        assert_int_equal(sorted[i].place, i + 1);
        if (i > 0)
            assert_true(sorted[i].grace_ms <= sorted[i - 1].grace_ms);
    }
    assert_false(many->some_led_still);
    free(sorted);
}

static void test_all_groups_of_a_lost_session_are_told_earliest_stop_first(void **state)
{
    struct many many;

    (void)state;
    many_open(&many, MANY, FAKE_LEASE_MS);
    for (size_t i = 0; i < MANY; i++)
        many_join(&many, i, 5000 + (gavel_ms)(i % 10) * 1000);
    assert_true(many_sees(&many, &many.led, MANY));
    fake_open(&many.fake, 0);
    assert_true(many_sees(&many, &many.demoted, MANY));
    for (size_t i = 0; i < MANY; i++)
        assert_false(gavel_is_leader(many.members[i].candidate));
    fake_open(&many.fake, 2);
    assert_true(many_sees(&many, &many.led, 2 * MANY));
    assert_int_equal(many.demoted, MANY);
    /* They are told of keep-alives by none of their steps. */
    fake_prolong(&many.fake);
    assert_order(&many);
    many_close(&many);
}

static int calls_under_way(struct many *many)
{
    struct gavel *gavel = many->gavel;
    int count = 0;

    pthread_mutex_lock(&gavel->mutex);
    for (const struct job *job = gavel->worker.running; job; job = job->next)
        count++;
    for (const struct job *job = gavel->worker.queue.first; job; job = job->next)
        count++;
    pthread_mutex_unlock(&gavel->mutex);
    return count;
}

static bool is_quiet(void *argument) { return calls_under_way(argument) == 0; }

/* Otherwise the last would wait for its turn until its time is over, and all would be said again. */
static void test_former_leaders_come_to_the_next_session_some_at_a_time(void **state)
{
    struct many many;

    (void)state;
    many_open(&many, 2 * LIB_JOBS_WANTED, FAKE_LEASE_MS * 10);
    for (size_t i = 0; i < many.count; i++)
        many_join(&many, i, 5000);
    assert_true(many_sees(&many, &many.led, (int)many.count));
    assert_true(comes_true(is_quiet, &many, LIMIT_MS));
    pthread_mutex_lock(&many.fake.mutex);
    many.fake.hangs = true;
    pthread_mutex_unlock(&many.fake.mutex);
    fake_open(&many.fake, 2);
    assert_true(many_sees(&many, &many.demoted, (int)many.count));
    assert_in_range(calls_under_way(&many), 0, LIB_JOBS_WANTED + SLOT_COUNT);
    fake_go_on(&many.fake);
    assert_true(many_sees(&many, &many.led, 2 * (int)many.count));
    many_close(&many);
}

static void test_all_groups_of_a_session_that_lapses_are_told_once(void **state)
{
    struct many many;

    (void)state;
    many_open(&many, 1000, 12000);
    for (size_t i = 0; i < many.count; i++)
        many_join(&many, i, 4500 + (gavel_ms)(i % 5) * 250);
    assert_true(fake_comes_true(&many.fake, all_lead, &many));
    assert_true(many_sees(&many, &many.demoted, (int)many.count));
    for (size_t i = 0; i < many.count; i++)
        assert_false(gavel_is_leader(many.members[i].candidate));
    many.some_led_still = false; /* those that stop later did, when the first was told */
    assert_order(&many);
    many_close(&many);
}

/* A callback of another group holds up the loop, past the deadline of the session. */
struct obstacle {
    _Atomic bool is_there;
    _Atomic bool is_gone;
};

static void stand_in_the_way(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct obstacle *obstacle = user;

    (void)candidate;
    (void)epoch;
    atomic_store(&obstacle->is_there, true);
    while (!atomic_load(&obstacle->is_gone))
        pause_ms(1);
}

/* All of them are due when it goes on; their deadlines are the same. */
static void test_groups_that_lapse_while_the_loop_is_held_up_are_told_earliest_stop_first(void **state)
{
    struct obstacle obstacle = {0};
    struct gavel_subscriber subscriber = {.on_elected = stand_in_the_way, .user = &obstacle};
    struct many many;

    (void)state;
    many_open(&many, 200, FAKE_LEASE_MS);
    for (size_t i = 0; i < many.count; i++)
        many_join(&many, i, i == 0 ? 1000 : 2000 + (gavel_ms)(i * 37 % 199) * 10);
    assert_true(fake_comes_true(&many.fake, all_lead, &many));
    many.fake.lasts_ms = 7000; /* from the next keep-alive on */
    fake_open(&many.fake, 0);
    assert_true(many_sees(&many, &many.demoted, (int)many.count));
    pthread_mutex_lock(&many.mutex);
    many.demoted = 0;
    pthread_mutex_unlock(&many.mutex);
    fake_open(&many.fake, 2);
    assert_true(many_sees(&many, &many.led, 2 * (int)many.count));
    assert_int_equal(gavel_subscribe(many.members[0].candidate, &subscriber, NULL), GAVEL_OK);
    while (gavel_now_ns() <
           many.fake.session.deadline - ns_from_ms(1500)) /* but for the first, they must stop */
        pause_ms(10);
    assert_true(atomic_load(&obstacle.is_there));
    assert_int_equal(many.demoted, 0);
    atomic_store(&obstacle.is_gone, true);
    assert_true(many_sees(&many, &many.demoted, (int)many.count));
    many.some_led_still = false; /* the first one did */
    assert_order(&many);
    many_close(&many);
}

static void test_one_slow_group_takes_time_from_those_after_it_only(void **state)
{
    struct many many;

    (void)state;
    many_open(&many, 20, FAKE_LEASE_MS);
    for (size_t i = 0; i < many.count; i++)
        many_join(&many, i, i == 7 ? 9000 : i == 3 ? 4000 : 6000);
    assert_true(many_sees(&many, &many.led, (int)many.count));
    pthread_mutex_lock(&many.mutex);
    many.members[3].hang_ms = 500; /* and is told last */
    pthread_mutex_unlock(&many.mutex);
    fake_open(&many.fake, 0);
    assert_true(many_sees(&many, &many.demoted, (int)many.count));
    assert_int_equal(many.members[7].place, 1);
    assert_int_equal(many.members[3].place, many.count);
    many_close(&many);
}

/* ---- work that does not stop ---- */

struct hanging {
    struct recorder recorder;
    int64_t overrun_at_ns;
};

static void note_overrun(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct hanging *hanging = user;

    (void)candidate;
    if (event->kind != GAVEL_EVENT_OVERRUN)
        return;
    pthread_mutex_lock(&hanging->recorder.mutex);
    hanging->overrun_at_ns = gavel_now_ns();
    hanging->recorder.events[GAVEL_EVENT_OVERRUN]++;
    pthread_cond_broadcast(&hanging->recorder.changed);
    pthread_mutex_unlock(&hanging->recorder.mutex);
}

static struct gavel_candidate *join_hanging(struct gavel *gavel, const char *group,
                                            enum gavel_overrun overrun, gavel_ms grace_ms,
                                            struct hanging *hanging)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_settings settings = fake_settings(grace_ms);
    struct gavel_candidate *candidate = NULL;

    options.group = group;
    options.candidate = "x";
    options.settings = &settings;
    options.overrun = overrun;
    options.subscriber = recorder_subscriber(&hanging->recorder);
    options.subscriber.on_event = note_overrun;
    options.subscriber.user = hanging;
    options.subscriber.on_elected = NULL;
    options.subscriber.on_demoted = NULL;
    options.subscriber.on_work = NULL;
    assert_int_equal(gavel_join(gavel, &options, &candidate, NULL), GAVEL_OK);
    return candidate;
}

static bool leads(void *argument) { return gavel_is_leader(argument); }

static void test_work_that_nobody_can_stop_is_reported_at_its_deadline(void **state)
{
    struct obstacle obstacle = {0};
    struct gavel_subscriber subscriber = {.on_elected = stand_in_the_way, .user = &obstacle};
    struct gavel_candidate *candidate;
    struct hanging hanging = {0};
    struct gavel *gavel;
    struct fake fake;
    int64_t deadline;

    (void)state;
    fake_begin(&fake, 8);
    fake.lasts_ms = 8000; /* enough for a slow machine to call back in time */
    recorder_init(&hanging.recorder);
    gavel = fake_gavel(NULL);
    candidate = join_hanging(gavel, "jobs", GAVEL_OVERRUN_REPORT, 1000, &hanging);
    assert_true(fake_comes_true(&fake, leads, candidate));
    fake_prolong(&fake);
    assert_int_equal(gavel_subscribe(candidate, &subscriber, NULL), GAVEL_OK);
    deadline = fake.session.deadline - ns_from_ms(500);
    assert_true(recorder_sees(&hanging.recorder, &hanging.recorder.events[GAVEL_EVENT_OVERRUN], 1, LIMIT_MS));
    assert_true(atomic_load(&obstacle.is_there));
    assert_true(hanging.overrun_at_ns >= deadline);
    assert_false(gavel_is_leader(candidate));
    atomic_store(&obstacle.is_gone, true);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(hanging.recorder.events[GAVEL_EVENT_OVERRUN], 1);
    recorder_done(&hanging.recorder);
    fake_end(&fake);
}

/* In a process of its own: it leads two groups, and the work of the one hangs when the session is lost. */
static void hang_for_ever(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    (void)candidate;
    (void)reason;
    (void)user;
    for (;;)
        pause_ms(1000);
}

static _Noreturn void play_and_hang(bool is_lost)
{
    struct gavel_subscriber subscriber = {.on_demoted = hang_for_ever};
    struct hanging hanging = {0};
    struct gavel_candidate *candidate, *other;
    struct gavel *gavel;
    struct fake fake;

    (void)freopen("/dev/null", "w", stderr); /* what the watchdog says is expected */
    fake_begin(&fake, 8);
    fake.lasts_ms = is_lost ? FAKE_LEASE_MS : 3000;
    recorder_init(&hanging.recorder);
    gavel = fake_gavel(NULL);
    candidate = join_hanging(gavel, "jobs", GAVEL_OVERRUN_ABORT, 1000, &hanging);
    other = join_hanging(gavel, "other", GAVEL_OVERRUN_REPORT, 1500, &hanging);
    if (!fake_comes_true(&fake, leads, candidate) || !fake_comes_true(&fake, leads, other) ||
        gavel_subscribe(candidate, &subscriber, NULL) != GAVEL_OK)
        _exit(2);
    if (is_lost)
        fake_open(&fake, 0); /* long before its deadline: what remains is the grace */
    pause_ms(30000);
    _exit(3);
}

static void test_work_that_hangs_ends_the_process(void **state)
{
    (void)state;
    for (int is_lost = 0; is_lost <= 1; is_lost++) {
        int status;
        pid_t pid = fork();

        if (pid == 0)
            play_and_hang(is_lost);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        if (WTERMSIG(status) !=
            SIGKILL) /* by the kernel, if the machine kept the watchdog from running in time */
            assert_int_equal(WTERMSIG(status), SIGABRT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_that_hangs_ends_the_process), /* before there is any thread */
        cmocka_unit_test(test_all_groups_of_a_lost_session_are_told_earliest_stop_first),
        cmocka_unit_test(test_former_leaders_come_to_the_next_session_some_at_a_time),
        cmocka_unit_test(test_all_groups_of_a_session_that_lapses_are_told_once),
        cmocka_unit_test(test_groups_that_lapse_while_the_loop_is_held_up_are_told_earliest_stop_first),
        cmocka_unit_test(test_one_slow_group_takes_time_from_those_after_it_only),
        cmocka_unit_test(test_work_that_nobody_can_stop_is_reported_at_its_deadline),
    };

    return cmocka_run_group_tests_name("lib session ends", tests, NULL, NULL);
}
