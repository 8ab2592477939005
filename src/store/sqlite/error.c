/* SPDX-License-Identifier: Apache-2.0 */

/* SQLite's errors are translated here and nowhere else. */
#include "base/error.h"
#include "store/driver.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum gavel_status status_of_errno(int system_errno, enum gavel_status otherwise)
{
    switch (system_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return GAVEL_ERR_STORE_FULL;
    case EMFILE:
    case ENFILE:
    case EIO:
        return GAVEL_ERR_STORE_UNAVAILABLE;
    case ENOMEM:
        return GAVEL_ERR_NO_MEMORY;
    case EACCES:
    case EPERM:
    case EROFS:
        return GAVEL_ERR_STORE_DENIED;
    default:
        return otherwise;
    }
}

enum gavel_status sqlite_status(int code, int system_errno)
{
    if (code == SQLITE_READONLY_DBMOVED)
        return GAVEL_ERR_STORE_DAMAGED;
    switch (code & 0xff) {
    case SQLITE_OK:
        return GAVEL_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: /* the locks of the log changed hands too often while we tried */
        return GAVEL_ERR_TIMEOUT;
    case SQLITE_FULL:
        return GAVEL_ERR_STORE_FULL;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return status_of_errno(system_errno, GAVEL_ERR_STORE_DENIED);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* our statements are constant: a table or column that they name is missing */
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
    case SQLITE_CONSTRAINT:
        return GAVEL_ERR_STORE_DAMAGED;
    case SQLITE_NOMEM:
        return GAVEL_ERR_NO_MEMORY;
    case SQLITE_IOERR:
        return status_of_errno(system_errno, GAVEL_ERR_STORE_UNAVAILABLE);
    default:
        return GAVEL_ERR_IO;
    }
}

const char *sqlite_next_step(enum gavel_status status, int system_errno)
{
    if (system_errno == EMFILE || system_errno == ENFILE)
        return "close some files or raise the limit of open files";
    switch (status) {
    case GAVEL_ERR_STORE_FULL:
        return "free some space there";
    case GAVEL_ERR_STORE_DENIED:
        return "check who owns the file and its directory, and their permissions";
    case GAVEL_ERR_STORE_DAMAGED:
        return "stop all candidates of this store, then restore it from a backup, or name another file";
    case GAVEL_ERR_NO_MEMORY:
        return "free some memory";
    default:
        return "check the disk and the kernel's log";
    }
}

/*
 * Why the system refused, 0 if that is not known. SQLite does not pass it on
 * for a write to the log that fails at the commit, so ask the log's file.
 */
static int find_errno(const struct sqlite_store *sqlite, int code)
{
    sqlite3_file *log = NULL;
    int number = 0;

    /* Not every code comes with an errno of its own; an old one would mislead. */
    if (!sqlite->db || ((code & 0xff) != SQLITE_CANTOPEN && (code & 0xff) != SQLITE_IOERR))
        return 0;
    number = sqlite3_system_errno(sqlite->db);
    if (number || code != SQLITE_IOERR_WRITE)
        return number;
    if (sqlite3_file_control(sqlite->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) || !log ||
        !log->pMethods)
        return 0;
    /* It leaves 0 if it does not know. */
    (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
    return number;
}

enum gavel_status sqlite_error(const struct sqlite_store *sqlite, int code, const char *doing,
                               struct gavel_error *error)
{
    int system_errno = find_errno(sqlite, code);
    enum gavel_status status = sqlite_status(code, system_errno);
    char holder[SQLITE_HOLDER_TEXT_MAX] = "";

    if (status == GAVEL_ERR_TIMEOUT)
        sqlite_tell_holder(sqlite, holder, sizeof holder);
    return error_set(error, status, "%s the store %s failed: %s%s%s; %s", doing, sqlite->shown,
                     sqlite3_errstr(code), system_errno ? ": " : "",
                     system_errno ? strerror(system_errno) : "",
                     *holder ? holder : sqlite_next_step(status, system_errno));
}

void sqlite_reply_fail(const struct sqlite_store *sqlite, int code, const struct store_request *request,
                       struct store_reply *reply)
{
    struct gavel_error error;
    char doing[32];
    enum gavel_status status;

    (void)snprintf(doing, sizeof doing, "%s in", store_op_name(request->op)); /* always fits */
    status = sqlite_error(sqlite, code, doing, &error);

    reply_fail(reply, status, "%s", error.message);
}
