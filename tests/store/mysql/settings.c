/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Servers are set up in many ways. Whatever they give a new connection (time
 * zone, sql_mode, autocommit, isolation, …) and whatever their clock says,
 * mandates are the same; and they cost no more statements than they must.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a mandate goes through, by two connections that were made after the settings. */
static void live_through(struct mysql_bench *b)
{
    struct store *one = mysql_bench_open(b, NULL, NULL);
    struct store *two = mysql_bench_open(b, NULL, NULL);
    struct store_request claim = ask_claim("it's \\ \"g\"", "o'ne\\", 1, 0);
    struct store_request list = ask_candidates("it's \\ \"g\"");
    struct store_reply reply;
    struct record held;

    claim.record.lease_ms = 40;
    held = expect(one, claim, GAVEL_OK).record;
    reply = expect(two, ask_read(claim.group), GAVEL_OK);
    assert_string_equal(reply.record.holder, "o'ne\\");
    assert_true(reply.remaining_ms <= 40);
    (void)expect(two, ask_claim(claim.group, "two", 2, 0), GAVEL_ERR_CONFLICT);
    assert_true(expect(one, ask_renew(claim.group, "o'ne\\", 1, held.epoch), GAVEL_OK).record.version >
                held.version);
    reply = expect(two, ask_read(claim.group), GAVEL_OK);
    assert_in_range(reply.remaining_ms, 30000, 60000);
    claim = ask_claim(claim.group, "two", 2, reply.record.version);
    claim.must_be_expired = true;
    (void)expect(two, claim, GAVEL_ERR_CONFLICT);
    (void)expect(two, ask_wish(claim.group, held.epoch, "two"), GAVEL_OK);
    reply = expect(one, ask_release(claim.group, "o'ne\\", 1, held.epoch), GAVEL_OK);
    assert_string_equal(reply.record.wish_successor, "two");
    claim.expected_version = reply.record.version;
    assert_int_equal(expect(two, claim, GAVEL_OK).record.epoch, held.epoch + 1);
    (void)expect(one, ask_heartbeat(claim.group, "o'ne\\", 1, 1), GAVEL_OK);
    (void)expect(one, ask_heartbeat(claim.group, "o'ne\\", 1, 2), GAVEL_OK);
    assert_int_equal(store_call(two, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.registration_count, 1);
    assert_in_range(reply.registrations[0].age_ms, 0, 30000);
    store_reply_done(&reply);
    store_close(one);
    store_close(two);
}

static void test_settings_of_the_server_change_nothing(void **state)
{
    static const struct {
        const char *variable;
        const char *value;
        const char *otherwise;
    } settings[] = {
        {"autocommit", "0", "1"},
        {"tx_isolation", "'SERIALIZABLE'", "'REPEATABLE-READ'"},
        {"tx_isolation", "'READ-UNCOMMITTED'", "'REPEATABLE-READ'"},
        {"tx_read_only", "1", "0"},
        {"completion_type", "'CHAIN'", "'NO_CHAIN'"},
        {"sql_mode", "''", "DEFAULT"},
        {"sql_mode", "'ANSI,NO_BACKSLASH_ESCAPES,SIMULTANEOUS_ASSIGNMENT,PAD_CHAR_TO_FULL_LENGTH'",
         "DEFAULT"},
        {"time_zone", "'+12:45'", "'SYSTEM'"},
        {"sql_select_limit", "0", "DEFAULT"},
        {"character_set_server", "'latin1'", "DEFAULT"},
        {"init_connect", "'SET NAMES latin1'", "''"},
    };
    struct mysql_bench *b = *state;

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        (void)mysql_bench_next(state);
        mysql_bench_sql(b, "SET GLOBAL %s = %s", settings[i].variable, settings[i].value);
        live_through(b);
        mysql_bench_sql(b, "SET GLOBAL %s = %s", settings[i].variable, settings[i].otherwise);
    }
}

/* A zone whose clocks go back by an hour at that instant; it has no tables of zones otherwise. */
static void make_zone(struct mysql_bench *b, long long turn)
{
    mysql_bench_sql(b, "INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (7, 'N')");
    mysql_bench_sql(b, "INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Test/Summer', 7)");
    mysql_bench_sql(
        b, "INSERT INTO mysql.time_zone_transition_type VALUES (7, 0, 7200, 1, 'S'), (7, 1, 3600, 0, 'W')");
    mysql_bench_sql(b, "INSERT INTO mysql.time_zone_transition VALUES (7, 1, 0), (7, %lld, 1)", turn);
}

/*
 * The clock of a connection is stopped at an instant by what the server runs
 * for each new one of an ordinary user.
 */
static void test_leases_are_exact_at_every_edge_of_the_clock(void **state)
{
    static const char *const instants[] = {
        "1761440399.999999", /* 2025-10-26 00:59:59.999999 UTC: the hour from two to three begins again */
        "1761440400.000000", "1761440399.500000",
        "1761436800.000001", "1798761599.999999", /* the last instant of a year */
        "1709164799.999999",                      /* before the 29th of February */
        "1790000039.999999", "1790000040.000000", /* a minute's edge */
    };
    struct mysql_bench *b = *state;

    make_zone(b, 1761440400);
    mysql_bench_sql(b, "CREATE OR REPLACE USER plain@'%%' IDENTIFIED BY '" TEST_SERVER_PASSWORD "'");
    mysql_bench_sql(b, "GRANT ALL ON " MYSQL_BENCH_DATABASE ".* TO plain@'%%'");
    mysql_bench_sql(b, "SET GLOBAL time_zone = 'Test/Summer'");
    for (size_t i = 0; i < sizeof instants / sizeof *instants; i++) {
        struct store_request claim = ask_claim("g", "one", 1, 0);
        struct store *store = NULL;
        struct record held;
        char url[512];

        (void)mysql_bench_next(state);
        mysql_bench_sql(b, "SET GLOBAL init_connect = 'SET timestamp = %s'", instants[i]);
        (void)snprintf(url, sizeof url, "mysql://plain@127.0.0.1:%d/" MYSQL_BENCH_DATABASE "?table=%s",
                       b->server.port, b->table);
        assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
        claim.record.lease_ms = 90001;
        held = expect(store, claim, GAVEL_OK).record;
        assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).remaining_ms, 90001);
        assert_int_equal(
            mysql_bench_number(b, "SELECT ROUND((UNIX_TIMESTAMP(expires_at) - %s) * 1000000) FROM %s",
                               instants[i], b->table),
            90001000);
        (void)expect(store, ask_renew("g", "one", 1, held.epoch), GAVEL_OK);
        assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).remaining_ms, 60000);
        /* Neither a microsecond too early, nor one too late. */
        mysql_bench_sql(
            b, "UPDATE %s SET expires_at = FROM_UNIXTIME(%s + 0.000001), gavel_expires_at = expires_at",
            b->table, instants[i]);
        claim = ask_claim("g", "two", 2, expect(store, ask_read("g"), GAVEL_OK).record.version);
        claim.must_be_expired = true;
        (void)expect(store, claim, GAVEL_ERR_CONFLICT);
        mysql_bench_sql(b, "UPDATE %s SET expires_at = FROM_UNIXTIME(%s), gavel_expires_at = expires_at",
                        b->table, instants[i]);
        assert_int_equal(expect(store, claim, GAVEL_OK).record.epoch, held.epoch + 1);
        store_close(store);
    }
    mysql_bench_sql(b, "SET GLOBAL init_connect = ''");
    mysql_bench_sql(b, "SET GLOBAL time_zone = 'SYSTEM'");
}

/* A store whose connection sees that instant for ever. */
static struct store *open_at(struct mysql_bench *b, long long seconds)
{
    struct store *store = NULL;
    char url[512];

    mysql_bench_sql(b, "SET GLOBAL init_connect = 'SET timestamp = %lld'", seconds);
    (void)snprintf(url, sizeof url, "mysql://plain@127.0.0.1:%d/" MYSQL_BENCH_DATABASE "?table=%s",
                   b->server.port, b->table);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    mysql_bench_sql(b, "SET GLOBAL init_connect = ''");
    return store;
}

static void test_a_clock_that_was_set_back_blocks_nobody(void **state)
{
    enum { NOON = 1790000000 };
    struct mysql_bench *b = *state;
    struct store *before = open_at(b, NOON);
    struct store *after = open_at(b, NOON - 3600);
    struct store_request claim;
    struct record held = expect(before, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct store_reply seen = expect(after, ask_read("g"), GAVEL_OK);

    assert_true(seen.expired); /* as far as the server can tell; its standbys know better */
    claim = ask_claim("g", "two", 2, held.version);
    claim.must_be_expired = true;
    (void)expect(before, claim, GAVEL_ERR_CONFLICT);
    assert_int_equal(expect(after, claim, GAVEL_OK).record.epoch, held.epoch + 1);
    store_close(after);
    /* By less than it may take to begin a statement, nothing has happened. */
    after = open_at(b, NOON - 3601);
    seen = expect(after, ask_read("g"), GAVEL_OK);
    assert_false(seen.expired);
    assert_int_equal(seen.remaining_ms, 60000);
    store_close(after);
    store_close(before);
}

static int64_t count_of(struct mysql_bench *b, const char *variable)
{
    return mysql_bench_number(
        b, "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = '%s'",
        variable);
}

static void test_a_look_is_one_statement_and_a_renewal_one_round_trip(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    int64_t selects;
    int64_t updates;

    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    selects = count_of(b, "COM_SELECT");
    updates = count_of(b, "COM_UPDATE");
    for (int i = 0; i < 10; i++)
        (void)expect(store, ask_read("g"), GAVEL_OK);
    assert_int_equal(count_of(b, "COM_SELECT") - selects, 10 + 2); /* and these looks */
    assert_int_equal(count_of(b, "COM_UPDATE"), updates);
    selects = count_of(b, "COM_SELECT");
    for (int i = 0; i < 10; i++)
        (void)expect(store, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    assert_int_equal(count_of(b, "COM_SELECT") - selects, 10 + 1);
    assert_int_equal(count_of(b, "COM_UPDATE") - updates, 10);
    for (uint64_t i = 0; i < 10; i++)
        (void)expect(store, ask_heartbeat("g", "one", 1, i + 2), GAVEL_OK);
    assert_int_equal(count_of(b, "COM_UPDATE") - updates, 20);
    store_close(store);
}

/* Opens a store as a user of its own, who may do this with the table of mandates. */
static struct store *open_as(struct mysql_bench *b, const char *user, const char *rights)
{
    struct store *store = NULL;
    char url[512];

    mysql_bench_sql(b, "CREATE OR REPLACE USER %s@'%%' IDENTIFIED BY '" TEST_SERVER_PASSWORD "'", user);
    mysql_bench_sql(b, "GRANT %s ON %s TO %s@'%%'", rights, b->table, user);
    mysql_bench_sql(b, "GRANT ALL ON %s_epochs TO %s@'%%'", b->table, user);
    mysql_bench_sql(b, "GRANT ALL ON %s_candidates TO %s@'%%'", b->table, user);
    (void)snprintf(url, sizeof url, "mysql://%s@127.0.0.1:%d/" MYSQL_BENCH_DATABASE "?table=%s", user,
                   b->server.port, b->table);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    return store;
}

static void test_a_claim_that_was_refused_halfway_locks_nobody_out(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t version = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.version;
    struct store_request claim = ask_claim("g", "two", 2, version);
    struct store *half = open_as(b, "half", "SELECT, INSERT");
    struct store_reply reply;

    assert_int_equal(store_call(half, &claim, &reply), GAVEL_ERR_STORE_DENIED);
    store_reply_done(&reply);
    mysql_bench_sql(b, "SELECT * FROM %s_epochs WHERE lock_key = 'g' FOR UPDATE NOWAIT", b->table);
    store_close(half);
    store_close(store);
}

static void test_a_refusal_and_a_lost_connection_are_not_mistaken_for_the_end_of_a_mandate(void **state)
{
    struct mysql_bench *b = *state;
    struct store *first = mysql_bench_open(b, NULL, NULL);
    uint64_t epoch = expect(first, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    struct store_request renew = ask_renew("g", "one", 1, epoch);
    struct store *store = open_as(b, "small", "SELECT, INSERT, UPDATE");
    struct store_reply reply;

    mysql_bench_sql(b, "SET GLOBAL read_only = 1"); /* as before a planned fail-over */
    assert_int_equal(store_call(store, &renew, &reply), GAVEL_ERR_STORE_DENIED);
    store_reply_done(&reply);
    while (mysql_bench_number(b, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'small'") >
           0)
        mysql_bench_sql(b, "KILL USER small");
    mysql_bench_sql(b, "SET GLOBAL read_only = 0");
    assert_int_equal(expect(store, renew, GAVEL_OK).record.epoch, epoch);
    store_close(store);
    store_close(first);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mysql_bench_next)
    const struct CMUnitTest tests[] = {
        TEST(test_settings_of_the_server_change_nothing),
        TEST(test_leases_are_exact_at_every_edge_of_the_clock),
        TEST(test_a_clock_that_was_set_back_blocks_nobody),
        TEST(test_a_claim_that_was_refused_halfway_locks_nobody_out),
        TEST(test_a_refusal_and_a_lost_connection_are_not_mistaken_for_the_end_of_a_mandate),
        TEST(test_a_look_is_one_statement_and_a_renewal_one_round_trip),
    };

    return cmocka_run_group_tests_name("mysql settings", tests, mysql_bench_start, mysql_bench_stop);
}
