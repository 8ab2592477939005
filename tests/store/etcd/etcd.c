/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `etcd` through the suite, against a real etcd, and what is its
 * own: keys, epochs, leases, the stream of changes. Who may use it and how is
 * in access.c, what becomes of it when servers fail in faults.c.
 */
#include "store/etcd/etcd.h"
#include "raw.h"
#include "servers/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */

/* The suite asks for URLs and knows of nothing else. */
static struct test_server server;
static unsigned prefixes;

/* Below a prefix that nobody else uses. */
static void make_url(char *url, size_t size)
{
    char name[32];

    (void)snprintf(name, sizeof name, "suite/%u", ++prefixes);
    test_server_url(&server, name, NULL, url, size);
}

static void write_future_record(const char *url, const char *group)
{
    etcd_raw_overwrite(url, group, "{\"format\":2}");
}

static void freeze(const char *url)
{
    (void)url;
    test_server_freeze(&server, TEST_SERVER_ALL);
}

static void thaw(const char *url)
{
    (void)url;
    test_server_thaw(&server, TEST_SERVER_ALL);
}

/* One store, opened twice, as in the suite. */
static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    make_url(f->url, sizeof f->url);
    assert_int_equal(store_open(f->url, &f->a, NULL), GAVEL_OK);
    assert_int_equal(store_open(f->url, &f->b, NULL), GAVEL_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    store_close(f->a);
    store_close(f->b);
    free(f);
    return 0;
}

static void test_names_with_slashes_do_not_meet(void **state)
{
    static const char *const groups[] = {"a", "a/b", "a%2Fb", "a%252Fb", "a/", "/", "%", "a//b"};
    enum { COUNT = sizeof groups / sizeof *groups };
    struct fixture *f = *state;
    struct store_request list = {.op = STORE_GROUPS, .give_up_at = clock_now() + LIMIT};
    struct store_reply reply;

    for (uint64_t i = 0; i < COUNT; i++) {
        (void)expect(f->a, ask_claim(groups[i], "one", i, 0), GAVEL_OK);
        (void)expect(f->a, ask_heartbeat(groups[i], "x/y", i + 1, 1), GAVEL_OK);
    }
    (void)expect(f->a, ask_heartbeat("a", "b/x%2Fy", 99, 1), GAVEL_OK); /* not "x/y" of "a/b" */
    for (uint64_t i = 0; i < COUNT; i++) {
        struct store_request candidates = ask_candidates(groups[i]);

        assert_int_equal(expect(f->b, ask_read(groups[i]), GAVEL_OK).record.nonce.low, i);
        assert_int_equal(store_call(f->b, &candidates, &reply), GAVEL_OK);
        assert_int_equal(reply.registration_count, i == 0 ? 2 : 1);
        assert_string_equal(reply.registrations[reply.registration_count - 1].id, "x/y");
        assert_int_equal(reply.registrations[reply.registration_count - 1].instance, i + 1);
        store_reply_done(&reply);
    }
    assert_int_equal(store_call(f->b, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, COUNT);
    for (size_t i = 1; i < COUNT; i++)
        assert_true(strcmp(reply.groups[i - 1].group, reply.groups[i].group) < 0);
    store_reply_done(&reply);
}

/* The prefix of one store may begin with that of another. */
static void test_stores_below_each_other_do_not_meet(void **state)
{
    struct fixture *f = *state;
    struct store_request list = {.op = STORE_GROUPS, .give_up_at = clock_now() + LIMIT};
    struct store_reply reply;
    struct store *below;
    char url[600];

    (void)snprintf(url, sizeof url, "%s/groups/", f->url);
    assert_int_equal(store_open(url, &below, NULL), GAVEL_OK);
    (void)expect(f->a, ask_claim("mine", "one", 1, 0), GAVEL_OK);
    (void)expect(below, ask_claim("theirs", "two", 2, 0), GAVEL_OK);
    assert_int_equal(store_call(f->a, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, 1);
    assert_string_equal(reply.groups[0].group, "mine");
    store_reply_done(&reply);
    store_close(below);
}

/* Puts the record of "g" under the names of that many other groups, in few transactions. */
static void multiply(struct store *store, size_t count)
{
    struct etcd_store *etcd = (struct etcd_store *)store;
    char key[ETCD_KEY_SIZE];
    char name[32];
    json_t *value;
    json_t *answer;
    char *body;

    etcd_key(etcd, ETCD_GROUPS, "g", NULL, key);
    body = etcd_body_read(key, NULL);
    answer = etcd_raw(server.port, NULL, "/v3/kv/txn", "%s", body);
    free(body);
    assert_int_equal(
        json_unpack(answer, "{s[{s{s[{so}]}}]}", "responses", "response_range", "kvs", "value", &value), 0);
    for (size_t i = 0; i < count;) {
        json_t *puts = json_array();

        for (size_t k = 0; k < 100 && i < count; k++, i++) {
            (void)snprintf(name, sizeof name, "group-%04zu", i);
            etcd_key(etcd, ETCD_GROUPS, name, NULL, key);
            json_array_append_new(
                puts, json_pack("{s{so sO}}", "request_put", "key", etcd_encode(key), "value", value));
        }
        puts = json_pack("{so}", "success", puts);
        body = json_dumps(puts, JSON_COMPACT);
        json_decref(puts);
        etcd_raw_do(server.port, NULL, "/v3/kv/txn", "%s", body);
        free(body);
    }
    json_decref(answer);
}

static void test_the_listing_of_groups_has_their_wishes_and_several_pages(void **state)
{
    enum { COUNT = 1100 }; /* pages have 500 */
    struct fixture *f = *state;
    struct store_request list = {.op = STORE_GROUPS, .give_up_at = clock_now() + LIMIT};
    struct record record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct store_reply reply;
    uint64_t epoch;

    assert_int_equal(record.epoch, record.version); /* the revision of the claim */
    multiply(f->a, COUNT);
    epoch = expect(f->b, ask_read("group-0777"), GAVEL_OK).record.epoch;
    (void)expect(f->b, ask_wish("group-0777", epoch, "two"), GAVEL_OK);
    assert_int_equal(store_call(f->b, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, COUNT + 1);
    assert_string_equal(reply.groups[0].group, "g");
    assert_string_equal(reply.groups[COUNT].group, "group-1099");
    assert_int_equal(reply.groups[778].record.wish_epoch, epoch);
    assert_string_equal(reply.groups[778].record.wish_successor, "two");
    assert_int_equal(reply.groups[777].record.wish_epoch, 0);
    store_reply_done(&reply);
}

/* What the driver remembers of a group. */
static struct etcd_known *known_of(struct store *store, const char *group)
{
    struct etcd_store *etcd = (struct etcd_store *)store;
    struct etcd_known *known;
    char key[ETCD_KEY_SIZE];

    etcd_key(etcd, ETCD_GROUPS, group, NULL, key);
    known = etcd_known_find(&etcd->groups, key);
    assert_non_null(known);
    return known;
}

/* Keys that somebody else put there, too long to be ours, where one page ends and the next begins. */
static void test_a_listing_ends_whatever_else_stands_there(void **state)
{
    enum { COUNT = 498 };
    struct fixture *f = *state;
    struct store_request list = {.op = STORE_GROUPS, .give_up_at = clock_now() + LIMIT};
    char key[2 * ETCD_KEY_SIZE];
    struct store_reply reply;

    (void)expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    multiply(f->a, COUNT);
    etcd_key((struct etcd_store *)f->a, ETCD_GROUPS, "z", NULL, key);
    memset(key + strlen(key), 'z', sizeof key - 2 - strlen(key));
    for (char last = 'a'; last <= 'c'; last++) {
        struct etcd_put put = {.compared = key, .key = key, .value = "x"};
        char *body;

        key[sizeof key - 2] = last;
        key[sizeof key - 1] = '\0';
        body = etcd_body_put(&put, NULL, NULL);
        etcd_raw_do(server.port, NULL, "/v3/kv/txn", "%s", body);
        free(body);
    }
    assert_int_equal(store_call(f->b, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, COUNT + 1);
    store_reply_done(&reply);
}

/*
 * A cluster that was put back from a backup counts its revisions anew, so that another record
 * can have the revision that a holder remembers.
 */
static void test_a_remembered_revision_is_not_enough_to_renew(void **state)
{
    struct fixture *f = *state;
    struct record first = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct record second = expect(f->b, ask_claim("g", "two", 2, first.version), GAVEL_OK).record;
    struct etcd_known *known = known_of(f->a, "g");

    assert_int_equal(known->revision, first.version);
    known->revision = second.version;
    (void)expect(f->a, ask_renew("g", "one", 1, first.epoch), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(expect(f->b, ask_read("g"), GAVEL_OK).record.version, second.version);
}

/* To others another boot id would mean that the process is dead, and on another host it is not. */
static void test_processes_of_other_hosts_are_not_taken_for_dead(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_request beat = ask_heartbeat("g", "one", 1, 1);
    struct store_request list = ask_candidates("g");
    struct store_reply reply;

    (void)strcpy(claim.record.process.boot_id, "00000000-0000-0000-0000-000000000000");
    beat.registration.process = claim.record.process;
    (void)expect(f->a, claim, GAVEL_OK);
    (void)expect(f->a, beat, GAVEL_OK);
    assert_int_equal(expect(f->b, ask_read("g"), GAVEL_OK).record.process.pid, 0);
    (void)expect(f->b, ask_heartbeat("g", "one", 2, 1), GAVEL_ERR_ID_IN_USE);
    assert_int_equal(store_call(f->b, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.registration_count, 1);
    assert_int_equal(reply.registrations[0].process.pid, 0);
    store_reply_done(&reply);
    /* A renewal keeps it, for those who see it. */
    (void)expect(f->a, ask_renew("g", "one", 1, 0), GAVEL_OK);
    assert_string_equal(known_of(f->a, "g")->row.record.process.boot_id, claim.record.process.boot_id);
}

static void test_a_record_that_makes_no_sense_stops_its_holder_and_is_kept(void **state)
{
    static const char *const bad[] = {"", "nonsense", "{\"format\":1}",
                                      "{\"format\":1,\"leaderId\":\"two\"}"};
    struct fixture *f = *state;

    for (uint64_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char group[16];
        struct record held;

        (void)snprintf(group, sizeof group, "g%d", (int)i);
        held = expect(f->a, ask_claim(group, "one", i, 0), GAVEL_OK).record;
        etcd_raw_overwrite(f->url, group, bad[i]);
        (void)expect(f->a, ask_renew(group, "one", i, held.epoch), GAVEL_ERR_STORE_DAMAGED);
        (void)expect(f->a, ask_release(group, "one", i, held.epoch), GAVEL_ERR_STORE_DAMAGED);
        (void)expect(f->b, ask_claim(group, "two", i, held.version), GAVEL_ERR_STORE_DAMAGED);
        (void)expect(f->b, ask_claim(group, "two", i, 0), GAVEL_ERR_STORE_DAMAGED);
        (void)expect(f->b, ask_wish(group, held.epoch, ""), GAVEL_ERR_STORE_DAMAGED);
        (void)expect(f->b, ask_read(group), GAVEL_ERR_STORE_DAMAGED);
    }
}

/* A cluster that was put back from a backup counts from a lower revision. */
static void test_the_offset_stays_with_the_group(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct record record;
    uint64_t epoch;

    claim.record.epoch = UINT64_C(5000000000000);
    record = expect(f->a, claim, GAVEL_OK).record;
    epoch = record.epoch;
    assert_true(epoch > UINT64_C(5000000000000));
    assert_int_equal(expect(f->a, ask_renew("g", "one", 1, epoch), GAVEL_OK).record.epoch, epoch);
    record = expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK).record;
    assert_int_equal(record.epoch, epoch);
    record = expect(f->b, ask_claim("g", "two", 2, record.version), GAVEL_OK).record; /* who knows nothing */
    assert_true(record.epoch > epoch);
    assert_int_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.epoch, record.epoch);
    claim = ask_claim("g", "two", 3, record.version);
    claim.record.epoch = INT64_MAX - 2; /* so high that nothing could follow */
    (void)expect(f->b, claim, GAVEL_ERR_STORE_FULL);
    assert_int_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.version, record.version);
}

static void pause_a_little(void)
{
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};

    (void)nanosleep(&pause, NULL);
}

static void test_the_registrations_of_a_process_that_is_gone_vanish(void **state)
{
    struct fixture *f = *state;
    struct etcd_store *etcd = (struct etcd_store *)f->a;
    gavel_ns limit = clock_now() + LIMIT;
    struct store_request beat = ask_heartbeat("g", "one", 1, 1);
    char first[ETCD_KEY_SIZE];

    etcd_key(etcd, ETCD_CANDIDATES, "g", NULL, first);
    beat.candidate_timeout_ms = 100;
    (void)expect(f->b, beat, GAVEL_OK);
    (void)expect(f->a, ask_heartbeat("g", "two", 2, 1), GAVEL_OK);
    assert_int_equal(etcd_raw_count(server.port, first), 2);
    store_close(f->b); /* it did not leave */
    f->b = NULL;
    while (etcd_raw_count(server.port, first) > 1) {
        assert_true(clock_now() < limit);
        pause_a_little();
    }
    (void)expect(f->a, ask_heartbeat("g", "one", 3, 1), GAVEL_OK);
    (void)expect(f->a, ask_heartbeat("g", "two", 2, 2), GAVEL_OK);
}

/* A lease that ran out, because the process stood still or the cluster forgot it, is replaced. */
static void test_heartbeats_go_on_after_the_lease_was_lost(void **state)
{
    struct fixture *f = *state;
    struct etcd_store *etcd = (struct etcd_store *)f->a;
    struct store_request beats[] = {ask_heartbeat("g", "one", 1, 2), ask_heartbeat("g", "two", 2, 2),
                                    ask_heartbeat("h", "one", 1, 2)};
    struct store_reply replies[3];
    char first[ETCD_KEY_SIZE];

    (void)expect(f->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    (void)expect(f->a, ask_heartbeat("g", "two", 2, 1), GAVEL_OK);
    etcd_raw_do(server.port, NULL, "/v3/lease/revoke", "{\"ID\":\"%llu\"}", (unsigned long long)etcd->lease);
    etcd_key(etcd, ETCD_CANDIDATES, "g", NULL, first);
    assert_int_equal(etcd_raw_count(server.port, first), 0);
    store_run(f->a, beats, replies, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(replies[i].status, GAVEL_OK);
        store_reply_done(&replies[i]);
    }
    assert_int_equal(etcd_raw_count(server.port, first), 2);
}

static void test_a_lease_is_kept_alive_and_ends_with_the_last_registration(void **state)
{
    struct fixture *f = *state;
    struct etcd_store *etcd = (struct etcd_store *)f->a;
    gavel_ns began = clock_now();
    char first[ETCD_KEY_SIZE];
    json_t *answer;
    uint64_t lease;

    for (uint64_t i = 1; clock_now() - began < 1600 * NS_PER_MS; i++) {
        struct store_request beat = ask_heartbeat("g", "one", 1, i);

        beat.candidate_timeout_ms = 300; /* makes a lease of one second */
        (void)expect(f->a, beat, GAVEL_OK);
        if (i == 1)
            lease = etcd->lease;
        assert_int_equal(etcd->lease, lease); /* always the same one */
        pause_a_little();
    }
    (void)expect(f->a, ask_heartbeat("h", "one", 1, 1), GAVEL_OK); /* with more patience: a longer one */
    etcd_key(etcd, ETCD_CANDIDATES, "g", NULL, first);
    assert_int_equal(etcd_raw_count(server.port, first), 1);
    lease = etcd->lease;
    (void)expect(f->a, ask_leave("h", "one", 1), GAVEL_OK);
    assert_int_equal(etcd->lease, lease); /* "g" is left */
    (void)expect(f->a, ask_leave("g", "one", 1), GAVEL_OK);
    assert_int_equal(etcd->lease, 0);
    answer =
        etcd_raw(server.port, NULL, "/v3/lease/timetolive", "{\"ID\":\"%llu\"}", (unsigned long long)lease);
    assert_string_equal(json_string_value(json_object_get(answer, "TTL")), "-1"); /* there is none */
    json_decref(answer);
}

/* From a number of groups on the stream is about all keys. */
static void test_many_groups_are_watched_by_one_stream(void **state)
{
    enum { COUNT = 40 };
    struct fixture *f = *state;
    char groups[COUNT][16];

    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(groups[i], sizeof groups[i], "g/%zu", i);
        store_watch(f->b, groups[i], true);
    }
    settle(f->b, "g/39");
    for (size_t i = 0; i < COUNT; i += 13) {
        (void)expect(f->a, ask_claim(groups[i], "one", i, 0), GAVEL_OK);
        assert_true(is_told(f->b, groups[i], LIMIT));
    }
    for (size_t i = 0; i < COUNT - 1; i++)
        store_watch(f->b, groups[i], false);
    (void)expect(f->a, ask_claim("g/39", "two", 2, expect(f->a, ask_read("g/39"), GAVEL_OK).record.version),
                 GAVEL_OK);
    assert_true(is_told(f->b, "g/39", LIMIT));
    store_watch(f->b, "g/39", false);
}

static void test_the_own_claims_are_not_told_and_others_are(void **state)
{
    struct fixture *f = *state;
    struct record record;
    int count = 0;

    store_watch(f->a, "g", true);
    settle(f->a, "g");
    record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    for (uint64_t i = 0; i < 5; i++) {
        (void)expect(f->a, ask_renew("g", "one", 1, record.epoch), GAVEL_OK);
        count += is_told(f->a, "g", 10 * NS_PER_MS);
    }
    assert_true(count < 3); /* an event may be there before the answer to the claim */
    record = expect(f->b, ask_release("g", "one", 1, record.epoch), GAVEL_OK).record;
    assert_true(is_told(f->a, "g", LIMIT));
    store_watch(f->a, "g", false);
}

static void test_a_watch_outlives_compaction(void **state)
{
    struct fixture *f = *state;
    struct record record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;

    store_watch(f->b, "g", true);
    settle(f->b, "g");
    for (uint64_t i = 0; i < 3; i++) {
        record = expect(f->a, ask_renew("g", "one", 1, record.epoch), GAVEL_OK).record;
        etcd_raw_do(server.port, NULL, "/v3/kv/compaction", "{\"revision\":\"%llu\",\"physical\":true}",
                    (unsigned long long)record.version);
    }
    (void)expect(f->a, ask_release("g", "one", 1, record.epoch), GAVEL_OK);
    assert_true(is_told(f->b, "g", LIMIT));
    assert_false(expect(f->b, ask_read("g"), GAVEL_OK).record.held);
    store_watch(f->b, "g", false);
}

static void test_somebody_who_deletes_the_record_is_told_of_and_the_epoch_goes_on(void **state)
{
    struct fixture *f = *state;
    struct etcd_store *etcd = (struct etcd_store *)f->a;
    struct record record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct store_request claim;
    char key[ETCD_KEY_SIZE];
    char *body;

    store_watch(f->b, "g", true);
    settle(f->b, "g");
    etcd_key(etcd, ETCD_GROUPS, "g", NULL, key);
    body = etcd_body_put(&(struct etcd_put){.compared = key, .key = key, .revision = record.version}, NULL,
                         NULL);
    etcd_raw_do(server.port, NULL, "/v3/kv/txn", "%s", body);
    free(body);
    assert_true(is_told(f->b, "g", LIMIT));
    assert_false(expect(f->b, ask_read("g"), GAVEL_OK).found);
    (void)expect(f->a, ask_renew("g", "one", 1, record.epoch), GAVEL_ERR_NOT_HOLDER);
    claim = ask_claim("g", "two", 2, 0);
    assert_true(expect(f->b, claim, GAVEL_OK).record.epoch > record.epoch);
    store_watch(f->b, "g", false);
}

static void test_a_forked_child_is_refused_and_does_no_harm(void **state)
{
    struct fixture *f = *state;
    struct record record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    int status;
    pid_t pid;

    store_watch(f->a, "g", true);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct store_request renew = ask_renew("g", "one", 1, record.epoch);
        struct store_reply reply;
        enum gavel_status got = store_call(f->a, &renew, &reply);
        char name[NAME_MAX_BYTES + 1];

        store_watch(f->a, "h", true);
        (void)store_changed(f->a, name);
        store_wait(f->a, "g", 0, clock_now() + NS_PER_S);
        store_close(f->a);
        _exit(got == GAVEL_ERR_STATE ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)expect(f->a, ask_renew("g", "one", 1, record.epoch), GAVEL_OK);
    store_watch(f->a, "g", false);
}

static int run_own(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_names_with_slashes_do_not_meet),
        TEST(test_stores_below_each_other_do_not_meet),
        TEST(test_the_listing_of_groups_has_their_wishes_and_several_pages),
        TEST(test_a_listing_ends_whatever_else_stands_there),
        TEST(test_a_remembered_revision_is_not_enough_to_renew),
        TEST(test_processes_of_other_hosts_are_not_taken_for_dead),
        TEST(test_a_record_that_makes_no_sense_stops_its_holder_and_is_kept),
        TEST(test_the_offset_stays_with_the_group),
        TEST(test_the_registrations_of_a_process_that_is_gone_vanish),
        TEST(test_heartbeats_go_on_after_the_lease_was_lost),
        TEST(test_a_lease_is_kept_alive_and_ends_with_the_last_registration),
        TEST(test_many_groups_are_watched_by_one_stream),
        TEST(test_the_own_claims_are_not_told_and_others_are),
        TEST(test_a_watch_outlives_compaction),
        TEST(test_somebody_who_deletes_the_record_is_told_of_and_the_epoch_goes_on),
        TEST(test_a_forked_child_is_refused_and_does_no_harm),
    };
#undef TEST

    return cmocka_run_group_tests_name("etcd, its own", tests, NULL, NULL);
}

int main(void)
{
    static const struct conformance_driver driver = {
        .name = "etcd",
        .make_url = make_url,
        .write_future_record = write_future_record,
        .freeze = freeze,
        .thaw = thaw,
        .is_server = true,
    };
    int failed;

    test_server_start(&server, TEST_ETCD);
    failed = conformance_run(&driver);
    failed += run_own();
    test_server_stop(&server);
    return failed;
}
