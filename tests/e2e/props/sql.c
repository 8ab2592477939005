/* SPDX-License-Identifier: Apache-2.0 */

/*
 * sql FILE STATEMENTS [hold]: runs them on a SQLite database and prints what
 * they give, a row each line. With `hold` it then says "done" and stays, with
 * the locks it has, until it is killed; like a process of gavel that has the
 * store open, it then uses a log.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

static int print_row(void *user, int count, char **values, char **names)
{
    (void)user;
    (void)names;
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? "\t" : "", values[i] ? values[i] : "");
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;

    if (argc < 3 || sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        fprintf(stderr, "sql: cannot open: %s\n", db ? sqlite3_errmsg(db) : "usage");
        sqlite3_close(db);
        return 1;
    }
    sqlite3_busy_timeout(db, 10000);
    if (argc > 3 && sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) != SQLITE_OK)
        fprintf(stderr, "sql: no log: %s\n", sqlite3_errmsg(db));
    if (sqlite3_exec(db, argv[2], print_row, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "sql: %s\n", sqlite3_errmsg(db));
        sqlite3_close(db);
        return 1;
    }
    if (argc > 3) {
        printf("done\n");
        fflush(stdout);
        for (;;)
            pause();
    }
    sqlite3_close(db);
    return 0;
}
