/* SPDX-License-Identifier: Apache-2.0 */

/* The driver `mysql` through the suite, against a real MariaDB: a database of its own for each test. */
#include "conformance.h"
#include "servers/server.h"

#include <stdio.h>
#include <string.h>

/* The suite asks for URLs and knows of nothing else. */
static struct test_server server;
static int made;

static void make_url(char *url, size_t size)
{
    char name[20];

    (void)snprintf(name, sizeof name, "t%d", made++);
    test_server_make(&server, name);
    test_server_url(&server, name, NULL, url, size);
}

static const char *database_of(const char *url) { return strrchr(url, '/') + 1; }

static void remove_url(const char *url) { test_server_drop(&server, database_of(url)); }

static void write_future_record(const char *url, const char *group)
{
    char sql[200];

    (void)snprintf(sql, sizeof sql,
                   "UPDATE %s.locks SET format = 99, expires_at = expires_at WHERE lock_key = '%s'",
                   database_of(url), group);
    test_server_sql(&server, sql);
}

int main(void)
{
    static const struct conformance_driver driver = {.name = "mysql",
                                                     .make_url = make_url,
                                                     .remove_url = remove_url,
                                                     .write_future_record = write_future_record};
    int failed;

    test_server_start(&server, TEST_MARIADB);
    failed = conformance_run(&driver);
    test_server_stop(&server);
    return failed;
}
