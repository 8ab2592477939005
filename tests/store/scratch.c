/* SPDX-License-Identifier: Apache-2.0 */

#include "scratch.h"

#include "store/conformance/conformance.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

void scratch_remove(const char *directory)
{
    assert_int_equal(nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void scratch_make(struct scratch *scratch)
{
    const char *parent = getenv("TMPDIR");

    (void)snprintf(scratch->directory, sizeof scratch->directory, "%s/gavel-store-XXXXXX",
                   parent ? parent : "/tmp");
    assert_non_null(mkdtemp(scratch->directory));
    (void)snprintf(scratch->file, sizeof scratch->file, "%s/gavel.db", scratch->directory);
}

int scratch_set_up(void **state)
{
    struct scratch *scratch = calloc(1, sizeof *scratch);

    assert_non_null(scratch);
    scratch_make(scratch);
    *state = scratch;
    return 0;
}

int scratch_tear_down(void **state)
{
    struct scratch *scratch = *state;

    scratch_remove(scratch->directory);
    free(scratch);
    return 0;
}

void scratch_sql(const char *file, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;

    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    if (sqlite3_exec(db, sql, NULL, NULL, &message))
        fail_msg("%s: %s", sql, message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int64_t scratch_number(const char *file, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t number;

    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return number;
}
