/* SPDX-License-Identifier: Apache-2.0 */

/* Opening a store in MariaDB: what a wrong URL, user, server or table is told, and what is put right. */
#include "bench.h"
#include "store/mysql/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREE_COLUMNS                                                                                        \
    "CREATE TABLE %s (lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255) NOT NULL, expires_at %s)"

#define CONNECTIONS                                                                                          \
    "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'CONNECTIONS'"

/* A URL of the present tables for another user of the server. */
static void url_of(struct mysql_bench *b, const char *user, char *url, size_t size)
{
    (void)snprintf(url, size, "mysql://%s@127.0.0.1:%d/" MYSQL_BENCH_DATABASE "?table=%s", user,
                   b->server.port, b->table);
}

/* A user with the same password who may only do that to what the test uses. */
static void make_user(struct mysql_bench *b, const char *user, const char *rights, const char *table)
{
    mysql_bench_sql(b, "CREATE OR REPLACE USER %s@'%%' IDENTIFIED BY '" TEST_SERVER_PASSWORD "'", user);
    mysql_bench_sql(b, "GRANT %s ON " MYSQL_BENCH_DATABASE ".%s TO %s@'%%'", rights, table, user);
}

static void test_a_url_that_makes_no_sense_is_refused(void **state)
{
    static const struct {
        const char *url;
        const char *words;
    } bad[] = {
        {"mysql:", "two slashes"},
        {"mysql://", "no name"},
        {"mysql://h", "database"},
        {"mysql://h/", "database"},
        {"mysql://h/a/b", "database"},
        {"mysql://u:secret@h/d", "password"},
        {"mysql://h1,h2/d", "too many hosts"},
        {"mysql://h/d?table=", "not a valid name for the table"},
        {"mysql://h/d?table=a%60b", "not a valid name for the table"},
        {"mysql://h/d?table=123456789012345678901234567890123456789012345678901", "not a valid name for the "
                                                                                  "table"},
        {"mysql://h/d?tls=perhaps", "neither yes nor no"},
        {"mysql://h/d?tls=off&ca=/f", "do not go together"},
        {"mysql://h/d?cert=/f", "belong together"},
        {"mysql://h/d?socket=", "names no file"},
        {"mysql://h/d?socket=/s&tls=on", "needs no TLS"},
        {"mysql://h/d?password=x", "has no option"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        mysql_bench_refuse(bad[i].url, GAVEL_ERR_INVALID, bad[i].words);
}

static void test_no_server_is_told_at_once(void **state)
{
    gavel_ns began = clock_now();

    (void)state;
    mysql_bench_refuse("mysql://gavel@127.0.0.1:1/d", GAVEL_ERR_STORE_UNAVAILABLE, "cannot be reached");
    mysql_bench_refuse("mysql://gavel@localhost/d?socket=/nowhere/sock", GAVEL_ERR_STORE_UNAVAILABLE,
                       "/nowhere/sock");
    /* A name without an address, or without a name server. */
    mysql_bench_refuse("mysql://gavel@nowhere.invalid/d?tls=off", GAVEL_ERR_STORE_UNAVAILABLE,
                       "nowhere.invalid");
    assert_true(clock_now() - began < 60 * NS_PER_S);
}

static void test_a_wrong_password_and_an_unknown_database_are_told_apart(void **state)
{
    struct mysql_bench *b = *state;
    char url[512];

    url_of(b, "nobody", url, sizeof url);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "GAVEL_MYSQL_PASSWORD");
    (void)snprintf(url, sizeof url, "mysql://" TEST_SERVER_USER "@127.0.0.1:%d/nodb", b->server.port);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_UNAVAILABLE, "no database \"nodb\"");
    assert_int_equal(setenv("GAVEL_MYSQL_PASSWORD", "wrong", 1), 0);
    mysql_bench_url(b, NULL, NULL, url, sizeof url);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED,
                       "does not let us in: Access denied for user '" TEST_SERVER_USER "'");
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "then try `gavel store ping`");
    assert_int_equal(setenv("GAVEL_MYSQL_PASSWORD", TEST_SERVER_PASSWORD, 1), 0);
    make_user(b, "elsewhere", "SELECT", "*");
    (void)snprintf(url, sizeof url, "mysql://elsewhere@127.0.0.1:%d/mysql", b->server.port);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "not open to this user");
}

static void test_without_the_right_to_make_tables_the_next_step_is_named(void **state)
{
    struct mysql_bench *b = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply reply;
    struct store *store = NULL;
    char url[512];

    make_user(b, "small", "SELECT, INSERT, UPDATE, DELETE", "*");
    url_of(b, "small", url, sizeof url);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "gavel store sql mysql");
    /* Who did not ask beforehand is told by the first claim; there is nothing to read. */
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    assert_false(expect(store, ask_read("g"), GAVEL_OK).found);
    assert_int_equal(store_call(store, &claim, &reply), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(reply.message, "gavel store sql mysql"));
    store_close(store);
}

/* Each is refused by the probe, with the words of the server and the next step, and nothing is changed. */
static void test_without_the_right_to_write_the_probe_refuses(void **state)
{
    static const struct {
        const char *table; /* its suffix */
        const char *rights;
        const char *words;
    } lacking[] = {
        {"", "SELECT", "INSERT"},
        {"", "SELECT, INSERT", "UPDATE"},
        {"_epochs", "SELECT, INSERT", "UPDATE"},
        {"_candidates", "SELECT", "INSERT"},
        {"_candidates", "SELECT, INSERT, UPDATE", "DELETE"},
    };
    static const char *const suffixes[] = {"", "_epochs", "_candidates"};
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    char words[90];
    char url[512];

    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    url_of(b, "small", url, sizeof url);
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        mysql_bench_sql(b, "CREATE OR REPLACE USER small@'%%' IDENTIFIED BY '" TEST_SERVER_PASSWORD "'");
        for (size_t j = 0; j < 3; j++)
            mysql_bench_sql(b, "GRANT %s ON " MYSQL_BENCH_DATABASE ".%s%s TO small@'%%'",
                            strcmp(suffixes[j], lacking[i].table) == 0 ? lacking[i].rights
                                                                       : "SELECT, INSERT, UPDATE, DELETE",
                            b->table, suffixes[j]);
        (void)snprintf(words, sizeof words, "%s command denied", lacking[i].words);
        mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, words);
        (void)snprintf(words, sizeof words, "; grant what `gavel store sql mysql --table %s`", b->table);
        mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, words);
    }
    assert_int_equal(mysql_bench_number(b, "SELECT COUNT(*) FROM %s", b->table), 0);
    assert_int_equal(mysql_bench_number(b, "SELECT COUNT(*) FROM %s_epochs", b->table), 0);
    assert_int_equal(mysql_bench_number(b, "SELECT COUNT(*) FROM %s_candidates", b->table), 1);
    store_close(store);
}

static void test_without_any_right_to_a_table_the_next_step_is_named(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    char url[512];

    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    store_close(store);
    make_user(b, "blind", "SELECT, INSERT, UPDATE, DELETE", b->table);
    mysql_bench_sql(b, "GRANT SELECT, INSERT, UPDATE ON " MYSQL_BENCH_DATABASE ".%s_epochs TO blind@'%%'",
                    b->table);
    url_of(b, "blind", url, sizeof url);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "run what `gavel store sql mysql --table ");
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "with its grants");
}

static void test_what_an_administrator_is_given_to_run_is_enough(void **state)
{
    struct mysql_bench *b = *state;
    struct gavel_error error;
    char *sql = NULL;
    char *end;
    char url[512];
    struct store *store = NULL;

    assert_int_equal(mysql_schema_sql("a;b", &sql, &error), GAVEL_ERR_INVALID);
    assert_int_equal(mysql_schema_sql(b->table, &sql, &error), GAVEL_OK);
    end = strstr(sql, "-- On MySQL");
    assert_non_null(end);
    *end = '\0';
    mysql_bench_sql(b, "CREATE DATABASE made");
    assert_int_equal(mysql_select_db(b->root, "made"), 0);
    test_server_sql(&b->server, "USE made"); /* the statements are run as a person would */
    {
        char *whole = NULL;

        assert_true(asprintf(&whole, "USE made; %s", sql) > 0);
        test_server_sql(&b->server, whole);
        free(whole);
    }
    assert_int_equal(mysql_select_db(b->root, MYSQL_BENCH_DATABASE), 0);
    free(sql);
    mysql_bench_sql(b, "CREATE USER given@'%%' IDENTIFIED BY '" TEST_SERVER_PASSWORD "'");
    for (int i = 0; i < 3; i++) {
        static const char *const suffixes[] = {"", "_epochs", "_candidates"};

        mysql_bench_sql(b, "GRANT SELECT, INSERT, UPDATE, DELETE ON made.%s%s TO given@'%%'", b->table,
                        suffixes[i]);
    }
    (void)snprintf(url, sizeof url, "mysql://given@127.0.0.1:%d/made?table=%s", b->server.port, b->table);
    assert_int_equal(store_open(url, &store, &error), GAVEL_OK);
    assert_int_equal(store_probe(store, &error), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    (void)expect(store, ask_release("g", "one", 1, 0), GAVEL_OK);
    store_close(store);
}

static void test_a_read_only_server_says_so_and_can_be_looked_at(void **state)
{
    struct mysql_bench *b = *state;
    struct store_reply reply;
    struct store_request claim = ask_claim("h", "one", 1, 0);
    struct store *store = mysql_bench_open(b, NULL, NULL);
    struct store *small = NULL;
    char url[512];

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    make_user(b, "small", "SELECT, INSERT, UPDATE, DELETE, CREATE", "*");
    url_of(b, "small", url, sizeof url);
    assert_int_equal(store_open(url, &small, NULL), GAVEL_OK);
    mysql_bench_sql(b, "SET GLOBAL read_only = 1");
    mysql_bench_sql(b, "UPDATE %s SET owner_id = 'foreign'", b->table); /* root may; it is not absorbed */
    assert_int_equal(store_call(small, &claim, &reply), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(reply.message, "read-only"));
    assert_string_equal(expect(small, ask_read("g"), GAVEL_OK).record.holder, "foreign");
    mysql_bench_sql(b, "SET GLOBAL read_only = 0");
    (void)expect(small, claim, GAVEL_OK); /* without opening it again */
    store_close(small);
    store_close(store);
}

static void test_a_table_of_three_columns_is_completed(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store;
    struct store_reply reply;

    mysql_bench_sql(b, THREE_COLUMNS, b->table, "TIMESTAMP(6) NOT NULL");
    mysql_bench_sql(b, "INSERT INTO %s VALUES ('g', 'foreign', NOW(6) + INTERVAL 1 HOUR)", b->table);
    store = mysql_bench_open(b, NULL, NULL);
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_string_equal(reply.record.holder, "foreign");
    assert_true(reply.record.held);
    assert_int_equal(reply.record.epoch, 1);
    assert_in_range(reply.remaining_ms, 3000000, 3600000);
    (void)expect(store, ask_claim("h", "one", 1, 0), GAVEL_OK);
    store_close(store);
}

static void test_a_table_of_an_older_gavel_gets_what_it_lacks_on_first_use(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    mysql_bench_sql(b, "ALTER TABLE %s DROP COLUMN wish_epoch, DROP COLUMN metadata", b->table);
    mysql_bench_sql(b, "DROP TABLE %s_epochs", b->table);
    assert_int_equal(expect(store, ask_renew("g", "one", 1, epoch), GAVEL_OK).record.epoch, epoch);
    assert_int_equal(expect(store,
                            ask_claim("g", "two", 2, expect(store, ask_read("g"), GAVEL_OK).record.version),
                            GAVEL_OK)
                         .record.epoch,
                     epoch + 1);
    store_close(store);
}

static void test_without_the_right_to_add_columns_the_next_step_is_named(void **state)
{
    struct mysql_bench *b = *state;
    struct store_request read = ask_read("g");
    struct store_reply reply;
    struct store *store = NULL;
    char url[512];

    mysql_bench_sql(b, THREE_COLUMNS, b->table, "TIMESTAMP(6) NOT NULL");
    make_user(b, "small", "SELECT, INSERT, UPDATE, DELETE, CREATE", "*");
    url_of(b, "small", url, sizeof url);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "gavel store sql mysql");
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    assert_int_equal(store_call(store, &read, &reply), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(reply.message, "gavel store sql mysql"));
    store_close(store);
}

static void test_tables_that_cannot_keep_the_promise_are_refused(void **state)
{
    struct mysql_bench *b = *state;
    static const struct {
        const char *definition;
        const char *words;
    } bad[] = {
        {"(a INT PRIMARY KEY)", "no column lock_key"},
        {"(lock_key VARCHAR(255), owner_id VARCHAR(255), expires_at TIMESTAMP(6))", "primary key"},
        {"(lock_key VARCHAR(99), owner_id VARCHAR(99), expires_at TIMESTAMP(6), PRIMARY KEY (lock_key, "
         "owner_id))",
         "primary key"},
        {"(lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255), expires_at DATETIME(6))",
         "is datetime(6) and must be TIMESTAMP(6)"},
        {"(lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255), expires_at TIMESTAMP)", "is timestamp"},
        {"(lock_key VARCHAR(200) PRIMARY KEY, owner_id VARCHAR(255), expires_at TIMESTAMP(6)) ENGINE=MyISAM",
         "engine MyISAM"},
    };
    char url[512];

    mysql_bench_url(b, NULL, NULL, url, sizeof url);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mysql_bench_sql(b, "CREATE OR REPLACE TABLE %s %s", b->table, bad[i].definition);
        mysql_bench_refuse(url, GAVEL_ERR_STORE_UNSUPPORTED, bad[i].words);
    }
    mysql_bench_sql(b,
                    "CREATE OR REPLACE TABLE %s (lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255), "
                    "expires_at TIMESTAMP(6))",
                    b->table);
    mysql_bench_sql(b,
                    "CREATE TABLE %s_epochs (lock_key VARCHAR(200) PRIMARY KEY, epoch BIGINT) ENGINE=MyISAM",
                    b->table);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_UNSUPPORTED, "_epochs is of the engine MyISAM");
    mysql_bench_refuse(url, GAVEL_ERR_STORE_UNSUPPORTED, "gavel store migrate");
}

static void test_names_that_a_collation_makes_one_are_not_mixed_up(void **state)
{
    struct mysql_bench *b = *state;
    struct store_request claim = ask_claim("Web", "two", 2, 0);
    struct store *store;
    struct store_reply reply;

    mysql_bench_sql(b, THREE_COLUMNS " CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", b->table,
                    "TIMESTAMP(6) NOT NULL");
    store = mysql_bench_open(b, NULL, NULL);
    (void)expect(store, ask_claim("web", "one", 1, 0), GAVEL_OK);
    assert_int_equal(store_call(store, &claim, &reply), GAVEL_ERR_STORE_UNSUPPORTED);
    assert_non_null(strstr(reply.message, "collation"));
    claim.expected_version = expect(store, ask_read("web"), GAVEL_OK).record.version;
    assert_int_equal(store_call(store, &claim, &reply), GAVEL_ERR_STORE_UNSUPPORTED);
    assert_string_equal(expect(store, ask_read("web"), GAVEL_OK).record.holder, "one");
    store_close(store);
}

static void test_names_that_differ_in_case_or_blanks_are_different(void **state)
{
    static const char *const names[] = {"web", "Web", "web ", " web",
                                        "w\xc3\xa9"
                                        "b"};
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)expect(store, ask_claim(names[i], names[i], i, 0), GAVEL_OK);
        (void)expect(store, ask_heartbeat("g", names[i], i + 1, 1), GAVEL_OK);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(expect(store, ask_read(names[i]), GAVEL_OK).record.holder, names[i]);
    store_close(store);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_user_and_password_come_from_an_option_file(void **state)
{
    struct mysql_bench *b = *state;
    char path[150];
    char url[512];
    char options[200];
    struct store *store;

    mysql_bench_sql(b, "CREATE OR REPLACE USER filed@'%%' IDENTIFIED BY 'it''s \\\\#1 '");
    mysql_bench_sql(b, "GRANT ALL ON " MYSQL_BENCH_DATABASE ".* TO filed@'%%'");
    (void)snprintf(path, sizeof path, "%s/my.cnf", b->server.directory);
    write_file(path, "# a comment\n[mysqld]\npassword=wrong\n[client]\n; another\nuser = filed\n"
                     "password=\"it's \\\\#1\\s\"\n[other]\npassword=wrong\n");
    (void)snprintf(options, sizeof options, "&options=%s", path);
    (void)snprintf(url, sizeof url, "mysql://127.0.0.1:%d/" MYSQL_BENCH_DATABASE "?table=%s%s",
                   b->server.port, b->table, options);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK); /* what the URL names beats the environment */
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    store_close(store);
    write_file(path, "[client]\npassword=wrong\n");
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "does not let us in");
    assert_int_equal(unlink(path), 0);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "cannot be read");
}

static void test_an_option_file_that_names_nobody_is_refused(void **state)
{
    static const char *const texts[] = {"", "user = gavel\npassword = x\n", "[mysqld]\nuser = gavel\n",
                                        "[client]\nport = 3306\nuser =\n"};
    struct mysql_bench *b = *state;
    struct store *store = NULL;
    char path[150];
    char url[512];

    (void)snprintf(path, sizeof path, "%s/nobody.cnf", b->server.directory);
    (void)snprintf(url, sizeof url, "mysql://127.0.0.1:%d/" MYSQL_BENCH_DATABASE "?table=%s&options=%s",
                   b->server.port, b->table, path);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file(path, texts[i]);
        mysql_bench_refuse(url, GAVEL_ERR_INVALID, "nobody.cnf has no user and no password below [client]");
    }
    /* While it runs, such a file is one that is being rewritten. */
    write_file(path, "[client]\nuser = " TEST_SERVER_USER "\npassword = " TEST_SERVER_PASSWORD "\n");
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    write_file(path, "");
    mysql_bench_sql(b, "KILL USER " TEST_SERVER_USER);
    (void)expect(store, ask_claim("h", "one", 1, 0), GAVEL_ERR_STORE_DENIED);
    write_file(path, "[client]\nuser = " TEST_SERVER_USER "\npassword = " TEST_SERVER_PASSWORD "\n");
    (void)expect(store, ask_claim("h", "one", 1, 0), GAVEL_OK);
    store_close(store);
    assert_int_equal(unlink(path), 0);
}

/* A pipe would keep whoever opens it waiting for a writer. */
static void test_an_option_file_that_is_no_file_is_refused_at_once(void **state)
{
    struct mysql_bench *b = *state;
    char path[150];
    char url[512];

    (void)snprintf(path, sizeof path, "%s/pipe.cnf", b->server.directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(url, sizeof url, "mysql://127.0.0.1:%d/" MYSQL_BENCH_DATABASE "?table=%s&options=%s",
                   b->server.port, b->table, path);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "it is a pipe");
    assert_int_equal(unlink(path), 0);
}

/* A program may change its environment at any time, in another thread. */
static void test_the_environment_is_read_when_the_store_is_opened(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(setenv("GAVEL_MYSQL_PASSWORD", "wrong", 1), 0);
    mysql_bench_sql(b, "KILL USER " TEST_SERVER_USER);
    (void)expect(store, ask_renew("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(setenv("GAVEL_MYSQL_PASSWORD", TEST_SERVER_PASSWORD, 1), 0);
    store_close(store);
}

static void test_by_a_socket_of_this_host(void **state)
{
    struct mysql_bench *b = *state;
    char url[512];
    struct store *store;

    (void)snprintf(url, sizeof url, "mysql://%s@localhost/" MYSQL_BENCH_DATABASE "?table=%s&socket=%s",
                   "root", b->table, b->server.socket);
    assert_int_equal(unsetenv("GAVEL_MYSQL_PASSWORD"), 0);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    assert_int_equal(setenv("GAVEL_MYSQL_PASSWORD", TEST_SERVER_PASSWORD, 1), 0);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    store_close(store);
}

static void test_with_tls_the_server_must_prove_who_it_is(void **state)
{
    struct mysql_bench *b = *state;
    int64_t made;
    char options[200];
    char url[512];
    struct store *store;

    (void)snprintf(options, sizeof options, "&ca=%s", b->server.ca);
    store = mysql_bench_open(b, b->server.tls_address, options);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    made = mysql_bench_number(b, CONNECTIONS);
    for (int i = 0; i < 5; i++)
        (void)expect(store, ask_renew("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(mysql_bench_number(b, CONNECTIONS), made); /* all by the same */
    store_close(store);
    mysql_bench_url(b, b->server.tls_address, "&tls=on", url,
                    sizeof url); /* an authority that nobody knows */
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "no TLS");
    assert_int_equal(setenv("SSL_CERT_FILE", b->server.ca, 1), 0); /* one that this host trusts */
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    store_close(store);
    assert_int_equal(unsetenv("SSL_CERT_FILE"), 0);
    mysql_bench_url(b, b->server.tls_address, "&ca=/nowhere", url, sizeof url);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "no TLS");
    /* Who must come with TLS is let in with it only. */
    mysql_bench_sql(b,
                    "CREATE OR REPLACE USER safe@'%%' IDENTIFIED BY '" TEST_SERVER_PASSWORD "' REQUIRE SSL");
    mysql_bench_sql(b, "GRANT ALL ON " MYSQL_BENCH_DATABASE ".* TO safe@'%%'");
    url_of(b, "safe", url, sizeof url);
    mysql_bench_refuse(url, GAVEL_ERR_STORE_DENIED, "does not let us in");
    (void)snprintf(url + strlen(url), sizeof url - strlen(url), "%s", options);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_read("g"), GAVEL_OK);
    store_close(store);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mysql_bench_next)
    const struct CMUnitTest tests[] = {
        TEST(test_a_url_that_makes_no_sense_is_refused),
        TEST(test_no_server_is_told_at_once),
        TEST(test_a_wrong_password_and_an_unknown_database_are_told_apart),
        TEST(test_without_the_right_to_make_tables_the_next_step_is_named),
        TEST(test_without_the_right_to_write_the_probe_refuses),
        TEST(test_without_any_right_to_a_table_the_next_step_is_named),
        TEST(test_what_an_administrator_is_given_to_run_is_enough),
        TEST(test_a_read_only_server_says_so_and_can_be_looked_at),
        TEST(test_a_table_of_three_columns_is_completed),
        TEST(test_a_table_of_an_older_gavel_gets_what_it_lacks_on_first_use),
        TEST(test_without_the_right_to_add_columns_the_next_step_is_named),
        TEST(test_tables_that_cannot_keep_the_promise_are_refused),
        TEST(test_names_that_a_collation_makes_one_are_not_mixed_up),
        TEST(test_names_that_differ_in_case_or_blanks_are_different),
        TEST(test_user_and_password_come_from_an_option_file),
        TEST(test_an_option_file_that_names_nobody_is_refused),
        TEST(test_an_option_file_that_is_no_file_is_refused_at_once),
        TEST(test_the_environment_is_read_when_the_store_is_opened),
        TEST(test_by_a_socket_of_this_host),
        TEST(test_with_tls_the_server_must_prove_who_it_is),
    };

    return cmocka_run_group_tests_name("mysql open", tests, mysql_bench_start, mysql_bench_stop);
}
