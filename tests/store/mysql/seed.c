/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lock table that many programs share, exactly as they make it:
 *
 *     CREATE TABLE locks (lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255) NOT NULL,
 *                         expires_at TIMESTAMP NOT NULL)
 *
 * in any character set and collation. Gavel uses it as it is, or refuses it with the one command that
 * migrates it; and neither an expiry that is no date nor a name that is no name blocks a group.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED                                                                                                 \
    "CREATE TABLE %s (lock_key VARCHAR(%d) PRIMARY KEY, owner_id VARCHAR(%d) NOT NULL,"                      \
    " expires_at %s NOT NULL) %s"

/* What the plain client says, word for word. */
#define PLAIN_CLAIM                                                                                          \
    "INSERT INTO %s (lock_key, owner_id, expires_at) VALUES ('g', '%s', NOW() + INTERVAL %d SECOND)"         \
    " ON DUPLICATE KEY UPDATE owner_id = IF(expires_at < NOW(), VALUES(owner_id), owner_id),"                \
    " expires_at = IF(expires_at < NOW(), VALUES(expires_at), expires_at)"
#define PLAIN_RENEW                                                                                          \
    "UPDATE %s SET expires_at = NOW() + INTERVAL %d SECOND WHERE lock_key = 'g' AND owner_id = '%s'"
#define LENIENT "SET SESSION sql_mode = ''"
#define STRICT "SET SESSION sql_mode = DEFAULT"

/* Character sets and collations that tables of such programs have. */
static const char *const kinds[] = {
    "",
    "CHARACTER SET latin1",
    "CHARACTER SET latin1 COLLATE latin1_general_cs",
    "CHARACTER SET latin1 COLLATE latin1_bin",
    "CHARACTER SET ascii",
    "CHARACTER SET utf8mb3",
    "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
    "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CHARACTER SET ucs2",
    "CHARACTER SET binary",
};

/* A whole life of a group, with a program of three columns in between. */
static void live(struct mysql_bench *b, struct store *store)
{
    struct store_request claim;
    struct store_reply reply;
    struct record record;
    uint64_t epoch;

    epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    mysql_bench_sql(b, PLAIN_CLAIM, b->table, "plain", 100); /* it is held */
    (void)expect(store, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    assert_string_equal(expect(store, ask_read("g"), GAVEL_OK).record.holder, "one");
    (void)expect(store, ask_release("g", "one", 1, epoch), GAVEL_OK);
    mysql_bench_sql(b, PLAIN_CLAIM, b->table, "plain", 100);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_string_equal(reply.record.holder, "plain");
    assert_true(reply.record.held);
    assert_false(reply.expired);
    assert_int_equal(reply.record.epoch, epoch + 1);
    claim = ask_claim("g", "one", 2, reply.record.version);
    claim.must_be_expired = true;
    (void)expect(store, claim, GAVEL_ERR_CONFLICT);
    mysql_bench_sql(b, PLAIN_RENEW, b->table, 200, "plain");
    record = expect(store, ask_read("g"), GAVEL_OK).record;
    assert_int_equal(record.epoch, epoch + 1);
    assert_true(record.version > reply.record.version);
    mysql_bench_sql(b, PLAIN_RENEW, b->table, -2, "plain");
    claim.expected_version = expect(store, ask_read("g"), GAVEL_OK).record.version;
    assert_int_equal(expect(store, claim, GAVEL_OK).record.epoch, epoch + 2);
    mysql_bench_sql(b, PLAIN_CLAIM, b->table, "plain", 100);
    assert_string_equal(expect(store, ask_read("g"), GAVEL_OK).record.holder, "one");
    (void)expect(store, ask_renew("g", "one", 2, epoch + 2), GAVEL_OK);
}

static void test_a_table_of_any_collation_is_used_as_it_is(void **state)
{
    struct mysql_bench *b = *state;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct gavel_error error = {0};
        struct store *store;

        (void)mysql_bench_next(state);
        mysql_bench_sql(b, SEED, b->table, 255, 255, "TIMESTAMP(6)", kinds[i]);
        store = mysql_bench_open(b, NULL, NULL);
        if (store_probe(store, &error) != GAVEL_OK)
            fail_msg("%s: %s", kinds[i], error.message);
        live(b, store);
        store_close(store);
    }
}

/* The command that the refusal of this URL prints, as its words. */
static void expect_refusal(struct mysql_bench *b)
{
    char words[600];
    char url[512];

    mysql_bench_url(b, NULL, NULL, url, sizeof url);
    (void)snprintf(words, sizeof words, "run `gavel store migrate '%s'`", url);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_UNSUPPORTED, words);
}

static void test_the_seeds_table_is_migrated_by_the_command_that_the_refusal_prints(void **state)
{
    static const char *const expiries[] = {"TIMESTAMP", "TIMESTAMP(3)", "DATETIME", "DATETIME(6)"};
    struct mysql_bench *b = *state;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds + 3; i++) {
        const char *kind = kinds[i % (sizeof kinds / sizeof *kinds)];
        const char *expiry = i < sizeof kinds / sizeof *kinds ? "TIMESTAMP" : expiries[i % 4];
        struct gavel_error error = {0};
        char *told = NULL;
        struct store *store;
        struct store_reply reply;

        (void)mysql_bench_next(state);
        mysql_bench_sql(b, SEED, b->table, i % 2 ? 255 : 64, i % 2 ? 255 : 100, expiry, kind);
        mysql_bench_sql(b, "INSERT INTO %s VALUES ('before', 'plain', NOW() + INTERVAL 1000 SECOND)",
                        b->table);
        mysql_bench_sql(b, LENIENT);
        mysql_bench_sql(b, "INSERT INTO %s VALUES ('zero', 'plain', 0)", b->table);
        mysql_bench_sql(b, STRICT);
        expect_refusal(b);
        store = mysql_bench_open(b, NULL, NULL);
        if (store_migrate(store, &told, &error) != GAVEL_OK)
            fail_msg("%s %s: %s", expiry, kind, error.message);
        assert_non_null(told);
        free(told);
        if (store_probe(store, &error) != GAVEL_OK)
            fail_msg("%s %s: %s", expiry, kind, error.message);
        reply = expect(store, ask_read("before"), GAVEL_OK);
        assert_string_equal(reply.record.holder, "plain");
        assert_in_range(reply.remaining_ms, 800000, 1000000);
        live(b, store);
        told = NULL;
        assert_int_equal(store_migrate(store, &told, &error), GAVEL_OK); /* once is enough */
        assert_null(told);
        store_close(store);
    }
}

static void test_a_table_without_its_key_or_engine_is_migrated_too(void **state)
{
    static const char *const definitions[] = {
        "(lock_key VARCHAR(99), owner_id VARCHAR(99), expires_at TIMESTAMP)",
        "(lock_key VARCHAR(99), owner_id VARCHAR(99), expires_at TIMESTAMP, PRIMARY KEY (lock_key, "
        "owner_id))",
        "(lock_key VARCHAR(99) PRIMARY KEY, owner_id VARCHAR(99), expires_at TIMESTAMP) ENGINE=MyISAM",
        "(lock_key VARCHAR(64) PRIMARY KEY, owner_id VARCHAR(64), expires_at TIMESTAMP) ENGINE=InnoDB"
        " ROW_FORMAT=COMPACT CHARACTER SET latin1",
    };
    struct mysql_bench *b = *state;

    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++) {
        struct gavel_error error = {0};
        char *told = NULL;
        struct store *store;

        (void)mysql_bench_next(state);
        mysql_bench_sql(b, "CREATE TABLE %s %s", b->table, definitions[i]);
        expect_refusal(b);
        store = mysql_bench_open(b, NULL, NULL);
        if (store_migrate(store, &told, &error) != GAVEL_OK)
            fail_msg("%s: %s", definitions[i], error.message);
        free(told);
        assert_int_equal(store_probe(store, &error), GAVEL_OK);
        live(b, store);
        store_close(store);
    }
}

/* `NOW() + 10` is a number; where its last two digits are no second, it is stored as 0000-00-00. */
static void test_a_zero_date_is_waited_for_as_long_as_the_lease_before_it(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply reply;
    gavel_ns began;

    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    claim.record.lease_ms = 700;
    (void)expect(store, claim, GAVEL_OK);
    mysql_bench_sql(b, LENIENT);
    mysql_bench_sql(b, "UPDATE %s SET owner_id = 'plain', expires_at = 20261117031955 + 10", b->table);
    mysql_bench_sql(b, STRICT);
    assert_int_equal(mysql_bench_number(b, "SELECT expires_at = 0 FROM %s", b->table), 1);
    began = clock_now();
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_string_equal(reply.record.holder, "plain");
    assert_true(reply.record.held);
    assert_int_equal(reply.record.lease_ms, 700);
    assert_int_equal(reply.record.epoch, 2);
    claim.record.nonce.low++;
    claim.must_be_expired = true;
    for (;;) {
        struct store_reply answer = {0};

        claim.expected_version = reply.record.version;
        claim.give_up_at = clock_now() + 20 * NS_PER_S;
        if (store_call(store, &claim, &answer) == GAVEL_OK) {
            assert_int_equal(answer.record.epoch, 3);
            assert_true(clock_now() - began >= 690 * NS_PER_MS);
            break;
        }
        assert_int_equal(answer.status, GAVEL_ERR_CONFLICT); /* it waits, and has no error */
    }
    store_close(store);
}

static void test_an_expiry_that_was_never_a_date_does_not_block_a_group(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store;
    struct store_reply reply;

    mysql_bench_sql(
        b,
        "CREATE TABLE %s (lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255) NOT NULL, expires_at"
        " TIMESTAMP(6) NULL)",
        b->table);
    mysql_bench_sql(b, LENIENT);
    mysql_bench_sql(b, "INSERT INTO %s VALUES ('g', 'plain', 0), ('h', 'plain', NULL)", b->table);
    mysql_bench_sql(b, STRICT);
    store = mysql_bench_open(b, NULL, NULL);
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    for (const char *group = "g"; group; group = *group == 'g' ? "h" : NULL) {
        reply = expect(store, ask_read(group), GAVEL_OK);
        assert_string_equal(reply.record.holder, "plain");
        assert_true(reply.record.held);
        assert_false(reply.expired);
        assert_in_range(reply.remaining_ms, 1, 60000); /* nobody knows which lease: a long one */
        mysql_bench_sql(b, "UPDATE %s SET renewed = NOW(6) - INTERVAL 61 SECOND, expires_at = expires_at",
                        b->table);
        assert_true(expect(store, ask_read(group), GAVEL_OK).expired);
    }
    reply = expect(store, ask_claim("g", "one", 1, expect(store, ask_read("g"), GAVEL_OK).record.version),
                   GAVEL_OK);
    assert_int_equal(reply.record.epoch, 2);
    store_close(store);
}

/* Anybody who may write to the table can put anything there. */
static void test_names_of_others_do_not_reach_a_terminal_as_they_are(void **state)
{
    struct mysql_bench *b = *state;
    struct store_request list = {.op = STORE_GROUPS};
    struct store *store;
    struct store_reply reply;

    mysql_bench_sql(b, SEED, b->table, 255, 255, "TIMESTAMP(6)", "CHARACTER SET latin1");
    mysql_bench_sql(
        b,
        "INSERT INTO %s VALUES ('g', CONCAT('p', CHAR(27), '[2J', CHAR(10)), NOW() + INTERVAL 100 SECOND),"
        " (CONCAT('bad', CHAR(27)), 'plain', NOW() + INTERVAL 100 SECOND)",
        b->table);
    store = mysql_bench_open(b, NULL, NULL);
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    mysql_bench_sql(b, "UPDATE %s_candidates SET id = CONCAT('c', CHAR(7)), address = CHAR(27)", b->table);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_string_equal(reply.record.holder, "p?[2J?");
    list.give_up_at = clock_now() + 20 * NS_PER_S;
    assert_int_equal(store_call(store, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, 1);
    assert_string_equal(reply.groups[0].record.holder, "p?[2J?");
    store_reply_done(&reply);
    list = (struct store_request){.op = STORE_CANDIDATES, .group = "g", .candidate_timeout_ms = 60000};
    list.give_up_at = clock_now() + 20 * NS_PER_S;
    assert_int_equal(store_call(store, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.registration_count, 0);
    store_reply_done(&reply);
    store_close(store);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mysql_bench_next)
    const struct CMUnitTest tests[] = {
        TEST(test_a_table_of_any_collation_is_used_as_it_is),
        TEST(test_the_seeds_table_is_migrated_by_the_command_that_the_refusal_prints),
        TEST(test_a_table_without_its_key_or_engine_is_migrated_too),
        TEST(test_a_zero_date_is_waited_for_as_long_as_the_lease_before_it),
        TEST(test_an_expiry_that_was_never_a_date_does_not_block_a_group),
        TEST(test_names_of_others_do_not_reach_a_terminal_as_they_are),
    };

    return cmocka_run_group_tests_name("mysql seed", tests, mysql_bench_start, mysql_bench_stop);
}
