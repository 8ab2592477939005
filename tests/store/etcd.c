/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `etcd` through the suite, against a real etcd, and what is its
 * own. What becomes of it when servers fail is in etcd_faults.c.
 */
#include "store/etcd.h"
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
    char name[32];

    (void)snprintf(name, sizeof name, "suite/%u", ++prefixes);
    test_server_url(&server, name, NULL, url, size);
}

static bool must_succeed(struct etcd_call *call)
{
    if (call->status)
        fail_msg("%s", call->message);
    return false;
}

/* Puts a text over the record of a group. */
static void overwrite(const char *url, const char *group, const char *text)
{
    struct store *store;
    struct etcd_store *etcd;
    struct etcd_call call = {.give_up_at = clock_now() + 10 * NS_PER_S, .on_answer = must_succeed};
    char key[ETCD_KEY_SIZE];
    struct etcd_put put = {.compared = key, .key = key, .value = text};

    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    etcd = (struct etcd_store *)store;
    put.revision = expect(store, ask_read(group), GAVEL_OK).record.version;
    etcd_key(etcd, ETCD_GROUPS, group, NULL, key);
    etcd_ask(&call, "/v3/kv/txn", etcd_body_put(&put, key, NULL), true);
    etcd_calls_run(etcd, etcd->http, &call, 1);
    store_close(store);
}

static void write_future_record(const char *url, const char *group)
{
    overwrite(url, group, "{\"format\":2}");
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
    test_server_stop(&server);
    return failed;
}
