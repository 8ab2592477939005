/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `s3` and a real server (radosgw) in trouble: frozen behind the
 * gateway, so that a PUT times out here and is carried out there later; killed
 * and started again; asked by the wrong one, in the wrong place. In each case
 * there is never a second holder, epochs only grow, and it goes on by itself.
 */
#include "servers/proxy.h"
#include "servers/server.h"
#include "store/conformance/conformance.h"
#include "store/s3/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */
#define SLACK (30 * NS_PER_S) /* a loaded machine, not a hang */

struct bench {
    struct test_server *server;
    char url[512];
    struct store *a;
    struct store *b;
};

/*
 * One server and one bucket for all; each test has a prefix of its own. (A bucket that is made after the
 * gateway was killed takes half a minute: the new gateway waits for the old one to hear of it.)
 */
static struct test_server server;
static unsigned prefixes;

static void make_url(const char *address, char *url, size_t size)
{
    char bucket_url[400];
    char *query;

    test_server_url(&server, "faults", address, bucket_url, sizeof bucket_url);
    query = strchr(bucket_url, '?');
    assert_non_null(query);
    *query++ = '\0';
    (void)snprintf(url, size, "%s/%u?%s", bucket_url, ++prefixes, query);
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    bench->server = &server;
    make_url(NULL, bench->url, sizeof bench->url);
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
    free(bench);
    return 0;
}

/* One call that may take no longer than that, and does not. */
static struct store_reply call_for(struct store *store, struct store_request request, gavel_ns patience)
{
    struct store_reply reply;
    gavel_ns began = clock_now();

    request.give_up_at = began + patience;
    store_run(store, &request, &reply, 1);
    assert_true(clock_now() - began < patience + SLACK);
    store_reply_done(&reply);
    return reply;
}

/* Until it is answered at all. */
static struct store_reply read_again(struct store *store, const char *group)
{
    gavel_ns limit = clock_now() + LIMIT;
    struct store_reply reply;

    do {
        assert_true(clock_now() < limit);
        reply = call_for(store, ask_read(group), 5 * NS_PER_S);
    } while (reply.status != GAVEL_OK);
    return reply;
}

/* Both have claimed, both were not answered, and what they sent is carried out when the server wakes up. */
static void test_of_two_claims_that_arrive_late_one_is_granted(void **state)
{
    struct bench *b = *state;
    struct record last = {0};

    for (uint64_t round = 1; round <= 3; round++) {
        struct store_reply seen;
        bool is_of_a;

        (void)expect(b->b, ask_read("g"),
                     GAVEL_OK); /* both know what is there, so each sends its PUT at once */
        (void)expect(b->a, ask_read("g"), GAVEL_OK);
        test_server_freeze(b->server, TEST_SERVER_ALL);
        assert_int_equal(call_for(b->a, ask_claim("g", "a", round, last.version), 200 * NS_PER_MS).status,
                         GAVEL_ERR_TIMEOUT);
        assert_int_equal(call_for(b->b, ask_claim("g", "b", round, last.version), 200 * NS_PER_MS).status,
                         GAVEL_ERR_TIMEOUT);
        test_server_thaw(b->server, TEST_SERVER_ALL);
        seen = read_again(b->a, "g");
        if (!seen.found || seen.record.version == last.version) {
            /* Neither was carried out yet; whichever still is loses against this. */
            struct store_request claim = ask_claim("g", "a", 100 + round, last.version);
            enum gavel_status status = call_for(b->a, claim, LIMIT).status;

            assert_true(status == GAVEL_OK || status == GAVEL_ERR_CONFLICT);
            seen = read_again(b->a, "g");
        }
        assert_true(seen.record.epoch > last.epoch);
        is_of_a = strcmp(seen.record.holder, "a") == 0;
        assert_true(is_of_a || strcmp(seen.record.holder, "b") == 0);
        /* The other has nothing, whatever it believes: neither to renew nor to release. */
        (void)expect(is_of_a ? b->b : b->a, ask_renew("g", is_of_a ? "b" : "a", round, 0),
                     GAVEL_ERR_NOT_HOLDER);
        (void)expect(is_of_a ? b->b : b->a, ask_release("g", is_of_a ? "b" : "a", round, 0),
                     GAVEL_ERR_NOT_HOLDER);
        assert_int_equal(expect(b->b, ask_read("g"), GAVEL_OK).record.epoch, seen.record.epoch);
        last = seen.record;
    }
}

/* The renewal of one who was cut off arrives after somebody else has the mandate, or before; never over
 * it. */
static void test_a_late_renewal_does_not_take_the_mandate_back(void **state)
{
    struct bench *b = *state;
    struct record first = expect(b->a, ask_claim("g", "a", 1, 0), GAVEL_OK).record;
    gavel_ns limit = clock_now() + LIMIT;
    struct store_reply reply;

    (void)expect(b->a, ask_renew("g", "a", 1, first.epoch), GAVEL_OK);
    test_server_freeze(b->server, TEST_SERVER_ALL);
    assert_int_equal(call_for(b->a, ask_renew("g", "a", 1, first.epoch), 200 * NS_PER_MS).status,
                     GAVEL_ERR_TIMEOUT);
    test_server_thaw(b->server, TEST_SERVER_ALL);
    do { /* as a standby that has waited for long enough; the late renewal may come in between */
        assert_true(clock_now() < limit);
        reply = read_again(b->b, "g");
        reply = call_for(b->b, ask_claim("g", "b", 2, reply.record.version), LIMIT);
    } while (reply.status == GAVEL_ERR_CONFLICT);
    assert_int_equal(reply.status, GAVEL_OK);
    assert_true(reply.record.epoch > first.epoch);
    (void)expect(b->a, ask_renew("g", "a", 1, first.epoch), GAVEL_ERR_NOT_HOLDER);
    assert_string_equal(expect(b->a, ask_read("g"), GAVEL_OK).record.holder, "b");
}

/* The server carries it out and answers, and nobody hears it: by silence, or by a reset. */
static void test_a_claim_whose_answer_is_lost_on_the_way_is_found_by_its_nonce(void **state)
{
    static const char *const ways[] = {"mute", "snap"};
    struct bench *b = *state;
    struct test_proxy proxy = {0};
    struct store *far;
    struct record last = {0};
    char url[512];

    test_proxy_start(&proxy, b->server->port);
    make_url(proxy.address, url, sizeof url);
    assert_int_equal(store_open(url, &far, NULL), GAVEL_OK);
    for (uint64_t i = 0; i < 2; i++) {
        gavel_ns limit = clock_now() + LIMIT;
        struct store_reply reply;

        (void)expect(far, ask_read("g"), GAVEL_OK);
        test_proxy_say(&proxy, "%s 0", ways[i]);
        reply = call_for(far, ask_claim("g", "far", i, last.version), 500 * NS_PER_MS);
        assert_true(reply.status == GAVEL_ERR_TIMEOUT || reply.status == GAVEL_ERR_STORE_UNAVAILABLE);
        test_proxy_say(&proxy, "pass");
        do { /* it may be carried out only now */
            assert_true(clock_now() < limit);
            reply = call_for(far, ask_renew("g", "far", i, 0), 5 * NS_PER_S);
        } while (reply.status != GAVEL_OK);
        assert_true(reply.record.epoch > last.epoch);
        last = expect(far, ask_release("g", "far", i, reply.record.epoch), GAVEL_OK).record;
    }
    store_close(far);
    test_proxy_stop(&proxy);
}

static void test_a_server_that_is_started_again_is_found_again(void **state)
{
    struct bench *b = *state;
    uint64_t epoch = expect(b->a, ask_claim("g", "a", 1, 0), GAVEL_OK).record.epoch;
    gavel_ns limit = clock_now() + LIMIT;
    struct gavel_error error = {0};
    struct store_reply reply;
    struct store *store = NULL;

    test_server_kill(b->server, TEST_SERVER_ALL);
    reply = call_for(b->a, ask_renew("g", "a", 1, epoch), NS_PER_S);
    assert_int_equal(reply.status, GAVEL_ERR_STORE_UNAVAILABLE);
    assert_non_null(strstr(reply.message, "cannot be reached"));
    assert_int_equal(store_open(b->url, &store, &error), GAVEL_ERR_STORE_UNAVAILABLE);
    test_server_restart(b->server);
    do {
        assert_true(clock_now() < limit);
        reply = call_for(b->a, ask_renew("g", "a", 1, epoch), 5 * NS_PER_S);
    } while (reply.status != GAVEL_OK);
    assert_int_equal(reply.record.epoch, epoch);
    assert_string_equal(expect(b->b, ask_read("g"), GAVEL_OK).record.holder, "a");
}

/* A variable of the environment while a store is opened. */
static void open_with(const char *name, const char *value, const char *url, enum gavel_status status,
                      const char *says)
{
    char *before = getenv(name) ? strdup(getenv(name)) : NULL;
    struct gavel_error error = {0};
    struct store *store = NULL;
    gavel_ns until = clock_now() + LIMIT;
    enum gavel_status opened;

    assert_int_equal(setenv(name, value, 1), 0);
    do /* on a busy machine even a refusal may take longer than opening has patience for */
        opened = store_open(url, &store, &error);
    while (opened != GAVEL_OK && strstr(error.message, "in time") && clock_now() < until);
    if (opened != status)
        fail_msg("not as expected: %s", error.message);
    if (!strstr(error.message, says))
        fail_msg("\"%s\" is not in: %s", says, error.message);
    assert_int_equal(before ? setenv(name, before, 1) : unsetenv(name), 0);
    free(before);
}

static void test_the_wrong_one_in_the_wrong_place_is_told_so(void **state)
{
    struct bench *b = *state;
    char url[512];
    gavel_ns began = clock_now();

    open_with("AWS_ACCESS_KEY_ID", "nobody", b->url, GAVEL_ERR_STORE_DENIED, "AWS_ACCESS_KEY_ID");
    open_with("AWS_SECRET_ACCESS_KEY", "wrong", b->url, GAVEL_ERR_STORE_DENIED, "AWS_SECRET_ACCESS_KEY");
    test_server_url(b->server, "no-such-bucket", NULL, url, sizeof url);
    open_with("AWS_PROFILE", "", url, GAVEL_ERR_STORE_DENIED, "create it");
    open_with("AWS_PROFILE", "", "s3://b?endpoint=http://127.0.0.1:1", GAVEL_ERR_STORE_UNAVAILABLE,
              "cannot be reached");
    open_with("AWS_PROFILE", "", "s3://b?endpoint=http://nowhere.invalid", GAVEL_ERR_STORE_UNAVAILABLE,
              "cannot be reached");
    assert_true(clock_now() - began < LIMIT);
}

/* The same with https. */
static void make_secure(const char *url, char *ret_secure, size_t size)
{
    const char *scheme = strstr(url, "http:");

    assert_non_null(scheme);
    (void)snprintf(ret_secure, size, "%.*shttps%s", (int)(scheme - url), url, scheme + 4);
}

static void test_tls_where_there_is_none_and_the_other_way_round_is_told_so(void **state)
{
    struct bench *b = *state;
    char address[32];
    char url[600];

    make_secure(b->url, url, sizeof url);
    open_with("AWS_PROFILE", "", url, GAVEL_ERR_STORE_UNAVAILABLE, "write http:// in endpoint=");
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", b->server->port + 1);
    make_url(address, url, sizeof url);
    open_with("AWS_PROFILE", "", url, GAVEL_ERR_STORE_UNAVAILABLE, "write https:// in endpoint=");
}

static void test_tls_needs_a_certificate_that_is_trusted(void **state)
{
    struct bench *b = *state;
    char address[32];
    char url[600];
    char secure[700];
    struct gavel_error error = {0};
    struct store *store = NULL;

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", b->server->port + 1);
    make_url(address, url, sizeof url);
    make_secure(url, secure, sizeof secure);
    open_with("AWS_PROFILE", "", secure, GAVEL_ERR_STORE_UNAVAILABLE, "certificate");
    (void)snprintf(secure + strlen(secure), sizeof secure - strlen(secure), "&ca=%s/tls.crt",
                   b->server->directory);
    if (store_open(secure, &store, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    (void)expect(store, ask_claim("tls", "a", 1, 0), GAVEL_OK);
    store_close(store);
}

static void test_a_forked_child_is_told_to_open_a_store_of_its_own(void **state)
{
    struct bench *b = *state;

    expect_refused_in_a_child(b->a);
}

/* Renewals of groups that answer are not held up by one that does not: it is asked beside them. */
static void test_a_batch_on_a_frozen_server_ends_with_its_deadline(void **state)
{
    struct bench *b = *state;
    struct store_request requests[] = {ask_claim("g", "a", 1, 0),
                                       ask_heartbeat("g", "a", 1, 1),
                                       ask_candidates("g"),
                                       ask_read("h"),
                                       {.op = STORE_GROUPS}};
    enum { COUNT = sizeof requests / sizeof *requests };
    struct store_reply replies[COUNT];
    gavel_ns began;

    test_server_freeze(b->server, TEST_SERVER_ALL);
    began = clock_now();
    for (size_t i = 0; i < COUNT; i++)
        requests[i].give_up_at = began + 300 * NS_PER_MS;
    store_run(b->a, requests, replies, COUNT);
    assert_true(clock_now() - began < 300 * NS_PER_MS + SLACK);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(replies[i].status, GAVEL_ERR_TIMEOUT);
        assert_true(replies[i].message[0]);
        store_reply_done(&replies[i]);
    }
    test_server_thaw(b->server, TEST_SERVER_ALL);
    (void)read_again(b->a, "g");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_of_two_claims_that_arrive_late_one_is_granted),
        TEST(test_a_late_renewal_does_not_take_the_mandate_back),
        TEST(test_a_claim_whose_answer_is_lost_on_the_way_is_found_by_its_nonce),
        TEST(test_a_server_that_is_started_again_is_found_again),
        TEST(test_the_wrong_one_in_the_wrong_place_is_told_so),
        TEST(test_tls_where_there_is_none_and_the_other_way_round_is_told_so),
        TEST(test_tls_needs_a_certificate_that_is_trusted),
        TEST(test_a_forked_child_is_told_to_open_a_store_of_its_own),
        TEST(test_a_batch_on_a_frozen_server_ends_with_its_deadline),
    };
    int failed;

    test_server_start(&server, TEST_RADOSGW);
    test_server_make(&server, "faults");
    failed = cmocka_run_group_tests_name("s3 faults", tests, NULL, NULL);
    test_server_stop(&server);
    return failed;
}
