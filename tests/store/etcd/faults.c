/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `etcd` when members die, freeze and come back, and when answers
 * are delayed or lost: never two mandates with one epoch, never a deadline that
 * is missed, and everything goes on without being opened again.
 */
#include "raw.h"
#include "servers/proxy.h"
#include "servers/server.h"
#include "store/etcd/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */
#define SLACK (30 * NS_PER_S) /* beyond a deadline, for a machine that has much else to do */

static struct test_server cluster;
static unsigned prefixes;

struct bench {
    char name[32];
    char url[512];
    struct store *a;
    struct store *b;
    struct test_proxy proxy;
};

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    (void)snprintf(bench->name, sizeof bench->name, "faults/%u", ++prefixes);
    test_server_url(&cluster, bench->name, NULL, bench->url, sizeof bench->url);
    assert_int_equal(store_open(bench->url, &bench->a, NULL), GAVEL_OK);
    assert_int_equal(store_open(bench->url, &bench->b, NULL), GAVEL_OK);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    store_close(bench->a);
    store_close(bench->b);
    test_proxy_stop(&bench->proxy);
    free(bench);
    return 0;
}

/* A store that first asks a proxy in front of a member, and then that of `second` (-1: nobody else). */
static struct store *open_by_proxy(struct bench *bench, int member, int second)
{
    char addresses[80];
    char url[512];
    struct store *store;

    test_proxy_start(&bench->proxy, cluster.port + member);
    (void)snprintf(addresses, sizeof addresses, "%s", bench->proxy.address);
    if (second >= 0)
        (void)snprintf(addresses, sizeof addresses, "%s,127.0.0.1:%d", bench->proxy.address,
                       cluster.port + second);
    test_server_url(&cluster, bench->name, addresses, url, sizeof url);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    return store;
}

/* The member that leads the cluster, as one that is up says. */
static int leader_of(int asked)
{
    json_t *asked_status = etcd_raw(cluster.port + asked, NULL, "/v3/maintenance/status", "{}");
    const char *leader = json_string_value(json_object_get(asked_status, "leader"));
    int found = -1;

    assert_non_null(leader);
    for (int i = 0; i < TEST_SERVER_MEMBERS && found < 0; i++) {
        json_t *status = etcd_raw(cluster.port + i, NULL, "/v3/maintenance/status", "{}");
        const char *member = NULL;

        assert_int_equal(json_unpack(status, "{s{ss}}", "header", "member_id", &member), 0);
        if (strcmp(member, leader) == 0)
            found = i;
        json_decref(status);
    }
    json_decref(asked_status);
    assert_true(found >= 0);
    return found;
}

static struct store_request within(struct store_request request, gavel_ms ms)
{
    request.give_up_at = clock_now() + ns_from_ms(ms);
    return request;
}

/* Makes a call that must be over by its deadline, whatever comes of it. */
static enum gavel_status try_in_time(struct store *store, const struct store_request *request,
                                     struct record *ret_record)
{
    struct store_reply reply;
    enum gavel_status status = store_call(store, request, &reply);

    assert_true(clock_now() < request->give_up_at + SLACK);
    assert_true((status == GAVEL_OK) == (reply.message[0] == '\0'));
    if (status == GAVEL_OK)
        *ret_record = reply.record;
    store_reply_done(&reply);
    return status;
}

/* Tries again until it works, as a candidate does: with the same request, and time for each call. */
static struct record insist(struct store *store, struct store_request request)
{
    gavel_ns limit = clock_now() + LIMIT;
    struct record record = {0};
    enum gavel_status status;

    do {
        request = within(request, 1500);
        status = try_in_time(store, &request, &record);
        if (status != GAVEL_OK && status != GAVEL_ERR_TIMEOUT && status != GAVEL_ERR_STORE_UNAVAILABLE)
            fail_msg("%s ended with %s", store_op_name(request.op), gavel_status_name(status));
        assert_true(clock_now() < limit);
    } while (status != GAVEL_OK);
    return record;
}

static void test_a_mandate_and_its_watchers_outlive_each_member(void **state)
{
    struct bench *bench = *state;
    struct record record = expect(bench->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    uint64_t epoch = record.epoch;

    store_watch(bench->b, "g", true);
    settle(bench->b, "g");
    for (int i = 0; i < TEST_SERVER_MEMBERS; i++) {
        test_server_kill(&cluster, i); /* the first is the one that both talk to, one of them is the leader */
        record = insist(bench->a, ask_renew("g", "one", 1, epoch));
        assert_int_equal(record.epoch, epoch);
        settle(bench->b, "g"); /* the stream is made anew, and says so */
        test_server_restart(&cluster);
    }
    (void)insist(bench->a, ask_release("g", "one", 1, epoch));
    assert_true(is_told(bench->b, "g", LIMIT));
    record = insist(bench->b, ask_read("g"));
    assert_false(record.held);
    record = insist(bench->b, ask_claim("g", "two", 2, record.version));
    assert_true(record.epoch > epoch);
    store_watch(bench->b, "g", false);
}

/*
 * The leader of the cluster freezes with a renewal and a claim under way, for longer
 * than a lease. Others take over meanwhile; when it wakes up, nothing of the old
 * comes back.
 */
static void test_a_leader_that_freezes_and_wakes_up_changes_nothing(void **state)
{
    struct bench *bench = *state;
    int leader = leader_of(0);
    int other = (leader + 1) % TEST_SERVER_MEMBERS;
    struct record first = expect(bench->b, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct record second = {0};
    struct store_request late[2];
    struct store_reply replies[2];
    struct store *old = open_by_proxy(bench, leader, -1); /* sees only the leader */
    struct store *young;
    char url[512];
    char address[32];

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", cluster.port + other);
    test_server_url(&cluster, bench->name, address, url, sizeof url);
    assert_int_equal(store_open(url, &young, NULL), GAVEL_OK);
    (void)expect(old, ask_renew("g", "one", 1, first.epoch), GAVEL_OK);
    test_server_freeze(&cluster, leader);
    late[0] = within(ask_renew("g", "one", 1, first.epoch), 600);
    late[1] = within(ask_claim("h", "one", 2, 0), 600);
    store_run(old, late, replies, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(replies[i].status, GAVEL_ERR_TIMEOUT);
        assert_true(clock_now() < late[i].give_up_at + SLACK);
        store_reply_done(&replies[i]);
    }
    second = insist(young, ask_read("g")); /* once there is another leader */
    second = insist(young, ask_claim("g", "two", 3, second.version));
    assert_true(second.epoch > first.epoch);
    (void)insist(young, ask_claim("h", "two", 4, 0));
    test_server_thaw(&cluster, leader);
    assert_int_equal(insist(young, ask_renew("g", "two", 3, second.epoch)).epoch, second.epoch);
    (void)insist(old, ask_read("g")); /* once that member has heard of the new leader */
    (void)expect(old, ask_renew("g", "one", 1, first.epoch), GAVEL_ERR_NOT_HOLDER);
    assert_string_equal(expect(old, ask_read("h"), GAVEL_OK).record.holder, "two");
    store_close(old);
    store_close(young);
}

/* One endpoint that answers nothing must not use up the time of all calls. */
static void test_a_silent_endpoint_costs_its_share_and_only_once(void **state)
{
    struct bench *bench = *state;
    struct store *store = open_by_proxy(bench, 0, 1);
    struct store_request request;
    struct record record = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    gavel_ns began;

    test_proxy_say(&bench->proxy, "drop");
    request = within(ask_read("g"), 8000);
    assert_int_equal(try_in_time(store, &request, &record), GAVEL_OK); /* by the other endpoint */
    began = clock_now();
    for (int i = 0; i < 20; i++) {
        request = within(ask_renew("g", "one", 1, record.epoch), 8000);
        assert_int_equal(try_in_time(store, &request, &record), GAVEL_OK);
    }
    assert_true(clock_now() - began < LIMIT); /* twenty shares would be 80 s: none is waited for */
    store_close(store);
}

/* It is applied, and the answer is lost: found by its own number, at another endpoint. */
static void test_a_lost_answer_is_found_by_reading_back(void **state)
{
    struct bench *bench = *state;
    struct store *store = open_by_proxy(bench, 0, 1);
    struct store_request request;
    struct record record = {0};
    struct record seen;

    (void)expect(store, ask_read("g"), GAVEL_OK);
    test_proxy_say(&bench->proxy, "mute 0");
    request = within(ask_claim("g", "one", 1, 0), 2000);
    assert_int_equal(try_in_time(store, &request, &record), GAVEL_OK);
    seen = expect(bench->b, ask_read("g"), GAVEL_OK).record;
    assert_int_equal(seen.epoch, record.epoch);
    assert_int_equal(seen.version, record.version); /* it was sent once */
    assert_string_equal(seen.holder, "one");
    request = within(ask_heartbeat("g", "one", 1, 1), 2000);
    assert_int_equal(try_in_time(store, &request, &record), GAVEL_OK);
    store_close(store);
}

static void test_an_answer_that_is_lost_for_good_is_told_as_not_known(void **state)
{
    static const char *const ways[] = {"mute 0", "snap 0"};
    struct bench *bench = *state;
    struct store *store = open_by_proxy(bench, 0, -1);

    for (uint64_t i = 0; i < 2; i++) {
        const char *group = i ? "h" : "g";
        struct store_request request;
        struct record record = {0};
        enum gavel_status status;

        (void)expect(store, ask_read(group), GAVEL_OK);
        test_proxy_say(&bench->proxy, "%s", ways[i]);
        request = within(ask_claim(group, "one", i, 0), 600);
        status = try_in_time(store, &request, &record);
        assert_true(status == GAVEL_ERR_TIMEOUT || status == GAVEL_ERR_STORE_UNAVAILABLE);
        request = within(ask_heartbeat(group, "one", 1, 1), 600);
        status = try_in_time(store, &request, &record);
        assert_true(status == GAVEL_ERR_TIMEOUT || status == GAVEL_ERR_STORE_UNAVAILABLE);
        test_proxy_say(&bench->proxy, "pass");
        /* The claim was applied, and its nonce tells so. */
        record = insist(store, ask_renew(group, "one", i, 0));
        assert_true(record.epoch > 0);
        (void)expect(store, ask_heartbeat(group, "one", 1, 2), GAVEL_OK);
        (void)expect(store, ask_release(group, "one", i, record.epoch), GAVEL_OK);
    }
    store_close(store);
}

/* An answer that comes after the deadline is no answer, and the next call is not confused by it. */
static void test_answers_that_come_too_late_do_not_delay_the_caller(void **state)
{
    struct bench *bench = *state;
    struct store *store = open_by_proxy(bench, 0, -1);
    struct record record = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct record ignored;

    test_proxy_say(&bench->proxy, "delay 0 1500");
    for (int i = 0; i < 3; i++) {
        struct store_request request = within(ask_renew("g", "one", 1, record.epoch), 200);

        assert_int_equal(try_in_time(store, &request, &ignored), GAVEL_ERR_TIMEOUT);
    }
    test_proxy_say(&bench->proxy, "pass");
    record = insist(store, ask_renew("g", "one", 1, record.epoch));
    assert_int_equal(expect(bench->b, ask_read("g"), GAVEL_OK).record.version, record.version);
    store_close(store);
}

/* Slow is not dead: all of a call's time is for the answer, also of a write. */
static void test_a_slow_server_has_all_of_the_time_for_a_write(void **state)
{
    struct bench *bench = *state;
    struct store *store = open_by_proxy(bench, 0, -1);
    struct record record = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct store_request request = within(ask_renew("g", "one", 1, record.epoch), 2000);

    test_proxy_say(&bench->proxy, "delay 0 1200");
    assert_int_equal(try_in_time(store, &request, &record), GAVEL_OK);
    store_close(store);
}

/* The stream hangs on a connection that is dead without a word; calls notice, and it is made anew. */
static void test_a_watch_moves_away_from_an_endpoint_that_fell_silent(void **state)
{
    struct bench *bench = *state;
    struct store *store = open_by_proxy(bench, 0, 1);
    struct store_request request;
    struct record record = expect(bench->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct record ignored;

    store_watch(store, "g", true);
    settle(store, "g");
    test_proxy_say(&bench->proxy, "drop");
    (void)expect(bench->a, ask_release("g", "one", 1, record.epoch), GAVEL_OK); /* nobody hears of it */
    request = within(ask_read("other"), 1500);
    assert_int_equal(try_in_time(store, &request, &ignored), GAVEL_OK);
    assert_true(is_told(store, "g", LIMIT));
    store_watch(store, "g", false);
    store_close(store);
}

static void test_without_a_majority_nothing_is_granted_and_then_all_goes_on(void **state)
{
    struct bench *bench = *state;
    struct record record = expect(bench->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct store_request requests[2];
    struct record ignored;
    struct gavel_error error = {0};
    struct store *store = NULL;

    test_server_kill(&cluster, 0);
    test_server_kill(&cluster, 1);
    requests[0] = within(ask_renew("g", "one", 1, record.epoch), 1500);
    requests[1] = within(ask_claim("g", "two", 2, record.version), 1500);
    for (int i = 0; i < 2; i++) {
        enum gavel_status status = try_in_time(i ? bench->b : bench->a, &requests[i], &ignored);

        assert_true(status == GAVEL_ERR_TIMEOUT || status == GAVEL_ERR_STORE_UNAVAILABLE);
    }
    assert_int_equal(store_open(bench->url, &store, &error), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_true(error.message[0]);
    test_server_restart(&cluster);
    record = insist(bench->a, ask_read("g"));
    assert_string_equal(record.holder, "one");
    (void)insist(bench->a, ask_renew("g", "one", 1, record.epoch));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_silent_endpoint_costs_its_share_and_only_once),
        TEST(test_a_lost_answer_is_found_by_reading_back),
        TEST(test_an_answer_that_is_lost_for_good_is_told_as_not_known),
        TEST(test_answers_that_come_too_late_do_not_delay_the_caller),
        TEST(test_a_slow_server_has_all_of_the_time_for_a_write),
        TEST(test_a_watch_moves_away_from_an_endpoint_that_fell_silent),
        TEST(test_a_leader_that_freezes_and_wakes_up_changes_nothing),
        TEST(test_a_mandate_and_its_watchers_outlive_each_member),
        TEST(test_without_a_majority_nothing_is_granted_and_then_all_goes_on),
    };
    int failed;

    test_server_start(&cluster, TEST_ETCD_CLUSTER);
    failed = cmocka_run_group_tests_name("etcd, faults", tests, NULL, NULL);
    test_server_stop(&cluster);
    return failed;
}
