/* SPDX-License-Identifier: Apache-2.0 */

/* hold-lock FILE: takes the write lock of a SQLite database, says "locked", and keeps it until it is killed.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    sqlite3 *db;

    if (argc != 2 || sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        return 1;
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "hold-lock: %s\n", sqlite3_errmsg(db));
        return 1;
    }
    printf("locked\n");
    fflush(stdout);
    for (;;)
        pause();
}
