/* SPDX-License-Identifier: Apache-2.0 */

/* Ways to run: on the program's own loop, without an election, without a doorbell; and what is refused. */
#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct gavel *open_unthreaded(const char *url)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = url;
    options.threaded = false;
    if (gavel_open(&options, &gavel, &error) != GAVEL_OK)
        fail_msg("cannot open %s: %s", url, error.message);
    return gavel;
}

/* A program's loop: poll and dispatch until the counter is there. */
static bool dispatch_until(struct gavel *gavel, struct recorder *recorder, const int *counter, int least)
{
    int64_t until = gavel_now_ns() + LIMIT_MS * INT64_C(1000000);
    struct pollfd fd = {.fd = gavel_fd(gavel), .events = POLLIN};

    while (recorder_count(recorder, counter) < least && gavel_now_ns() < until) {
        if (poll(&fd, 1, 1000) > 0)
            assert_int_equal(gavel_dispatch(gavel), GAVEL_OK);
    }
    return recorder_count(recorder, counter) >= least;
}

static void test_program_drives_everything_by_poll_and_dispatch(void **state)
{
    const struct scene *scene = *state;
    struct gavel *gavel = open_unthreaded(scene->url);
    struct gavel_settings quick = quick_settings();
    struct gavel_candidate *candidate;
    struct recorder recorder;

    recorder_init(&recorder);
    assert_true(gavel_fd(gavel) >= 0);
    candidate = join_group(gavel, "jobs", "one", &quick, &recorder);
    assert_int_equal(recorder.elected, 0); /* nothing runs by itself */
    assert_true(dispatch_until(gavel, &recorder, &recorder.elected, 1));
    assert_true(dispatch_until(gavel, &recorder, &recorder.events[GAVEL_EVENT_HEARTBEAT], 5));
    assert_true(gavel_is_leader(candidate));
    assert_int_equal(gavel_resign(candidate, NULL), GAVEL_OK);
    assert_true(dispatch_until(gavel, &recorder, &recorder.demoted, 1));
    /* Closing drives the loop itself. */
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(recorder.events[GAVEL_EVENT_STOPPED], 1);
    recorder_done(&recorder);
}

static void test_dispatch_with_nothing_due_returns_at_once(void **state)
{
    struct gavel *gavel = open_unthreaded("memory:idle");
    int64_t from = gavel_now_ns();

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(gavel_dispatch(gavel), GAVEL_OK);
    assert_true(gavel_now_ns() - from < INT64_C(5000000000));
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
}

static void test_waiting_calls_drive_the_loop_when_nobody_does(void **state)
{
    struct gavel *gavel = open_unthreaded("memory:waits");
    struct gavel_candidate *candidate;
    struct gavel_leader_info leader;
    struct gavel_subscriber subscriber;
    struct recorder recorder, other;
    uint64_t id = 0;

    (void)state;
    recorder_init(&recorder);
    recorder_init(&other);
    candidate = join_group(gavel, "jobs", "one", NULL, &recorder);
    assert_int_equal(gavel_ensure_leader(candidate, NULL, &leader), GAVEL_OK);
    assert_string_equal(leader.id, "one");
    subscriber = recorder_subscriber(&other);
    assert_int_equal(gavel_subscribe(candidate, &subscriber, &id), GAVEL_OK);
    assert_int_equal(gavel_unsubscribe(candidate, id), GAVEL_OK);
    assert_int_equal(other.elected, 1);
    assert_int_equal(other.demoted, 1);
    assert_int_equal(gavel_leave(candidate), GAVEL_OK);
    assert_int_equal(recorder.demoted, 1);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
    recorder_done(&other);
}

struct driver {
    pthread_t thread;
    struct gavel *gavel;
    _Atomic bool must_end;
};

static void *drive(void *argument)
{
    struct driver *driver = argument;
    struct pollfd fd = {.fd = gavel_fd(driver->gavel), .events = POLLIN};

    while (!driver->must_end)
        if (poll(&fd, 1, 20) > 0 && gavel_dispatch(driver->gavel) != GAVEL_OK)
            break;
    return NULL;
}

static void test_other_threads_may_call_while_one_dispatches(void **state)
{
    struct driver driver = {.gavel = open_unthreaded("memory:driven")};
    struct gavel_candidate *candidate;
    struct gavel_subscriber subscriber;
    struct recorder recorder, other;

    (void)state;
    recorder_init(&recorder);
    recorder_init(&other);
    subscriber = recorder_subscriber(&other);
    assert_int_equal(pthread_create(&driver.thread, NULL, drive, &driver), 0);
    for (int i = 0; i < 20; i++) {
        uint64_t id = 0;

        candidate = join_group(driver.gavel, "jobs", "one", NULL, i == 0 ? &recorder : NULL);
        assert_int_equal(gavel_ensure_leader(candidate, NULL, NULL), GAVEL_OK);
        assert_int_equal(gavel_subscribe(candidate, &subscriber, &id), GAVEL_OK);
        assert_int_equal(gavel_unsubscribe(candidate, id), GAVEL_OK);
        assert_int_equal(gavel_leave(candidate), GAVEL_OK);
        assert_int_equal(recorder_count(&other, &other.elected), i + 1);
        assert_int_equal(recorder_count(&other, &other.demoted), i + 1);
    }
    assert_int_equal(recorder_count(&recorder, &recorder.elected), 1);
    driver.must_end = true;
    assert_int_equal(pthread_join(driver.thread, NULL), 0);
    assert_int_equal(gavel_close(driver.gavel), GAVEL_OK);
    recorder_done(&recorder);
    recorder_done(&other);
}

static void test_threaded_handle_has_no_descriptor_and_no_dispatch(void **state)
{
    struct gavel *gavel = open_gavel("memory:threaded");

    (void)state;
    assert_int_equal(gavel_fd(gavel), -1);
    assert_int_equal(gavel_dispatch(gavel), GAVEL_ERR_STATE);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
}

static void test_single_instance_leads_without_any_store(void **state)
{
    struct gavel *gavel = open_gavel("none:");
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_ensure_options desired = {.desired = "other"};
    struct gavel_candidate *candidate;
    struct gavel_candidate_info info;
    struct gavel_leader_info leader;
    struct gavel_error error = {0};
    struct recorder recorder;
    int64_t until = 0;
    size_t count;

    (void)state;
    recorder_init(&recorder);
    options.candidate = "one";
    options.subscriber = recorder_subscriber(&recorder);
    options.subscriber.work_interval_ms = 10;
    assert_int_equal(gavel_join(gavel, &options, &candidate, &error), GAVEL_ERR_STATE);
    assert_non_null(strstr(error.message, "enabled"));
    options.enabled = false;
    assert_int_equal(gavel_join(gavel, &options, &candidate, &error), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.worked, 3, LIMIT_MS));
    assert_int_equal(recorder.elected, 1);
    assert_true(gavel_is_leader(candidate));
    assert_int_equal(gavel_epoch(candidate), 0);
    assert_int_equal(gavel_answer(candidate, &until), GAVEL_LEADER);
    assert_int_equal(until, INT64_MAX);
    assert_int_equal(gavel_leader(candidate, &leader), GAVEL_OK);
    assert_true(leader.is_self);
    assert_int_equal(gavel_candidates(candidate, &info, 1, &count), GAVEL_OK);
    assert_int_equal(count, 1);
    assert_string_equal(info.id, "one");
    assert_int_equal(gavel_ensure_leader(candidate, NULL, &leader), GAVEL_OK);
    assert_int_equal(gavel_ensure_leader(candidate, &desired, NULL), GAVEL_ERR_LEADER_TRANSFER_FAILED);
    assert_int_equal(gavel_resign(candidate, NULL), GAVEL_ERR_STATE);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(recorder.demoted, 1);
    assert_int_equal(recorder.reason, GAVEL_REASON_STOPPED);
    assert_string_equal(recorder.order, "eBLd"); /* as with an election */
    assert_int_equal(recorder.events[GAVEL_EVENT_BECAME_LEADER], 1);
    assert_int_equal(recorder.events[GAVEL_EVENT_LOST_LEADERSHIP], 1);
    assert_int_equal(recorder.events[GAVEL_EVENT_STOPPED], 1);
    recorder_done(&recorder);
}

static enum gavel_status open_with(const char *store, const char *doorbell, struct gavel_error *error)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    enum gavel_status status;
    struct gavel *gavel;

    options.store = store;
    options.doorbell = doorbell;
    status = gavel_open(&options, &gavel, error);
    if (status == GAVEL_OK)
        assert_int_equal(gavel_close(gavel), GAVEL_OK);
    return status;
}

static void test_doorbell_address_is_checked(void **state)
{
    static const char *const bad[] = {"localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "0.0.0.0",
                                      "[::]",      "[::1",       ":80",         "127.0.0.1:1:2",   "1.2.3"};
    struct gavel_error error;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(open_with("memory:bell", bad[i], &error), GAVEL_ERR_INVALID);
        assert_non_null(strstr(error.message, bad[i]));
    }
    assert_int_equal(open_with("memory:bell", "192.0.2.1", &error), GAVEL_ERR_IO); /* none of this host's */
    assert_int_equal(open_with("memory:bell", "", &error), GAVEL_OK);
    assert_int_equal(open_with("memory:bell", "127.0.0.1:0", &error), GAVEL_OK);
}

static void test_election_works_without_a_doorbell(void **state)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_settings quick = quick_settings();
    struct gavel_candidate *first;
    struct recorder witnesses[2];
    struct gavel *gavel;

    (void)state;
    recorder_init(&witnesses[0]);
    recorder_init(&witnesses[1]);
    options.store = "memory:deaf";
    options.doorbell = "";
    assert_int_equal(gavel_open(&options, &gavel, NULL), GAVEL_OK);
    first = join_group(gavel, "jobs", "first", &quick, &witnesses[0]);
    assert_true(recorder_sees(&witnesses[0], &witnesses[0].elected, 1, LIMIT_MS));
    (void)join_group(gavel, "jobs", "second", &quick, &witnesses[1]);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].events[GAVEL_EVENT_LEADER_CHANGED], 1, LIMIT_MS));
    assert_int_equal(gavel_resign(first, "second"), GAVEL_OK);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].elected, 1, LIMIT_MS));
    assert_int_equal(witnesses[0].reason, GAVEL_REASON_HANDED_OVER);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&witnesses[0]);
    recorder_done(&witnesses[1]);
}

static bool sees_second_lead(void *candidate)
{
    struct gavel_leader_info leader;

    return gavel_leader(candidate, &leader) == GAVEL_OK && strcmp(leader.id, "second") == 0;
}

/* Two handles, as two processes would have them; nobody looks by itself for minutes, and nobody can be
 * rung. */
static void test_a_store_that_tells_of_changes_needs_no_doorbell(void **state)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    const struct gavel_ensure_options wish = {.desired = "first", .timeout_ms = LIMIT_MS};
    struct gavel_settings patient = patient_settings();
    struct gavel_candidate *candidates[2];
    struct gavel *gavels[2];
    struct recorder witnesses[2];

    (void)state;
    options.store = "memory:told";
    options.doorbell = "";
    for (int i = 0; i < 2; i++) {
        recorder_init(&witnesses[i]);
        assert_int_equal(gavel_open(&options, &gavels[i], NULL), GAVEL_OK);
        candidates[i] = join_group(gavels[i], "jobs", i ? "second" : "first", &patient, &witnesses[i]);
        assert_true(
            recorder_sees(&witnesses[i], &witnesses[i].events[GAVEL_EVENT_LEADER_CHANGED], 1, LIMIT_MS));
    }
    assert_int_equal(recorder_count(&witnesses[0], &witnesses[0].elected), 1);
    assert_int_equal(gavel_resign(candidates[0], "second"), GAVEL_OK);
    assert_true(recorder_sees(&witnesses[1], &witnesses[1].elected, 1, LIMIT_MS));
    assert_true(comes_true(sees_second_lead, candidates[0], LIMIT_MS));
    /* A wish reaches the leader, too, and its release whoever wished. */
    assert_int_equal(gavel_ensure_leader(candidates[0], &wish, NULL), GAVEL_OK);
    assert_true(recorder_sees(&witnesses[0], &witnesses[0].elected, 2, LIMIT_MS));
    assert_int_equal(gavel_close(gavels[0]), GAVEL_OK);
    assert_int_equal(gavel_close(gavels[1]), GAVEL_OK);
    recorder_done(&witnesses[0]);
    recorder_done(&witnesses[1]);
}

static uint64_t doorbells_of(struct gavel_candidate *candidate)
{
    struct gavel_metrics metrics;

    gavel_metrics(candidate, &metrics);
    return metrics.doorbells;
}

/* Rings until the candidate has obeyed once more than `before`. */
struct ringer {
    struct gavel_candidate *candidate;
    uint64_t before;
    int fd;
};

static bool is_heard(void *argument)
{
    const struct ringer *ringer = argument;

    (void)send(ringer->fd, "gavl\1\1\4jobs", 11, 0); /* a lost one is followed by another */
    return doorbells_of(ringer->candidate) > ringer->before;
}

static void test_flood_of_doorbells_disturbs_nobody(void **state)
{
    struct gavel *gavel = open_gavel("memory:flood");
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct gavel_leader_info leader;
    struct ringer ringer = {0};
    struct recorder recorder;
    int64_t from;

    (void)state;
    recorder_init(&recorder);
    ringer.candidate = join_group(gavel, "jobs", "one", NULL, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    assert_int_equal(gavel_leader(ringer.candidate, &leader), GAVEL_OK);
    to.sin_port = htons((in_port_t)atoi(strrchr(leader.address, ':') + 1));
    ringer.fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(ringer.fd >= 0);
    assert_int_equal(connect(ringer.fd, (const struct sockaddr *)&to, sizeof to), 0);
    ringer.before = doorbells_of(ringer.candidate); /* of the store */
    from = gavel_now_ns();
    for (int i = 0; i < 20000; i++) {
        (void)send(ringer.fd, "gavl\1\1\4jobs", 11, 0); /* true in form */
        (void)send(ringer.fd, "gavl\1\1\7another", 14, 0);
        (void)send(ringer.fd, "nonsense", 8, 0);
    }
    /* One in 20 ms is obeyed, however many come. */
    assert_true((int64_t)(doorbells_of(ringer.candidate) - ringer.before) <=
                (gavel_now_ns() - from) / 20000000 + 2);
    assert_true(gavel_is_leader(ringer.candidate));
    /* And afterwards it is not deaf. */
    ringer.before = doorbells_of(ringer.candidate);
    assert_true(comes_true(is_heard, &ringer, LIMIT_MS));
    (void)close(ringer.fd);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(recorder.elected, 1);
    recorder_done(&recorder);
}

static enum gavel_status join_with(struct gavel *gavel, const char *group, const char *id, const char *preset,
                                   const struct gavel_settings *settings, struct gavel_error *error)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;

    options.group = group;
    options.candidate = id;
    options.preset = preset;
    options.settings = settings;
    return gavel_join(gavel, &options, &candidate, error);
}

static void test_bad_names_and_settings_are_refused_with_a_reason(void **state)
{
    struct gavel *gavel = open_gavel("memory:refused");
    struct gavel_settings settings = quick_settings();
    struct gavel_error error = {0};
    char overlong[257];

    (void)state;
    memset(overlong, 'x', sizeof overlong - 1);
    overlong[256] = '\0';
    assert_int_equal(join_with(gavel, "", "one", NULL, NULL, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "group name"));
    assert_int_equal(join_with(gavel, overlong, "one", NULL, NULL, &error), GAVEL_ERR_INVALID);
    assert_int_equal(join_with(gavel, "jobs", "", NULL, NULL, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "candidate id"));
    assert_int_equal(join_with(gavel, "jobs", "\xff", NULL, NULL, &error), GAVEL_ERR_INVALID);
    assert_int_equal(join_with(gavel, "jobs", "one", "loca", NULL, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "loca"));
    settings.lease_ms = settings.heartbeat_ms;
    assert_int_equal(join_with(gavel, "jobs", "one", NULL, &settings, &error), GAVEL_ERR_BUDGET);
    settings.heartbeat_ms = -1;
    assert_int_equal(join_with(gavel, "jobs", "one", NULL, &settings, &error), GAVEL_ERR_INVALID);
    assert_int_equal(join_with(gavel, "jobs", "one", NULL, NULL, &error), GAVEL_OK);
    assert_int_equal(join_with(gavel, "jobs", "one", NULL, NULL, &error), GAVEL_ERR_STATE);
    assert_int_equal(join_with(gavel, "jobs", "two", NULL, NULL, &error), GAVEL_OK);
    assert_int_equal(join_with(gavel, "more jobs", "one", NULL, NULL, &error), GAVEL_OK);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
}

static void test_store_that_cannot_be_opened_says_why(void **state)
{
    struct gavel_error error = {0};

    (void)state;
    assert_int_equal(open_with("nosuch:thing", NULL, &error), GAVEL_ERR_INVALID);
    assert_true(strlen(error.message) > 0);
    assert_int_equal(gavel_close(NULL), GAVEL_OK);
    assert_int_equal(gavel_leave(NULL), GAVEL_OK);
}

static void test_default_store_is_below_the_state_directory(void **state)
{
    char url[64];

    (void)state;
    assert_int_equal(gavel_default_store(url, sizeof url), GAVEL_OK);
    assert_int_equal(strncmp(url, "sqlite:/", 8), 0);
    assert_string_equal(url + strlen(url) - strlen("/gavel/gavel.db"), "/gavel/gavel.db");
    assert_int_equal(gavel_default_store(url, 8), GAVEL_ERR_INVALID);
}

/* These stand in for those of the C library: what the kernel would say of a set-user-ID program. */
static bool is_secure; /* the user that has started the program is not the one whose rights it has */
static uid_t user;     /* 0: the true one, else this one has those rights */
static bool is_root;

__attribute__((visibility("default"))) char *secure_getenv(const char *name)
{
    return is_secure ? NULL : getenv(name);
}

__attribute__((visibility("default"))) uid_t geteuid(void)
{
    return is_root ? 0 : user ? user : (uid_t)syscall(SYS_geteuid);
}

struct surroundings {
    char *state;
    char *home;
};

static char *copy_of(const char *name) { return getenv(name) ? strdup(getenv(name)) : NULL; }

static int surroundings_setup(void **state)
{
    struct surroundings *before = calloc(1, sizeof *before);

    assert_non_null(before);
    before->state = copy_of("XDG_STATE_HOME");
    before->home = copy_of("HOME");
    *state = before;
    return 0;
}

static void put(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static int surroundings_teardown(void **state)
{
    struct surroundings *before = *state;

    put("XDG_STATE_HOME", before->state);
    put("HOME", before->home);
    is_secure = is_root = false;
    user = 0;
    free(before->state);
    free(before->home);
    free(before);
    return 0;
}

/* Somebody with a home, which no user of tests is. */
static void become_daemon(char *ret_url, size_t size)
{
    const struct passwd *daemon = getpwnam("daemon");

    assert_non_null(daemon);
    assert_int_not_equal(daemon->pw_uid, 0);
    user = daemon->pw_uid;
    (void)snprintf(ret_url, size, "sqlite:%s/.local/state/gavel/gavel.db", daemon->pw_dir);
}

static void expect_default(const char *url)
{
    char buffer[512];

    assert_int_equal(gavel_default_store(buffer, sizeof buffer), GAVEL_OK);
    assert_string_equal(buffer, url);
}

static void test_default_store_is_where_the_user_says(void **state)
{
    char url[512];

    (void)state;
    become_daemon(url, sizeof url);
    put("HOME", "/u/somebody");
    put("XDG_STATE_HOME", "/srv/state");
    expect_default("sqlite:/srv/state/gavel/gavel.db");
    put("XDG_STATE_HOME", "relative");
    expect_default("sqlite:/u/somebody/.local/state/gavel/gavel.db");
    put("HOME", NULL);
    expect_default(url);
    is_root = true;
    expect_default("sqlite:/var/lib/gavel/gavel.db");
}

/* Or it would make files where that user wants them, and take that user's word for who leads. */
static void test_default_store_of_a_set_user_id_program_is_not_for_its_user_to_choose(void **state)
{
    char url[512];

    (void)state;
    put("XDG_STATE_HOME", "/u/mallory/state");
    put("HOME", "/u/mallory");
    is_secure = true;
    become_daemon(url, sizeof url);
    expect_default(url);
    is_root = true;
    expect_default("sqlite:/var/lib/gavel/gavel.db");
}

static void test_a_user_without_a_home_has_no_default_store(void **state)
{
    struct gavel_error error = {0};
    char url[512] = "untouched";

    (void)state;
    is_secure = true;
    user = 4000000001;
    assert_null(getpwuid(user));
    assert_int_equal(gavel_default_store(url, sizeof url), GAVEL_ERR_INVALID);
    assert_string_equal(url, "untouched");
    assert_int_equal(open_with(NULL, NULL, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "4000000001"));
}

/* A store of the environment that cannot exist shows by its name in the message who was asked. */
static void test_store_of_the_environment_is_used_when_none_is_named(void **state)
{
    struct gavel_error error = {0};
    char *before = getenv("GAVEL_STORE") ? strdup(getenv("GAVEL_STORE")) : NULL;

    (void)state;
    assert_int_equal(setenv("GAVEL_STORE", "nosuch:environment", 1), 0);
    assert_int_equal(open_with(NULL, NULL, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "nosuch"));
    assert_int_equal(open_with("memory:named", NULL, &error),
                     GAVEL_OK); /* what the program names comes first */
    assert_int_equal(setenv("GAVEL_STORE", "memory:environment", 1), 0);
    assert_int_equal(open_with(NULL, NULL, &error), GAVEL_OK);
    assert_int_equal(before ? setenv("GAVEL_STORE", before, 1) : unsetenv("GAVEL_STORE"), 0);
    free(before);
}

int main(void)
{
#define SURROUNDED(test) cmocka_unit_test_setup_teardown(test, surroundings_setup, surroundings_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_program_drives_everything_by_poll_and_dispatch, scene_setup,
                                        scene_teardown),
        cmocka_unit_test(test_dispatch_with_nothing_due_returns_at_once),
        cmocka_unit_test(test_waiting_calls_drive_the_loop_when_nobody_does),
        cmocka_unit_test(test_other_threads_may_call_while_one_dispatches),
        cmocka_unit_test(test_threaded_handle_has_no_descriptor_and_no_dispatch),
        cmocka_unit_test(test_single_instance_leads_without_any_store),
        cmocka_unit_test(test_doorbell_address_is_checked),
        cmocka_unit_test(test_election_works_without_a_doorbell),
        cmocka_unit_test(test_a_store_that_tells_of_changes_needs_no_doorbell),
        cmocka_unit_test(test_flood_of_doorbells_disturbs_nobody),
        cmocka_unit_test(test_bad_names_and_settings_are_refused_with_a_reason),
        cmocka_unit_test(test_store_that_cannot_be_opened_says_why),
        cmocka_unit_test(test_default_store_is_below_the_state_directory),
        SURROUNDED(test_default_store_is_where_the_user_says),
        SURROUNDED(test_default_store_of_a_set_user_id_program_is_not_for_its_user_to_choose),
        SURROUNDED(test_a_user_without_a_home_has_no_default_store),
        cmocka_unit_test(test_store_of_the_environment_is_used_when_none_is_named),
    };

    return cmocka_run_group_tests_name("lib modes", tests, NULL, NULL);
}
