/* SPDX-License-Identifier: Apache-2.0 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MYSQL *connect_root(const struct test_server *server, const char *database)
{
    MYSQL *root = mysql_init(NULL);

    assert_non_null(root);
    if (!mysql_real_connect(root, NULL, "root", "", database, 0, server->socket, 0))
        fail_msg("%s: %s", server->socket, mysql_error(root));
    return root;
}

int mysql_bench_start(void **state)
{
    struct mysql_bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    test_server_start(&bench->server, TEST_MARIADB);
    test_server_make(&bench->server, MYSQL_BENCH_DATABASE);
    bench->root = connect_root(&bench->server, MYSQL_BENCH_DATABASE);
    *state = bench;
    return 0;
}

int mysql_bench_stop(void **state)
{
    struct mysql_bench *bench = *state;

    if (!bench)
        return 0; /* it did not start */
    mysql_close(bench->root);
    test_server_stop(&bench->server);
    free(bench);
    return 0;
}

int mysql_bench_next(void **state)
{
    struct mysql_bench *bench = *state;

    (void)snprintf(bench->table, sizeof bench->table, "t%d", bench->made++);
    return 0;
}

void mysql_bench_url(struct mysql_bench *bench, const char *address, const char *options, char *url,
                     size_t size)
{
    size_t used;

    test_server_url(&bench->server, MYSQL_BENCH_DATABASE, address, url, size);
    used = strlen(url);
    (void)snprintf(url + used, size - used, "%ctable=%s%s", strchr(url, '?') ? '&' : '?', bench->table,
                   options ? options : "");
}

struct store *mysql_bench_open(struct mysql_bench *bench, const char *address, const char *options)
{
    struct gavel_error error = {0};
    struct store *store = NULL;
    char url[512];

    mysql_bench_url(bench, address, options, url, sizeof url);
    if (store_open(url, &store, &error) != GAVEL_OK)
        fail_msg("%s: %s", url, error.message);
    return store;
}

void mysql_bench_refuse(const char *url, enum gavel_status status, const char *words)
{
    struct gavel_error error = {0};
    struct store *store = NULL;
    enum gavel_status got = store_open(url, &store, &error);

    if (!got)
        got = store_probe(store, &error);
    store_close(store);
    if (got != status || !strstr(error.message, words))
        print_error("%s: %s instead of %s: %s\n", url, gavel_status_name(got), gavel_status_name(status),
                    error.message);
    assert_int_equal(got, status);
    assert_non_null(strstr(error.message, words));
    assert_true(strlen(error.message) <= 255);
}

static void run(struct mysql_bench *bench, const char *sql)
{
    if (mysql_query(bench->root, sql))
        fail_msg("%s: %s", sql, mysql_error(bench->root));
}

void mysql_bench_sql(struct mysql_bench *bench, const char *format, ...)
{
    va_list arguments;
    char sql[2000];

    va_start(arguments, format);
    (void)vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    run(bench, sql);
    mysql_free_result(mysql_store_result(bench->root)); /* safe on none */
}

int64_t mysql_bench_number(struct mysql_bench *bench, const char *format, ...)
{
    va_list arguments;
    char sql[2000];
    MYSQL_RES *rows;
    MYSQL_ROW row;
    int64_t number;

    va_start(arguments, format);
    (void)vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    run(bench, sql);
    rows = mysql_store_result(bench->root);
    assert_non_null(rows);
    row = mysql_fetch_row(rows);
    assert_non_null(row);
    assert_non_null(row[0]);
    number = strtoll(row[0], NULL, 10);
    mysql_free_result(rows);
    return number;
}
