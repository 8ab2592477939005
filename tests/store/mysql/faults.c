/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Servers that freeze, die, lock rows, end connections or whose answers are
 * lost: no call takes longer than it may, what became of a write shows by its
 * nonce, and all goes on without opening the store again.
 */
#include "bench.h"
#include "servers/proxy.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE (300 * NS_PER_MS) /* of a call that is to fail */
#define SLACK (30 * NS_PER_S)      /* of a machine that does other things */
#define LIMIT (60 * NS_PER_S)

/* Calls until it ends otherwise than for want of the server. */
static struct store_reply insist(struct store *store, struct store_request request, enum gavel_status status)
{
    gavel_ns limit = clock_now() + LIMIT;
    struct store_reply reply;

    do {
        assert_true(clock_now() < limit);
        request.give_up_at = clock_now() + NS_PER_S;
        store_run(store, &request, &reply, 1);
        store_reply_done(&reply);
    } while (reply.status == GAVEL_ERR_TIMEOUT || reply.status == GAVEL_ERR_STORE_UNAVAILABLE);
    if (reply.status != status)
        print_error("%s instead of %s: %s\n", gavel_status_name(reply.status), gavel_status_name(status),
                    reply.message);
    assert_int_equal(reply.status, status);
    return reply;
}

/* Makes a call that cannot be answered; it must end by its deadline. */
static void expect_timeout(struct store *store, struct store_request request)
{
    gavel_ns began = clock_now();
    struct store_reply reply;

    request.give_up_at = began + PATIENCE;
    store_run(store, &request, &reply, 1);
    if (reply.status != GAVEL_ERR_TIMEOUT)
        print_error("%s: %s\n", gavel_status_name(reply.status), reply.message);
    assert_int_equal(reply.status, GAVEL_ERR_TIMEOUT);
    assert_true(reply.message[0]);
    assert_true(clock_now() - began >= PATIENCE);
    assert_true(clock_now() - began < PATIENCE + SLACK);
    store_reply_done(&reply);
}

static void freeze_and_thaw(struct mysql_bench *b, const char *options)
{
    struct store *store = mysql_bench_open(b, NULL, options);
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    test_server_freeze(&b->server, TEST_SERVER_ALL);
    expect_timeout(store, ask_renew("g", "one", 1, epoch));
    expect_timeout(store, ask_read("g")); /* by a new connection, which gets no greeting */
    expect_timeout(store, ask_claim("h", "one", 1, 0));
    test_server_thaw(&b->server, TEST_SERVER_ALL);
    assert_int_equal(insist(store, ask_renew("g", "one", 1, epoch), GAVEL_OK).record.epoch, epoch);
    assert_false(expect(store, ask_read("h"), GAVEL_OK).found); /* there was nobody to send it to */
    store_close(store);
}

static void test_a_frozen_server_delays_nobody(void **state)
{
    struct mysql_bench *b = *state;

    freeze_and_thaw(b, NULL);
}

static void test_a_frozen_server_delays_nobody_with_tls_either(void **state)
{
    struct mysql_bench *b = *state;
    char options[200];

    (void)snprintf(options, sizeof options, "&ca=%s", b->server.ca);
    freeze_and_thaw(b, options);
}

static void test_a_row_that_another_has_locked_is_not_waited_for_for_ever(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    struct store_request renew = ask_renew("g", "one", 1, epoch);
    struct store_reply reply;

    mysql_bench_sql(b, "BEGIN");
    mysql_bench_sql(b, "SELECT * FROM %s WHERE lock_key = 'g' FOR UPDATE", b->table);
    expect_timeout(store, renew);
    (void)expect(store, ask_read("g"), GAVEL_OK);      /* looking needs no lock */
    renew.give_up_at = clock_now() + 1200 * NS_PER_MS; /* the server gives up after a second */
    store_run(store, &renew, &reply, 1);
    assert_true(reply.status == GAVEL_ERR_STORE_UNAVAILABLE || reply.status == GAVEL_ERR_TIMEOUT);
    store_reply_done(&reply);
    mysql_bench_sql(b, "ROLLBACK");
    (void)insist(store, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    store_close(store);
}

static void kill_connections(struct mysql_bench *b)
{
    while (mysql_bench_number(
               b, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '" TEST_SERVER_USER "'") >
           0)
        mysql_bench_sql(b, "KILL USER " TEST_SERVER_USER);
}

static void test_connections_that_the_server_ends_are_made_anew(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    kill_connections(b);
    (void)expect(store, ask_renew("g", "one", 1, epoch), GAVEL_OK); /* at once: nothing was sent in vain */
    kill_connections(b);
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    kill_connections(b);
    (void)expect(store, ask_release("g", "one", 1, epoch), GAVEL_OK);
    store_close(store);
}

/* A call in a thread of its own. */
struct forwarding {
    struct store *store;
    struct store_request request;
    struct store_reply reply;
    pthread_t thread;
};

static void *run_forwarding(void *argument)
{
    struct forwarding *forwarding = argument;

    store_run(forwarding->store, &forwarding->request, &forwarding->reply, 1);
    return NULL;
}

static void begin(struct forwarding *forwarding, struct store *store, struct store_request request)
{
    *forwarding = (struct forwarding){.store = store, .request = request};
    forwarding->request.give_up_at = clock_now() + LIMIT;
    assert_int_equal(pthread_create(&forwarding->thread, NULL, run_forwarding, forwarding), 0);
}

static struct store_reply finish(struct forwarding *forwarding)
{
    assert_int_equal(pthread_join(forwarding->thread, NULL), 0);
    store_reply_done(&forwarding->reply);
    return forwarding->reply;
}

static void await_number(struct mysql_bench *b, const char *sql, int64_t wanted)
{
    const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
    gavel_ns limit = clock_now() + LIMIT;

    while (mysql_bench_number(b, "%s", sql) != wanted) {
        assert_true(clock_now() < limit);
        (void)nanosleep(&pause, NULL);
    }
}

static void test_a_statement_that_is_killed_on_its_way_is_settled(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    static const char waiting[] =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '" TEST_SERVER_USER
        "' AND INFO LIKE 'UPDATE%%'";
    struct forwarding forwarding;

    mysql_bench_sql(b, "BEGIN");
    mysql_bench_sql(b, "SELECT * FROM %s WHERE lock_key = 'g' FOR UPDATE", b->table);
    begin(&forwarding, store, ask_renew("g", "one", 1, epoch));
    await_number(b, waiting, 1);
    mysql_bench_sql(b, "KILL USER " TEST_SERVER_USER);
    mysql_bench_sql(b, "ROLLBACK");
    assert_int_equal(finish(&forwarding).status, GAVEL_OK); /* a renewal may be said twice */
    store_close(store);
}

static void test_who_loses_a_deadlock_tries_again(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t version = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.version;
    static const char deadlocks[] = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE "
                                    "VARIABLE_NAME = 'INNODB_DEADLOCKS'";
    int64_t before = mysql_bench_number(b, "%s", deadlocks);
    struct store_reply reply;
    struct forwarding forwarding;

    mysql_bench_sql(b, "CREATE TABLE %s_heavy (a INT PRIMARY KEY)", b->table);
    mysql_bench_sql(b, "BEGIN");
    mysql_bench_sql(b, "INSERT INTO %s_heavy SELECT seq FROM seq_1_to_200",
                    b->table); /* the server spares us */
    mysql_bench_sql(b, "SELECT * FROM %s WHERE lock_key = 'g' FOR UPDATE", b->table);
    begin(&forwarding, store, ask_claim("g", "two", 2, version));
    await_number(b,
                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '" TEST_SERVER_USER
                 "' AND INFO LIKE 'UPDATE%'",
                 1);
    mysql_bench_sql(b, "SELECT * FROM %s_epochs WHERE lock_key = 'g' FOR UPDATE", b->table);
    mysql_bench_sql(b, "ROLLBACK");
    reply = finish(&forwarding);
    assert_int_equal(reply.status, GAVEL_OK);
    assert_int_equal(reply.record.epoch, 2);
    assert_int_equal(mysql_bench_number(b, "%s", deadlocks), before + 1);
    store_close(store);
}

static void test_a_lost_answer_to_a_commit_is_settled_by_the_nonce(void **state)
{
    struct mysql_bench *b = *state;
    struct test_proxy proxy;
    struct forwarding forwarding;
    struct store_reply reply;
    struct store *store;
    char applied[100];
    char released[100];

    test_proxy_start(&proxy, b->server.port);
    store = mysql_bench_open(b, proxy.address, NULL);
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    (void)snprintf(applied, sizeof applied, "SELECT COUNT(*) FROM %s WHERE held = 1", b->table);
    (void)snprintf(released, sizeof released, "SELECT COUNT(*) FROM %s WHERE held = 0", b->table);

    test_proxy_say(&proxy, "mute 0");
    begin(&forwarding, store, ask_claim("g", "one", 1, 0));
    await_number(b, applied, 1);
    test_proxy_say(&proxy, "pass"); /* and the connection is cut */
    reply = finish(&forwarding);
    assert_int_equal(reply.status,
                     GAVEL_ERR_STORE_UNAVAILABLE); /* which of its claims it was, nobody can tell */
    assert_non_null(strstr(reply.message, "it is unknown"));
    assert_int_equal(expect(store, ask_renew("g", "one", 1, 0), GAVEL_OK).record.epoch, 1);

    test_proxy_say(&proxy, "mute 0");
    begin(&forwarding, store, ask_release("g", "one", 1, 1));
    await_number(b, released, 1);
    test_proxy_say(&proxy, "pass");
    reply = finish(&forwarding);
    assert_int_equal(reply.status, GAVEL_OK);
    assert_false(reply.record.held);
    (void)expect(store, ask_release("g", "one", 1, 1), GAVEL_ERR_NOT_HOLDER); /* but not for ever */

    /* If there is no time to look, the caller settles it by its nonce. */
    test_proxy_say(&proxy, "mute 0");
    expect_timeout(store, ask_claim("g", "two", 2, reply.record.version));
    test_proxy_say(&proxy, "pass");
    assert_int_equal(insist(store, ask_renew("g", "two", 2, 0), GAVEL_OK).record.epoch, 2);
    store_close(store);
    test_proxy_stop(&proxy);
}

static void test_a_claim_that_never_arrived_is_in_doubt_and_not_made_twice(void **state)
{
    const struct timespec pause = {.tv_nsec = 50 * NS_PER_MS};
    struct mysql_bench *b = *state;
    struct test_proxy proxy;
    struct forwarding forwarding;
    struct store_reply reply;
    struct store *store;

    test_proxy_start(&proxy, b->server.port);
    store = mysql_bench_open(b, proxy.address, NULL);
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    test_proxy_say(&proxy, "delay 60000 0"); /* it takes the claim, and keeps it */
    begin(&forwarding, store, ask_claim("g", "one", 1, 0));
    (void)nanosleep(&pause, NULL);
    test_proxy_say(&proxy, "delay 0 0");
    test_proxy_say(&proxy, "cut");
    reply = finish(&forwarding);
    /* What was not sent yet goes by a new connection; of what was sent nobody knows whether it will
     * arrive. */
    if (reply.status != GAVEL_OK) {
        assert_int_equal(reply.status, GAVEL_ERR_STORE_UNAVAILABLE);
        assert_non_null(strstr(reply.message, "it is unknown"));
        assert_int_equal(mysql_bench_number(b, "SELECT COUNT(*) FROM %s", b->table), 0);
    }
    store_close(store);
    test_proxy_stop(&proxy);
}

static void test_a_network_that_swallows_delays_nobody(void **state)
{
    struct mysql_bench *b = *state;
    struct test_proxy proxy;
    struct store *store;
    uint64_t epoch;

    test_proxy_start(&proxy, b->server.port);
    store = mysql_bench_open(b, proxy.address, NULL);
    epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    test_proxy_say(&proxy, "drop");
    expect_timeout(store, ask_renew("g", "one", 1, epoch));
    expect_timeout(store, ask_renew("g", "one", 1, epoch));
    test_proxy_say(&proxy, "pass");
    (void)insist(store, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    test_proxy_say(&proxy, "delay 400 400");
    expect_timeout(store, ask_renew("g", "one", 1, epoch));
    test_proxy_say(&proxy, "pass");
    (void)insist(store, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    store_close(store);
    test_proxy_stop(&proxy);
}

static void test_a_server_that_is_killed_and_comes_back_has_all_mandates(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    struct store_request read = ask_read("g");
    struct store_reply reply;
    gavel_ns began = clock_now();

    test_server_kill(&b->server, TEST_SERVER_ALL);
    assert_int_equal(store_call(store, &read, &reply), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_non_null(strstr(reply.message, "cannot be reached"));
    assert_true(clock_now() - began < LIMIT);
    store_reply_done(&reply);
    test_server_restart(&b->server);
    assert_int_equal(insist(store, ask_renew("g", "one", 1, epoch), GAVEL_OK).record.epoch, epoch);
    store_close(store);
}

static void test_a_forked_child_is_told_to_open_a_store_of_its_own(void **state)
{
    struct store *store = mysql_bench_open(*state, NULL, NULL);

    expect_refused_in_a_child(store);
    store_close(store);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mysql_bench_next)
    const struct CMUnitTest tests[] = {
        TEST(test_a_frozen_server_delays_nobody),
        TEST(test_a_frozen_server_delays_nobody_with_tls_either),
        TEST(test_a_row_that_another_has_locked_is_not_waited_for_for_ever),
        TEST(test_connections_that_the_server_ends_are_made_anew),
        TEST(test_a_statement_that_is_killed_on_its_way_is_settled),
        TEST(test_who_loses_a_deadlock_tries_again),
        TEST(test_a_lost_answer_to_a_commit_is_settled_by_the_nonce),
        TEST(test_a_claim_that_never_arrived_is_in_doubt_and_not_made_twice),
        TEST(test_a_network_that_swallows_delays_nobody),
        TEST(test_a_forked_child_is_told_to_open_a_store_of_its_own),
        /* The last: it ends the root's own. */
        TEST(test_a_server_that_is_killed_and_comes_back_has_all_mandates),
    };

    return cmocka_run_group_tests_name("mysql faults", tests, mysql_bench_start, mysql_bench_stop);
}
