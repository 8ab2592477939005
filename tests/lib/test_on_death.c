/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Release on death: what is noted while a candidate runs, what a guard reads
 * out of it, and what releasing does to the store.
 */
#include "harness.h"

#include "lib/guard/on_death.h"
#include "os/clock.h"
#include "store/store.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct on_death *new_on_death(const char *url)
{
    struct on_death *on_death = NULL;

    assert_int_equal(on_death_new(ON_DEATH_ENTRIES_MAX, &on_death), GAVEL_OK);
    assert_int_equal(on_death_set_store(on_death, url), GAVEL_OK);
    return on_death;
}

static struct store *open_store(const char *url)
{
    struct store *store = NULL;
    struct gavel_error error = {0};

    if (store_open(url, &store, &error) != GAVEL_OK)
        fail_msg("cannot open %s: %s", url, error.message);
    return store;
}

static struct store_reply call(struct store *store, struct store_request request)
{
    struct store_reply reply = {0};

    request.give_up_at = clock_now() + ns_from_ms(LIMIT_MS);
    store_run(store, &request, &reply, 1);
    return reply;
}

/* Claims a group for "a" with a nonce of this number, as a process without an identity. */
static struct record claim(struct store *store, const char *group, uint64_t number)
{
    struct store_reply reply = call(store, (struct store_request){.op = STORE_READ, .group = group});
    struct store_request request = {.op = STORE_CLAIM, .group = group};

    assert_int_equal(reply.status, GAVEL_OK);
    request.expected_version = reply.record.version;
    request.record.nonce = (struct nonce){number, number};
    request.record.lease_ms = 3600000;
    (void)snprintf(request.record.holder, sizeof request.record.holder, "a");
    reply = call(store, request);
    assert_int_equal(reply.status, GAVEL_OK);
    return reply.record;
}

static struct record read_record(struct store *store, const char *group)
{
    struct store_reply reply = call(store, (struct store_request){.op = STORE_READ, .group = group});

    assert_int_equal(reply.status, GAVEL_OK);
    return reply.record;
}

/* Executes it; how many mandates were released. */
static size_t release_all(const struct on_death *on_death, struct store *store)
{
    struct gavel_error error = {0};
    size_t released = 0;

    if (on_death_release(on_death, store, clock_now() + ns_from_ms(LIMIT_MS), &released, &error) != GAVEL_OK)
        fail_msg("cannot release on death: %s", error.message);
    return released;
}

static void test_mandate_is_read_only_under_the_epoch_it_was_noted_for(void **state)
{
    struct on_death *on_death = new_on_death("memory:x");
    struct on_death_entry *entry = on_death_take(on_death, "jobs", "a");
    gavel_ns stop_at = -1, deadline = -1;

    (void)state;
    assert_non_null(entry);
    assert_false(on_death_read_mandate(on_death, entry, 7, &stop_at, &deadline));
    assert_false(on_death_read_mandate(on_death, entry, 0, &stop_at, &deadline));
    on_death_note_mandate(entry, 7, 100, 200);
    assert_false(on_death_read_mandate(on_death, entry, 6, &stop_at, &deadline));
    assert_int_equal(stop_at, -1); /* untouched */
    assert_true(on_death_read_mandate(on_death, entry, 7, &stop_at, &deadline));
    assert_int_equal(stop_at, 100);
    assert_int_equal(deadline, 200);
    on_death_note_mandate(entry, 8, 300, 400);
    assert_false(on_death_read_mandate(on_death, entry, 7, &stop_at, &deadline));
    on_death_note_stopped(entry);
    assert_false(on_death_read_mandate(on_death, entry, 8, &stop_at, &deadline));
    on_death_give_back(on_death, entry);
    on_death_free(on_death);
}

static void test_mandate_of_a_session_follows_its_deadline(void **state)
{
    struct on_death *on_death = new_on_death("memory:x");
    struct on_death_entry *entry = on_death_take(on_death, "jobs", "a");
    gavel_ns stop_at = -1, deadline = -1;

    (void)state;
    on_death_note_session_mandate(entry, 7, 40, 30, 10, NEVER);
    assert_false(on_death_read_mandate(on_death, entry, 7, &stop_at, &deadline)); /* no session yet */
    on_death_note_session(on_death, 40, 1000);
    assert_true(on_death_read_mandate(on_death, entry, 7, &stop_at, &deadline));
    assert_int_equal(stop_at, 970);
    assert_int_equal(deadline, 990);
    on_death_note_session(on_death, 40, 2000);
    assert_true(on_death_read_mandate(on_death, entry, 7, &stop_at, &deadline));
    assert_int_equal(stop_at, 1970);
    on_death_note_session_mandate(entry, 8, 40, 30, 10, 1500); /* a new epoch, which ends by itself */
    assert_true(on_death_read_mandate(on_death, entry, 8, &stop_at, &deadline));
    assert_int_equal(stop_at, 1480);
    assert_int_equal(deadline, 1500);
    on_death_note_session(on_death, 41, 9000);
    assert_false(on_death_read_mandate(on_death, entry, 8, &stop_at, &deadline));
    on_death_note_mandate(entry, 8, 1470, 1490); /* the time that its work has left */
    assert_true(on_death_read_mandate(on_death, entry, 8, &stop_at, &deadline));
    assert_int_equal(deadline, 1490);
    on_death_note_stopped(entry);
    assert_false(on_death_read_mandate(on_death, entry, 8, &stop_at, &deadline));
    on_death_note_session(NULL, 1, 1);
    on_death_note_session_mandate(NULL, 1, 1, 1, 1, NEVER);
    on_death_free(on_death);
}

/*
 * A child that writes until it is killed. It dies with us: a failed assertion
 * leaves no process behind that writes for ever.
 */
static pid_t fork_writer(void)
{
    pid_t parent = getpid(), pid = fork();

    assert_true(pid >= 0);
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
        _exit(1);
    return pid;
}

/* One process writes as fast as it can, this one reads: a deadline belongs to the number it is read under. */
static void test_reader_never_sees_the_deadline_of_another_session(void **state)
{
    struct on_death *on_death = new_on_death("memory:x");
    struct on_death_entry *entry = on_death_take(on_death, "jobs", "a");
    uint64_t seen = 0;
    gavel_ns limit;
    pid_t pid;

    (void)state;
    pid = fork_writer();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the test fails */
        for (uint64_t number = 1;; number++) {  /* until it is killed */
            gavel_ns base = (gavel_ns)number * 1000;

            on_death_note_session(on_death, number, base + 500);
            on_death_note_session_mandate(entry, number, number, 200, 100, NEVER);
            on_death_note_session(on_death, number, base + 900);
            on_death_note_mandate(entry, number, base + 100, base + 200);
        }
    }
    limit = clock_now() + 20 * NS_PER_S;
    while (seen < 20000 && clock_now() < limit) {
        uint64_t epoch = atomic_load(&entry->epoch);
        gavel_ns stop_at, deadline;

        if (!on_death_read_mandate(on_death, entry, epoch, &stop_at, &deadline))
            continue;
        seen++;
        assert_int_equal(stop_at / 1000, epoch);
        assert_int_equal(deadline / 1000, epoch);
        assert_int_equal(deadline - stop_at, 100);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(seen > 0);
    on_death_free(on_death);
}

/* One process writes as fast as it can, this one reads: what it reads was noted in one go. */
static void test_reader_in_another_process_never_sees_instants_of_another_epoch(void **state)
{
    struct on_death *on_death = new_on_death("memory:x");
    struct on_death_entry *entry = on_death_take(on_death, "jobs", "a");
    uint64_t seen = 0;
    gavel_ns limit;
    pid_t pid;

    (void)state;
    pid = fork_writer();
    if (pid == 0) {
        for (uint64_t epoch = 1;; epoch++) { /* until it is killed */
            gavel_ns base = (gavel_ns)epoch * 1000;

            on_death_note_mandate(entry, epoch, base, base + 100);
            on_death_note_mandate(entry, epoch, base + 500, base + 600); /* renewed */
            on_death_note_mandate(entry, epoch, base + 200, base + 300); /* superseded */
            if (epoch % 3 == 0)
                on_death_note_stopped(entry);
        }
    }
    limit = clock_now() + 20 * NS_PER_S;
    while (seen < 20000 && clock_now() < limit) {
        uint64_t epoch = atomic_load(&entry->epoch);
        gavel_ns stop_at, deadline;

        if (!on_death_read_mandate(on_death, entry, epoch, &stop_at, &deadline))
            continue;
        seen++;
        assert_int_equal(stop_at / 1000, epoch);
        assert_int_equal(deadline / 1000, epoch);
        assert_true(stop_at <= deadline);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(seen > 0);
    on_death_free(on_death);
}

static void test_entries_are_used_again_and_run_out(void **state)
{
    struct on_death *on_death = new_on_death("memory:x");
    struct on_death_entry *first = on_death_take(on_death, "0", "a");
    char group[16];

    (void)state;
    for (int i = 1; i < ON_DEATH_ENTRIES_MAX; i++) {
        (void)snprintf(group, sizeof group, "%d", i);
        assert_non_null(on_death_take(on_death, group, "a"));
    }
    assert_null(on_death_take(on_death, "more", "a"));
    on_death_note_claim(first, (struct nonce){1, 1});
    on_death_give_back(on_death, first);
    assert_ptr_equal(on_death_take(on_death, "again", "a"), first);
    assert_int_equal(atomic_load(&first->is_used), 0);
    /* Nobody has to look whether there is an entry. */
    on_death_note_claim(NULL, (struct nonce){1, 1});
    on_death_note_mandate(NULL, 1, 1, 1);
    on_death_note_stopped(NULL);
    on_death_give_back(NULL, NULL);
    on_death_free(on_death);
}

static void test_will_in_a_file_is_read_by_another_mapping(void **state)
{
    const struct on_death *other = NULL;
    struct on_death *on_death = NULL;
    gavel_ns stop_at, deadline;
    int fd = -1;

    (void)state;
    assert_int_equal(on_death_new_file(&on_death, &fd), GAVEL_OK);
    on_death_note_mandate(on_death_take(on_death, "jobs", "a"), 3, 10, 20);
    assert_int_equal(ftruncate(fd, 1), -1); /* sealed */
    assert_int_equal(on_death_map_file(fd, &other), GAVEL_OK);
    assert_true(on_death_read_mandate(other, &other->entries[0], 3, &stop_at, &deadline));
    assert_string_equal(other->entries[0].group, "jobs");
    on_death_free(other);
    on_death->format = ON_DEATH_FORMAT + 1;
    assert_int_equal(on_death_map_file(fd, &other), GAVEL_ERR_INVALID);
    assert_int_equal(on_death_map_file(STDIN_FILENO, &other), GAVEL_ERR_INVALID);
    on_death_free(on_death);
    (void)close(fd);
}

static void test_executing_releases_what_the_claims_hold(void **state)
{
    struct scene *scene = *state;
    struct store *store = open_store(scene->url);
    struct on_death *on_death = new_on_death(scene->url);
    uint64_t epochs[40];
    char group[16];

    for (int i = 0; i < 40; i++) { /* more than one batch */
        struct on_death_entry *entry;

        (void)snprintf(group, sizeof group, "g%d", i);
        epochs[i] = claim(store, group, (uint64_t)i + 1).epoch;
        entry = on_death_take(on_death, group, "a");
        if (i != 5)
            on_death_note_claim(entry, (struct nonce){(uint64_t)i + 1, (uint64_t)i + 1});
    }
    assert_int_equal(release_all(on_death, NULL), 39);
    for (int i = 0; i < 40; i++) {
        struct record record;

        (void)snprintf(group, sizeof group, "g%d", i);
        record = read_record(store, group);
        assert_int_equal(record.held, i == 5);
        assert_int_equal(record.epoch, epochs[i]); /* it never restarts */
    }
    assert_int_equal(release_all(on_death, store), 0); /* again: nothing is left to do */
    store_close(store);
    on_death_free(on_death);
}

static void test_stale_will_releases_nothing_of_a_successor(void **state)
{
    struct scene *scene = *state;
    struct store *store = open_store(scene->url);
    struct on_death *on_death = new_on_death(scene->url);
    struct on_death_entry *entry = on_death_take(on_death, "jobs", "a");

    (void)claim(store, "jobs", 1);
    on_death_note_claim(entry, (struct nonce){1, 1});
    assert_int_equal(release_all(on_death, store), 1);
    (void)claim(store, "jobs", 2); /* by the same id: only the nonce tells */
    assert_int_equal(release_all(on_death, store), 0);
    assert_true(read_record(store, "jobs").held);
    store_close(store);
    on_death_free(on_death);
}

/* Whatever a program wrote all over the list when it crashed. */
static void test_damaged_will_releases_nothing(void **state)
{
    struct scene *scene = *state;
    struct store *store = open_store(scene->url);
    struct on_death *on_death = new_on_death(scene->url);
    struct on_death_entry *entry = on_death_take(on_death, "jobs", "a");
    struct gavel_error error = {0};
    size_t released = 1;

    (void)claim(store, "jobs", 1);
    on_death_note_claim(entry, (struct nonce){1, 1});
    atomic_store(&entry->is_used, 0); /* died in on_death_note_claim() */
    entry->nonce.low = 99;
    assert_int_equal(release_all(on_death, store), 0);
    atomic_store(&entry->is_used, 1); /* even so: half a nonce is nobody's */
    assert_int_equal(release_all(on_death, store), 0);
    atomic_store(&on_death->count, UINT32_MAX);
    memset(entry->group, 'x', sizeof entry->group);
    memset(entry->holder, 'x', sizeof entry->holder);
    assert_int_equal(release_all(on_death, store), 0);
    memset(entry->group, '\x01', sizeof entry->group);
    assert_int_equal(on_death_release(on_death, store, clock_now() + ns_from_ms(LIMIT_MS), &released, &error),
                     GAVEL_ERR_INVALID);
    assert_int_equal(released, 0);
    assert_true(read_record(store, "jobs").held);
    store_close(store);
    on_death_free(on_death);
}

static void test_executing_rings_the_other_candidates(void **state)
{
    struct scene *scene = *state;
    struct store *store = open_store(scene->url);
    struct on_death *on_death = new_on_death(scene->url);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct store_request beat = {.op = STORE_HEARTBEAT, .group = "jobs", .candidate_timeout_ms = 60000};
    socklen_t size = sizeof address;
    struct pollfd bell = {.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), .events = POLLIN};
    struct store_reply reply;

    assert_int_equal(bind(bell.fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(bell.fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(beat.registration.id, sizeof beat.registration.id, "b");
    (void)snprintf(beat.registration.address, sizeof beat.registration.address, "127.0.0.1:%u",
                   (unsigned)ntohs(address.sin_port));
    beat.registration.instance = 5;
    reply = call(store, beat);
    assert_int_equal(reply.status, GAVEL_OK);
    on_death_note_claim(on_death_take(on_death, "jobs", "a"), (struct nonce){1, 1});
    assert_int_equal(release_all(on_death, store), 0); /* never claimed: nobody is troubled */
    (void)claim(store, "jobs", 1);
    assert_int_equal(poll(&bell, 1, 0), 0);
    assert_int_equal(release_all(on_death, store), 1);
    assert_int_equal(poll(&bell, 1, LIMIT_MS), 1);
    (void)close(bell.fd);
    store_close(store);
    on_death_free(on_death);
}

/* Puts the file back after a while, from another process. */
static pid_t put_back_later(const char *from, const char *to)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)usleep(200000); /* what is tested is that the other side waits */
        _exit(rename(from, to) == 0 ? 0 : 1);
    }
    return pid;
}

static void test_store_that_is_away_is_waited_for_and_not_made_anew(void **state)
{
    struct scene *scene = *state;
    struct store *store = open_store(scene->url);
    struct on_death *on_death = new_on_death(scene->url);
    struct gavel_error error = {0};
    size_t released = 1;
    char away[160];
    int status;
    pid_t pid;

    (void)snprintf(away, sizeof away, "%s.away", scene->path);
    (void)claim(store, "jobs", 1);
    on_death_note_claim(on_death_take(on_death, "jobs", "a"), (struct nonce){1, 1});
    store_close(store); /* the last one to close it empties and removes the log */
    assert_int_equal(rename(scene->path, away), 0);
    assert_int_equal(on_death_release(on_death, NULL, clock_now(), &released, &error),
                     GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(released, 0);
    assert_non_null(strstr(error.message, "put it back"));
    assert_int_equal(access(scene->path, F_OK), -1);
    pid = put_back_later(away, scene->path);
    assert_int_equal(release_all(on_death, NULL), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    on_death_free(on_death);
}

/* The same with a store that was opened before it went away. */
static void test_open_store_that_was_away_serves_when_it_is_back(void **state)
{
    struct scene *scene = *state;
    struct store *store = open_store(scene->url);
    struct on_death *on_death = new_on_death(scene->url);
    char away[160];
    int status;
    pid_t pid;

    (void)snprintf(away, sizeof away, "%s.away", scene->path);
    (void)claim(store, "jobs", 1);
    on_death_note_claim(on_death_take(on_death, "jobs", "a"), (struct nonce){1, 1});
    assert_int_equal(rename(scene->path, away), 0);
    pid = put_back_later(away, scene->path);
    assert_int_equal(release_all(on_death, store), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(read_record(store, "jobs").held);
    store_close(store);
    on_death_free(on_death);
}

/* A guarded candidate, and what its callbacks find in the list. */
struct look {
    struct on_death *on_death;
    struct gavel *gavel;
    struct gavel_candidate *candidate;
    const struct on_death_entry *entry;
    struct recorder recorder;
    gavel_ns elected_deadline;
    gavel_ns demoted_deadline; /* the work has not stopped yet */
    gavel_ns demoted_at;
};

static void look_when_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct look *look = user;
    gavel_ns stop_at = 0;

    (void)candidate;
    (void)on_death_read_mandate(look->on_death, look->entry, epoch, &stop_at, &look->elected_deadline);
    pthread_mutex_lock(&look->recorder.mutex);
    look->recorder.elected++;
    look->recorder.epoch = epoch;
    pthread_cond_broadcast(&look->recorder.changed);
    pthread_mutex_unlock(&look->recorder.mutex);
}

static void look_when_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct look *look = user;
    gavel_ns stop_at = 0;

    (void)candidate;
    (void)on_death_read_mandate(look->on_death, look->entry, look->recorder.epoch, &stop_at,
                                &look->demoted_deadline);
    pthread_mutex_lock(&look->recorder.mutex);
    look->demoted_at = clock_now();
    look->recorder.reason = reason;
    look->recorder.demoted++;
    pthread_cond_broadcast(&look->recorder.changed);
    pthread_mutex_unlock(&look->recorder.mutex);
}

/* Joins as "a" and waits until it leads. */
static void look_start(struct look *look, const struct scene *scene, const struct gavel_settings *settings)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_error error = {0};

    *look = (struct look){.on_death = new_on_death("")};
    look->entry = &look->on_death->entries[0];
    recorder_init(&look->recorder);
    options.store = scene->url;
    join.group = "jobs";
    join.candidate = "a";
    join.settings = settings;
    join.subscriber = (struct gavel_subscriber){
        .on_elected = look_when_elected, .on_demoted = look_when_demoted, .user = look};
    assert_int_equal(gavel_open_guarded(&options, look->on_death, &look->gavel, &error), GAVEL_OK);
    assert_int_equal(gavel_join(look->gavel, &join, &look->candidate, &error), GAVEL_OK);
    assert_true(recorder_sees(&look->recorder, &look->recorder.elected, 1, LIMIT_MS));
}

static void look_done(struct look *look)
{
    recorder_done(&look->recorder);
    on_death_free(look->on_death);
}

static void test_guarded_candidate_notes_its_mandate_and_names_no_process(void **state)
{
    struct scene *scene = *state;
    struct gavel_settings settings = quick_settings();
    struct store *store = open_store(scene->url);
    struct store_reply reply;
    struct record record;
    struct look look;

    look_start(&look, scene, &settings);
    assert_string_equal(look.on_death->store, scene->url);
    record = read_record(store, "jobs");
    assert_int_equal(record.process.pid, 0);
    assert_true(nonce_equal(record.nonce, look.entry->nonce));
    assert_int_equal(look.entry->is_used, 1);
    assert_true(look.elected_deadline > 0);
    reply =
        call(store,
             (struct store_request){.op = STORE_CANDIDATES, .group = "jobs", .candidate_timeout_ms = 60000});
    assert_int_equal(reply.registration_count, 1);
    assert_int_equal(reply.registrations[0].process.pid, getpid());
    store_reply_done(&reply);

    assert_int_equal(gavel_close(look.gavel), GAVEL_OK);
    assert_true(look.demoted_deadline >= look.elected_deadline);
    assert_int_equal(look.entry->epoch, 0);
    assert_int_equal(look.entry->is_used, 0);
    assert_int_equal(release_all(look.on_death, store), 0);
    store_close(store);
    look_done(&look);
}

/* Another holds the group already: what the old deadline leaves must not be used up. */
static void test_superseded_candidate_notes_a_nearer_deadline(void **state)
{
    struct scene *scene = *state;
    struct gavel_settings settings = patient_settings();
    struct store *store = open_store(scene->url);
    struct look look;

    settings.heartbeat_ms = 200;
    look_start(&look, scene, &settings);
    (void)claim(store, "jobs", 77);
    assert_true(recorder_sees(&look.recorder, &look.recorder.demoted, 1, LIMIT_MS));
    assert_int_equal(look.recorder.reason, GAVEL_REASON_SUPERSEDED);
    assert_true(look.demoted_deadline > 0);
    assert_true(look.demoted_deadline <= look.demoted_at + ns_from_ms(settings.stop_grace_ms));
    assert_true(look.demoted_deadline < look.elected_deadline);
    assert_int_equal(gavel_close(look.gavel), GAVEL_OK);
    assert_true(read_record(store, "jobs").held); /* by the other */
    store_close(store);
    look_done(&look);
}

static bool has_new_epoch(void *argument)
{
    struct look *look = argument;
    uint64_t first;

    pthread_mutex_lock(&look->recorder.mutex);
    first = look->recorder.epoch;
    pthread_mutex_unlock(&look->recorder.mutex);
    return gavel_epoch(look->candidate) > first;
}

/* The command of a guard knows the epoch that it was started with, and no other. */
static void test_work_goes_on_under_its_first_epoch_when_the_mandate_gets_a_new_one(void **state)
{
    struct scene *scene = *state;
    struct gavel_settings settings = quick_settings();
    gavel_ns stop_at = 0, deadline = 0;
    struct look look;

    settings.max_mandate_ms = settings.lease_ms;
    look_start(&look, scene, &settings);
    assert_true(comes_true(has_new_epoch, &look, LIMIT_MS));
    assert_int_equal(recorder_count(&look.recorder, &look.recorder.elected), 1);
    assert_true(on_death_read_mandate(look.on_death, look.entry, look.recorder.epoch, &stop_at, &deadline));
    assert_true(deadline > look.elected_deadline);
    assert_false(
        on_death_read_mandate(look.on_death, look.entry, gavel_epoch(look.candidate), &stop_at, &deadline));
    assert_int_equal(gavel_close(look.gavel), GAVEL_OK);
    look_done(&look);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_mandate_is_read_only_under_the_epoch_it_was_noted_for),
        TEST(test_mandate_of_a_session_follows_its_deadline),
        TEST(test_reader_never_sees_the_deadline_of_another_session),
        TEST(test_reader_in_another_process_never_sees_instants_of_another_epoch),
        TEST(test_entries_are_used_again_and_run_out),
        TEST(test_will_in_a_file_is_read_by_another_mapping),
        TEST(test_executing_releases_what_the_claims_hold),
        TEST(test_stale_will_releases_nothing_of_a_successor),
        TEST(test_damaged_will_releases_nothing),
        TEST(test_executing_rings_the_other_candidates),
        TEST(test_store_that_is_away_is_waited_for_and_not_made_anew),
        TEST(test_open_store_that_was_away_serves_when_it_is_back),
        TEST(test_guarded_candidate_notes_its_mandate_and_names_no_process),
        TEST(test_superseded_candidate_notes_a_nearer_deadline),
        TEST(test_work_goes_on_under_its_first_epoch_when_the_mandate_gets_a_new_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
