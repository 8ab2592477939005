/* SPDX-License-Identifier: Apache-2.0 */

/* A MariaDB for the tests of the driver `mysql`, and a look at it from outside. */
#ifndef TESTS_STORE_MYSQL_BENCH_H
#define TESTS_STORE_MYSQL_BENCH_H

#include "servers/server.h"
#include "store/conformance/conformance.h"

#include <mysql.h>

#define MYSQL_BENCH_DATABASE "bench"

struct mysql_bench {
    struct test_server server;
    MYSQL *root; /* a connection that may do everything, in the database of the tests */
    int made;    /* tables */
    char table[20];
};

/* For cmocka's groups and tests: one server for all, tables of its own for each test. */
int mysql_bench_start(void **state);
int mysql_bench_stop(void **state);
int mysql_bench_next(void **state);

/* The tables of the present test, with further options of the URL ("&tls=on"), by another address if not
 * NULL.
 */
void mysql_bench_url(struct mysql_bench *bench, const char *address, const char *options, char *url,
                     size_t size);

/* Opens a store there; the test fails if that is not possible. */
struct store *mysql_bench_open(struct mysql_bench *bench, const char *address, const char *options);

/* The same, but must fail with that status and these words in its message. */
void mysql_bench_refuse(const char *url, enum gavel_status status, const char *words);

/* Runs one statement, or returns the one number that it yields. */
void mysql_bench_sql(struct mysql_bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int64_t mysql_bench_number(struct mysql_bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
