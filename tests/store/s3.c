/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `s3` through the suite, against a real S3 server (radosgw), and
 * what is its own: odd names, lists of several pages, how many requests
 * things take, and what is in the bucket.
 */
#include "store/s3.h"
#include "conformance.h"
#include "servers/server.h"

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
    key = s3_key_state(&s3->place, group);
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

int main(void)
{
    static const struct conformance_driver driver = {
        .name = "s3", .make_url = make_url, .write_future_record = write_future_record};
    int failed;

    test_server_start(&server, TEST_RADOSGW);
    test_server_make(&server, "suite");
    failed = conformance_run(&driver);
    test_server_stop(&server);
    return failed;
}
