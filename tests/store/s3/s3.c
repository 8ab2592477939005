/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `s3` through the suite, against a real S3 server (radosgw), and
 * what is its own: lists of several pages, and what is in the bucket. What it
 * makes of answers is in answers.c, of faults in faults.c.
 */
#include "store/s3/s3.h"
#include "servers/server.h"
#include "store/conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The suite asks for URLs and knows of nothing else. */
static struct test_server server;
static unsigned prefixes;

/* Below a prefix that nobody else uses. */
static void make_url(char *url, size_t size)
{
    char bucket_url[400];
    char *query;

    test_server_url(&server, "suite", NULL, bucket_url, sizeof bucket_url);
    query = strchr(bucket_url, '?');
    assert_non_null(query);
    *query++ = '\0';
    (void)snprintf(url, size, "%s/%u?%s", bucket_url, ++prefixes, query);
}

/* Puts what is there back with something in it replaced. */
static void rewrite(const char *url, const char *group, const char *old, const char *new)
{
    struct store *store;
    struct s3_store *s3;
    struct http_call call = {.give_up_at = clock_now() + 10 * NS_PER_S};
    struct s3_object object = {.call = &call};
    char etag[S3_ETAG_MAX + 1];
    char *key;
    char *at;
    char *body;

    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    s3 = (struct s3_store *)store;
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    key = s3_key_state(&s3->target, group);
    assert_non_null(key);
    assert_true(s3_object_get(s3, &object, key, ""));
    http_run(s3->http, &call, 1);
    assert_int_equal(s3_object_outcome(&object), S3_DONE);
    at = strstr(call.answer, old);
    assert_non_null(at);
    assert_true(asprintf(&body, "%.*s%s%s", (int)(at - call.answer), call.answer, new, at + strlen(old)) > 0);
    s3_object_etag(&object, etag);
    assert_true(s3_object_put(s3, &object, key, body, etag, s3->quoting));
    http_run(s3->http, &call, 1);
    assert_int_equal(s3_object_outcome(&object), S3_DONE);
    s3_object_done(&object);
    free(key);
    store_close(store);
}

static void write_future_record(const char *url, const char *group)
{
    rewrite(url, group, "\"format\":1", "\"format\":2");
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

static int set_up(void **state)
{
    char url[512];
    struct store *store;

    make_url(url, sizeof url);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    *state = store;
    return 0;
}

static int tear_down(void **state)
{
    store_close(*state);
    return 0;
}

static void test_the_server_passes_the_probe(void **state)
{
    struct s3_store *s3 = *state;

    assert_int_equal(store_probe(&s3->store, NULL), GAVEL_OK);
    assert_true(s3->is_quoting_known);
    assert_int_equal(s3->quoting, S3_BARE); /* radosgw is the one that wants them so */
}

static void test_groups_and_candidates_on_many_pages_are_all_listed(void **state)
{
    struct s3_store *s3 = *state;
    struct store_request groups = {.op = STORE_GROUPS, .give_up_at = NEVER};
    struct store_request candidates = ask_candidates("g0");
    struct store_reply reply;

    for (unsigned i = 0; i < 7; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "g%u", i);
        (void)expect(&s3->store, ask_claim(name, "one", i, 0), GAVEL_OK);
        (void)expect(&s3->store, ask_heartbeat("g0", name, i + 1, 1), GAVEL_OK);
    }
    s3->page_size = 3;
    assert_int_equal(store_call(&s3->store, &groups, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, 7);
    assert_string_equal(reply.groups[6].group, "g6");
    store_reply_done(&reply);
    assert_int_equal(store_call(&s3->store, &candidates, &reply), GAVEL_OK);
    assert_int_equal(reply.registration_count, 7);
    assert_string_equal(reply.registrations[6].id, "g6");
    store_reply_done(&reply);
}

/* What people and other programs find in the bucket. */
static void test_the_bucket_can_be_read_by_people(void **state)
{
    static const char *const says[][2] = {
        {"namespace=a%2Fb/state.json", "\"leaderId\":\"one\""},
        {"namespace=a%2Fb/workers/worker=one.json", "\"id\":\"one\""},
        {"namespace=a%2Fb/metadata.json", "\"group\": \"a/b\""},
    };
    struct s3_store *s3 = *state;
    struct http_call call = {.give_up_at = clock_now() + 10 * NS_PER_S};
    struct s3_object object = {.call = &call};

    (void)expect(&s3->store, ask_claim("a/b", "one", 1, 0), GAVEL_OK);
    (void)expect(&s3->store, ask_heartbeat("a/b", "one", 1, 1), GAVEL_OK);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        char key[200];

        (void)snprintf(key, sizeof key, "%s%s", s3->target.prefix, says[i][0]);
        assert_true(s3_object_get(s3, &object, key, ""));
        http_run(s3->http, &call, 1);
        assert_int_equal(s3_object_outcome(&object), S3_DONE);
        assert_non_null(strstr(call.answer, says[i][1]));
    }
    s3_object_done(&object);
}

int main(void)
{
    static const struct conformance_driver driver = {.name = "s3",
                                                     .make_url = make_url,
                                                     .write_future_record = write_future_record,
                                                     .freeze = freeze,
                                                     .thaw = thaw,
                                                     .is_server = true};
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_server_passes_the_probe),
        TEST(test_groups_and_candidates_on_many_pages_are_all_listed),
        TEST(test_the_bucket_can_be_read_by_people),
    };
    int failed;

    test_server_start(&server, TEST_RADOSGW);
    test_server_make(&server, "suite");
    failed = conformance_run(&driver);
    failed += cmocka_run_group_tests_name("s3 only", tests, NULL, NULL);
    test_server_stop(&server);
    return failed;
}
