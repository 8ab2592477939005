/* SPDX-License-Identifier: Apache-2.0 */

/* The driver `mysql` through the suite, against a real MariaDB: tables of its own for each test. */
#include "servers/server.h"
#include "store/conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#define DATABASE "suite"

/* The suite asks for URLs and knows of nothing else. */
static struct test_server server;
static int made;

static void make_url(char *url, size_t size)
{
    test_server_url(&server, DATABASE, NULL, url, size);
    (void)snprintf(url + strlen(url), size - strlen(url), "?table=t%d", made++);
}

static void write_future_record(const char *url, const char *group)
{
    char sql[200];

    (void)snprintf(sql, sizeof sql,
                   "UPDATE " DATABASE ".%s SET format = 99, expires_at = expires_at WHERE lock_key = '%s'",
                   strchr(url, '=') + 1, group);
    test_server_sql(&server, sql);
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
        .name = "mysql",
        .make_url = make_url,
        .write_future_record = write_future_record,
        .freeze = freeze,
        .thaw = thaw,
        .is_server = true,
    };
    int failed;

    test_server_start(&server, TEST_MARIADB);
    test_server_make(&server, DATABASE);
    failed = conformance_run(&driver);
    test_server_stop(&server);
    return failed;
}
