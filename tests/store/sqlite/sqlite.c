/* SPDX-License-Identifier: Apache-2.0 */

/* The driver `sqlite` through the suite. Its faults have files of their own. */
#include "store/conformance/conformance.h"
#include "store/scratch.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static void make_url(char *url, size_t size)
{
    struct scratch scratch;

    scratch_make(&scratch);
    (void)snprintf(url, size, "sqlite:%s", scratch.file);
}

static void remove_url(const char *url)
{
    char directory[512];

    (void)snprintf(directory, sizeof directory, "%s", strchr(url, ':') + 1);
    *strrchr(directory, '/') = '\0';
    scratch_remove(directory);
}

static void write_future_record(const char *url, const char *group)
{
    char *sql = sqlite3_mprintf("UPDATE groups SET format = 3 WHERE name = %Q", group);

    scratch_sql(strchr(url, ':') + 1, sql);
    sqlite3_free(sql);
}

/* Somebody's transaction that does not end: the suite has one at a time. */
static sqlite3 *blocker;

static void freeze(const char *url)
{
    assert_int_equal(sqlite3_open(strchr(url, ':') + 1, &blocker), SQLITE_OK);
    assert_int_equal(sqlite3_exec(blocker, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
}

static void thaw(const char *url)
{
    (void)url;
    assert_int_equal(sqlite3_close(blocker), SQLITE_OK);
    blocker = NULL;
}

int main(void)
{
    static const struct conformance_driver driver = {
        .name = "sqlite",
        .make_url = make_url,
        .remove_url = remove_url,
        .write_future_record = write_future_record,
        .freeze = freeze,
        .thaw = thaw,
    };

    return conformance_run(&driver);
}
