/* SPDX-License-Identifier: Apache-2.0 */

/* Removes the record of a group, see store_remove(). The floor of forget.c stays: nobody relies on its
 * epochs. */
#include "base/error.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>

enum gavel_status sqlite_remove(struct store *store, const char *group, uint64_t version, gavel_ns until,
                                struct gavel_error *error)
{
    struct sqlite_store *sqlite = (struct sqlite_store *)store;
    enum gavel_status status = sqlite_check_files(sqlite, error);
    char *text;
    int code;

    if (status != GAVEL_OK)
        return status;
    text = sqlite3_mprintf("DELETE FROM groups WHERE name = %Q AND version = %lld AND held = 0", group,
                           (long long)version);
    sqlite->give_up_at = until;
    code = text ? sqlite3_exec(sqlite->db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code ? error_set(error, sqlite_status(code, errno), "%s: %s", sqlite->shown,
                            sqlite3_errmsg(sqlite->db))
                : GAVEL_OK;
}
