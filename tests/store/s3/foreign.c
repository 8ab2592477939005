/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Namespaces of s3db.js, whose coordinator uses the same keys, on a real S3
 * server (radosgw): they are recognised, left alone while anything in them
 * moves, and taken over with their epoch.
 */
#include "store/s3/foreign.h"
#include "servers/server.h"
#include "store/conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    struct test_server server;
    unsigned prefixes;
    char url[512];
    struct s3_store *s3;
};

#define STATE                                                                                                \
    "{\"leaderId\":\"pod-1\",\"leaderPod\":\"web\",\"epoch\":18,\"leaseStart\":1790000000000,"               \
    "\"leaseEnd\":%s,\"electedBy\":\"gcs-1\",\"electedAt\":1790000000000}"
#define WORKER                                                                                               \
    "{\"workerId\":\"%s\",\"pluginName\":\"coordinator\",\"pod\":\"web\",\"lastHeartbeat\":%d,"              \
    "\"startTime\":1790000000000,\"namespace\":\"g\"}"

static int start(void **state)
{
    struct bench *b = calloc(1, sizeof *b);

    if (!b)
        return -1;
    test_server_start(&b->server, TEST_RADOSGW);
    test_server_make(&b->server, "foreign");
    *state = b;
    return 0;
}

static int stop(void **state)
{
    struct bench *b = *state;

    test_server_stop(&b->server);
    free(b);
    return 0;
}

static struct store *open_probed(struct bench *b)
{
    struct store *store = NULL;
    struct gavel_error error = {0};

    if (store_open(b->url, &store, &error) != GAVEL_OK || store_probe(store, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    return store;
}

static int set_up(void **state)
{
    struct bench *b = *state;
    char bucket_url[400];
    char *query;

    test_server_url(&b->server, "foreign", NULL, bucket_url, sizeof bucket_url);
    query = strchr(bucket_url, '?');
    assert_non_null(query);
    *query++ = '\0';
    (void)snprintf(b->url, sizeof b->url, "%s/%u?%s", bucket_url, ++b->prefixes, query);
    b->s3 = (struct s3_store *)open_probed(b);
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    store_close(&b->s3->store);
    return 0;
}

/* What lies under a key; NULL: nothing. The caller frees it. */
static char *fetch(struct bench *b, const char *key, char etag[S3_ETAG_MAX + 1])
{
    struct http_call call = {.give_up_at = clock_now() + 30 * NS_PER_S};
    struct s3_object object = {.call = &call};
    char *text = NULL;

    assert_true(s3_object_get(b->s3, &object, key, ""));
    http_run(b->s3->http, &call, 1);
    etag[0] = '\0';
    if (s3_object_outcome(&object) == S3_DONE) {
        s3_object_etag(&object, etag);
        text = strndup(call.answer, call.answer_size);
        assert_non_null(text);
    } else {
        assert_int_equal(s3_object_outcome(&object), S3_ABSENT);
    }
    s3_object_done(&object);
    return text;
}

static void put(struct bench *b, char *key, const char *body)
{
    struct http_call call = {.give_up_at = clock_now() + 30 * NS_PER_S};
    struct s3_object object = {.call = &call};
    char etag[S3_ETAG_MAX + 1];
    char *copy = strdup(body);

    free(fetch(b, key, etag));
    assert_non_null(copy);
    assert_true(s3_object_put(b->s3, &object, key, copy, etag, b->s3->quoting));
    http_run(b->s3->http, &call, 1);
    assert_int_equal(s3_object_outcome(&object), S3_DONE);
    s3_object_done(&object);
    free(key);
}

static void put_state(struct bench *b, const char *lease_end)
{
    char body[400];

    (void)snprintf(body, sizeof body, STATE, lease_end);
    put(b, s3_key_state(&b->s3->target, "g"), body);
}

static void put_worker(struct bench *b, const char *id, int beat)
{
    char body[400];

    (void)snprintf(body, sizeof body, WORKER, id, beat);
    put(b, s3_key_worker(&b->s3->target, "g", id), body);
}

static bool is_registered(struct bench *b, const char *id)
{
    char etag[S3_ETAG_MAX + 1];
    char *key = s3_key_worker(&b->s3->target, "g", id);
    char *text = fetch(b, key, etag);
    bool is_there = text != NULL;

    free(text);
    free(key);
    return is_there;
}

static void test_its_state_is_a_mandate_of_somebody_else(void **state)
{
    struct bench *b = *state;
    struct store_reply reply;

    put_worker(b, "gcs-1", 1);
    put_worker(b, "pod-1", 1);
    put_state(b, "1790000015000");
    reply = expect(&b->s3->store, ask_read("g"), GAVEL_OK);
    assert_true(reply.found);
    assert_true(reply.record.held);
    assert_string_equal(reply.record.holder, "pod-1");
    assert_int_equal(reply.record.epoch, 18);
    assert_int_equal(reply.record.lease_ms, 60000);
    assert_non_null(strstr(reply.note, "s3db.js leads here: pod-1, epoch 18, 2 workers"));
    assert_non_null(strstr(reply.note, "stop its processes"));
    assert_non_null(strstr(reply.note, "epoch 19"));
    put_state(
        b, "1790000090000.5"); /* a lease of a minute and a half, and a number as JavaScript may write it */
    assert_int_equal(expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.lease_ms, 180000);
}

static void test_what_is_neither_is_still_refused(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "[]",
        "17",
        "{\"leaderId\":\"a\",\"epoch\":1}",
        "{\"leaderId\":null,\"epoch\":1,\"leaseEnd\":5}",
        "{\"leaderId\":\"a\",\"epoch\":-1,\"leaseEnd\":5}",
        "{\"leaderId\":\"a\",\"epoch\":1,\"leaseEnd\":\"5\"}",
        "{\"format\":1,\"leaderId\":\"a\",\"epoch\":1,\"leaseEnd\":5}",
    };
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        put(b, s3_key_state(&b->s3->target, "g"), bodies[i]);
        (void)expect(&b->s3->store, ask_read("g"), GAVEL_ERR_STORE_DAMAGED);
    }
}

static void test_anything_that_moves_there_is_a_renewal(void **state)
{
    struct bench *b = *state;
    struct store *other = open_probed(b);
    uint64_t version;
    uint64_t next;

    put_worker(b, "pod-1", 1);
    put_state(b, "1790000015000");
    version = expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.version;
    assert_int_equal(expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.version, version);
    assert_int_equal(expect(other, ask_read("g"), GAVEL_OK).record.version, version); /* to all the same */
    put_worker(b, "pod-1", 2);
    next = expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.version;
    assert_int_not_equal(next, version);
    (void)expect(&b->s3->store, ask_claim("g", "a", 1, version), GAVEL_ERR_CONFLICT);
    put_worker(b, "pod-2", 1);
    assert_int_not_equal(expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.version, next);
    version = expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.version;
    put_state(b, "1790000016000");
    assert_int_not_equal(expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.version, version);
    (void)expect(&b->s3->store, ask_claim("g", "a", 1, version), GAVEL_ERR_CONFLICT);
    (void)expect(&b->s3->store, ask_claim("g", "a", 1, 0), GAVEL_ERR_CONFLICT);
    store_close(other);
}

static void test_it_is_taken_over_with_its_epoch(void **state)
{
    struct bench *b = *state;
    struct store *other = open_probed(b);
    struct store_reply reply;
    char etag[S3_ETAG_MAX + 1];
    char *text;
    char *key;

    put_worker(b, "pod-1", 1);
    put_state(b, "1790000015000");
    reply = expect(&b->s3->store, ask_read("g"), GAVEL_OK);
    (void)expect(other, ask_read("g"), GAVEL_OK);
    assert_int_equal(
        expect(&b->s3->store, ask_claim("g", "a", 1, reply.record.version), GAVEL_OK).record.epoch, 19);
    (void)expect(other, ask_claim("g", "b", 2, reply.record.version), GAVEL_ERR_CONFLICT);
    (void)expect(&b->s3->store, ask_renew("g", "a", 1, 19), GAVEL_OK);
    reply = expect(other, ask_read("g"), GAVEL_OK);
    assert_string_equal(reply.record.holder, "a");
    assert_string_equal(reply.note, "");
    /* To s3db.js a state without a leaseEnd never ends: it does not take over, also not from a silent one. */
    key = s3_key_state(&b->s3->target, "g");
    text = fetch(b, key, etag);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"leaderId\":\"a\""));
    assert_null(strstr(text, "leaseEnd"));
    free(text);
    free(key);
    put_worker(b, "pod-1", 2); /* an idle process of s3db.js changes nothing any more */
    assert_int_equal(expect(other, ask_read("g"), GAVEL_OK).record.version, reply.record.version);
    (void)expect(&b->s3->store, ask_heartbeat("g", "a", 1, 1), GAVEL_OK);
    assert_true(is_registered(b, "a"));
    (void)expect(&b->s3->store, ask_release("g", "a", 1, 19), GAVEL_OK);
    store_close(other);
}

/* s3db.js elects the first of all that lie there, whoever wrote it; and gavel would wait for that. */
static void test_nobody_of_gavel_is_registered_where_s3db_js_elects(void **state)
{
    struct bench *b = *state;
    struct store *other = open_probed(b);

    (void)expect(other, ask_heartbeat("g", "early", 1, 1), GAVEL_OK); /* before there was any state */
    assert_true(is_registered(b, "early"));
    put_worker(b, "pod-1", 1);
    put_state(b, "1790000015000");
    (void)expect(&b->s3->store, ask_heartbeat("g", "a", 1, 1),
                 GAVEL_OK); /* it has not read the state before */
    assert_false(is_registered(b, "a"));
    (void)expect(other, ask_read("g"), GAVEL_OK);
    (void)expect(other, ask_heartbeat("g", "early", 1, 2), GAVEL_OK);
    assert_false(is_registered(b, "early")); /* it has gone */
    assert_true(is_registered(b, "pod-1"));
    (void)expect(&b->s3->store,
                 ask_claim("g", "a", 1, expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.version),
                 GAVEL_OK);
    (void)expect(other, ask_read("g"), GAVEL_OK);
    (void)expect(other, ask_heartbeat("g", "early", 1, 3), GAVEL_OK);
    assert_true(is_registered(b, "early"));
    store_close(other);
}

static void test_it_is_not_written_to_but_by_a_claim(void **state)
{
    struct bench *b = *state;
    struct store_request reopen = ask_read("g");
    char before[S3_ETAG_MAX + 1];
    char after[S3_ETAG_MAX + 1];
    char *key = s3_key_state(&b->s3->target, "g");

    put_state(b, "1790000015000");
    free(fetch(b, key, before));
    reopen.op = STORE_REOPEN;
    reopen.expected_version = expect(&b->s3->store, ask_read("g"), GAVEL_OK).record.version;
    (void)expect(&b->s3->store, ask_renew("g", "pod-1", 0, 18), GAVEL_ERR_NOT_HOLDER);
    (void)expect(&b->s3->store, ask_release("g", "pod-1", 0, 18), GAVEL_ERR_NOT_HOLDER);
    (void)expect(&b->s3->store, ask_wish("g", 18, ""), GAVEL_ERR_NOT_HOLDER);
    (void)expect(&b->s3->store, reopen, GAVEL_ERR_CONFLICT);
    free(fetch(b, key, after));
    assert_string_equal(before, after);
    free(key);
}

static void test_an_id_that_a_worker_of_s3db_js_has_is_told(void **state)
{
    struct bench *b = *state;
    struct store_reply reply;

    put_worker(b, "pod-1", 1);
    (void)expect(&b->s3->store, ask_claim("g", "pod-1", 1, 0), GAVEL_OK);
    reply = expect(&b->s3->store, ask_heartbeat("g", "pod-1", 1, 1), GAVEL_ERR_ID_IN_USE);
    assert_non_null(strstr(reply.message, "is a worker of s3db.js"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_its_state_is_a_mandate_of_somebody_else),
        TEST(test_what_is_neither_is_still_refused),
        TEST(test_anything_that_moves_there_is_a_renewal),
        TEST(test_it_is_taken_over_with_its_epoch),
        TEST(test_nobody_of_gavel_is_registered_where_s3db_js_elects),
        TEST(test_it_is_not_written_to_but_by_a_claim),
        TEST(test_an_id_that_a_worker_of_s3db_js_has_is_told),
    };

    return cmocka_run_group_tests_name("s3: namespaces of s3db.js", tests, start, stop);
}
