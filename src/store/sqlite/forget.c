/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records of `gavel once` whose time is over are deleted when another success is
 * recorded, in its transaction: no call and no sync more. Only such records are,
 * and only those that nobody holds.
 *
 * Wall clocks are set and may be wrong, and a record that is deleted too early
 * lets its work be done again. So its time counts from the latest that was ever
 * written into it; and while the machine has not been started since, it must be
 * over on the clock that never steps, too.
 *
 * A key that comes again later must have a higher epoch than before (S1), and a
 * version that nobody has seen. So the highest number of all deleted rows is kept
 * as one mark, `floor`, and every row that is made anew begins above it.
 *
 * Gavel of before 0.7.0 does not know the floor. If it shares the file, it may
 * begin a deleted key at epoch 1 again; docs/STORES.md says so.
 */
#include "store/sqlite/sqlite.h"

#define NUMBER_AFTER(word)                                                                                   \
    "CAST(substr(successor, instr(successor, '" word "') + length('" word "')) AS INTEGER)"
#define ENDED_MS NUMBER_AFTER(" ended=")
#define KEEP_S NUMBER_AFTER(" keep=")
#define OVER                                                                                                 \
    " FROM groups WHERE name >= 'once:' AND name < 'once;' AND held <> 1 AND successor LIKE 'outcome %%'"    \
    " AND instr(successor, ' ended=') > 0 AND instr(successor, ' keep=') > 0"                                \
    " AND max(" ENDED_MS ", since_wall_ms, renewed_wall_ms) + 1000 * " KEEP_S " < %lld"                      \
    " AND NOT (applied_boot_id = %Q AND %lld < applied_at + 1000000000 * " KEEP_S ")"

int sqlite_forget_outcomes(struct sqlite_store *sqlite, gavel_ns now, int64_t wall_ms)
{
    const char *boot_id = sqlite->self.boot_id;
    /* A file without the table `marks` keeps all: what fails first is what remembers the floor. */
    char *text = sqlite3_mprintf("INSERT INTO marks SELECT 'floor', max(max(epoch), max(version))" OVER
                                 " GROUP BY 1 ON CONFLICT (name) DO UPDATE SET"
                                 " value = max(value, excluded.value);"
                                 "DELETE" OVER,
                                 (long long)wall_ms, boot_id, (long long)now, (long long)wall_ms, boot_id,
                                 (long long)now);
    int code = text ? sqlite3_exec(sqlite->db, text, NULL, NULL, NULL) : SQLITE_NOMEM;

    sqlite3_free(text);
    /* Another success will try again; but what has ended the transaction has undone this one, too. */
    return sqlite3_get_autocommit(sqlite->db) ? code : SQLITE_OK;
}

/* The one number that a query gives; *ret_is_found is false if it gives none. */
static int read_number(sqlite3 *db, const char *query, int64_t *ret_number, bool *ret_is_found)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, query, -1, &statement, NULL);

    if (code)
        return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(statement, 0);
    *ret_is_found = code == SQLITE_ROW;
    (void)sqlite3_finalize(statement); /* repeats the code of the step */
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* That there is none must be known: a floor that merely could not be read would let epochs begin anew. */
int sqlite_floor(struct sqlite_store *sqlite, uint64_t *ret_floor)
{
    int64_t number = 0;
    bool is_found = false;
    int code = read_number(sqlite->db, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'marks'",
                           &number, &is_found);

    if (!code && is_found)
        code = read_number(sqlite->db, "SELECT value FROM marks WHERE name = 'floor'", &number, &is_found);
    if (code)
        return code;
    if (is_found && (number < 1 || (uint64_t)number > RULES_NUMBER_MAX))
        return SQLITE_CORRUPT; /* what no gavel writes */
    *ret_floor = is_found ? (uint64_t)number : 0;
    return SQLITE_OK;
}
